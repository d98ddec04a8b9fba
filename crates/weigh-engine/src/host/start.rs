//! How the samples of a pair begin: with new launchers, on one CPU.

use super::Host;
use crate::order::{chance_of_pair, cpu_chance};
use crate::platform::{SampleError, SampleSlot};
use weigh_model::ids::{ArmId, SetId};
use weigh_model::result::scheme::Scheme;
use weigh_model::role::SampleRole;
use weigh_station::arms::ArmsError;
use weigh_treatment::PairDraw;
use weigh_workload::start_cpu::{Range, StartCpu};

impl Host<'_> {
    /// New launchers for both arms of a pair, one right after the other; `slot` is the pair's first.
    pub(super) fn renew(&mut self, slot: &SampleSlot) -> Result<(), SampleError> {
        let chance = chance_of_pair(self.site.seed, slot);
        // The boots of a search are no draw of the pairs that are compared.
        let set = if slot.role == SampleRole::Search { SetId(usize::MAX) } else { slot.set };
        let draw = PairDraw { chance, round: (set, slot.pair) };
        let needs = self.site.works[slot.unit.work].needs();
        let arms = order_of_launchers(slot);
        arms.iter().for_each(|arm| self.arms.need(*arm, &needs));
        self.arms.renew_all(&arms, draw).map_err(|error| match error {
            ArmsError::Launcher(error) => SampleError::Stop(error.into()),
            other => other.into(),
        })
    }

    /// Where the worker of a sample begins; `None` for one of a run, which has no pairs.
    pub(super) fn start(&self, slot: &SampleSlot) -> Option<StartCpu> {
        let treated = slot.unit.treated_arm;
        let other = if slot.arm.is_baseline() { treated } else { ArmId::BASELINE };
        let work = &self.site.works[slot.unit.work];
        let range = match slot.scheme {
            // Interleaved commands share that CPU, or all if they can use several. In sequence they may go
            // where they like.
            Scheme::Interleaved if work.is_command() && !self.is_parallel(slot) => Range::ThatCpu,
            Scheme::Interleaved | Scheme::Sequential => work.range(),
        };
        let chance = cpu_chance(self.site.seed, slot);
        let counts_cpu = work.is_command() && is_control(slot);
        let start = |arm| StartCpu { counts_cpu, ..self.arms.start(arm, other, chance, range) };
        (!treated.is_baseline()).then(|| start(slot.arm))
    }
}

/// Returns true if a row that may still be interleaved learns from this sample what its work does alone.
pub(super) fn is_control(slot: &SampleSlot) -> bool {
    slot.role == SampleRole::Pilot && slot.scheme == Scheme::Sequential
}

/// The arms of a pair, in the order in which their launchers are started: the arm that is measured first, and
/// the coin chose that. A program that the younger of two launchers starts is slower (`exec` by 1 to
/// 3 %), so a fixed order would look like an effect of the treatment.
fn order_of_launchers(first: &SampleSlot) -> Vec<ArmId> {
    let treated = first.unit.treated_arm;
    let other = if first.arm.is_baseline() { treated } else { ArmId::BASELINE };
    let mut order = vec![first.arm, other];
    order.dedup();
    order
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::row::RowKey;
    use weigh_model::ids::{PairId, WorkId};

    fn slot(arm: usize, treated_arm: usize) -> SampleSlot {
        let unit =
            RowKey { work: WorkId(0), treated_arm: ArmId(treated_arm), start_scale: 0.1.into() };
        SampleSlot { arm: ArmId(arm), ..SampleSlot::alone(unit, PairId(0)) }
    }

    #[test]
    fn the_launcher_of_the_arm_that_is_measured_first_is_started_first() {
        assert_eq!(order_of_launchers(&slot(0, 2)), [0, 2].map(ArmId));
        assert_eq!(order_of_launchers(&slot(2, 2)), [2, 0].map(ArmId));
        assert_eq!(order_of_launchers(&slot(0, 0)), [ArmId(0)]);
    }
}
