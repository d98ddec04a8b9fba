//! Numbered packets through a real link between two network namespaces: exactly those that a pattern means
//! are missing, over IPv4 and IPv6, UDP and TCP, with offload and without. It needs root, and is skipped
//! without.

#[path = "support/hosts.rs"]
mod hosts;

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::os::fd::AsRawFd;
use std::thread;
use std::time::Duration;

use hosts::{Between, TwoHosts, address, retransmissions};
use wire::{Cause, End, Impairment, Offload, Patterns, Scheduling};

const PATTERN: &str = "1@200%400+3@397%400";
const PACKETS: u64 = 40_000;
const DATA_BYTES: usize = 1000;
const LIMIT: Duration = Duration::from_secs(60);

fn hosts(offload: Offload) -> Option<TwoHosts> {
    TwoHosts::new(offload, Scheduling::default())
}

fn drop_by_pattern(hosts: &TwoHosts) {
    let loss = vec![PATTERN.parse().unwrap()];
    let impairment = Impairment { loss, logs_drops: true, ..Impairment::default() };
    hosts.wire.configure(End::A, impairment).unwrap();
}

fn place(is_ipv6: bool, at: usize) -> SocketAddr {
    SocketAddr::new(address(Between::Wire, is_ipv6, at), 0)
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

/// For 4000 datagrams that nobody reads yet.
fn have_room(receiver: &UdpSocket) {
    let bytes: libc::c_int = 64 << 20;
    // SAFETY: the option is an `int`, which lives as long as the call.
    let done = unsafe {
        libc::setsockopt(
            receiver.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_RCVBUFFORCE,
            (&raw const bytes).cast(),
            size_of::<libc::c_int>() as libc::socklen_t,
        )
    };
    assert_eq!(done, 0, "SO_RCVBUFFORCE: {}", io::Error::last_os_error());
}

fn udp(is_ipv6: bool, offload: Offload) {
    let Some(hosts) = hosts(offload) else { return };
    let open =
        |at: usize| hosts.namespaces[at].run(|| UdpSocket::bind(place(is_ipv6, at))).unwrap();
    let [sender, receiver] = [open(0), open(1)];
    receiver.set_read_timeout(Some(LIMIT)).unwrap();
    sender.connect(receiver.local_addr().unwrap()).unwrap();
    drop_by_pattern(&hosts);
    have_room(&receiver);
    let mut arrived = Vec::new();
    let mut data = [0; 2 * DATA_BYTES];
    // So few at a time that no queue of the kernel's can be full.
    for first in (1..=PACKETS).step_by(4000) {
        (first..first + 4000).step_by(40).for_each(|first| send_segmented(&sender, first, 40));
        let expected = first + 3999 - meant(first + 3999).len() as u64;
        while (arrived.len() as u64) < expected {
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

/// Bytes that are different everywhere, so that none can take the place of another.
fn content(bytes: usize) -> Vec<u8> {
    (0..bytes).map(|at| (at as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes()[0]).collect()
}

/// Returns true if TCP sent again exactly the dropped packets.
fn tcp(is_ipv6: bool, offload: Offload) -> bool {
    let Some(hosts) = hosts(offload) else { return true };
    let listener = hosts.namespaces[1].run(|| TcpListener::bind(place(is_ipv6, 1))).unwrap();
    let place = listener.local_addr().unwrap();
    // Enough for 40 000 packets of 1428 bytes and more.
    let bytes = PACKETS as usize * 1448;
    drop_by_pattern(&hosts);
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
    // What was sent again needlessly may be on its way, or the word of it.
    let mut counters = hosts.wire.counters().unwrap();
    loop {
        thread::sleep(Duration::from_millis(500));
        let now = hosts.wire.counters().unwrap();
        if now == std::mem::replace(&mut counters, now.clone()) {
            break;
        }
    }
    let counters = &counters[0];
    let numbers: Vec<u64> = hosts.wire.drops(End::A).unwrap().iter().map(|d| d.number).collect();
    assert!(counters.decided.packets >= PACKETS);
    assert!(numbers == meant(counters.decided.packets), "IPv6: {is_ipv6}, {offload:?}");
    assert_eq!(numbers.len() as u64, counters.all_dropped());
    assert_eq!(offload == Offload::Off, counters.pieces == counters.decided.packets);
    let dropped = numbers.len() as u64;
    let again = retransmissions(&socket);
    println!(
        "IPv6: {is_ipv6}, {offload:?}: {} packets in {} pieces, {dropped} dropped, {again} sent again",
        counters.decided.packets, counters.pieces,
    );
    assert!(again >= dropped, "IPv6: {is_ipv6}, {offload:?}");
    again == dropped
}

#[test]
fn tcp_loses_what_the_pattern_says_and_sends_that_again() {
    // On a busy machine TCP now and then takes for lost what was only late, and sends it again.
    const TRIES: u32 = 10;
    for is_ipv6 in [false, true] {
        for offload in [Offload::Off, Offload::TcpAndUdp] {
            let mut tries = 0..TRIES;
            assert!(tries.any(|_| tcp(is_ipv6, offload)), "IPv6: {is_ipv6}, {offload:?}");
        }
    }
}

/// Returns the numbers of the datagrams that arrive, of 40 that come to the link in one piece.
fn arriving(impairment: Impairment, expected: usize) -> Option<Vec<u64>> {
    let hosts = hosts(Offload::TcpAndUdp)?;
    let open = |at: usize| hosts.namespaces[at].run(|| UdpSocket::bind(place(true, at))).unwrap();
    let [sender, receiver] = [open(0), open(1)];
    receiver.set_read_timeout(Some(LIMIT)).unwrap();
    sender.connect(receiver.local_addr().unwrap()).unwrap();
    hosts.wire.configure(End::A, impairment).unwrap();
    send_segmented(&sender, 1, 40);
    let mut data = [0; 2 * DATA_BYTES];
    let receive = |_| {
        assert_eq!(receiver.recv(&mut data).unwrap(), DATA_BYTES);
        u64::from_be_bytes(*data.first_chunk().unwrap())
    };
    let arrived = (0..expected).map(receive).collect();
    let counters = &hosts.wire.counters().unwrap()[0];
    assert_eq!((counters.decided.packets, counters.pieces, counters.held), (40, 1, 0));
    assert_eq!(counters.delivered, expected as u64);
    Some(arrived)
}

#[test]
fn duplicates_come_right_behind_and_late_ones_after_the_others() {
    let twice = Impairment { duplicated: Some("1@3%10".parse().unwrap()), ..Impairment::default() };
    let Some(arrived) = arriving(twice, 44) else { return };
    let is_twice = |number: &u64| number % 10 == 3;
    let expected =
        (1..=40).flat_map(|n: u64| std::iter::repeat_n(n, 1 + usize::from(is_twice(&n))));
    assert_eq!(arrived, expected.collect::<Vec<_>>());
    let late = Impairment {
        reordered: Some("2@5%10".parse().unwrap()),
        late_ns: 30_000_000,
        delay_ns: 5_000_000,
        ..Impairment::default()
    };
    let arrived = arriving(late, 40).unwrap();
    let is_late = |number: &u64| [5, 6].contains(&(number % 10));
    let (last, first): (Vec<u64>, Vec<u64>) = (1..=40).partition(is_late);
    assert_eq!(arrived, [first, last].concat());
}

#[test]
fn a_link_that_does_all_of_it_changes_no_byte() {
    let Some(hosts) = hosts(Offload::TcpAndUdp) else { return };
    let impairment = Impairment {
        delay_ns: 2_000_000,
        loss: vec!["1@50%100".parse().unwrap(), "0.2%x3".parse().unwrap()],
        duplicated: Some("0.5%".parse().unwrap()),
        reordered: Some("1@7%60".parse().unwrap()),
        late_ns: 300_000,
        rate_bits_per_s: Some(1_000_000_000),
        seed: 5,
        ..Impairment::default()
    };
    hosts.wire.configure(End::A, impairment).unwrap();
    let listener = hosts.namespaces[1].run(|| TcpListener::bind(place(false, 1))).unwrap();
    let address = listener.local_addr().unwrap();
    let sent = content(4_000_000);
    let bytes = sent.len();
    let receiving = thread::spawn(move || {
        let (mut socket, _) = listener.accept().unwrap();
        socket.set_read_timeout(Some(LIMIT)).unwrap();
        let mut data = vec![0; bytes];
        socket.read_exact(&mut data).unwrap();
        data
    });
    let mut socket = hosts.namespaces[0].run(|| TcpStream::connect(address)).unwrap();
    socket.write_all(&sent).unwrap();
    assert!(receiving.join().unwrap() == sent);
    let counters = &hosts.wire.counters().unwrap()[0];
    for cause in [Cause::Number, Cause::Burst] {
        assert!(counters.dropped[&cause] > 0, "{counters:?}");
    }
    for cause in [Cause::Memory, Cause::Refused] {
        assert_eq!(counters.dropped.get(&cause), None, "{counters:?}");
    }
    let decided = &counters.decided;
    assert!(decided.duplicated > 0 && decided.reordered > 0, "{counters:?}");
    let left = decided.packets - counters.all_dropped() + decided.duplicated;
    assert!((left - 2 * counters.held..=left).contains(&counters.delivered), "{counters:?}");
}
