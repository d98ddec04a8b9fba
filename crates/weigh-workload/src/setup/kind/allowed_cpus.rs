//! The CPUs on which every worker may run.

use std::collections::BTreeMap;
use std::fs;
use std::io;

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use serde::{Deserialize, Serialize};

use crate::setup::{Act, look};
use weigh_model::cpu_share::cpus_of;

/// On these, in order; with none those that it was born with, by the same call.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct AllowedCpus {
    pub cpus: Vec<usize>,
}

impl AllowedCpus {
    /// The list of them when its program was executed, and when it had ended.
    pub const SEEN: [&str; 2] = ["allowed CPUs", "allowed CPUs at the end"];
    /// Name of the observation of the launcher's own CPUs, which a worker is born with.
    pub const SEEN_OF_LAUNCHER: &str = "allowed CPUs of the launcher";
    const LINE: &str = "Cpus_allowed_list";

    fn set(&self) -> CpuSet {
        let mut set = CpuSet::new();
        self.cpus.iter().for_each(|cpu| set.set(*cpu));
        set
    }
}

impl Act for AllowedCpus {
    /// Looks whether they are there, and allowed.
    fn in_launcher(&self) -> Result<(), String> {
        let allowed = sched_getaffinity(None).map_err(|error| error.to_string())?;
        let Some(other) = self.cpus.iter().find(|cpu| !allowed.is_set(**cpu)) else {
            return Ok(());
        };
        let online = fs::read_to_string("/sys/devices/system/cpu/online").unwrap_or_default();
        let is_online = cpus_of(online.trim()).is_none_or(|online| online.contains(other));
        Err(match is_online {
            false => {
                format!("CPU {other} does not exist or is offline; online CPUs: {}", online.trim())
            }
            true => format!(
                "CPU {other} is not allowed here (see `taskset -p $$`, or the cpuset); allowed CPUs: {}",
                look::status_line("self", AllowedCpus::LINE).unwrap_or_default()
            ),
        })
    }

    fn in_worker(&self) -> io::Result<()> {
        let cpus = if self.cpus.is_empty() { sched_getaffinity(None)? } else { self.set() };
        Ok(sched_setaffinity(None, &cpus)?)
    }

    fn look(&self, worker: u32, seen: &mut BTreeMap<String, String>) -> io::Result<()> {
        let list = look::status_line(&worker.to_string(), AllowedCpus::LINE)?;
        seen.insert(AllowedCpus::SEEN[0].into(), list);
        let own = look::status_line("self", AllowedCpus::LINE)?;
        seen.insert(AllowedCpus::SEEN_OF_LAUNCHER.into(), own);
        Ok(())
    }

    fn look_back(&self, worker: u32, seen: &mut BTreeMap<String, String>) -> io::Result<()> {
        let list = look::status_line(&worker.to_string(), AllowedCpus::LINE)?;
        seen.insert(AllowedCpus::SEEN[1].into(), list);
        Ok(())
    }
}
