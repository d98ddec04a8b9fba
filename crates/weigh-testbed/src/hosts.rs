//! The hosts: network namespaces with their devices and addresses. Nothing of it is seen from outside, and no
//! route leads out.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::path::PathBuf;

use rustix::io::Errno;
use rustix::thread::{UnshareFlags, unshare_unsafe};
use wire::{Interfaces, Namespace, Tun, silence_ipv6};

use super::addresses::{IPV4_PREFIX, IPV6_PREFIX, LAN, MTU, QUEUE_PACKETS, WIRE, ends, interface};
use super::outward::{self, be_reached, reach};
use super::own_address::interface_of;
use super::{Addresses, BlackBox, Ends, Extent, HostName, HostReady, LinkReady, Via};
use weigh_host::user_namespace;
use weigh_workload::setup::kind::join_network::JoinNetwork;

/// Settings of each host, which keep measurements and experiments apart. TCP must not carry
/// memories of a peer from one measurement to the next. A killed process's unsent data is not sent
/// again for a minute. Otherwise its socket would keep the namespace, which answers for addresses
/// that the next experiment needs.
const SETTINGS: [(&str, &str); 2] =
    [("ipv4/tcp_no_metrics_save", "1"), ("ipv4/tcp_orphan_retries", "1")];
/// Further settings that a result may depend on, and that are reported with it.
const TOLD: &str = "\
    core/rmem_max core/somaxconn core/wmem_max ipv4/tcp_allowed_congestion_control \
    ipv4/tcp_available_congestion_control ipv4/tcp_congestion_control ipv4/tcp_early_retrans \
    ipv4/tcp_ecn ipv4/tcp_min_rtt_wlen ipv4/tcp_moderate_rcvbuf ipv4/tcp_no_metrics_save \
    ipv4/tcp_orphan_retries ipv4/tcp_recovery ipv4/tcp_rmem ipv4/tcp_sack \
    ipv4/tcp_slow_start_after_idle ipv4/tcp_timestamps ipv4/tcp_window_scaling ipv4/tcp_wmem";

/// The devices of a wire: that of W_test, and that of the black box.
pub type WireEnds = (BlackBox, [Tun; 2]);

/// Hosts on this machine; without root, they are in a user namespace.
pub struct Hosts {
    namespaces: Vec<(HostName, Namespace)>,
    /// Gateway from the network to the wire, if W_test is elsewhere.
    gateway: Option<Namespace>,
    is_rootless: bool,
    /// Why there is no IPv6.
    pub no_ipv6: Option<String>,
}

impl Hosts {
    /// Makes them, with interfaces that are up. This process must have one thread, and is in a network
    /// namespace of its own from then on: it reaches nobody.
    pub fn make(extent: &Extent) -> Result<(Hosts, Vec<WireEnds>), String> {
        // Where there is a network, it is that of now.
        let outside = Interfaces::open().map_err(|error| error.to_string())?;
        let names: Vec<HostName> = match extent {
            Extent::Whole => HostName::ALL.to_vec(),
            Extent::Test { .. } => vec![HostName::Test],
            Extent::Far { black_box, .. } => vec![black_box.host()],
        };
        let is_rootless = match extent {
            Extent::Whole => leave_network()?,
            _ => false,
        };
        let no_host = |error: io::Error| error.to_string();
        let make = || {
            let made = Namespace::new().and_then(|made| made.run(silence_ipv6).map(|()| made));
            made.map_err(|error| format!("cannot make a network namespace: {error}"))
        };
        let namespaces = names.iter().map(|name| Ok::<_, String>((*name, make()?)));
        let namespaces = namespaces.collect::<Result<_, _>>()?;
        let ipv6 = fs::metadata("/proc/sys/net/ipv6/conf");
        let no_ipv6 = match extent {
            Extent::Whole => ipv6.err().map(|_| "this kernel has no IPv6".to_owned()),
            _ => Some("several machines are connected by IPv4 only".to_owned()),
        };
        let mut hosts = Hosts { namespaces, gateway: None, is_rootless, no_ipv6 };
        for name in names {
            hosts.run(name, begin).map_err(|error| format!("a host of the testbed: {error}"))?;
        }
        let wires = match extent {
            Extent::Whole => hosts.lay_all()?,
            Extent::Test { over } => {
                reach(hosts.namespace(HostName::Test).map_err(no_host)?, &outside, over)?;
                Vec::new()
            }
            Extent::Far { black_box, at } => {
                let over = interface_of(*at).map_err(no_host)?;
                let over = over.ok_or_else(|| format!("no interface has the address {at}"))?;
                let gateway = make()?;
                let host = hosts.namespace(black_box.host()).map_err(no_host)?;
                let ends = be_reached((host, &gateway), &outside, *black_box, &over)?;
                hosts.gateway = Some(gateway);
                vec![(*black_box, ends)]
            }
        };
        if *extent != Extent::Whole {
            leave_network()?;
        }
        Ok((hosts, wires))
    }

    fn lay_all(&self) -> Result<Vec<WireEnds>, String> {
        let mut wires = Vec::new();
        for link in BlackBox::ALL {
            let (wire, lan) = (self.lay_wire(link), self.lay_lan(link));
            lan.map_err(|error| format!("the testbed's LAN: {error}"))?;
            wires.push((link, wire.map_err(|error| format!("the testbed's wire: {error}"))?));
        }
        Ok(wires)
    }

    /// Does something where the wire's end of W_test is, which is told the name of its device.
    pub fn near_end<T: Send>(
        &self,
        link: BlackBox,
        action: impl FnOnce(&'static str) -> io::Result<T> + Send,
    ) -> io::Result<T> {
        match &self.gateway {
            Some(gateway) => gateway.run(|| action(outward::NEAR)),
            None => self.run(HostName::Test, || action(interface(link, Via::Wire))),
        }
    }

    /// Returns true if the hosts need a user namespace.
    pub fn is_rootless(&self) -> bool {
        self.is_rootless
    }

    /// Does something in the namespace of a host.
    pub fn run<T: Send>(
        &self,
        name: HostName,
        action: impl FnOnce() -> io::Result<T> + Send,
    ) -> io::Result<T> {
        self.namespace(name)?.run(action)
    }

    fn namespace(&self, name: HostName) -> io::Result<&Namespace> {
        let found = self.namespaces.iter().find(|(of, _)| *of == name);
        found
            .map(|(_, namespace)| namespace)
            .ok_or_else(|| io::Error::other("the testbed lacks this host"))
    }

    pub fn ready(&self) -> io::Result<Vec<HostReady>> {
        let pid = std::process::id();
        let path = |file: String| PathBuf::from(format!("/proc/{pid}/{file}"));
        let ready = |(name, namespace): &(HostName, Namespace)| {
            let join = JoinNetwork {
                user_namespace: self.is_rootless.then(|| path("ns/user".into())),
                namespace: path(format!("fd/{}", namespace.as_fd().as_raw_fd())),
                inode: namespace.inode()?,
            };
            Ok(HostReady { name: *name, join, settings: namespace.run(|| Ok(settings()))? })
        };
        self.namespaces.iter().map(ready).collect()
    }

    pub fn link(&self, with: BlackBox) -> LinkReady {
        let addresses = |via| Addresses {
            ipv4: ends(with, via, false),
            ipv6: self.no_ipv6.is_none().then(|| ends(with, via, true)),
        };
        LinkReady { with, wire: addresses(Via::Wire), lan: addresses(Via::Lan) }
    }

    fn lay_wire(&self, link: BlackBox) -> io::Result<[Tun; 2]> {
        let ours = interface(link, Via::Wire);
        let lay = |host, name: &'static str| {
            self.run(host, || {
                let tun = Tun::open(name)?;
                Interfaces::open()?.bring_up(name, Some(QUEUE_PACKETS), Some(MTU))?;
                Ok(tun)
            })
        };
        let ends = [lay(HostName::Test, ours)?, lay(link.host(), WIRE)?];
        self.give_addresses(link, Via::Wire, (ours, WIRE))?;
        Ok(ends)
    }

    fn lay_lan(&self, link: BlackBox) -> io::Result<()> {
        let ours = interface(link, Via::Lan);
        let there = self.namespace(link.host())?;
        self.run(HostName::Test, || Interfaces::open()?.add_veth(ours, LAN, there))?;
        for (host, name) in [(HostName::Test, ours), (link.host(), LAN)] {
            self.run(host, || Interfaces::open()?.bring_up(name, None, Some(MTU)))?;
        }
        self.give_addresses(link, Via::Lan, (ours, LAN))
    }

    fn give_addresses(&self, link: BlackBox, via: Via, names: (&str, &str)) -> io::Result<()> {
        for is_ipv6 in [false, true] {
            if is_ipv6 && self.no_ipv6.is_some() {
                continue;
            }
            let Ends { test, other } = ends(link, via, is_ipv6);
            let prefix = if is_ipv6 { IPV6_PREFIX } else { IPV4_PREFIX };
            for (host, name, address) in
                [(HostName::Test, names.0, test), (link.host(), names.1, other)]
            {
                self.run(host, || Interfaces::open()?.add_address(name, address, prefix))?;
            }
        }
        Ok(())
    }
}

/// Moves this process into a network namespace of its own, and says whether that took a user namespace.
fn leave_network() -> Result<bool, String> {
    // SAFETY: it closes no file descriptors.
    match unsafe { unshare_unsafe(UnshareFlags::NEWNET) } {
        Ok(()) => Ok(false),
        Err(Errno::PERM) => user_namespace::enter_new(UnshareFlags::NEWNET).map(|()| true),
        Err(error) => Err(format!("cannot make a network namespace: {}", io::Error::from(error))),
    }
}

/// The first thing in a new namespace.
fn begin() -> io::Result<()> {
    Interfaces::open()?.bring_up("lo", None, None)?;
    for (setting, value) in SETTINGS {
        fs::write(sysctl(setting), value)
            .map_err(|error| io::Error::other(format!("{}: {error}", sysctl(setting))))?;
    }
    Ok(())
}

/// Reads the reported settings of this namespace. Settings of the whole machine are hidden in a
/// namespace and left out.
fn settings() -> BTreeMap<String, String> {
    let read = |name: &str| {
        let value = fs::read_to_string(sysctl(name)).ok()?;
        let words: Vec<&str> = value.split_whitespace().collect();
        Some((format!("net.{}", name.replace('/', ".")), words.join(" ")))
    };
    TOLD.split(' ').filter_map(read).collect()
}

fn sysctl(name: &str) -> String {
    format!("/proc/sys/net/{name}")
}
