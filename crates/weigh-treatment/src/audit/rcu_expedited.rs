//! Making deletions of audit rules fast.
//!
//! Each waits for a grace period of the kernel's read-copy-update, two to five ticks of its clock:
//! 12.4 ms in the mean with 250 ticks a second, and 0.09 ms where grace periods are expedited
//! (`Documentation/admin-guide/kernel-parameters.txt`, `rcupdate.rcu_expedited`). Who changes rules
//! thousands of times would wait for nearly all of his time.

use std::path::Path;

use weigh_host::machine::fix::{RCU_EXPEDITED, Setting};
use weigh_host::undo::guard::Guard;
use weigh_host::undo::settings;
use weigh_host::undo::settings::SETTINGS;

/// Fact about expedited grace periods, for the report.
pub const FACT: &str = "RCU grace periods are expedited during the experiment (/sys/kernel/rcu_expedited), \
    so that deleting rules is fast; calls that wait for a grace period, such as membarrier, are faster than \
    usual in every arm.";

pub fn put_back(guard: &mut Guard) -> Result<(), String> {
    guard.undo(SETTINGS, RCU_EXPEDITED)
}

/// Expedites grace periods until the guard undoes it; whether that was needed and possible.
pub fn expedite(guard: &mut Guard) -> bool {
    let Ok(was) = std::fs::read_to_string(RCU_EXPEDITED) else { return false };
    let was = was.trim().to_owned();
    let setting = Setting { file: Path::new(RCU_EXPEDITED).to_owned(), was, wanted: "1".into() };
    setting.was == "0" && settings::change(&[setting], RCU_EXPEDITED, guard).is_ok()
}
