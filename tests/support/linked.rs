//! Two networks with a link between them that can be cut, for machines of tests.

use std::fs;
use std::process::{Child, Command};
use std::time::Duration;

use super::wait_until;

const LIMIT: Duration = Duration::from_secs(60);

/// Two network namespaces, each held by a process, and a link between them: nothing of this host's network is
/// touched. The link goes with them.
pub struct Network {
    holders: [Child; 2],
}

pub const HERE: usize = 0;
pub const THERE: usize = 1;
/// Addresses from the blocks reserved for documentation (RFC 5737).
pub const ADDRESSES: [&str; 2] = ["203.0.113.1", "203.0.113.2"];

impl Network {
    pub fn start() -> Network {
        let hold = || Command::new("unshare").args(["--net", "sleep", "900"]).spawn().unwrap();
        let network = Network { holders: [hold(), hold()] };
        let own = fs::read_link("/proc/self/ns/net").unwrap();
        for holder in &network.holders {
            let theirs = || fs::read_link(format!("/proc/{}/ns/net", holder.id()));
            assert!(wait_until(LIMIT, || theirs().is_ok_and(|theirs| theirs != own)));
        }
        let there = network.holders[THERE].id().to_string();
        let link = ["link", "add", "eth0", "type", "veth", "peer", "name", "eth0", "netns", &there];
        network.ip(HERE, &link);
        for side in [HERE, THERE] {
            let address = format!("{}/30", ADDRESSES[side]);
            network.ip(side, &["address", "add", &address, "dev", "eth0"]);
            network.ip(side, &["link", "set", "eth0", "up"]);
            // By which a machine reaches its own addresses.
            network.ip(side, &["link", "set", "lo", "up"]);
        }
        network
    }

    pub fn ip(&self, side: usize, words: &[&str]) {
        let words = [&["ip"], words].concat();
        assert!(self.enter(side, Command::new("nsenter")).args(&words).status().unwrap().success());
    }

    /// A command that goes on there with the words that are added.
    pub fn enter(&self, side: usize, mut nsenter: Command) -> Command {
        nsenter.arg(format!("--net=/proc/{}/ns/net", self.holders[side].id()));
        nsenter
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        for holder in &mut self.holders {
            let _ = holder.kill();
            let _ = holder.wait();
        }
    }
}
