//! A hidden role of `weigh`: another program, executed in a root file system and alone there, to its end.

use std::ffi::OsString;
use std::io;
use std::os::unix::process::{CommandExt, ExitStatusExt};

use rustix::process::{Signal, set_parent_process_death_signal};
use rustix::thread::{UnshareFlags, set_no_new_privs, unshare_unsafe};
use serde::{Deserialize, Serialize};

use crate::setup::Act;
use crate::setup::kind::enter_root::EnterRoot;
use trust::program;
use trust::start::{self, Inherited};
use weigh_host::own_program;

pub const SUBCOMMAND: &str = "__in_root";

/// Where, and by whom.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct InsideRoot {
    pub root: EnterRoot,
    /// The user and group, where they are not ours.
    pub user: Option<u32>,
}

impl InsideRoot {
    /// Before the program and its arguments, on the command line of this role.
    pub fn to_argument(&self) -> String {
        serde_json::to_string(self).expect("plain data")
    }
}

/// The role. It ends as the program does; what that started or left in shared memory ends with it.
pub fn run(mut arguments: impl Iterator<Item = OsString>) -> Result<(), String> {
    let inside = arguments.next().and_then(|text| text.into_string().ok());
    let inside: InsideRoot = inside
        .and_then(|text| serde_json::from_str(&text).ok())
        .ok_or("the first argument is not a root file system")?;
    let program = arguments.next().ok_or("the second argument, a program, is missing")?;
    inside.root.in_launcher()?;
    // SAFETY: it closes no file descriptors, and this process has one thread.
    unsafe { unshare_unsafe(UnshareFlags::NEWIPC | UnshareFlags::NEWPID) }
        .map_err(|error| format!("cannot make namespaces: {}", io::Error::from(error)))?;
    let mut command = start::command(&program, Inherited::Fixed);
    command.args(arguments).env("PATH", program::DIRECTORIES.join(":"));
    if let Some(user) = inside.user {
        command.uid(user).gid(user);
        set_no_new_privs(true).map_err(|error| io::Error::from(error).to_string())?;
    }
    // SAFETY: they make system calls alone. The first process of a namespace does not see its parent.
    unsafe {
        command.pre_exec(|| {
            own_program::be_signalled_as_usual()?;
            Ok(set_parent_process_death_signal(Some(Signal::KILL))?)
        });
    }
    let shown = program.display();
    let status = command.status().map_err(|error| format!("cannot execute {shown}: {error}"))?;
    match status.code() {
        Some(0) => Ok(()),
        Some(code) => Err(format!("{shown} exited with status {code}")),
        None => Err(format!("{shown} was killed by signal {}", status.signal().unwrap_or(0))),
    }
}
