//! A fixture as part of an arm: what a workload needs around it is raised, proved and compared like any other
//! change.

use std::fs::{self, DirBuilder};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use super::tuned::tune;
use super::{ApplyContext, Launch, Treatment, TreatmentError};
use weigh_fixture::{Fixture, InInstance};
use weigh_host::undo::guard::Guard;
use weigh_host::undo::scratch;
use weigh_host::undo::scratch::SCRATCH;
use weigh_host::{chance, interruption};
use weigh_model::evidence::Evidence;
use weigh_model::label::Term;
use weigh_workload::executable::Executable;
use weigh_workload::instance::Instance;

/// Makes the fixture of a term: ready before anything is measured, or when a workload first needs it.
pub fn of_fixture(term: &Term, is_ready_at_first: bool) -> Result<Box<dyn Treatment>, String> {
    let found = weigh_fixture::find(&term.name);
    let kind = found.ok_or_else(|| format!("`{}` is not a fixture", term.name))?;
    Ok(Box::new(FixtureTreatment {
        name: kind.kind.name,
        fixture: (kind.build)(&term.parameters)?,
        directory: PathBuf::new(),
        executable: None,
        instances: 0,
        is_ready: false,
        is_ready_at_first,
    }))
}

/// A fixture that one workload needs in an arm, by their labels: it is made ready when that is first
/// launched, and where it cannot be, that workload alone has no result; but before all, where the arm asks
/// anything of its servers.
pub fn on_demand(label: &str, arm: &str) -> Result<Box<dyn Treatment>, String> {
    let mut terms = super::read_fixture(label)?;
    let [term] = terms.as_mut_slice() else {
        return Err(format!("`{label}` names more than one fixture: give one"));
    };
    // The arm of a contest is a command.
    let arm = super::read_label(arm).unwrap_or_default();
    let is_tuned = tune(term, &arm.treatments);
    of_fixture(term, is_tuned)
}

struct FixtureTreatment {
    name: &'static str,
    fixture: Box<dyn Fixture>,
    /// Its own in this arm.
    directory: PathBuf,
    /// The workloads of this machine.
    executable: Option<Executable>,
    instances: u64,
    is_ready: bool,
    /// True if it is made ready before anything is measured.
    is_ready_at_first: bool,
}

impl FixtureTreatment {
    fn make_ready(&mut self) -> Result<(), String> {
        if let Some(executable) = self.executable.as_ref().filter(|_| !self.is_ready) {
            self.fixture.prepare(&self.directory, executable)?;
            self.is_ready = true;
        }
        Ok(())
    }

    /// Where the last instance is.
    fn of_instance(&self) -> PathBuf {
        self.directory.join(self.instances.to_string())
    }
}

impl Treatment for FixtureTreatment {
    fn check_inputs(&mut self) -> Result<(), String> {
        self.fixture.check_inputs()
    }

    /// A database makes its first data; a server that a workload needs first is announced by the engine.
    fn takes_time(&self) -> Option<String> {
        let is_asked = weigh_fixture::find(self.name).is_some_and(|kind| kind.is_asked);
        (is_asked && self.is_ready_at_first).then(|| {
            format!(
                "Preparing the `{}` server of each arm, before the time of --budget: up to 10 s per arm.",
                self.name
            )
        })
    }

    fn prepare(
        &mut self,
        context: &ApplyContext,
        guard: &mut Guard,
    ) -> Result<Vec<String>, TreatmentError> {
        self.fixture.learn(&context.circumstances);
        self.executable = Some(context.place.executable.clone());
        self.directory = match self.fixture.made_in() {
            Some(place) => private_directory(place, guard)?,
            None => {
                let unique = chance::small()
                    .map_err(|error| TreatmentError::Unavailable(error.to_string()))?;
                let unique = format!("{}-{unique:08x}", self.name);
                let directory = context.place.scratch.join(unique);
                create(&directory)?;
                directory
            }
        };
        scratch::spread(&self.directory);
        if self.is_ready_at_first {
            self.make_ready().map_err(TreatmentError::Unavailable)?;
        }
        Ok(Vec::new())
    }

    fn instance(&mut self) -> Result<Instance, TreatmentError> {
        // What a killed worker still writes there may keep it for a moment; it goes with the experiment.
        let _ = fs::remove_dir_all(self.of_instance());
        self.make_ready().map_err(TreatmentError::NoInstance)?;
        self.instances += 1;
        let directory = self.of_instance();
        create(&directory)?;
        self.fixture.instance(&directory).map_err(TreatmentError::NoInstance)
    }

    fn query_servers(&mut self) -> Result<(), TreatmentError> {
        self.fixture.query_servers().map_err(TreatmentError::NoInstance)
    }

    fn verify_sample(&mut self, launch: &Launch) -> Result<Evidence, TreatmentError> {
        if launch.is_treated {
            let directory = &self.of_instance();
            let Launch { launched, members, .. } = launch;
            let sample = InInstance { directory, launched, members };
            self.fixture.find_trouble(&sample).map_err(|trouble| {
                match interruption::has_come() {
                    // The look itself may have ended early.
                    true => TreatmentError::Interrupted,
                    false => TreatmentError::NoInstance(trouble),
                }
            })?;
            self.fixture.prove(&sample).map_err(|problem| match launched.kills.sentence() {
                // A limit of its arm broke it, so it is no evidence against the experiment.
                Some(kills) => TreatmentError::NoInstance(format!("{problem}; {kills}")),
                None => TreatmentError::NotInForce(problem),
            })?;
        }
        Ok(Evidence::default())
    }

    fn facts(&self) -> Vec<String> {
        self.fixture.facts()
    }
}

fn create(directory: &Path) -> Result<(), TreatmentError> {
    DirBuilder::new().mode(0o700).create(directory).map_err(|error| {
        TreatmentError::Unavailable(format!("cannot create {}: {error}", directory.display()))
    })
}

/// A directory in one of the user's, removed by the guard.
fn private_directory(place: &Path, guard: &mut Guard) -> Result<PathBuf, TreatmentError> {
    let cannot = |error: std::io::Error| {
        TreatmentError::Unavailable(format!(
            "cannot create a directory in {}: {error}",
            place.display()
        ))
    };
    let place = trust::path::trusted(place).map_err(cannot)?;
    let directory = place.join(scratch::name(std::process::id()).map_err(cannot)?);
    let state = serde_json::to_value(&directory).map_err(|error| cannot(error.into()))?;
    let instance = directory.display().to_string();
    guard.write_down(SCRATCH, &instance, state).map_err(cannot)?;
    scratch::create(&directory).map_err(|error| {
        // Where nothing could be made, looking whether it is gone would fail as well. What the journal may
        // still hold then is undone as usual.
        let _ = guard.strike_out(SCRATCH, &instance);
        cannot(error)
    })?;
    Ok(directory)
}
