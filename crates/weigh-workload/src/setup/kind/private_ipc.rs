//! System V objects of an arm's own: they go when the last of its processes ends, whatever ends it.

use rustix::process::geteuid;
use rustix::thread::{UnshareFlags, unshare_unsafe};
use serde::{Deserialize, Serialize};

use crate::setup::Act;
use weigh_host::user_namespace;

/// An IPC namespace of the launcher's, in which its processes are born.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PrivateIpc {}

impl Act for PrivateIpc {
    fn in_launcher(&self) -> Result<(), String> {
        if !geteuid().is_root() {
            return user_namespace::enter_new(UnshareFlags::NEWIPC);
        }
        // SAFETY: it closes no file descriptors.
        unsafe { unshare_unsafe(UnshareFlags::NEWIPC) }
            .map_err(|error| format!("cannot make a private IPC namespace: {error}"))
    }
}
