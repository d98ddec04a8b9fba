//! What exists once per kernel is changed by one `weigh` at a time, whoever's state directory that is.

use std::fs::File;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener};

use rustix::fs::{FlockOperation, flock};

use super::state_dir;

/// Claims a thing of the kernel for as long as the result lives, or the guard that it is given to. An
/// abstract socket is a lock that all users of a network namespace see and that no death leaves behind.
///
/// # Errors
/// A sentence, where another process holds it.
pub fn claim(resource: &str) -> Result<UnixListener, String> {
    let address = SocketAddr::from_abstract_name(format!("weighbridge: {resource}"))
        .map_err(|error| error.to_string())?;
    UnixListener::bind_addr(&address).map_err(|_| {
        format!("another experiment on this host is using {resource}; wait for it, or end it")
    })
}

/// Two experiments at once would measure each other, and undo each other's changes.
///
/// # Errors
/// A sentence, where another runs.
pub fn only_one_at_a_time() -> Result<File, String> {
    let path =
        state_dir::path().map(|directory| directory.join("lock")).map_err(|e| e.to_string())?;
    let lock = File::create(&path).map_err(|error| format!("{}: {error}", path.display()))?;
    match flock(&lock, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(lock),
        Err(_) => {
            Err("another experiment is running on this host; wait for it, or end it with Ctrl-C"
                .into())
        }
    }
}
