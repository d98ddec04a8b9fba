//! `none`: nothing at all, so that `weigh compare none` weighs two identical arms through the very
//! same path (an A/A experiment): what it calls different is a false alarm.

use crate::{Kind, Launch, Probe, Reach, Treatment, TreatmentError, TreatmentKind};
use weigh_model::evidence::Evidence;
use weigh_workload::setup::kind::planted_share::PlantedShare;
use weigh_workload::setup::kind::seccomp_filter::SeccompFilter;

pub static KIND: TreatmentKind = TreatmentKind::of(
    Kind {
        name: "none",
        summary: "no change: two identical arms (an A/A test), where every difference found is a false alarm",
        parameters: &[],
        probe: || Probe::Available,
    },
    |_| Ok(Box::new(Nothing)),
);

struct Nothing;

impl Treatment for Nothing {
    fn can_interleave(&self) -> bool {
        true
    }

    fn reach(&self) -> Reach {
        Reach::Processes
    }

    /// Proves that the arm was set up without a filter and without planted work.
    ///
    /// The process itself cannot be asked: a command may well filter its own system calls. If
    /// another arm has a further treatment, that treatment proves that this arm does not have it.
    fn verify_sample(&mut self, launch: &Launch) -> Result<Evidence, TreatmentError> {
        let has_filter = launch.setup.get::<SeccompFilter>().is_some();
        let is_planted = launch.setup.get::<PlantedShare>().is_some_and(|share| share.ppm > 0);
        match launch.is_treated && (has_filter || is_planted) {
            false => Ok(Evidence::default()),
            true => Err(TreatmentError::NotInForce(
                "the arm without a treatment was set up with a treatment".into(),
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weigh_workload::launcher::Launched;
    use weigh_workload::setup::Setup;

    #[test]
    fn an_arm_with_a_filter_or_planted_work_is_not_nothing() {
        let is_believed = |is_treated, setup: Setup| {
            let launched = Launched::default();
            Nothing.verify_sample(&Launch::of_worker(is_treated, &setup, &launched)).is_ok()
        };
        let planted = |ppm| Setup::default().with(PlantedShare::evenly(ppm));
        let filtered = || Setup::default().with(SeccompFilter { program: Vec::new(), times: 1 });
        assert!(is_believed(true, Setup::default()) && is_believed(true, planted(0)));
        assert!(!is_believed(true, filtered()) && !is_believed(true, planted(1000)));
        assert!(is_believed(false, filtered()), "another arm");
    }
}
