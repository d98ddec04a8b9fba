//! The calls that the filter of an arm denies to a work, for the evidence of its samples: a denied call may
//! make a program faster, and nothing else in a report would say why.

use super::Host;
use crate::length::SampleLength;
use crate::platform::{SampleError, Stop};
use crate::work::Work;
use weigh_model::evidence::Evidence;
use weigh_model::ids::{ArmId, WorkId};
use weigh_treatment::seccomp::denied;
use weigh_workload::launcher::Job;

/// A workload makes each of its calls within this time. A command of the user's is never cut short.
const LONGEST_MS: u64 = 2000;

impl Host<'_> {
    /// Finds them for a work in an arm, by one more launch that is not measured, and keeps them. Returns the
    /// calls in words if there are any.
    ///
    /// # Errors
    /// Where the experiment cannot go on.
    pub(super) fn find_denied_calls(
        &mut self,
        work: WorkId,
        arm: ArmId,
    ) -> Result<Option<String>, Stop> {
        if arm.is_baseline() || !self.arms.has_denying_filter(arm) {
            return Ok(None);
        }
        let Some(job) = self.job_of_all_calls(work, arm) else { return Ok(None) };
        let job = match self.prepare(arm).and_then(|()| self.limited_to_calls(work, &job)) {
            Ok(job) => job,
            Err(SampleError::Stop(stop)) => return Err(stop),
            // The first sample reports it.
            Err(SampleError::Workload(_) | SampleError::Lost(_)) => return Ok(None),
        };
        let mut evidence = Evidence::default();
        let words = match self.arms.denied_calls(arm, &job)? {
            None => None,
            Some(Ok(calls)) => denied::in_words(&calls),
            Some(Err(why)) => {
                evidence.amounts.set(Evidence::DENIED_CALLS_UNKNOWN, &*why);
                None
            }
        };
        if let Some(words) = &words {
            evidence.amounts.set(Evidence::DENIED_CALLS, &**words);
        }
        self.denied.insert((work, arm), evidence);
        Ok(words)
    }

    fn job_of_all_calls(&self, work: WorkId, arm: ArmId) -> Option<Job> {
        let (work, place) = (&self.site.works[work], self.arms.place(arm));
        let length = SampleLength::new(None, false).wanted();
        work.startup_job(place).or_else(|| work.job(arm, place, length, 0).ok())
    }

    /// With the limits of a sample; a workload of ours goes on for as long as it may.
    fn limited_to_calls(&self, work: WorkId, job: &Job) -> Result<Job, SampleError> {
        let work = &self.site.works[work];
        let is_users = matches!(work, Work::Command { .. } | Work::CommandComparison { .. });
        let job = self.limited(job)?;
        let timeout_ms = if is_users { job.timeout_ms } else { job.timeout_ms.min(LONGEST_MS) };
        Ok(Job { timeout_ms, ..job })
    }
}
