//! W_passive as the machine to which others ship their audit records.

use std::fs::File;
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use linux_audit::shipping;
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

use super::hosts::Hosts;
use super::{BlackBox, TestbedReady};
use weigh_workload::setup::kind::join_network::JoinNetwork;

/// Port of audisp-remote.
const PORT: u16 = 60;
/// To connect, and to say the number.
const PATIENCE: Duration = Duration::from_secs(5);

/// Where records of W_test are taken, and how one gets there.
#[derive(Clone, Debug, PartialEq)]
pub struct Collector {
    join: JoinNetwork,
    pub address: SocketAddr,
    nonce: u64,
}

impl Collector {
    /// Returns the collector of a testbed, reached over the LAN. Packets on the wire are numbered
    /// and belong to COMM alone.
    pub fn of(ready: &TestbedReady, nonce: u64) -> Option<Collector> {
        let join = ready.host(super::HostName::Test)?.join.clone();
        let address = ready.link(BlackBox::Passive)?.lan.ipv4.other;
        Some(Collector { join, address: (address, PORT).into(), nonce })
    }

    /// A connection from W_test, over which records can be shipped.
    pub fn connect(&self) -> io::Result<TcpStream> {
        let connect = || {
            let namespace = File::open(&self.join.namespace)?;
            move_into_link_name_space(namespace.as_fd(), Some(LinkNameSpaceType::Network))?;
            let mut stream = TcpStream::connect_timeout(&self.address, PATIENCE)?;
            stream.write_all(&self.nonce.to_be_bytes())?;
            Ok(stream)
        };
        // Only this thread is in W_test then.
        let joined = thread::scope(|scope| {
            Ok::<_, io::Error>(thread::Builder::new().spawn_scoped(scope, connect)?.join())
        })?;
        joined.unwrap_or_else(|_| Err(io::Error::other("a thread panicked")))
    }
}

/// Takes records on W_passive from who knows this number, as long as this process lives, on these CPUs.
pub fn collect(hosts: &Hosts, nonce: u64, directory: PathBuf, cpus: Vec<usize>) -> io::Result<()> {
    let open = || TcpListener::bind((Ipv4Addr::UNSPECIFIED, PORT));
    let listener = hosts.run(BlackBox::Passive.host(), open)?;
    let take_all = move || {
        // Not those of W_test; without a choice it may be any.
        if !cpus.is_empty() {
            let _ = wire::stay_on(&cpus);
        }
        for (number, stream) in listener.incoming().enumerate() {
            let log = directory.join(format!("collected-{number}.log"));
            // One after the other: there is one sender at a time.
            let _ = stream.and_then(|stream| take(stream, nonce, &log));
        }
    };
    thread::Builder::new().spawn(take_all).map(drop)
}

fn take(mut stream: TcpStream, nonce: u64, log: &Path) -> io::Result<()> {
    let mut number = [0; 8];
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.read_exact(&mut number)?;
    if u64::from_be_bytes(number) != nonce {
        return Err(io::ErrorKind::PermissionDenied.into());
    }
    stream.set_read_timeout(None)?;
    shipping::receive(stream, log)
}
