//! `landlock`: each process is in layers of Landlock that allow what it does, and check it.

use std::io;

use crate::{Kind, Launch, Parameter, Probe, Reach, Treatment, TreatmentError, TreatmentKind};
use weigh_model::evidence::Evidence;
use weigh_model::label::Parameters;
use weigh_workload::setup::Setup;
use weigh_workload::setup::kind::landlock_layers::LandlockLayers;

pub static KIND: TreatmentKind = TreatmentKind::of(
    Kind {
        name: "landlock",
        summary: "layers of Landlock around the workload that allow all it does",
        parameters: &[
            Parameter { form: "layers=N", help: "number of nested layers; default 1" },
            Parameter { form: "rules=N", help: "rules of each layer; default 1; 0: no layer" },
        ],
        probe,
    },
    build,
);

/// As many as the kernel allows.
const MOST_LAYERS: u32 = 16;
/// Each takes the launcher an open file, of which a process has 1024 by default.
const MOST_RULES: u32 = 500;

fn probe() -> Probe {
    match LandlockLayers::version() {
        Ok(_) => Probe::Available,
        Err(error) if error.raw_os_error() == Some(libc::EOPNOTSUPP) => Probe::Broken(
            "Landlock is not among the kernel's security modules: add it to lsm= on the kernel's \
                 command line"
                .into(),
        ),
        Err(error) if error.kind() == io::ErrorKind::Unsupported => {
            Probe::Broken("this kernel lacks Landlock, which needs Linux 5.13".into())
        }
        Err(error) => Probe::Broken(format!("cannot query Landlock: {error}")),
    }
}

fn build(parameters: &Parameters) -> Result<Box<dyn Treatment>, String> {
    let layers = parameters.number("layers", 1..=MOST_LAYERS)?.unwrap_or(1);
    let rules = parameters.number("rules", 0..=MOST_RULES)?.unwrap_or(1);
    // A layer without a rule would deny everything.
    let layers = if rules == 0 { 0 } else { layers };
    Ok(Box::new(Layers { layers, rules }))
}

struct Layers {
    layers: u32,
    rules: u32,
}

impl Treatment for Layers {
    fn can_interleave(&self) -> bool {
        true
    }

    fn reach(&self) -> Reach {
        Reach::Processes
    }

    fn setup(&self, is_treated: bool) -> Setup {
        let layers = if is_treated { self.layers } else { 0 };
        Setup::default().with(LandlockLayers { layers, rules: self.rules })
    }

    /// No program was executed that was not denied what the layers deny: the step itself tries that. That it
    /// cannot gain privileges is left of it in `/proc/PID/status`.
    fn verify_sample(&mut self, launch: &Launch) -> Result<Evidence, TreatmentError> {
        let step = launch.setup.get::<LandlockLayers>();
        let (layers, rules) = step.map_or((0, 0), |step| (step.layers, step.rules));
        let is_set_up = !launch.is_treated || (layers, rules) == (self.layers, self.rules);
        let is_held = layers == 0 || launch.status_numbers("NoNewPrivs").all(|set| set == Some(1));
        match is_set_up && is_held {
            true => Ok(Evidence::default()),
            false => Err(TreatmentError::NotInForce(format!(
                "the {} process should have been in {layers} layers of Landlock, but was not",
                launch.whose()
            ))),
        }
    }

    fn facts(&self) -> Vec<String> {
        let layers = match self.layers {
            0 => return vec!["The processes of this arm are in no layer of Landlock.".into()],
            1 => "a layer".to_owned(),
            layers => format!("{layers} layers"),
        };
        let of_files = match self.rules {
            1 => String::new(),
            2 => ", and one for a file that no program opens".into(),
            rules => format!(", and {} for files that no program opens", rules - 1),
        };
        vec![format!(
            "The processes of this arm are in {layers} of Landlock, each with one rule for the whole \
             tree{of_files}."
        )]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse;
    use weigh_workload::launcher::Launched;

    #[test]
    fn a_process_that_can_gain_privileges_is_in_no_layer() {
        let mut treatment = parse("landlock:layers=2").unwrap().treatment;
        let mut is_believed = |is_treated, layers, status: &str| {
            let setup = Setup::default().with(LandlockLayers { layers, rules: 1 });
            let launched = Launched { status: status.into(), ..Launched::default() };
            treatment.verify_sample(&Launch::of_worker(is_treated, &setup, &launched)).is_ok()
        };
        assert!(is_believed(true, 2, "NoNewPrivs:\t1\n"));
        assert!(!is_believed(true, 2, "NoNewPrivs:\t0\n") && !is_believed(true, 2, ""));
        assert!(!is_believed(true, 0, "NoNewPrivs:\t1\n"));
        assert!(is_believed(false, 0, "") && is_believed(false, 1, "NoNewPrivs:\t1\n"));
        assert!(parse("landlock:layers=17").err().unwrap().contains("from 1 to 16"));
        assert!(parse("landlock:rules=501").err().unwrap().contains("from 0 to 500"));
    }

    #[test]
    fn without_a_rule_there_is_no_layer() {
        let treatment = parse("landlock:rules=0,layers=3").unwrap().treatment;
        let layers = |is_treated| treatment.setup(is_treated).get::<LandlockLayers>().cloned();
        assert_eq!(layers(true), Some(LandlockLayers { layers: 0, rules: 0 }));
        assert_eq!(layers(true), layers(false));
    }
}
