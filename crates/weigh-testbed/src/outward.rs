//! A testbed of which other machines have the rest: its hosts are machines more on the network of this one,
//! each with an Ethernet address of its own and the addresses that are reserved for benchmarks. Nothing of
//! this machine is changed for that, and all of it goes with the process.
//!
//! The wire of a black box is between it and a namespace that answers for it on the network, and forwards:
//! what W_test sends to the wire's address comes there.

use std::fs;
use std::io;
use std::net::{IpAddr, Ipv4Addr};
use std::thread;
use std::time::{Duration, Instant};

use wire::{Interfaces, MacAddress, Namespace, Tun};

use super::addresses::{IPV4_PREFIX, LAN, MTU, QUEUE_PACKETS, WIRE, ends, interface};
use super::{BlackBox, Ends, Via};

/// The wire's interface at the gateway, on the side of W_test.
pub const NEAR: &str = "near";
const OUT: &str = "out";
/// Host number of the gateway on the network; the next constant is its number on the wire.
const OUT_HOST: u8 = 254;
const NEAR_HOST: u8 = 253;
/// For the interfaces of an experiment that has just ended to go.
const LIMIT: Duration = Duration::from_secs(30);

/// Forwards, and answers for the black box, at once; sends nobody another way; and hears W_test alone on the
/// network, as it has a route to no other host there.
const OF_GATEWAY: [(&str, &str); 6] = [
    ("ipv4/conf/all/rp_filter", "1"),
    ("ipv4/ip_forward", "1"),
    ("ipv4/conf/all/send_redirects", "0"),
    ("ipv4/conf/out/send_redirects", "0"),
    ("ipv4/conf/out/proxy_arp", "1"),
    ("ipv4/neigh/out/proxy_delay", "0"),
];

/// Gives W_test an interface for each black box, over those of this machine.
pub fn reach(
    test: &Namespace,
    outside: &Interfaces,
    over: &[(BlackBox, String)],
) -> Result<(), String> {
    for (link, over) in over {
        let name = interface(*link, Via::Lan);
        join(test, outside, (over, name), ends(*link, Via::Lan, false).test)?;
        let give = || {
            let interfaces = begin(name)?;
            for via in [Via::Lan, Via::Wire] {
                interfaces.add_address(name, ends(*link, via, false).test, IPV4_PREFIX)?;
            }
            Ok(())
        };
        test.run(give).map_err(|error| format!("W_test: {error}"))?;
    }
    Ok(())
}

/// Gives a black box its interface over one of this machine, and its wire behind a gateway.
pub fn be_reached(
    (host, gateway): (&Namespace, &Namespace),
    outside: &Interfaces,
    link: BlackBox,
    over: &str,
) -> Result<[Tun; 2], String> {
    let (lan, wire) = (ends(link, Via::Lan, false), ends(link, Via::Wire, false));
    join(host, outside, (over, LAN), lan.other)?;
    join(gateway, outside, (over, OUT), neighbour(wire.other, OUT_HOST))?;
    let black_box = || {
        // The address of the wire is nobody's on the network but the gateway's.
        set("ipv4/conf/all/arp_ignore", "1")?;
        let interfaces = begin(LAN)?;
        interfaces.add_address(LAN, lan.other, IPV4_PREFIX)?;
        let tun = Tun::open(WIRE)?;
        interfaces.bring_up(WIRE, Some(QUEUE_PACKETS), Some(MTU))?;
        interfaces.add_address(WIRE, wire.other, IPV4_PREFIX)?;
        Ok(tun)
    };
    let far = host.run(black_box).map_err(|error| format!("a black box: {error}"))?;
    let near = gateway.run(|| forward(wire)).map_err(|error| format!("a gateway: {error}"))?;
    Ok([near, far])
}

fn forward(wire: Ends) -> io::Result<Tun> {
    let interfaces = begin(OUT)?;
    interfaces.add_point_to_point(OUT, neighbour(wire.other, OUT_HOST), wire.test)?;
    let tun = Tun::open(NEAR)?;
    interfaces.bring_up(NEAR, Some(QUEUE_PACKETS), Some(MTU))?;
    interfaces.add_point_to_point(NEAR, neighbour(wire.other, NEAR_HOST), wire.other)?;
    OF_GATEWAY.into_iter().try_for_each(|(setting, value)| set(setting, value))?;
    Ok(tun)
}

fn begin(name: &str) -> io::Result<Interfaces> {
    let interfaces = Interfaces::open()?;
    let deadline = Instant::now() + LIMIT;
    loop {
        match interfaces.bring_up(name, None, Some(MTU)) {
            Err(error) if error.kind() == io::ErrorKind::AddrInUse && Instant::now() < deadline => {
                thread::sleep(Duration::from_millis(5));
            }
            Err(error) if error.kind() == io::ErrorKind::AddrInUse => {
                let still_there = "the connections of an earlier experiment are not closed yet; try again in \
                                   a minute";
                return Err(io::Error::new(error.kind(), format!("{error}: {still_there}")));
            }
            brought_up => return brought_up.map(|()| interfaces),
        }
    }
}

/// The kernel removes a namespace some time after the last process in it ended, and the last connection.
/// Until then its interfaces answer for the addresses that those of the next experiment have. So each place
/// has one Ethernet address: the kernel does not bring two interfaces up that have the same. The first byte
/// says that nobody assigned it (IEEE 802); three are those by which the machine's own differs from others of
/// its maker.
fn mac_address([.., a, b, c]: MacAddress, of: IpAddr) -> io::Result<MacAddress> {
    match of {
        IpAddr::V4(address) => {
            let [_, _, network, host] = address.octets();
            Ok([0x02, a, b, c, network, host])
        }
        IpAddr::V6(_) => Err(io::Error::other("several machines are connected by IPv4 only")),
    }
}

/// Another address of the same network.
fn neighbour(address: IpAddr, host: u8) -> IpAddr {
    match address {
        IpAddr::V4(address) => {
            let [a, b, c, _] = address.octets();
            Ipv4Addr::new(a, b, c, host).into()
        }
        other => other,
    }
}

/// `own` is the address that the interface is to have.
fn join(
    there: &Namespace,
    outside: &Interfaces,
    (over, name): (&str, &str),
    own: IpAddr,
) -> Result<(), String> {
    let mac_address = outside.mac_address(over).and_then(|mac| mac_address(mac, own));
    let joined = mac_address.and_then(|mac| outside.add_macvlan(over, name, mac, there));
    joined.map_err(|error| forbidden(over, &error))
}

fn forbidden(over: &str, error: &io::Error) -> String {
    let why = match error.kind() {
        io::ErrorKind::PermissionDenied => ": run as root",
        io::ErrorKind::Unsupported => ": this kernel has no macvlan (`modprobe macvlan`)",
        _ => ": use an Ethernet interface that is up",
    };
    format!("cannot join the network of {over}: {error}{why}")
}

/// A setting of the namespace that this thread is in.
fn set(setting: &str, value: &str) -> io::Result<()> {
    let path = format!("/proc/sys/net/{setting}");
    fs::write(&path, value)
        .map_err(|error| io::Error::new(error.kind(), format!("{path}: {error}")))
}
