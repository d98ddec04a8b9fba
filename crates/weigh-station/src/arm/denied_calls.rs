//! Which system calls the filter of an arm denies to a workload, found by a launch that is not measured.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use super::{Arm, ArmsError};
use weigh_workload::launcher::{Job, LauncherError};
use weigh_workload::seccomp_program::{Instruction, can_deny};
use weigh_workload::setup::kind::denied_calls::{DeniedCalls, Found};
use weigh_workload::setup::kind::seccomp_filter::SeccompFilter;

impl Arm {
    /// Program of the arm's filter, if the filter can deny a call.
    pub fn denying_filter(&self) -> Option<Vec<Instruction>> {
        let filter = self.setup().get::<SeccompFilter>()?;
        can_deny(&filter.program).then(|| filter.program.clone())
    }

    /// Launches a job in a launcher of its own, whose filter counts what it denies. `None` if no filter of
    /// the arm denies anything, or if the job needs servers, which such a launcher lacks.
    ///
    /// # Errors
    /// Where somebody interrupts. If the launcher fails, the calls are unknown.
    pub fn denied_calls(
        &mut self,
        job: &Job,
        interrupted: &Arc<AtomicBool>,
    ) -> Result<Option<Found>, ArmsError> {
        let Some(program) = self.denying_filter().filter(|_| self.needs.is_empty()) else {
            return Ok(None);
        };
        let is_here = self.place().is_here();
        // The next launch says why it cannot be raised.
        if is_here && !self.is_raised() && self.renew(interrupted).is_err() {
            return Ok(None);
        }
        if self.has_members() {
            return Ok(None);
        }
        let place = self.place().clone();
        let mut job = job.clone();
        let environment = self.raised.as_ref().map(|raised| raised.environment.clone());
        job.environment.extend(environment.into_iter().flatten());
        let counting = DeniedCalls { program };
        let setup = self.setup().clone().without::<SeccompFilter>().with(counting.clone());
        // A guest has room for one launcher.
        if !is_here {
            self.lower();
        }
        let started = place.start_launcher(&setup, interrupted);
        let found = match started.and_then(|mut launcher| launcher.run(&job, interrupted)) {
            Ok(launched) => DeniedCalls::found(&launched),
            // The launcher's report is lost with a program that could not begin.
            Err(LauncherError::Refused(reason)) => match counting.denies_execve() {
                Some(call) => Ok(vec![call]),
                None => Err(reason),
            },
            Err(LauncherError::Broken(reason)) => Err(reason),
            Err(LauncherError::Interrupted) => return Err(LauncherError::Interrupted.into()),
        };
        Ok(Some(found))
    }
}
