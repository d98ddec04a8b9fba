//! Origin of an experiment, stored with it: another session can continue if everything is
//! unchanged.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::request::{Plan, Request};
use weigh_model::facts::Facts;
use weigh_model::record::{ExperimentKind, Stored};
use weigh_model::result::summary::State;
use weigh_net::grid::Grid;
use weigh_treatment::Named;
use weigh_treatment::boot::are_boots;
use weigh_treatment::digest::{digest_of_bytes, digest_of_file};
use weigh_workload::executable::Executable;

/// Fields of [`Facts`] that may not differ between two sessions. A difference would mean another
/// machine or another kernel.
const SAME: [(&str, &str); 6] = [
    ("hostname", "the host name"),
    ("architecture", "the architecture"),
    ("cpu_model", "the CPU"),
    ("kernel", "the kernel"),
    ("kernel_build", "the build of the kernel"),
    ("mitigations", "the CPU's mitigations"),
];
/// Fields of [`Facts`] whose differences are reported.
const TOLD: [(&str, &str); 16] = [
    ("boot_id", "the boot"),
    ("cpus_online", "the CPUs online"),
    ("cpu_share", "what of the CPUs weigh may use"),
    ("memory_bytes", "the memory"),
    ("hypervisor", "the hypervisor"),
    ("container", "the container"),
    ("distribution", "the distribution"),
    ("libc", "the C library"),
    ("clocksource", "the clock source"),
    ("governor", "the frequency governor"),
    ("boost", "boost"),
    ("smt", "SMT"),
    ("lsm", "the security modules"),
    ("cmdline", "the kernel's command line"),
    ("transparent_hugepages", "transparent huge pages"),
    ("scratch", "the file system of the workloads' files"),
];

/// Stored as JSON with the experiment.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Provenance {
    pub request: Request,
    /// Where a command is executed.
    pub directory: PathBuf,
    /// SHA-256 of what was read from files, in hexadecimal, by what it is called.
    contents: BTreeMap<String, String>,
}

impl Provenance {
    /// Makes the origin of an experiment that is about to begin.
    pub fn new(
        request: &Request,
        directory: &Path,
        treatments: &[Named],
        executable: &Executable,
    ) -> Provenance {
        let contents = contents(request, directory, treatments, executable);
        Provenance { request: request.clone(), directory: directory.to_owned(), contents }
    }

    pub fn of(stored: &Stored) -> Result<Provenance, String> {
        match stored.header.kind {
            ExperimentKind::Compare | ExperimentKind::Versus => {}
            ExperimentKind::Run => {}
            ExperimentKind::Calibrate => {
                return Err("it is a calibration: run `weigh calibrate` again, calibrations are \
                    combined"
                    .into());
            }
            ExperimentKind::Import => return Err("it was imported, not measured here".into()),
            ExperimentKind::Rules => {
                return Err("run `weigh rules` again, with more --budget".into());
            }
            ExperimentKind::Atlas => {
                return Err("it is an atlas: use `weigh atlas --continue`".into());
            }
            kind
            @ (ExperimentKind::Budget | ExperimentKind::Profile | ExperimentKind::Repeated) => {
                return Err(format!("run {} again", kind.commands()));
            }
        }
        match stored.state {
            State::Complete | State::Interrupted => {}
            State::Running => return Err("it is still being measured".into()),
            State::Failed => {
                return Err(format!(
                    "it failed ({}), so it has no valid result",
                    stored.failure.as_deref().unwrap_or("no reason was recorded")
                ));
            }
        }
        let origin = Provenance::stored(stored)?;
        if are_boots(&origin.request.common.arms) {
            return Err("its arms are boots of the machine: begin a new experiment".into());
        }
        if origin.request.plan.runs_of_one_command().is_some() {
            return Err("it has one command, so no pairs: run it again, with more --runs".into());
        }
        if origin.request.plan.design().fixed_pairs.is_some() {
            return Err(
                "it was made with --pairs or --runs, which fix the number of pairs: Wilcoxon's test is not \
                 valid if pairs are added after the result is known"
                    .into(),
            );
        }
        if !matches!(origin.request.plan, Plan::Compare(_) | Plan::Net(_)) {
            return Err("it is a run, which has no pairs".into());
        }
        Ok(origin)
    }

    /// As it was stored, for a report; `None` for an import, which has none.
    ///
    /// # Errors
    /// A sentence, if it cannot be read: what it says is not known then, and nothing may stand in for it.
    pub fn kept(stored: &Stored) -> Result<Option<Provenance>, String> {
        match stored.header.origin {
            Some(_) => Provenance::stored(stored).map(Some),
            None => Ok(None),
        }
    }

    /// As it was stored, whether or not it can be continued.
    pub fn stored(stored: &Stored) -> Result<Provenance, String> {
        let text = stored.header.origin.as_ref().ok_or_else(|| {
            format!(
                "its request was not stored. To measure it again, run: {}",
                stored.header.command
            )
        })?;
        serde_json::from_str(text)
            .map_err(|error| format!("its stored request cannot be read ({error})"))
    }

    /// Checks that everything that was read from files is unchanged.
    pub fn check_contents(
        &self,
        treatments: &[Named],
        executable: &Executable,
    ) -> Result<(), String> {
        let now = contents(&self.request, &self.directory, treatments, executable);
        let names = self.contents.keys().chain(now.keys());
        let changed = |name: &&String| self.contents.get(*name) != now.get(*name);
        match names.into_iter().find(changed) {
            None => Ok(()),
            Some(name) => Err(format!(
                "{name} has changed since the experiment began, so pairs from before and after must not be \
                 combined. Restore it, or begin a new experiment"
            )),
        }
    }
}

/// Digests of all that a label or a name stands for but does not say.
fn contents(
    request: &Request,
    directory: &Path,
    treatments: &[Named],
    executable: &Executable,
) -> BTreeMap<String, String> {
    let mut contents = BTreeMap::new();
    for named in treatments {
        let content = named.treatment.content();
        if !content.is_empty() {
            contents
                .insert(format!("what `{}` is made of", named.label), digest_of_bytes(&content));
        }
    }
    let programs = match (request.plan.command(), request.plan.contest()) {
        (None, None) => {
            let name = "the build of the workloads".to_owned();
            contents.extend(digest_of_file(executable.path()).ok().map(|digest| (name, digest)));
            let names = request.plan.names();
            let grids = names.iter().filter_map(|label| Grid::named(label));
            contents.extend(grids.map(|grid| (format!("the grid {}", grid.name), grid.hash())));
            return contents;
        }
        (Some(argv), _) => argv.first().cloned().into_iter().collect(),
        (None, Some(contest)) => contest.programs(),
    };
    for file in programs.iter().filter_map(|program| program_file(program, directory)) {
        let name = format!("the program {}", file.display());
        contents.extend(digest_of_file(&file).ok().map(|digest| (name, digest)));
    }
    contents
}

/// The file that execvp(3) would execute.
pub fn program_file(program: &str, directory: &Path) -> Option<PathBuf> {
    if program.contains('/') {
        return Some(directory.join(program));
    }
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path)
        .map(|at| directory.join(at).join(program))
        .find(|file| file.is_file())
}

/// Holds the machine as it is against that of the experiment's beginning; sentences about what differs.
pub fn check_machine(then: &Facts, now: &Facts) -> Result<Vec<String>, String> {
    let fields = |facts: &Facts| serde_json::to_value(facts).expect("facts are plain data");
    let (then, now) = (fields(then), fields(now));
    let differs = |field: &str| then[field] != now[field];
    if let Some((field, name)) = SAME.into_iter().find(|(field, _)| differs(field)) {
        return Err(format!(
            "{name} is {} now and was {} when the experiment began: pairs of different machines or kernels \
             cannot be combined. Begin a new experiment here",
            shown(&now[field]),
            shown(&then[field])
        ));
    }
    let different = TOLD.into_iter().filter(|(field, _)| differs(field));
    Ok(different
        .map(|(field, name)| match field {
            "boot_id" => "the machine was rebooted".to_owned(),
            _ => format!("{name}: {}, previously {}", shown(&now[field]), shown(&then[field])),
        })
        .collect())
}

fn shown(value: &Value) -> String {
    match value {
        Value::Null => "not known".to_owned(),
        Value::String(text) => format!("`{text}`"),
        Value::Array(items) => items.iter().map(shown).collect::<Vec<_>>().join(", "),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_kernel_is_refused_and_another_boot_is_told() {
        let then = Facts { kernel: "6.1".into(), boot_id: "a".into(), ..Facts::default() };
        let booted = Facts { boot_id: "b".into(), load_1min: Some(3.0), ..then.clone() };
        assert_eq!(check_machine(&then, &booted).unwrap(), ["the machine was rebooted"]);
        let slower = Facts { governor: Some("powersave".into()), ..then.clone() };
        assert_eq!(
            check_machine(&then, &slower).unwrap(),
            ["the frequency governor: `powersave`, previously not known"]
        );
        let other = Facts { kernel: "6.6".into(), ..then.clone() };
        let refused = check_machine(&then, &other).unwrap_err();
        assert!(refused.starts_with("the kernel is `6.6` now and was `6.1`"), "{refused}");
        assert_eq!(check_machine(&then, &then.clone()).unwrap(), Vec::<String>::new());
    }

    #[test]
    fn the_fields_exist() {
        let facts = serde_json::to_value(Facts::default()).unwrap();
        for (field, _) in SAME.into_iter().chain(TOLD) {
            assert!(facts.get(field).is_some(), "{field}");
        }
    }

    #[test]
    fn a_program_is_found_as_the_launcher_finds_it() {
        let directory = Path::new("/somewhere");
        assert_eq!(program_file("./a", directory), Some("/somewhere/./a".into()));
        assert_eq!(program_file("/bin/a", directory), Some("/bin/a".into()));
        assert!(program_file("sh", directory).is_some_and(|file| file.ends_with("sh")));
        assert_eq!(program_file("no such program", directory), None);
    }
}
