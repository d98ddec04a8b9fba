//! Numbered packets through a real link between two network namespaces: exactly those that a pattern means
//! are missing, over IPv4 and IPv6, UDP and TCP, with offload and without. It needs root, and is skipped
//! without.

use std::io::{self, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::os::fd::AsRawFd;
use std::thread;
use std::time::{Duration, Instant};

use wire::{
    Cause, End, Impairment, Interfaces, Namespace, Offload, Patterns, Scheduling, Tun, Wire,
    silence_ipv6,
};

const PATTERN: &str = "1@200%400+3@397%400";
const PACKETS: u64 = 40_000;
const DATA_BYTES: usize = 1000;
const LIMIT: Duration = Duration::from_secs(60);

/// Two namespaces and a link between them; `None` where this is not permitted.
struct TwoHosts {
    namespaces: [Namespace; 2],
    wire: Wire,
}

impl TwoHosts {
    fn new(offload: Offload) -> Option<TwoHosts> {
        let made = Namespace::new().and_then(|a| Ok([a, Namespace::new()?]));
        let namespaces = match made {
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                println!("skipped: network namespaces need root here");
                return None;
            }
            made => made.unwrap(),
        };
        let end = |at: usize| {
            let host = at as u8 + 1;
            let prepare = || {
                let tun = Tun::open("wire")?;
                silence_ipv6("wire")?;
                let interfaces = Interfaces::open()?;
                interfaces.bring_up("wire", Some(10_000), Some(1500))?;
                interfaces.add_address("wire", [198, 18, 1, host].into(), 24)?;
                let address = [0x2001, 2, 0, 1, 0, 0, 0, u16::from(host)];
                interfaces.add_address("wire", address.into(), 64)?;
                Ok(tun)
            };
            namespaces[at].run(prepare).unwrap()
        };
        let wire = Wire::start([end(0), end(1)], Scheduling::default()).unwrap();
        assert_eq!(wire.set_offload(offload).unwrap(), offload);
        Some(TwoHosts { namespaces, wire })
    }

    fn drop_by_pattern(&self) {
        let loss = vec![PATTERN.parse().unwrap()];
        let impairment = Impairment { loss, logs_drops: true, ..Impairment::default() };
        self.wire.configure(End::A, impairment).unwrap();
    }
}

fn address(is_ipv6: bool, host: u8) -> IpAddr {
    match is_ipv6 {
        true => [0x2001, 2, 0, 1, 0, 0, 0, u16::from(host)].into(),
        false => [198, 18, 1, host].into(),
    }
}

fn meant(upto: u64) -> Vec<u64> {
    let patterns: Patterns = PATTERN.parse().unwrap();
    (1..=upto).filter(|&number| patterns.mean(number)).collect()
}

/// Sends as many datagrams as one call may, numbered from `first`, to be cut by the kernel or the link.
fn send_segmented(socket: &UdpSocket, first: u64, count: u64) {
    let mut data = vec![0_u8; count as usize * DATA_BYTES];
    for (number, datagram) in (first..).zip(data.chunks_mut(DATA_BYTES)) {
        datagram[..8].copy_from_slice(&number.to_be_bytes());
    }
    let segment = DATA_BYTES as libc::c_int;
    let length = size_of::<libc::c_int>() as libc::socklen_t;
    // SAFETY: the option is an `int`, which lives as long as the call.
    let done = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::SOL_UDP,
            libc::UDP_SEGMENT,
            (&raw const segment).cast(),
            length,
        )
    };
    assert_eq!(done, 0, "UDP_SEGMENT: {}", io::Error::last_os_error());
    assert_eq!(socket.send(&data).unwrap(), data.len());
}

fn udp(is_ipv6: bool, offload: Offload) {
    let Some(hosts) = TwoHosts::new(offload) else { return };
    let open = |at: usize| {
        let address = SocketAddr::new(address(is_ipv6, at as u8 + 1), 0);
        hosts.namespaces[at].run(|| UdpSocket::bind(address)).unwrap()
    };
    let [sender, receiver] = [open(0), open(1)];
    receiver.set_read_timeout(Some(LIMIT)).unwrap();
    sender.connect(receiver.local_addr().unwrap()).unwrap();
    hosts.drop_by_pattern();
    let mut arrived = Vec::new();
    let mut data = [0; 2 * DATA_BYTES];
    let started = Instant::now();
    // So few at a time that no queue of the kernel's can be full.
    for first in (1..=PACKETS).step_by(40) {
        send_segmented(&sender, first, 40);
        while hosts.wire.counters().unwrap()[0].decided.packets < first + 39 {
            assert!(started.elapsed() < LIMIT);
        }
        while (arrived.len() as u64) < hosts.wire.counters().unwrap()[0].delivered {
            assert_eq!(receiver.recv(&mut data).unwrap(), DATA_BYTES);
            arrived.push(u64::from_be_bytes(*data.first_chunk().unwrap()));
        }
    }
    let lost = meant(PACKETS);
    assert_eq!(lost.len(), 400);
    let expected: Vec<u64> =
        (1..=PACKETS).filter(|number| lost.binary_search(number).is_err()).collect();
    assert!(arrived == expected, "IPv6: {is_ipv6}, {offload:?}");
    let drops = hosts.wire.drops(End::A).unwrap();
    assert!(drops.iter().map(|drop| drop.number).eq(lost));
    let counters = hosts.wire.counters().unwrap();
    assert_eq!(counters[0].decided.packets, PACKETS);
    assert_eq!(counters[0].dropped.get(&Cause::Number), Some(&400));
    assert_eq!(counters[1].decided.packets, 0, "the other host said something");
    let expected = if offload == Offload::Off { PACKETS } else { PACKETS / 40 };
    assert_eq!(counters[0].pieces, expected);
}

#[test]
fn numbered_datagrams_are_missing_where_the_pattern_says() {
    for is_ipv6 in [false, true] {
        udp(is_ipv6, Offload::Off);
        udp(is_ipv6, Offload::TcpAndUdp);
    }
}

/// The segments that this connection sent again.
fn retransmissions(socket: &TcpStream) -> u64 {
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

/// A counter of `/proc/net/netstat` in a namespace.
fn counted(namespace: &Namespace, name: &str) -> u64 {
    let text = namespace.run(|| std::fs::read_to_string("/proc/thread-self/net/netstat")).unwrap();
    let lines: Vec<&str> = text.lines().filter(|line| line.starts_with("TcpExt:")).collect();
    let place = lines[0].split_whitespace().position(|word| word == name).unwrap();
    lines[1].split_whitespace().nth(place).unwrap().parse().unwrap()
}

/// Bytes that are different everywhere, so that none can take the place of another.
fn content(bytes: usize) -> Vec<u8> {
    (0..bytes).map(|at| (at as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes()[0]).collect()
}

fn tcp(is_ipv6: bool, offload: Offload) {
    let Some(hosts) = TwoHosts::new(offload) else { return };
    let place = SocketAddr::new(address(is_ipv6, 2), 0);
    let listener = hosts.namespaces[1].run(|| TcpListener::bind(place)).unwrap();
    let place = listener.local_addr().unwrap();
    // Enough for 40 000 packets of 1428 bytes and more.
    let bytes = PACKETS as usize * 1448;
    hosts.drop_by_pattern();
    let (sent, received) = (content(bytes), bytes);
    let receive = move || {
        let (mut socket, _) = listener.accept().unwrap();
        socket.set_read_timeout(Some(LIMIT)).unwrap();
        let mut data = vec![0; received];
        socket.read_exact(&mut data).unwrap();
        socket.write_all(b"all").unwrap();
        (data, socket)
    };
    let receiving = thread::spawn(receive);
    let mut socket = hosts.namespaces[0].run(|| TcpStream::connect(place)).unwrap();
    socket.set_read_timeout(Some(LIMIT)).unwrap();
    socket.write_all(&sent).unwrap();
    let mut answer = [0; 3];
    socket.read_exact(&mut answer).unwrap();
    let (data, _open) = receiving.join().unwrap();
    assert!(data == sent, "IPv6: {is_ipv6}, {offload:?}: the data is not what was sent");
    let counters = hosts.wire.counters().unwrap()[0].clone();
    let numbers: Vec<u64> = hosts.wire.drops(End::A).unwrap().iter().map(|d| d.number).collect();
    assert!(counters.decided.packets >= PACKETS);
    assert!(numbers == meant(counters.decided.packets), "IPv6: {is_ipv6}, {offload:?}");
    assert_eq!(numbers.len() as u64, counters.all_dropped());
    assert_eq!(offload == Offload::Off, counters.pieces == counters.decided.packets);
    // On a busy machine, TCP sends again what was late and not lost; the receiver tells it of that (DSACK).
    let needless = counted(&hosts.namespaces[0], "TCPDSACKRecvSegs");
    let again = retransmissions(&socket);
    println!(
        "IPv6: {is_ipv6}, {offload:?}: {} packets in {} pieces, {} dropped, {again} retransmitted, \
         {needless} of them needlessly",
        counters.decided.packets,
        counters.pieces,
        numbers.len(),
    );
    assert_eq!(again - needless, numbers.len() as u64, "IPv6: {is_ipv6}, {offload:?}");
}

#[test]
fn tcp_loses_what_the_pattern_says_and_sends_that_again() {
    for is_ipv6 in [false, true] {
        tcp(is_ipv6, Offload::Off);
        tcp(is_ipv6, Offload::TcpAndUdp);
    }
}
