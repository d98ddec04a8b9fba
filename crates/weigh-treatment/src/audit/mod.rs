//! Common parts of the kinds of treatment that change auditing.
//!
//! They are the host's state and its restoration, the stream of records, and the residue of auditing.

use std::io;
use std::ops::RangeInclusive;
use std::path::PathBuf;

use super::TreatmentError;
use weigh_workload::setup::Setup;
use weigh_workload::setup::kind::canary::Canary;
use weigh_workload::setup::kind::login_uid::LoginUid;

pub mod arm_rules;
pub mod configuration;
pub mod context;
pub mod host;
pub mod limits;
pub mod live;
pub mod probe;
pub mod quantities;
pub mod rcu_expedited;
pub mod receiver;
pub mod residual;
pub mod sink_choice;
pub mod state;
pub mod stream;
mod wait;
pub mod watch;

/// Login uids that no user has; above 1000 and set, so that rules with `auid>=1000 auid!=unset`
/// match the treated processes as they would match a person's.
pub const BASELINE_LOGINUID: u32 = 1_994_000_001;
/// Login uid of the first audited arm. Each further arm has the next number.
///
/// So processes that an arm leaves running, idle or not, are never counted with another arm's
/// sample.
pub const TREATED_LOGINUID: u32 = 1_994_000_002;
/// All that are ours.
pub const LOGINUIDS: RangeInclusive<u32> = BASELINE_LOGINUID..=1_994_000_999;

/// The login uid of an audited arm, by its number among these.
pub fn treated_loginuid(arm: usize) -> Result<u32, TreatmentError> {
    let loginuid = u32::try_from(arm).ok().and_then(|arm| TREATED_LOGINUID.checked_add(arm));
    loginuid.filter(|loginuid| LOGINUIDS.contains(loginuid)).ok_or_else(|| {
        TreatmentError::Unavailable(format!(
            "an experiment has at most {} arms with auditing: use several experiments",
            LOGINUIDS.end() - BASELINE_LOGINUID
        ))
    })
}

/// Processes that are audited or, of the other arm, exempt: by their login uid. They open the canary.
pub fn setup(workers: u32, canary: Option<PathBuf>) -> Setup {
    let setup = Setup::default().with(LoginUid { launcher: BASELINE_LOGINUID, workers });
    canary.into_iter().fold(setup, |setup, file| setup.with(Canary { file }))
}

/// An error of the audit socket, as what is missing.
pub fn needs(error: io::Error) -> TreatmentError {
    TreatmentError::Unavailable(match error.raw_os_error() {
        Some(libc::EPERM) => {
            "auditing needs root: CAP_AUDIT_CONTROL and CAP_AUDIT_WRITE are missing (try `sudo \
             weigh …`)"
                .into()
        }
        Some(libc::ECONNREFUSED) => {
            "auditing can be changed only in the initial user and PID namespaces: run weigh on the host, \
             not in a container"
                .into()
        }
        Some(libc::EPROTONOSUPPORT) => {
            "this kernel was built without auditing (CONFIG_AUDIT)".into()
        }
        _ => format!("cannot use the kernel's audit interface: {error}"),
    })
}

/// Anything else that went wrong.
pub fn system(problem: impl ToString) -> TreatmentError {
    TreatmentError::Unavailable(format!("cannot set up auditing: {}", problem.to_string()))
}
