//! Holds three hosts on this machine, as network namespaces, and the links between them.
//!
//! The hosts are W_test, which is measured, and the two black boxes W_active and W_passive (Maly, Gupta and
//! Mynam, 1996). `docs/link.md` describes them. A hidden role of `weigh` (`__testbed`) holds namespaces and
//! devices by file descriptors alone, so nothing is left, however it ends. The crate does not know
//! grids of cells.
//!
//! - [`Testbed`] talks to that role in lines of JSON; [`process`] is the role; [`hosts`] makes the hosts;
//! - each [`BlackBox`] has two ways ([`Via`]) to W_test, chosen by address: a *wire* (crate `wire`), which
//!   delays, drops and limits, and a *LAN*, a plain pair of `veth`;
//! - [`Extent`]: if the black boxes are other machines (`weigh net --active`), each machine has a testbed of
//!   its own part, with the same addresses;
//! - [`Collector`]: W_passive as receiver of audit records.
//!
//! A launcher joins a host by the set-up step `JoinNetwork` of `weigh-workload`. Start with [`Testbed`].

#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

pub mod addresses;
mod asking;
mod collector;
pub mod hosts;
mod outward;
pub mod own_address;
pub mod process;
mod round_trips;
mod sniffer;

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use wire::{DroppedPacket, Impairment, LinkCounters};

pub use asking::{Testbed, TestbedError};
pub use collector::Collector;

use weigh_workload::setup::kind::join_network::JoinNetwork;

/// The hidden subcommand that turns `weigh` into a testbed.
pub const SUBCOMMAND: &str = "__testbed";

/// First message to a testbed: how to set it up.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TestbedSetup {
    /// Where the wires' threads run; on any CPU where it is empty. Not on those of W_test.
    pub wire_cpus: Vec<usize>,
    /// True if the wires' threads run before all others, where the kernel allows that.
    pub real_time: bool,
    #[serde(default)]
    pub extent: Extent,
    /// Number that datagrams must carry to be sent back, and that senders of audit records must
    /// know.
    #[serde(default)]
    pub nonce: u64,
    /// Where W_passive keeps the audit records that are shipped to it; it takes none without.
    pub collect_in: Option<PathBuf>,
}

/// How much of it is on this machine.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Extent {
    /// All three hosts.
    #[default]
    Whole,
    /// W_test, which reaches each black box over an interface of this machine.
    Test { over: Vec<(BlackBox, String)> },
    /// A black box and its wire, which are reached at an address of this machine.
    Far { black_box: BlackBox, at: IpAddr },
}

/// One of the three.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum HostName {
    Test,
    Active,
    Passive,
}

impl HostName {
    pub const ALL: [HostName; 3] = [HostName::Test, HostName::Active, HostName::Passive];
}

/// Host at the far side of a link. Its name is also the link's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum BlackBox {
    Active,
    Passive,
}

impl BlackBox {
    pub const ALL: [BlackBox; 2] = [BlackBox::Active, BlackBox::Passive];

    pub fn host(self) -> HostName {
        match self {
            BlackBox::Active => HostName::Active,
            BlackBox::Passive => HostName::Passive,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Heading {
    FromTest,
    ToTest,
}

/// How W_test and a black box reach each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Via {
    Wire,
    Lan,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TestbedReady {
    pub pid: u32,
    pub hosts: Vec<HostReady>,
    pub links: Vec<LinkReady>,
    /// True if the testbed runs without root, in a user namespace.
    pub is_rootless: bool,
    /// Why the wires have no real-time priority, though they were to have one.
    pub not_real_time: Option<String>,
    /// Why their memory may be swapped out.
    pub not_locked: Option<String>,
    /// Largest segmentation offload that the kernel leaves to the wires: `off`, `tcp`, `tcp and
    /// udp`.
    pub offload: String,
    /// Why there are no IPv6 addresses.
    pub no_ipv6: Option<String>,
}

impl TestbedReady {
    pub fn host(&self, name: HostName) -> Option<&HostReady> {
        self.hosts.iter().find(|host| host.name == name)
    }

    pub fn link(&self, with: BlackBox) -> Option<&LinkReady> {
        self.links.iter().find(|link| link.with == with)
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct HostReady {
    pub name: HostName,
    /// How a launcher gets there.
    pub join: JoinNetwork,
    /// Kernel settings of the host that a result may depend on (`net.ipv4.tcp_…`), by name.
    pub settings: BTreeMap<String, String>,
}

/// The addresses of a link: of W_test, and of the black box.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LinkReady {
    pub with: BlackBox,
    pub wire: Addresses,
    pub lan: Addresses,
}

/// The two ends of a way, over IPv4 and over IPv6.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Addresses {
    pub ipv4: Ends,
    /// `None` where the kernel has no IPv6.
    pub ipv6: Option<Ends>,
}

/// Addresses of both ends of a way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ends {
    pub test: IpAddr,
    pub other: IpAddr,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TestbedOrder {
    /// From now on, this direction is so, and counts from 1.
    Configure {
        link: BlackBox,
        heading: Heading,
        impairment: Box<Impairment>,
    },
    /// Lets the kernel leave segmentation to the wire, or forbids it.
    Offload {
        link: BlackBox,
        is_on: bool,
    },
    /// Restarts both directions of a link: they count from 1 again, and draw again from their
    /// seeds.
    Reset(BlackBox),
    Counters(BlackBox),
    /// Writes down what W_test's interfaces carry from now on, into this file; or ends it.
    Trace(Option<PathBuf>),
    Drops {
        link: BlackBox,
        heading: Heading,
    },
    /// How long a datagram takes there and back, as the link is configured now.
    RoundTrips {
        link: BlackBox,
        via: Via,
        rounds: u32,
    },
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TestbedAnswer {
    Ready(Box<TestbedReady>),
    Done,
    Counters(Box<LinkCount>),
    Drops(Vec<DroppedPacket>),
    RoundTrips(RoundTripTimes),
    /// Packets in the file, and those that were missed.
    Traced(u64, u64),
    Error(String),
}

/// Counters of a link since it was configured or reset.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LinkCount {
    pub from_test: LinkCounters,
    pub to_test: LinkCounters,
    /// Pieces that a host's own kernel threw away before the wire saw them, as the device's queue was full.
    pub device_dropped_from_test: u64,
    pub device_dropped_to_test: u64,
}

/// Times of datagrams of 64 bytes there and back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RoundTripTimes {
    pub rounds: u32,
    /// Not back after a second more than the link's delay.
    pub lost: u32,
    pub min_ns: u64,
    pub p50_ns: u64,
    pub p90_ns: u64,
    pub p99_ns: u64,
    pub max_ns: u64,
}
