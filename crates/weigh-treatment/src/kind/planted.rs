//! `planted`: a positive control. The workloads of the treated arm do a known share more of their own work
//! than they report, so the true effect is known: an interval should cover it, and a verdict should find it.

use std::ops::RangeInclusive;

use serde::Deserialize;

use crate::{Kind, Launch, Parameter, Probe, Reach, Treatment, TreatmentError, TreatmentKind};
use weigh_model::evidence::Evidence;
use weigh_model::label::Parameters;
use weigh_workload::setup::Setup;
use weigh_workload::setup::kind::planted_share::PlantedShare;

pub static KIND: TreatmentKind = TreatmentKind {
    needs_workload: true,
    ..TreatmentKind::of(
        Kind {
            name: "planted",
            summary: "a known amount of extra work that is not reported: a positive control",
            parameters: &[
                Parameter { form: "share=PERCENT", help: "extra work, 0.1% to 50%; default 1%" },
                Parameter {
                    form: "every=SLICES",
                    help: "do all extra work in every 1st, 2nd, 4th, 5th, 10th or 20th slice; default 1",
                },
            ],
            probe: || Probe::Available,
        },
        build,
    )
};

/// In millionths: 0.1 % to 50 %.
const SHARES_PPM: RangeInclusive<u32> = 1_000..=500_000;
const DEFAULT_PPM: u32 = 10_000;
/// Periods in slices: divisors of the most that a sample has, so that each has whole periods.
const PERIODS: [u32; 6] = [1, 2, 4, 5, 10, 20];
/// Planted work that a median of slices does not see: its period in slices, and its share.
///
/// The share is five times the usual margin.
pub const PERIODIC_EVERY: u32 = 5;
pub const PERIODIC_PPM: u32 = 50_000;

/// Reads a share such as `1%` or `0.5`, in millionths.
pub fn share_ppm(text: &str) -> Result<u32, String> {
    let percent: Option<f64> = text.strip_suffix('%').unwrap_or(text).trim().parse().ok();
    percent
        .map(|percent| (percent * 1e4).round() as u32)
        .filter(|ppm| SHARES_PPM.contains(ppm))
        .ok_or_else(|| "takes a percentage from 0.1% to 50%, such as 1%".into())
}

/// Writes a share as a percentage, such as `1%`.
pub fn percent(ppm: u32) -> String {
    format!("{}%", f64::from(ppm) / 1e4)
}

/// How far the measured time of planted steps may be from the share, as a part of it. Usually it is a tenth;
/// operations whose time scatters, such as `fork`, had up to 0.27 (docs/treatments.md).
const STEPS_ERROR: f64 = 0.5;

/// The treatment with this share, as it is written on the command line.
pub fn label(ppm: u32) -> String {
    format!("planted:share={}", percent(ppm))
}

/// The treatment with a cost in one slice of five.
pub fn periodic_label() -> String {
    format!("{},every={PERIODIC_EVERY}", label(PERIODIC_PPM))
}

/// Returns the effect of a share on the rate, as a log-ratio.
pub fn true_effect(ppm: u32) -> f64 {
    -(f64::from(ppm) / 1e6).ln_1p()
}

fn build(parameters: &Parameters) -> Result<Box<dyn Treatment>, String> {
    let ppm = match parameters.value("share") {
        Some(text) => share_ppm(text).map_err(|problem| format!("share={text}: {problem}"))?,
        None => DEFAULT_PPM,
    };
    let every = parameters.number("every", 1..=20)?.unwrap_or(1);
    match PERIODS.contains(&every) {
        true => Ok(Box::new(Planting { ppm, every })),
        false => Err(format!("every={every}: takes 1, 2, 4, 5, 10 or 20 slices")),
    }
}

struct Planting {
    ppm: u32,
    every: u32,
}

/// The part of a workload's line that proves it.
#[derive(Deserialize)]
struct Proof {
    operations: u64,
    planted_operations: f64,
    #[serde(default)]
    is_planted_in_steps: bool,
    copies: Option<u64>,
}

impl Treatment for Planting {
    fn can_interleave(&self) -> bool {
        true
    }

    fn reach(&self) -> Reach {
        Reach::Processes
    }

    fn setup(&self, is_treated: bool) -> Setup {
        let ppm = if is_treated { self.ppm } else { 0 };
        Setup::default().with(PlantedShare { ppm, every: self.every })
    }

    fn verify_sample(&mut self, launch: &Launch) -> Result<Evidence, TreatmentError> {
        // One that failed is no sample, and whoever reads it says why.
        if launch.launched.exit_code != Some(0) {
            return Ok(Evidence::default());
        }
        let wanted_ppm = launch.setup.get::<PlantedShare>().map_or(0, |share| share.ppm);
        if launch.is_treated && wanted_ppm != self.ppm {
            let problem = "weigh did not set up the treated process for the planted work";
            return Err(TreatmentError::NotInForce(problem.into()));
        }
        let line = launch.launched.stdout.lines().rev().find(|line| !line.trim().is_empty());
        let proof = line.and_then(|line| serde_json::from_str::<Proof>(line).ok()).ok_or_else(|| {
            TreatmentError::NotInForce(
                "the process does not report its planted work: it belongs to a different version of weigh"
                    .into(),
            )
        })?;
        let wanted = proof.operations as f64 * f64::from(wanted_ppm) / 1e6;
        // Each copy rounds by itself. Steps are measured by a clock.
        let allowed = match proof.is_planted_in_steps {
            true => wanted * STEPS_ERROR,
            false => proof.copies.unwrap_or(1) as f64,
        };
        if (proof.planted_operations - wanted).abs() <= allowed {
            return Ok(Evidence::default());
        }
        Err(TreatmentError::NotInForce(format!(
            "the {} process should have done {wanted:.1} operations in addition to the {} that it reports, \
             but did {}",
            if launch.is_treated { "treated" } else { "other" },
            proof.operations,
            proof.planted_operations
        )))
    }

    fn facts(&self) -> Vec<String> {
        let mut facts = vec![format!(
            "In the treated arm, workloads do {} % more work in their timed part than they report: the true \
             effect is {:.4} %.",
            f64::from(self.ppm) / 1e4,
            100.0 * true_effect(self.ppm).exp_m1()
        )];
        if self.every > 1 {
            facts.push(format!("All extra work is in one of every {} slices.", self.every));
        }
        facts
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parameters_of;
    use weigh_workload::launcher::Launched;

    #[test]
    fn shares_are_percentages_within_what_can_be_planted() {
        assert_eq!(
            [share_ppm("1%"), share_ppm("0.1"), share_ppm("50%")],
            [10_000, 1_000, 500_000].map(Ok)
        );
        for wrong in ["0", "0.09%", "50.1%", "-1%", "nan", "inf", "", "much"] {
            assert!(share_ppm(wrong).unwrap_err().contains("0.1% to 50%"), "{wrong}");
        }
        let build = |text: &str| (KIND.build)(&parameters_of(text)).err();
        assert_eq!(build(&label(12_500)), None);
        assert!(build("planted:share=90%").unwrap().starts_with("share=90%: takes"));
        assert_eq!(build(&periodic_label()), None);
        assert!(build("planted:every=3").unwrap().starts_with("every=3: takes"));
        assert!(build("planted:every=50").unwrap().starts_with("every=50: takes"));
    }

    /// Returns true if a line is believed of a process that should have this share planted.
    fn is_believed(is_treated: bool, exit_code: i32, line: &str) -> bool {
        let mut treatment = Planting { ppm: 10_000, every: 1 };
        let setup = treatment.setup(is_treated);
        let stdout = format!("{line}\n");
        let launched = Launched { exit_code: Some(exit_code), stdout, ..Launched::default() };
        treatment.verify_sample(&Launch::of_worker(is_treated, &setup, &launched)).is_ok()
    }

    #[test]
    fn a_sample_that_did_not_do_just_its_share_is_no_evidence() {
        let line = |planted: &str| format!(r#"{{"operations":5000{planted}}}"#);
        let did = |number: u32| line(&format!(r#","planted_operations":{number}"#));
        assert!(is_believed(true, 0, &did(50)) && is_believed(true, 0, &did(51)));
        assert!(!is_believed(true, 0, &did(0)) && !is_believed(true, 0, &did(52)));
        assert!(is_believed(false, 0, &did(0)) && !is_believed(false, 0, &did(50)));
        assert!(!is_believed(true, 0, &line("")) && !is_believed(false, 0, &line("")));
        assert!(!is_believed(true, 0, ""), "a command");
        assert!(is_believed(true, 1, ""), "who reads it says why it failed");
        assert!(is_believed(true, 0, &line(r#","planted_operations":53,"copies":4"#)));
        let steps = |operations: f64| {
            line(&format!(r#","planted_operations":{operations},"is_planted_in_steps":true"#))
        };
        assert!(is_believed(true, 0, &steps(40.5)) && is_believed(true, 0, &steps(74.0)));
        assert!(!is_believed(true, 0, &steps(20.0)) && !is_believed(true, 0, &steps(150.0)));
        assert!(!is_believed(false, 0, &steps(1.0)) && is_believed(false, 0, &steps(0.0)));
    }
}
