//! Who listens at a port.

use std::fs;
use std::net::SocketAddrV4;

use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, socket_with};

/// The state of a listening socket in `/proc/net/tcp`.
const LISTENS: &str = "0A";

/// Returns true if a server could take this port now.
///
/// It binds the port and never listens at it. So `/proc/net/tcp` does not show others which port a
/// server is about to take. A program that another thread starts meanwhile does not inherit the
/// socket: it would keep the port taken until it ends.
pub fn is_free(address: SocketAddrV4) -> bool {
    let bound = socket_with(AddressFamily::INET, SocketType::STREAM, SocketFlags::CLOEXEC, None)
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

pub fn has_socket(pid: u32, inode: &str) -> bool {
    let wanted = format!("socket:[{inode}]");
    let files = fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
    let mut links = files.filter_map(|file| fs::read_link(file.path()).ok());
    links.any(|link| link.to_str() == Some(&wanted))
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;
    use std::process::{Child, Command};
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::thread;
    use std::time::{Duration, Instant};

    use super::*;

    #[test]
    fn a_program_that_starts_meanwhile_does_not_keep_the_port() {
        let at = SocketAddrV4::new(Ipv4Addr::LOCALHOST, 19_473);
        let is_over = AtomicBool::new(false);
        let mut started: Vec<Child> = thread::scope(|scope| {
            scope.spawn(|| {
                while !is_over.load(Ordering::Relaxed) {
                    is_free(at);
                }
            });
            let start = |_| Command::new("sleep").arg("60").spawn();
            let started: Vec<_> = (0..50).map(start).collect();
            is_over.store(true, Ordering::Relaxed);
            started.into_iter().flatten().collect()
        });
        // Another test may be between a fork and its exec. A program that has the socket keeps it.
        let deadline = Instant::now() + Duration::from_secs(20);
        let mut could_be_taken = is_free(at);
        while !could_be_taken && Instant::now() < deadline {
            thread::sleep(Duration::from_millis(10));
            could_be_taken = is_free(at);
        }
        for child in &mut started {
            child.kill().unwrap();
            child.wait().unwrap();
        }
        assert!(started.len() > 25, "{} children started", started.len());
        assert!(could_be_taken, "a child has the socket that was bound to {at}");
    }
}
