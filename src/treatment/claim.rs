//! What exists once per kernel is changed by one `weigh` at a time, whoever's state directory that is.

use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener};

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
