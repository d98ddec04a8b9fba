//! The control groups that every worker enters.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::setup::{Act, look};

/// It enters these, one of each hierarchy; with none, those of its launcher are only looked at.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ControlGroup {
    pub directories: Vec<PathBuf>,
    /// The CPUs that they leave it, where they say so.
    #[serde(default)]
    pub cpus: Vec<usize>,
}

impl ControlGroup {
    /// `/proc/PID/cgroup` when it had executed its program; absent where it ended before anybody could look.
    pub const SEEN: &str = "control groups";
    /// `/proc/PID/cgroup` when it had ended. The kernel no longer shows version 1 groups then.
    pub const SEEN_AT_END: &str = "control groups at the end";
}

impl Act for ControlGroup {
    fn holds(&self) -> bool {
        true
    }

    fn in_worker(&self) -> io::Result<()> {
        // 0 is whoever writes it.
        self.directories.iter().try_for_each(|group| fs::write(group.join("cgroup.procs"), "0"))
    }

    fn look(&self, worker: u32, seen: &mut BTreeMap<String, String>) -> io::Result<()> {
        if let Some(found) = look::of_program(worker, "cgroup")? {
            seen.insert(ControlGroup::SEEN.into(), String::from_utf8_lossy(&found).into_owned());
        }
        Ok(())
    }

    fn look_back(&self, worker: u32, seen: &mut BTreeMap<String, String>) -> io::Result<()> {
        let found = fs::read_to_string(format!("/proc/{worker}/cgroup"))?;
        seen.insert(ControlGroup::SEEN_AT_END.into(), found);
        Ok(())
    }
}
