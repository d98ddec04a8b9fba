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
        parameters: &[Parameter { form: "layers=N", help: "number of nested layers; default 1" }],
        probe,
    },
    build,
);

/// As many as the kernel allows.
const MOST_LAYERS: u32 = 16;

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
    Ok(Box::new(Layers { layers }))
}

struct Layers {
    layers: u32,
}

impl Treatment for Layers {
    fn can_interleave(&self) -> bool {
        true
    }

    fn reach(&self) -> Reach {
        Reach::Processes
    }

    fn setup(&self, is_treated: bool) -> Setup {
        Setup::default().with(LandlockLayers { layers: if is_treated { self.layers } else { 0 } })
    }

    /// No program was executed that was not denied what the layers deny: the step itself tries that. That it
    /// cannot gain privileges is left of it in `/proc/PID/status`.
    fn verify_sample(&mut self, launch: &Launch) -> Result<Evidence, TreatmentError> {
        let layers = launch.setup.get::<LandlockLayers>().map_or(0, |step| step.layers);
        let is_set_up = !launch.is_treated || layers == self.layers;
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
        vec![format!(
            "The processes of this arm are in {} of Landlock, each with one rule for the whole tree.",
            if self.layers == 1 { "a layer".to_owned() } else { format!("{} layers", self.layers) }
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
            let setup = Setup::default().with(LandlockLayers { layers });
            let launched = Launched { status: status.into(), ..Launched::default() };
            treatment.verify_sample(&Launch::of_worker(is_treated, &setup, &launched)).is_ok()
        };
        assert!(is_believed(true, 2, "NoNewPrivs:\t1\n"));
        assert!(!is_believed(true, 2, "NoNewPrivs:\t0\n") && !is_believed(true, 2, ""));
        assert!(!is_believed(true, 0, "NoNewPrivs:\t1\n"));
        assert!(is_believed(false, 0, "") && is_believed(false, 1, "NoNewPrivs:\t1\n"));
        assert!(parse("landlock:layers=17").err().unwrap().contains("from 1 to 16"));
    }
}
