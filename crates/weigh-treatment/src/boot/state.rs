//! State of an experiment of boots on disk, written before the machine goes down.
//!
//! It says whose experiment it is, and which boot is due. The store alone has the samples.

use std::fs;
use std::io::ErrorKind;
use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::mechanism::Mechanism;
use super::normal::NormalBoot;
use weigh_host::undo::state_dir::StateDir;
use weigh_model::ids::{ArmId, ExperimentId, PairId};

const FILE: &str = "boot.json";
/// The word on the command line that marks one boot of one experiment.
const MARK: &str = "weigh.boot=";

/// A half of a pair, and its boot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DueBoot {
    pub round: PairId,
    pub arm: ArmId,
    /// 0 for the first half of a pair.
    pub position: usize,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BootState {
    pub experiment: ExperimentId,
    pub database: PathBuf,
    /// The SHA-256 of what the experiment measures, in hexadecimal: the database may be another user's, and
    /// root does at each boot what it says.
    pub origin: String,
    pub normal: NormalBoot,
    pub mechanism: Mechanism,
    /// Device of the other system, if an arm boots one.
    #[serde(default)]
    pub other: Option<String>,
    /// Seconds since 1970.
    pub began_s: u64,
    pub due: DueBoot,
    /// How many boots there were, with the one that is due: it marks it.
    pub boots: usize,
    /// How often the boot that is due came up otherwise.
    pub failures: usize,
    pub boot_id: String,
}

impl BootState {
    pub fn read() -> Result<Option<BootState>, String> {
        let directory = open()?;
        let say = |problem: String| format!("{}: {problem}", directory.path(FILE).display());
        match directory.read(FILE) {
            Ok(bytes) => {
                let read = serde_json::from_slice(&bytes).map(Some);
                read.map_err(|error| say(format!("{error}; remove this file")))
            }
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(say(error.to_string())),
        }
    }

    /// Its file, for people.
    pub fn shown() -> String {
        open().map_or_else(|_| FILE.into(), |directory| directory.path(FILE).display().to_string())
    }

    /// When this returns, it is on disk.
    pub fn write(&self) -> Result<(), String> {
        let text = serde_json::to_vec_pretty(self).expect("plain data with text keys");
        let directory = open()?;
        directory
            .replace(FILE, &text)
            .map_err(|error| format!("{}: {error}", directory.path(FILE).display()))
    }

    pub fn remove() -> Result<(), String> {
        let path = open()?.path(FILE);
        match fs::remove_file(&path) {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                Err(format!("cannot remove {}: {error}; remove it by hand", path.display()))
            }
            _ => Ok(()),
        }
    }

    /// Since the experiment began, by the clock on the wall: boots take time too.
    pub fn elapsed(&self) -> Duration {
        Duration::from_secs(seconds_now().saturating_sub(self.began_s))
    }

    /// The word that marks the boot that is due.
    pub fn mark(&self) -> String {
        format!("{MARK}{}.{}", self.experiment, self.boots)
    }

    /// The word that marks a boot which only leads to the boot that is due.
    pub fn mark_of_way(&self) -> String {
        format!("{MARK}{}.way", self.experiment)
    }

    pub fn is_on_the_way(&self) -> bool {
        is_marked(&self.mark_of_way())
    }

    /// Returns true if the experiment is still due: `weigh restore` cancels it.
    pub fn is_due(&self) -> Result<bool, String> {
        Ok(BootState::read()?.is_some_and(|state| state.experiment == self.experiment))
    }

    /// The half of a pair that this boot is for; `None` where another came up.
    pub fn here(&self) -> Option<DueBoot> {
        is_marked(&self.mark()).then_some(self.due)
    }
}

fn is_marked(mark: &str) -> bool {
    let line = fs::read_to_string("/proc/cmdline").unwrap_or_default();
    line.split_whitespace().any(|word| word == mark)
}

/// Returns true if this boot belongs to an experiment, no matter which.
pub fn is_in_one() -> bool {
    let line = fs::read_to_string("/proc/cmdline").unwrap_or_default();
    line.split_whitespace().any(|word| word.starts_with(MARK))
}

/// Since 1970.
pub fn seconds_now() -> u64 {
    jiff::Timestamp::now().as_second().max(0).cast_unsigned()
}

fn open() -> Result<StateDir, String> {
    StateDir::open().map_err(|error| format!("cannot open the state directory: {error}"))
}
