//! The interfaces of a network namespace: made, addressed, brought up, and read.

use std::ffi::CString;
use std::fs;
use std::io;
use std::net::{IpAddr, Ipv6Addr};
use std::os::fd::{AsFd, AsRawFd};
use std::thread;
use std::time::{Duration, Instant};

use crate::namespace::Namespace;
use crate::netlink::{CREATE, Netlink, NetlinkRequest, attribute};

const RTM_NEWLINK: u16 = 16;
const RTM_GETLINK: u16 = 18;
const RTM_NEWADDR: u16 = 20;
const IFLA_ADDRESS: u16 = 1;
const IFLA_IFNAME: u16 = 3;
const IFLA_MTU: u16 = 4;
const IFLA_LINK: u16 = 5;
const IFLA_TXQLEN: u16 = 13;
const IFLA_LINKINFO: u16 = 18;
const IFLA_STATS64: u16 = 23;
const IFLA_NET_NS_FD: u16 = 28;
const IFLA_INFO_KIND: u16 = 1;
const IFLA_INFO_DATA: u16 = 2;
const VETH_INFO_PEER: u16 = 1;
const IFLA_MACVLAN_MODE: u16 = 1;
const MACVLAN_MODE_BRIDGE: u32 = 4;
const IFA_ADDRESS: u16 = 1;
const IFA_LOCAL: u16 = 2;
/// The address is used at once, without asking whether another has it.
const IFA_F_NODAD: u8 = 2;

const IPV6_ROUTES: &str = "/proc/thread-self/net/ipv6_route";
const RTF_LOCAL: u32 = 0x8000_0000;
const LIMIT: Duration = Duration::from_secs(10);

/// The address of an interface on an Ethernet.
pub type MacAddress = [u8; 6];

/// Statistics of an interface (`rtnl_link_stats64`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct InterfaceStatistics {
    /// Packets of the kernel's, pieces counted once, that it received and sent.
    pub received: u64,
    /// Packets that the kernel sent, pieces counted once.
    pub sent: u64,
    /// Received, and thrown away.
    pub receive_dropped: u64,
    /// Thrown away as its queue was full.
    pub send_dropped: u64,
}

/// The interfaces of the network namespace that the thread was in when it opened this.
pub struct Interfaces {
    netlink: Netlink,
}

impl Interfaces {
    /// A socket to ask the kernel through.
    ///
    /// # Errors
    /// As `socket(2)`.
    pub fn open() -> io::Result<Interfaces> {
        Ok(Interfaces { netlink: Netlink::open()? })
    }

    /// Makes two interfaces that are each other's peer: one here, one there.
    ///
    /// # Errors
    /// `EOPNOTSUPP` where the kernel has no `veth`.
    pub fn add_veth(&self, name: &str, peer: &str, there: &Namespace) -> io::Result<()> {
        let there = there.as_fd().as_raw_fd();
        let message = NetlinkRequest::new(RTM_NEWLINK, CREATE, &link_message(0, 0))
            .with(IFLA_IFNAME, &text(name))
            .nested(IFLA_LINKINFO, |message| {
                message.with(IFLA_INFO_KIND, b"veth").nested(IFLA_INFO_DATA, |message| {
                    message.nested(VETH_INFO_PEER, |message| {
                        message
                            .raw(&link_message(0, 0))
                            .with(IFLA_IFNAME, &text(peer))
                            .with(IFLA_NET_NS_FD, &there.to_ne_bytes())
                    })
                })
            });
        self.change(name, message)
    }

    /// Makes an interface in that namespace that sends and receives over one of here, with this address on
    /// the same Ethernet: a machine more on that network.
    ///
    /// # Errors
    /// `EOPNOTSUPP` where the kernel has no `macvlan`, `EINVAL` over what is no Ethernet.
    pub fn add_macvlan(
        &self,
        over: &str,
        name: &str,
        address: MacAddress,
        there: &Namespace,
    ) -> io::Result<()> {
        let there = there.as_fd().as_raw_fd();
        let message = NetlinkRequest::new(RTM_NEWLINK, CREATE, &link_message(0, 0))
            .with(IFLA_IFNAME, &text(name))
            .with(IFLA_ADDRESS, &address)
            .with(IFLA_LINK, &index(over)?.to_ne_bytes())
            .with(IFLA_NET_NS_FD, &there.to_ne_bytes())
            .nested(IFLA_LINKINFO, |message| {
                message.with(IFLA_INFO_KIND, b"macvlan").nested(IFLA_INFO_DATA, |message| {
                    message.with(IFLA_MACVLAN_MODE, &MACVLAN_MODE_BRIDGE.to_ne_bytes())
                })
            });
        self.change(over, message)
    }

    /// Brings an interface up, with a queue of so many packets where that is given.
    ///
    /// # Errors
    /// Where there is none.
    pub fn bring_up(
        &self,
        name: &str,
        queue_packets: Option<u32>,
        mtu: Option<u32>,
    ) -> io::Result<()> {
        let up = libc::IFF_UP as u32;
        let mut message = NetlinkRequest::new(RTM_NEWLINK, 0, &link_message(index(name)?, up));
        if let Some(packets) = queue_packets {
            message = message.with(IFLA_TXQLEN, &packets.to_ne_bytes());
        }
        if let Some(mtu) = mtu {
            message = message.with(IFLA_MTU, &mtu.to_ne_bytes());
        }
        self.change(name, message)
    }

    /// Gives an interface an address, and so a route to those that begin with the same `prefix` bits. What is
    /// sent to it arrives from then on. The interface has to be up.
    ///
    /// # Errors
    /// Where it cannot have it.
    pub fn add_address(&self, name: &str, address: IpAddr, prefix: u8) -> io::Result<()> {
        self.address(name, (address, address), prefix)?;
        match address {
            IpAddr::V4(_) => Ok(()),
            IpAddr::V6(address) => wait_until_local(address),
        }
    }

    /// Gives an interface an address, and a route to the one that is at its other end.
    ///
    /// # Errors
    /// Where it cannot have it.
    pub fn add_point_to_point(&self, name: &str, own: IpAddr, other: IpAddr) -> io::Result<()> {
        self.address(name, (own, other), if own.is_ipv4() { 32 } else { 128 })
    }

    fn address(&self, name: &str, ends: (IpAddr, IpAddr), prefix: u8) -> io::Result<()> {
        let bytes = |address: IpAddr| match address {
            IpAddr::V4(address) => address.octets().to_vec(),
            IpAddr::V6(address) => address.octets().to_vec(),
        };
        let family = if ends.0.is_ipv4() { libc::AF_INET } else { libc::AF_INET6 };
        let mut fixed = vec![family as u8, prefix, IFA_F_NODAD, 0];
        fixed.extend(index(name)?.to_ne_bytes());
        let message = NetlinkRequest::new(RTM_NEWADDR, CREATE, &fixed)
            .with(IFA_LOCAL, &bytes(ends.0))
            .with(IFA_ADDRESS, &bytes(ends.1));
        self.change(name, message)
    }

    /// The Ethernet address of an interface.
    ///
    /// # Errors
    /// Where there is no such interface, or it has none.
    pub fn mac_address(&self, name: &str) -> io::Result<MacAddress> {
        let address = self.attribute(name, IFLA_ADDRESS)?;
        let has_none = || io::Error::other(format!("{name} has no Ethernet address"));
        address.and_then(|bytes| bytes.try_into().ok()).ok_or_else(has_none)
    }

    /// Returns the counts of an interface since it was made.
    ///
    /// # Errors
    /// The interface does not exist.
    pub fn statistics(&self, name: &str) -> io::Result<InterfaceStatistics> {
        let counts = self
            .attribute(name, IFLA_STATS64)?
            .ok_or_else(|| io::Error::other(format!("{name}: the kernel reports no statistics")))?;
        let count = |at: usize| {
            let bytes = counts.get(8 * at..8 * at + 8).and_then(|bytes| bytes.try_into().ok());
            bytes.map_or(0, u64::from_ne_bytes)
        };
        Ok(InterfaceStatistics {
            received: count(0),
            sent: count(1),
            receive_dropped: count(6),
            send_dropped: count(7),
        })
    }

    /// Returns the kernel's value for this attribute of an interface.
    fn attribute(&self, name: &str, wanted: u16) -> io::Result<Option<Vec<u8>>> {
        let fixed = link_message(index(name)?, 0);
        let answer = self.netlink.ask(NetlinkRequest::new(RTM_GETLINK, 0, &fixed))?;
        let link = answer.unwrap_or_default();
        let attributes = link.get(fixed.len()..).unwrap_or_default();
        Ok(attribute(attributes, wanted).map(<[u8]>::to_vec))
    }

    fn change(&self, name: &str, message: NetlinkRequest) -> io::Result<()> {
        let changed = self.netlink.ask(message).map(drop);
        changed
            .map_err(|error| io::Error::new(error.kind(), format!("the interface {name}: {error}")))
    }
}

/// Lets no interface that this network namespace gets from now on send anything by itself over IPv6: no
/// search for routers, no address of its own choice. A kernel without IPv6 has nothing to silence.
///
/// # Errors
/// As `write(2)`.
pub fn silence_ipv6() -> io::Result<()> {
    let settings = [
        ("disable_ipv6", "0"),
        ("addr_gen_mode", "1"),
        ("accept_ra", "0"),
        ("router_solicitations", "0"),
    ];
    let set = |(setting, value)| {
        let path = format!("/proc/sys/net/ipv6/conf/default/{setting}");
        match fs::write(&path, value) {
            Err(error) if error.kind() == io::ErrorKind::NotFound && !has_ipv6() => Ok(()),
            written => {
                written.map_err(|error| io::Error::new(error.kind(), format!("{path}: {error}")))
            }
        }
    };
    settings.into_iter().try_for_each(set)
}

fn has_ipv6() -> bool {
    fs::exists("/proc/sys/net/ipv6").unwrap_or(true)
}

/// The kernel takes an IPv6 address into its routes in a worker of its own, a moment after it answered; what
/// comes before that is thrown away.
fn wait_until_local(address: Ipv6Addr) -> io::Result<()> {
    let wanted: String = address.octets().iter().map(|byte| format!("{byte:02x}")).collect();
    let is_local = |line: &str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let flags = words.get(8).and_then(|flags| u32::from_str_radix(flags, 16).ok());
        words.first() == Some(&wanted.as_str()) && flags.unwrap_or(0) & RTF_LOCAL != 0
    };
    let deadline = Instant::now() + LIMIT;
    while !fs::read_to_string(IPV6_ROUTES)?.lines().any(is_local) {
        if Instant::now() > deadline {
            return Err(io::Error::new(
                io::ErrorKind::TimedOut,
                format!("the kernel has no route to its own address {address}"),
            ));
        }
        thread::sleep(Duration::from_millis(1));
    }
    Ok(())
}

/// `struct ifinfomsg`.
fn link_message(index: u32, flags: u32) -> [u8; 16] {
    let mut bytes = [0; 16];
    bytes[4..8].copy_from_slice(&index.to_ne_bytes());
    bytes[8..12].copy_from_slice(&flags.to_ne_bytes());
    // Which flags are meant.
    bytes[12..16].copy_from_slice(&flags.to_ne_bytes());
    bytes
}

fn text(name: &str) -> Vec<u8> {
    [name.as_bytes(), &[0]].concat()
}

fn index(name: &str) -> io::Result<u32> {
    let c_name = CString::new(name).map_err(io::Error::other)?;
    // SAFETY: the name ends with a zero.
    match unsafe { libc::if_nametoindex(c_name.as_ptr()) } {
        0 => {
            let error = io::Error::last_os_error();
            Err(io::Error::new(error.kind(), format!("the interface {name}: {error}")))
        }
        index => Ok(index),
    }
}
