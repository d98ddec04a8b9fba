//! `landlock`: each process is in layers of Landlock that allow what it does, and check it; or in a policy.

use std::io;
use std::path::PathBuf;

use crate::{
    Kind, Launch, Parameter, Probe, Reach, Treatment, TreatmentError, TreatmentKind, absolute,
};
use weigh_model::evidence::Evidence;
use weigh_model::format;
use weigh_model::label::Parameters;
use weigh_policy::landlock_policy::{self, Policy};
use weigh_workload::landlock;
use weigh_workload::setup::Setup;
use weigh_workload::setup::kind::landlock_layers::LandlockLayers;
use weigh_workload::setup::kind::landlock_policy::LandlockPolicy;

pub static KIND: TreatmentKind = TreatmentKind::of(
    Kind {
        name: "landlock",
        summary: "layers of Landlock around the workload that allow all it does",
        parameters: &[
            Parameter { form: "layers=N", help: "number of nested layers; default 1" },
            Parameter { form: "rules=N", help: "rules of each layer; default 1; 0: no layer" },
            Parameter { form: "ports", help: "also check the port of each TCP bind and connect" },
            Parameter { form: "scopes", help: "also check signals and abstract sockets" },
            Parameter {
                form: "policy=FILE",
                help: "use this policy in each layer, such as examples/landlock.toml (landlockconfig)",
            },
        ],
        probe,
    },
    build,
);

/// As many as the kernel allows.
const MOST_LAYERS: u32 = 16;
/// Each takes the launcher an open file, of which a process has 1024 by default.
const MOST_RULES: u32 = 500;

/// Versions of Landlock that have ports and scopes.
const OF_PORTS: u32 = 4;
const OF_SCOPES: u32 = 6;
/// Linux of each version of Landlock.
const LINUX: [&str; 6] = ["5.13", "5.19", "6.2", "6.7", "6.10", "6.12"];

fn probe() -> Probe {
    match landlock::version() {
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
    if let Some(path) = parameters.value("policy") {
        let mut others = parameters.iter().map(|(key, _)| key);
        if let Some(other) = others.find(|key| ["rules", "ports", "scopes"].contains(key)) {
            return Err(format!(
                "`policy=` and `{other}` exclude each other: write the rules into the policy file"
            ));
        }
        let path = absolute(path)?;
        let Policy { step, needs } = landlock_policy::read(&path)?;
        return Ok(Box::new(Policed { step: LandlockPolicy { layers, ..step }, needs, path }));
    }
    let rules = parameters.number("rules", 0..=MOST_RULES)?.unwrap_or(1);
    // A layer without a rule would deny everything.
    let layers = if rules == 0 { 0 } else { layers };
    let [has_ports, is_scoped] = ["ports", "scopes"].map(|word| parameters.has(word));
    if layers == 0 && (has_ports || is_scoped) {
        return Err("rules=0 means no layer, so it takes neither ports nor scopes".into());
    }
    let is_rehearsal = false;
    Ok(Box::new(Layers(LandlockLayers { layers, rules, has_ports, is_scoped, is_rehearsal })))
}

/// Layers of the treated processes.
struct Layers(LandlockLayers);

impl Treatment for Layers {
    fn can_interleave(&self) -> bool {
        true
    }

    fn reach(&self) -> Reach {
        Reach::Processes
    }

    fn check_inputs(&mut self) -> Result<(), String> {
        let ports = self.0.has_ports.then_some(("`ports`", OF_PORTS));
        let scopes = self.0.is_scoped.then_some(("`scopes`", OF_SCOPES));
        ports.into_iter().chain(scopes).try_for_each(|(what, needs)| check_version(what, needs))
    }

    /// Both arms make the same files and build the same layers.
    fn setup(&self, is_treated: bool) -> Setup {
        Setup::default().with(match is_treated {
            true => self.0.clone(),
            false => LandlockLayers { is_rehearsal: self.0.layers > 0, ..self.0.clone() },
        })
    }

    /// Verifies a sample. The set-up step tried each denied access, and executes the program if all fail.
    fn verify_sample(&mut self, launch: &Launch) -> Result<Evidence, TreatmentError> {
        let step = launch.setup.get::<LandlockLayers>();
        let layers = step.map_or(0, LandlockLayers::entered);
        verify(launch, layers, !launch.is_treated || step == Some(&self.0))
    }

    fn facts(&self) -> Vec<String> {
        let layers = match self.0.layers {
            0 => return vec!["The processes of this arm are in no layer of Landlock.".into()],
            1 => "a layer".to_owned(),
            layers => format!("{layers} layers"),
        };
        let of_files = match self.0.rules {
            1 => String::new(),
            2 => ", and one for a file that no program opens".into(),
            rules => format!(", and {} for files that no program opens", rules - 1),
        };
        let mut facts = vec![format!(
            "The processes of this arm are in {layers} of Landlock, each with one rule for the whole \
             tree{of_files}."
        )];
        if self.0.has_ports {
            facts.push("Each layer has a rule for each TCP port.".into());
        }
        if self.0.is_scoped {
            facts.push("Each layer checks signals and connections to abstract sockets.".into());
        }
        facts
    }
}

/// Layers of a policy around the treated processes.
struct Policed {
    step: LandlockPolicy,
    needs: u32,
    path: PathBuf,
}

impl Treatment for Policed {
    fn can_interleave(&self) -> bool {
        true
    }

    fn reach(&self) -> Reach {
        Reach::Processes
    }

    fn check_inputs(&mut self) -> Result<(), String> {
        let path = self.path.display();
        check_version(&path.to_string(), self.needs)?;
        self.step.check_trials().map_err(|error| format!("{path}: {error}"))
    }

    fn content(&self) -> Vec<u8> {
        format!("{:?}", self.step).into_bytes()
    }

    fn setup(&self, is_treated: bool) -> Setup {
        Setup::default().with(LandlockPolicy { is_rehearsal: !is_treated, ..self.step.clone() })
    }

    /// Verifies a sample. The set-up step tried accesses that the policy denies.
    fn verify_sample(&mut self, launch: &Launch) -> Result<Evidence, TreatmentError> {
        let step = launch.setup.get::<LandlockPolicy>();
        let layers = step.map_or(0, LandlockPolicy::entered);
        verify(launch, layers, !launch.is_treated || step == Some(&self.step))
    }

    fn facts(&self) -> Vec<String> {
        let LandlockPolicy { layers, paths, .. } = &self.step;
        let mut facts = vec![format!(
            "The processes of this arm are in {} of Landlock with the policy {}: {}.",
            format::plural(*layers as usize, "layer"),
            self.path.display(),
            landlock_policy::description(&self.step)
        )];
        let absent = paths.iter().filter(|(path, _)| path.is_absolute() && !path.exists());
        let absent: Vec<_> = absent.map(|(path, _)| path.display().to_string()).collect();
        if !absent.is_empty() {
            facts.push(format!("Rules for absent paths have no effect: {}.", absent.join(", ")));
        }
        facts
    }
}

fn check_version(what: &str, needs: u32) -> Result<(), String> {
    let version = landlock::version().map_err(|error| format!("Landlock: {error}"))?;
    match version >= needs.into() {
        true => Ok(()),
        false => Err(format!(
            "{what} needs Landlock version {needs} (Linux {}); this kernel has version {version}",
            LINUX[needs as usize - 1]
        )),
    }
}

/// A process that entered layers can gain no privileges, as `/proc/PID/status` says.
fn verify(launch: &Launch, layers: u32, is_set_up: bool) -> Result<Evidence, TreatmentError> {
    let is_held = layers == 0 || launch.status_numbers("NoNewPrivs").all(|set| set == Some(1));
    match is_set_up && is_held {
        true => Ok(Evidence::default()),
        false => Err(TreatmentError::NotInForce(format!(
            "the {} process should have been in {layers} layers of Landlock, but was not",
            launch.whose()
        ))),
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
            let setup = Setup::default().with(LandlockLayers {
                layers,
                rules: 1,
                ..LandlockLayers::default()
            });
            let launched = Launched { status: status.into(), ..Launched::default() };
            treatment.verify_sample(&Launch::of_worker(is_treated, &setup, &launched)).is_ok()
        };
        assert!(is_believed(true, 2, "NoNewPrivs:\t1\n"));
        assert!(!is_believed(true, 2, "NoNewPrivs:\t0\n") && !is_believed(true, 2, ""));
        assert!(!is_believed(true, 0, "NoNewPrivs:\t1\n"));
        assert!(is_believed(false, 0, "") && is_believed(false, 1, "NoNewPrivs:\t1\n"));
        assert!(parse("landlock:layers=17").err().unwrap().contains("from 1 to 16"));
        assert!(!is_believed(true, 1, "NoNewPrivs:\t1\n"), "fewer layers");
        let said = parse("landlock:rules=0,scopes").err().unwrap();
        assert!(said.contains("neither ports nor scopes"), "{said}");
        assert!(parse("landlock:rules=501").err().unwrap().contains("from 0 to 500"));
    }

    #[test]
    fn a_policy_comes_alone_and_its_other_arm_rehearses_it() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(&file, "[[ruleset]]\nhandled_access_fs = [\"read_dir\"]\n").unwrap();
        let label = format!("landlock:policy={},layers=2", file.path().display());
        let mut treatment = parse(&label).unwrap().treatment;
        let launched = Launched { status: "NoNewPrivs:\t1\n".into(), ..Launched::default() };
        let (treated, other) = (treatment.setup(true), treatment.setup(false));
        let entered = |setup: &Setup| setup.get::<LandlockPolicy>().unwrap().entered();
        assert_eq!((entered(&treated), entered(&other)), (2, 0));
        let mut is_believed = |is_treated, setup: &Setup| {
            treatment.verify_sample(&Launch::of_worker(is_treated, setup, &launched)).is_ok()
        };
        assert!(is_believed(true, &treated) && is_believed(false, &other));
        assert!(!is_believed(true, &other), "it only rehearsed");
        let said = parse(&format!("{label},rules=2")).err().unwrap();
        assert!(said.contains("`policy=` and `rules` exclude each other"), "{said}");
    }

    #[test]
    fn without_a_rule_there_is_no_layer() {
        let treatment = parse("landlock:rules=0,layers=3").unwrap().treatment;
        let layers = |is_treated| treatment.setup(is_treated).get::<LandlockLayers>().cloned();
        assert_eq!(layers(true), Some(LandlockLayers::default()));
        assert_eq!(layers(true), layers(false));
        let treatment = parse("landlock:ports,layers=3").unwrap().treatment;
        let other = treatment.setup(false).get::<LandlockLayers>().cloned().unwrap();
        assert_eq!((other.layers, other.has_ports, other.entered()), (3, true, 0));
    }
}
