//! The contract of a place: where the launcher of an arm runs, and which build of the workloads it launches.
//!
//! A treatment that is a place too returns itself from [`Treatment::places`](crate::Treatment::places).

use weigh_model::ids::{PairId, SetId};
use weigh_workload::place::LaunchPlace;

use super::{Named, TreatmentError};

/// Which pair begins, the same in both of its arms.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PairDraw {
    /// Drawn for this pair.
    pub chance: u64,
    /// The set and the number of the pair: rows that are measured one after the other have the same.
    pub round: (SetId, PairId),
}

/// Where an arm's launcher runs. The defaults are those of a place that stays what it is.
pub trait Place {
    /// Returns where the arm is launched, if without this place it is launched in `place`.
    fn launch_place(&self, place: LaunchPlace) -> LaunchPlace {
        place
    }

    /// Prepares a pair of its arm: boots a guest, connects again, draws a build.
    fn prepare_pair(&mut self, draw: PairDraw) -> Result<(), TreatmentError> {
        let _ = draw;
        Ok(())
    }
}

impl Named {
    /// Returns where its arm is launched instead of `here`.
    ///
    /// Called after [`Treatment::apply`](crate::Treatment::apply).
    pub fn launch_place(&mut self, here: LaunchPlace) -> LaunchPlace {
        self.treatment.places().into_iter().fold(here, |place, part| part.launch_place(place))
    }

    /// Prepares a pair of its arm, and returns where that is launched instead of `here`.
    pub fn place_for_pair(
        &mut self,
        here: LaunchPlace,
        draw: PairDraw,
    ) -> Result<LaunchPlace, TreatmentError> {
        self.treatment.places().into_iter().try_for_each(|part| part.prepare_pair(draw))?;
        Ok(self.launch_place(here))
    }
}
