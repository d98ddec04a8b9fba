//! Who listens at a port.

use std::fs;
use std::net::SocketAddrV4;

use rustix::net::{AddressFamily, SocketType, bind, socket};

/// The state of a listening socket in `/proc/net/tcp`.
const LISTENS: &str = "0A";

/// Returns true if a server could take this port now.
///
/// It binds the port and never listens at it. So `/proc/net/tcp` does not show others which port a
/// server is about to take.
pub fn is_free(address: SocketAddrV4) -> bool {
    let bound = socket(AddressFamily::INET, SocketType::STREAM, None)
        .and_then(|socket| bind(&socket, &address));
    bound.is_ok()
}

/// The socket that listens there, in the network of this process.
pub fn listening_inode(pid: u32, at: SocketAddrV4) -> Option<String> {
    let table = fs::read_to_string(format!("/proc/{pid}/net/tcp")).ok()?;
    let wanted = format!("{:08X}:{:04X}", u32::from_ne_bytes(at.ip().octets()), at.port());
    table.lines().skip(1).find_map(|line| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let is_it = *fields.get(1)? == wanted && *fields.get(3)? == LISTENS;
        is_it.then(|| fields.get(9).map(|inode| (*inode).to_owned()))?
    })
}

/// Returns true if a process has this socket.
pub fn has_socket(pid: u32, inode: &str) -> bool {
    let wanted = format!("socket:[{inode}]");
    let files = fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
    let mut links = files.filter_map(|file| fs::read_link(file.path()).ok());
    links.any(|link| link.to_str() == Some(&wanted))
}
