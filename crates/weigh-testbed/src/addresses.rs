//! Names and addresses of the hosts' interfaces.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::{BlackBox, Ends, Via};

/// Packets; with the usual 500 a TUN device loses what a busy machine does not fetch in time.
pub const QUEUE_PACKETS: u32 = 10_000;
/// MTU of Ethernet, in bytes; no packet on the wire is longer.
pub const MTU: u32 = 1500;
pub const IPV4_PREFIX: u8 = 24;
pub const IPV6_PREFIX: u8 = 64;
/// The wire's interface at a black box.
pub const WIRE: &str = "wire";
pub const LAN: &str = "lan";

/// The interface of W_test that leads to a black box.
pub fn interface(link: BlackBox, via: Via) -> &'static str {
    match (link, via) {
        (BlackBox::Active, Via::Wire) => "wire-active",
        (BlackBox::Passive, Via::Wire) => "wire-passive",
        (BlackBox::Active, Via::Lan) => "lan-active",
        (BlackBox::Passive, Via::Lan) => "lan-passive",
    }
}

/// Addresses that are reserved for benchmarks (RFC 2544, RFC 5180): nobody has them.
pub fn ends(link: BlackBox, via: Via, is_ipv6: bool) -> Ends {
    let number = match link {
        BlackBox::Active => 1,
        BlackBox::Passive => 2,
    };
    let address = |host: u8| -> IpAddr {
        match (is_ipv6, via) {
            (false, Via::Wire) => Ipv4Addr::new(198, 18, number, host).into(),
            (false, Via::Lan) => Ipv4Addr::new(198, 19, number, host).into(),
            (true, Via::Wire) => ipv6(number.into(), host),
            (true, Via::Lan) => ipv6(0x100 + u16::from(number), host),
        }
    };
    Ends { test: address(1), other: address(2) }
}

fn ipv6(network: u16, host: u8) -> IpAddr {
    Ipv6Addr::new(0x2001, 2, 0, network, 0, 0, 0, host.into()).into()
}
