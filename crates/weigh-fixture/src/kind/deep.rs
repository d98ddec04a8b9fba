//! `deep`: nested directories, of which the innermost is the workload's. The kernel looks up a path through
//! all of them, and a sandbox such as Landlock checks all of them.

use std::fs;
use std::path::{Path, PathBuf};

use super::fs::working_in;
use crate::{Fixture, FixtureKind, InInstance};
use weigh_model::kind::{Kind, Parameter, Probe};
use weigh_model::label::Parameters;
use weigh_workload::instance::Instance;
use weigh_workload::setup::Setup;

pub static KIND: FixtureKind = FixtureKind::of(
    Kind {
        name: "deep",
        summary: "nested directories, of which the innermost is the workload's",
        parameters: &[Parameter { form: "levels=N", help: "how many, 1 to 200; default 16" }],
        probe: || Probe::Available,
    },
    build,
);

fn build(parameters: &Parameters) -> Result<Box<dyn Fixture>, String> {
    let levels = parameters.number("levels", 1..=200)?.unwrap_or(16);
    Ok(Box::new(Deep { levels }))
}

struct Deep {
    levels: u32,
}

impl Deep {
    fn innermost(&self, directory: &Path) -> PathBuf {
        (0..self.levels).fold(directory.to_owned(), |outer, _| outer.join("d"))
    }
}

impl Fixture for Deep {
    fn instance(&mut self, directory: &Path) -> Result<Instance, String> {
        let innermost = self.innermost(directory);
        fs::create_dir_all(&innermost)
            .map_err(|error| format!("cannot make {}: {error}", innermost.display()))?;
        Ok(working_in(innermost, Setup::default()))
    }

    fn prove(&mut self, sample: &InInstance) -> Result<(), String> {
        let innermost = self.innermost(sample.directory);
        match fs::symlink_metadata(&innermost) {
            Ok(found) if found.is_dir() => Ok(()),
            Ok(_) => Err(format!("{} is no longer a directory", innermost.display())),
            Err(error) => Err(format!("{}: {error}", innermost.display())),
        }
    }

    fn facts(&self) -> Vec<String> {
        vec![format!("The workloads run in the innermost of {} nested directories.", self.levels)]
    }
}
