//! How nice every worker is to others that want the CPU.

use std::collections::BTreeMap;
use std::io;

use rustix::process::{Pid, WaitOptions, getpriority_process, setpriority_process, waitpid};
use serde::{Deserialize, Serialize};

use crate::setup::{Act, look};

/// It takes this level; with none the one that it was born with, by the same call.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct NiceLevel {
    pub level: Option<i32>,
}

impl NiceLevel {
    /// Its level when its program was executed, and when it had ended.
    pub const SEEN: [&str; 2] = ["niceness", "niceness at the end"];
}

impl Act for NiceLevel {
    /// Tries it, in a process that ends at once.
    fn in_launcher(&self) -> Result<(), String> {
        let Some(level) = self.level else { return Ok(()) };
        let say = |error: io::Error| format!("cannot try niceness {level}: {error}");
        // SAFETY: the launcher has one thread, so the forked child may use the heap.
        match unsafe { libc::fork() } {
            -1 => Err(say(io::Error::last_os_error())),
            0 => {
                let refused = setpriority_process(None, level).is_err();
                // SAFETY: ends the child at once, without the parent's clean-up.
                unsafe { libc::_exit(i32::from(refused)) }
            }
            child => {
                let ended = waitpid(Pid::from_raw(child), WaitOptions::empty());
                let ended = ended.map_err(|error| say(error.into()))?;
                match ended.and_then(|(_, status)| status.exit_status()) {
                    Some(0) => Ok(()),
                    _ => Err(format!(
                        "niceness {level} is not permitted: lowering it needs root, CAP_SYS_NICE, or a \
                         limit that allows it (`ulimit -e`)"
                    )),
                }
            }
        }
    }

    fn in_worker(&self) -> io::Result<()> {
        let level = self.level.map_or_else(|| getpriority_process(None), Ok)?;
        Ok(setpriority_process(None, level)?)
    }

    fn look(&self, worker: u32, seen: &mut BTreeMap<String, String>) -> io::Result<()> {
        seen.insert(NiceLevel::SEEN[0].into(), look::niceness(worker)?);
        Ok(())
    }

    fn look_back(&self, worker: u32, seen: &mut BTreeMap<String, String>) -> io::Result<()> {
        seen.insert(NiceLevel::SEEN[1].into(), look::niceness(worker)?);
        Ok(())
    }
}
