//! The calls of SELinux's functions per operation, for the evidence of a work's samples.

use super::Host;
use crate::platform::Stop;
use weigh_model::evidence::Evidence;
use weigh_model::ids::{ArmId, WorkId};
use weigh_treatment::hook_calls;

/// Operations of the first launch. From two to 31, a launch does one more before it (workloads/driver).
const FEW: u64 = 2;
/// Operations of the second launch beyond those of the first.
const OPERATIONS: u64 = 10;

impl Host<'_> {
    /// Counts them for a work in an arm that is to count, by two launches that are not measured.
    ///
    /// # Errors
    /// Where the experiment cannot go on.
    pub(super) fn find_hook_calls(&mut self, work: WorkId, arm: ArmId) -> Result<(), Stop> {
        if !self.arms.counts_hooks(arm) {
            return Ok(());
        }
        let place = self.arms.place(arm);
        let job = |operations| self.site.works[work].operations_job(place, operations);
        let (Some(few), Some(many)) = (job(FEW), job(FEW + OPERATIONS)) else { return Ok(()) };
        let jobs = [self.limited(&few)?, self.limited(&many)?];
        let launched = self.arms.hook_calls(arm, &jobs)?;
        let found = launched.and_then(|both| hook_calls::in_words(&both, OPERATIONS));
        let evidence = self.denied.entry((work, arm)).or_default();
        match found {
            Ok(words) => evidence.amounts.set(Evidence::HOOK_CALLS, &*words),
            Err(why) => evidence.amounts.set(Evidence::HOOK_CALLS_UNKNOWN, &*why),
        }
        Ok(())
    }
}
