//! Two network namespaces with a link between them, for tests and benches.

#![allow(dead_code, reason = "tests and benches use different parts of it")]

use std::io;
use std::net::{IpAddr, TcpStream};
use std::os::fd::AsRawFd;

use wire::{Interfaces, Namespace, Offload, Scheduling, Tun, Wire, silence_ipv6};

/// Two namespaces, a wire and a pair of `veth` between them.
pub struct TwoHosts {
    pub namespaces: [Namespace; 2],
    pub wire: Wire,
}

/// A way from one to the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Between {
    Wire,
    Veth,
}

impl TwoHosts {
    /// `None` where they are not permitted.
    pub fn new(offload: Offload, scheduling: Scheduling) -> Option<TwoHosts> {
        let made = Namespace::new().and_then(|a| Ok([a, Namespace::new()?]));
        let namespaces = match made {
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                needs::skip("root", "network namespaces need root here");
                return None;
            }
            made => made.unwrap(),
        };
        namespaces.iter().for_each(|namespace| namespace.run(silence_ipv6).unwrap());
        let [a, b] = &namespaces;
        a.run(|| Interfaces::open()?.add_veth("veth", "veth", b)).unwrap();
        let end = |at: usize| {
            let prepare = || {
                let tun = Tun::open("wire")?;
                let interfaces = Interfaces::open()?;
                for between in [Between::Wire, Between::Veth] {
                    let name = if between == Between::Wire { "wire" } else { "veth" };
                    interfaces.bring_up(name, Some(10_000), Some(1500))?;
                    interfaces.add_address(name, address(between, false, at), 24)?;
                    interfaces.add_address(name, address(between, true, at), 64)?;
                }
                Ok(tun)
            };
            namespaces[at].run(prepare).unwrap()
        };
        let wire = Wire::start([end(0), end(1)], scheduling).unwrap();
        assert_eq!(wire.set_offload(offload).unwrap(), offload);
        Some(TwoHosts { namespaces, wire })
    }
}

/// The address of host 0 or 1.
pub fn address(between: Between, is_ipv6: bool, at: usize) -> IpAddr {
    let (network, host) = (if between == Between::Wire { 1 } else { 2 }, at as u8 + 1);
    match is_ipv6 {
        true => [0x2001, 2, 0, network, 0, 0, 0, u16::from(host)].into(),
        false => [198, 18, network as u8, host].into(),
    }
}

/// The segments that this connection sent again.
pub fn retransmissions(socket: &TcpStream) -> u64 {
    // SAFETY: all zeros are a valid `tcp_info`.
    let mut info: libc::tcp_info = unsafe { std::mem::zeroed() };
    let mut length = size_of::<libc::tcp_info>() as libc::socklen_t;
    // SAFETY: the kernel writes as much as there is room.
    let done = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::SOL_TCP,
            libc::TCP_INFO,
            (&raw mut info).cast(),
            &raw mut length,
        )
    };
    assert_eq!(done, 0, "TCP_INFO: {}", io::Error::last_os_error());
    info.tcpi_total_retrans.into()
}
