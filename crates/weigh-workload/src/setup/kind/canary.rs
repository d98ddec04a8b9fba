//! A file that every worker opens just before it executes, and a process of its own just after the worker
//! ended: what makes a treatment show itself.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::PathBuf;

use rustix::process::{Pid, WaitOptions, waitpid};
use serde::{Deserialize, Serialize};

use crate::setup::Act;

/// Canary file that each worker opens before its program, and another process after it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Canary {
    pub file: PathBuf,
}

impl Act for Canary {
    fn in_worker(&self) -> io::Result<()> {
        fs::File::open(&self.file).map(drop)
    }

    fn after_worker(&self, _: &mut BTreeMap<String, String>) -> io::Result<Option<u32>> {
        // SAFETY: the launcher has one thread, so the forked child may use the heap.
        match unsafe { libc::fork() } {
            -1 => Err(io::Error::last_os_error()),
            0 => {
                let opened = fs::File::open(&self.file).is_ok();
                // SAFETY: ends the child at once, without the parent's clean-up.
                unsafe { libc::_exit(i32::from(!opened)) }
            }
            pid => {
                waitpid(Pid::from_raw(pid), WaitOptions::empty())?;
                Ok(Some(pid as u32))
            }
        }
    }
}
