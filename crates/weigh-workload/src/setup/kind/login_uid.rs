//! The login uid that an arm's processes are born with: set once, in the launcher, and every worker has it.

use std::collections::BTreeMap;
use std::fs;
use std::io;

use rustix::process::{Signal, getpid};
use serde::{Deserialize, Serialize};

use crate::setup::Act;
use trust::program::follow_parent;

/// Under which name a process's login uid is seen.
pub const LOGIN_UID_SEEN: &str = "login uid";

/// Login uids, of the arm's processes and of the launcher itself.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LoginUid {
    /// Under which the launcher is born, so that a rule can exempt it, and what it does around a sample makes
    /// no records.
    pub launcher: u32,
    /// Taken before the first worker is forked.
    pub workers: u32,
}

impl Act for LoginUid {
    fn in_launcher(&self) -> Result<(), String> {
        // A process keeps what it was born with: forked under its own login uid, the launcher itself makes no
        // records, also when it then takes the login uid of its workers.
        set_login_uid(self.launcher)?;
        become_a_child().map_err(|error| format!("cannot fork: {error}"))?;
        set_login_uid(self.workers)
    }

    fn look(&self, worker: u32, seen: &mut BTreeMap<String, String>) -> io::Result<()> {
        let file = format!("/proc/{worker}/loginuid");
        seen.insert(LOGIN_UID_SEEN.into(), fs::read_to_string(file)?.trim().to_owned());
        Ok(())
    }
}

/// Takes a login uid; what is forked from now on has it from birth.
pub fn set_login_uid(uid: u32) -> Result<(), String> {
    fs::write("/proc/self/loginuid", uid.to_string()).map_err(|error| {
        format!(
            "cannot set the login uid ({error}): this needs CAP_AUDIT_CONTROL, and a host without \
             `--loginuid-immutable`"
        )
    })
}

/// Forks, and goes on in the child; the parent only waits for it and ends as it did. For processes of
/// a single thread.
pub fn become_a_child() -> io::Result<()> {
    let parent = getpid();
    // SAFETY: the launcher has one thread, so the forked child may use the heap.
    match unsafe { libc::fork() } {
        -1 => Err(io::Error::last_os_error()),
        0 => match follow_parent(parent, Signal::KILL)? {
            true => Ok(()),
            false => Err(io::ErrorKind::BrokenPipe.into()),
        },
        child => {
            let mut status = 0;
            // SAFETY: the pointer is to a live variable. Ends at once, without the child's clean-up.
            unsafe {
                libc::waitpid(child, &raw mut status, 0);
                libc::_exit(if libc::WIFEXITED(status) { libc::WEXITSTATUS(status) } else { 1 })
            }
        }
    }
}
