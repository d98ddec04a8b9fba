//! The calls that the filter of an arm denies to a work, for the evidence of its samples: a denied call may
//! make a program faster, and nothing else in a report would say why.

use super::Host;
use crate::length::SampleLength;
use crate::platform::Stop;
use weigh_model::evidence::Evidence;
use weigh_model::ids::{ArmId, WorkId};
use weigh_treatment::denied;
use weigh_workload::launcher::Job;

/// A workload makes each of its calls within this time.
const LONGEST_MS: u64 = 2000;

impl Host<'_> {
    /// Finds them for a work in an arm, by one more launch that is not measured, and keeps them. Returns the
    /// calls in words if there are any. A command of the user's is not launched for this: whatever it does
    /// beside its output would be done once more than was asked for.
    ///
    /// # Errors
    /// Where the experiment cannot go on.
    pub(super) fn find_denied_calls(
        &mut self,
        work: WorkId,
        arm: ArmId,
    ) -> Result<Option<String>, Stop> {
        let is_users = self.site.works[work].is_command();
        if arm.is_baseline() || is_users || !self.arms.has_denying_filter(arm) {
            return Ok(None);
        }
        self.arms.need(arm, &self.site.works[work].needs());
        let Some(job) = self.job_of_all_calls(work, arm) else { return Ok(None) };
        let job = self.limited(&job)?;
        let job = Job { timeout_ms: job.timeout_ms.min(LONGEST_MS), ..job };
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
}
