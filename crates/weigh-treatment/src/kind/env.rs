//! `env`: variables in the environment of the workload, which the others do not have.

use std::io;
use std::path::Path;

use rustix::process::geteuid;

use crate::{Kind, Launch, Parameter, Probe, Reach, Treatment, TreatmentError, TreatmentKind};
use trust::allowed::executable_or_absent;
use weigh_model::evidence::Evidence;
use weigh_model::label::Parameters;
use weigh_workload::executable::FILE_NAME;
use weigh_workload::setup::Setup;
use weigh_workload::setup::kind::variables::Variables;

pub static KIND: TreatmentKind = TreatmentKind::of(
    Kind {
        name: "env",
        summary: "environment variables of the workload",
        parameters: &[Parameter {
            form: "NAME=VALUE",
            help: "one or several; NAME=\"\" for an empty value",
        }],
        probe: || Probe::Available,
    },
    build,
);

/// The size of the environment is drawn anew with this one for every sample.
const PADDING: &str = "WEIGH_PADDING";
/// Our own workloads set this one after they were executed, which no proof sees.
const LOCALE: &str = "LC_ALL";

/// Variable with directories of libraries that the loader loads into each program (ld.so(8)).
///
/// `LOADED` has all variables of this kind.
const DIRECTORIES: &str = "LD_LIBRARY_PATH";
const LOADED: [&str; 3] = ["LD_PRELOAD", "LD_AUDIT", DIRECTORIES];

fn build(parameters: &Parameters) -> Result<Box<dyn Treatment>, String> {
    let set = parameters.named_values()?;
    if parameters.has(PADDING) {
        return Err(format!("{PADDING} is reserved for weigh: leave it out"));
    }
    for (name, value) in set.iter().filter(|(name, _)| LOADED.contains(&&**name)) {
        check_loaded(name, value).map_err(|error| format!("env:{name}={value}: {error}"))?;
    }
    match set.is_empty() {
        true => Err("`env` needs a variable: env:NAME=VALUE".into()),
        false => Ok(Box::new(Environment { set })),
    }
}

/// Root loads nothing of another user, and nothing that another user can still make.
fn check_loaded(name: &str, value: &str) -> io::Result<()> {
    if !geteuid().is_root() {
        return Ok(());
    }
    for path in value.split([':', ';', ' ']) {
        // The loader looks for a library's bare name where the system has its own.
        if name != DIRECTORIES && !path.contains('/') {
            continue;
        }
        if !path.starts_with('/') || path.contains('$') {
            let problem = "as root, write absolute paths only, without `$ORIGIN` and the like";
            return Err(io::Error::other(problem));
        }
        executable_or_absent(Path::new(path))?;
    }
    Ok(())
}

struct Environment {
    set: Vec<(String, String)>,
}

impl Environment {
    fn sets(&self, name: &str) -> bool {
        self.set.iter().any(|(own, _)| own == name)
    }
}

impl Treatment for Environment {
    fn can_interleave(&self) -> bool {
        true
    }

    fn reach(&self) -> Reach {
        Reach::Processes
    }

    fn setup(&self, is_treated: bool) -> Setup {
        let set = if is_treated { self.set.clone() } else { Vec::new() };
        Setup::default().with(Variables { set })
    }

    fn verify_sample(&mut self, launch: &Launch) -> Result<Evidence, TreatmentError> {
        let program = launch.launched.executed.first().map(Path::new).and_then(Path::file_name);
        if program.is_some_and(|name| name == FILE_NAME) && self.sets(LOCALE) {
            return Err(TreatmentError::NotInForce(format!(
                "weigh's workloads set {LOCALE}=C themselves: to weigh {LOCALE}, write a command after \
                 `--`"
            )));
        }
        let seen = launch.seen(Variables::SEEN)?;
        let set_by_arm = launch.setup.get::<Variables>().map_or(&[][..], |step| &step.set);
        let of_each = seen.iter().flat_map(|seen| self.set.iter().map(move |own| (seen, own)));
        for (seen, (name, value)) in of_each {
            let wanted = set_by_arm.iter().find(|(other, _)| other == name);
            let found = Variables::value(seen, name);
            let is_as_wanted = match wanted {
                Some((_, wanted)) => found == Some(wanted),
                // What weigh has itself, all inherit: then the arms do not differ.
                None => found != Some(value),
            };
            let is_set = !launch.is_treated || wanted.is_some_and(|(_, wanted)| wanted == value);
            if !is_as_wanted || !is_set {
                let show = |value: Option<&str>| value.map_or("none".into(), |v| format!("`{v}`"));
                return Err(TreatmentError::NotInForce(format!(
                    "the {} process should have had the variable {name} with the value {}, but had {}; \
                     all arms inherit weigh's own variables",
                    launch.whose(),
                    show(wanted.map(|(_, wanted)| &**wanted)),
                    show(found)
                )));
            }
        }
        Ok(Evidence::default())
    }

    fn facts(&self) -> Vec<String> {
        let show = |(name, value): &(String, String)| format!("{name}={value}");
        let all: Vec<String> = self.set.iter().map(show).collect();
        vec![format!("The environment of this arm's processes contains {}.", all.join(", "))]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse;
    use weigh_workload::launcher::Launched;

    fn is_believed(is_treated: bool, of_arm: &[(&str, &str)], seen: Option<&str>) -> bool {
        let mut treatment = parse("env:A=1,B=\"x y\"").unwrap().treatment;
        let set = of_arm.iter().map(|(n, v)| ((*n).into(), (*v).into())).collect();
        let setup = Setup::default().with(Variables { set });
        let seen = seen.map(|seen| (Variables::SEEN.to_owned(), seen.to_owned()));
        let launched = Launched { seen: seen.into_iter().collect(), ..Launched::default() };
        treatment.verify_sample(&Launch::of_worker(is_treated, &setup, &launched)).is_ok()
    }

    #[test]
    fn a_sample_with_another_environment_is_no_evidence() {
        let own = [("A", "1"), ("B", "x y")];
        assert!(is_believed(true, &own, Some("C=1\0A=1\0B=x y\0")));
        assert!(!is_believed(true, &own, Some("A=1\0B=x z\0")));
        assert!(!is_believed(true, &own, Some("AA=1\0B=x y\0")));
        assert!(!is_believed(true, &own, None), "it ended before anybody looked");
        assert!(!is_believed(true, &own[..1], Some("A=1\0")), "set up as another");
        assert!(is_believed(false, &[], Some("A=2\0")));
        assert!(!is_believed(false, &[], Some("A=1\0")), "the baseline has it too");
        assert!(is_believed(false, &[("A", "1")], Some("A=1\0")), "another arm that has it");
    }

    #[test]
    fn root_loads_nothing_of_another_user_that_a_variable_names() {
        if !needs::root() {
            return;
        }
        let directory = tempfile::tempdir().unwrap();
        std::os::unix::fs::chown(&directory, Some(1002), None).unwrap();
        let label = |name: &str| parse(&format!("env:{name}={}/x", directory.path().display()));
        std::fs::write(directory.path().join("x"), "").unwrap();
        for name in LOADED {
            let problem = label(name).err().unwrap();
            assert!(problem.contains("belongs to another user (uid 1002)"), "{problem}");
        }
        assert!(label("DATA").is_ok() && parse("env:LD_PRELOAD=/absent.so").is_ok());
    }

    #[test]
    fn what_cannot_be_set_is_refused() {
        let refused = |label: &str| parse(label).err().unwrap();
        assert!(refused("env").contains("env:NAME=VALUE"));
        assert!(refused("env:A").contains("takes NAME=VALUE"));
        assert!(refused("env:WEIGH_PADDING=x").contains("is reserved"));
    }
}
