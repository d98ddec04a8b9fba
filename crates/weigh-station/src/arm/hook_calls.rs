//! How often each function of SELinux is called in a guest, found by launches that are not measured.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use super::{Arm, ArmsError};
use weigh_workload::launcher::{Job, Launched, LauncherError};
use weigh_workload::setup::kind::guest_state::GuestState;
use weigh_workload::setup::kind::hook_calls::HookCalls;

impl Arm {
    /// Returns true if the arm is in a guest that is to count them.
    pub fn counts_hooks(&self) -> bool {
        self.setup().get::<GuestState>().is_some_and(|state| state.counts_hooks)
    }

    /// Launches jobs in a launcher of their own, which counts the calls. The next pair has another boot.
    ///
    /// # Errors
    /// Where somebody interrupts. If the launcher fails, the calls are unknown.
    pub fn hook_calls(
        &mut self,
        jobs: &[Job; 2],
        interrupted: &Arc<AtomicBool>,
    ) -> Result<Result<[Launched; 2], String>, ArmsError> {
        let place = self.place().clone();
        let counting = HookCalls { workers: jobs.len() as u32 };
        let setup = self.setup().clone().with(counting);
        // A guest has room for one launcher.
        self.lower();
        let started = place.start_launcher(&setup, interrupted);
        let launched = started.and_then(|mut launcher| {
            let [few, many] = jobs;
            Ok([launcher.run(few, interrupted)?, launcher.run(many, interrupted)?])
        });
        // While another arm is tried, the guest stands still and starts nothing.
        self.renew(interrupted)?;
        match launched {
            Ok(launched) => match launched.iter().find(|one| one.exit_code != Some(0)) {
                None => Ok(Ok(launched)),
                Some(failed) => Ok(Err(format!("the workload failed: {}", failed.stderr.trim()))),
            },
            Err(LauncherError::Interrupted) => Err(LauncherError::Interrupted.into()),
            Err(error) => Ok(Err(error.to_string())),
        }
    }
}
