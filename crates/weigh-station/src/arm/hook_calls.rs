//! How often each function of SELinux is called in a guest, found by launches that are not measured.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use super::{Arm, ArmsError};
use weigh_model::ids::{PairId, SetId};
use weigh_treatment::{PairDraw, TreatmentError};
use weigh_workload::launcher::{Job, Launched, LauncherError};
use weigh_workload::setup::kind::guest_state::GuestState;
use weigh_workload::setup::kind::hook_calls::HookCalls;

/// Boots that took the place of one where a launcher failed.
static BOOTS: AtomicUsize = AtomicUsize::new(0);

impl Arm {
    /// Returns true if the arm is in a guest that is to count them.
    pub fn counts_hooks(&self) -> bool {
        self.setup().get::<GuestState>().is_some_and(|state| state.counts_hooks)
    }

    /// Launches jobs in a launcher of their own, which counts the calls. The next pair has another boot.
    ///
    /// # Errors
    /// Where somebody interrupts. If the launcher fails, the calls are unknown. An arm whose guest cannot be
    /// booted again has no launcher then: whoever needs it next learns why.
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
        if let Err(LauncherError::Interrupted) = launched {
            return Err(LauncherError::Interrupted.into());
        }
        // While another arm is tried, the guest stands still and starts nothing.
        let is_broken = matches!(launched, Err(LauncherError::Broken(_)));
        if (is_broken || self.renew(interrupted).is_err())
            && let Err(error) = self.renew_in_next_boot(interrupted)
            && is_interruption(&error)
        {
            return Err(error);
        }
        match launched {
            Ok(launched) => match launched.iter().find(|one| one.exit_code != Some(0)) {
                None => Ok(Ok(launched)),
                Some(failed) => Ok(Err(format!("the workload failed: {}", failed.stderr.trim()))),
            },
            Err(error) => Ok(Err(error.to_string())),
        }
    }

    /// Renews it in another boot of its guest: the guest may have died, or hang.
    fn renew_in_next_boot(&mut self, interrupted: &Arc<AtomicBool>) -> Result<(), ArmsError> {
        // A round that no pair has, nor a search, whose set has the largest number.
        let round = (SetId(usize::MAX - 1), PairId(BOOTS.fetch_add(1, Ordering::Relaxed)));
        self.set_place(PairDraw { chance: 0, round })?;
        self.renew(interrupted)
    }
}

fn is_interruption(error: &ArmsError) -> bool {
    matches!(
        error,
        ArmsError::Launcher(LauncherError::Interrupted)
            | ArmsError::Treatment(TreatmentError::Interrupted)
    )
}
