//! How long a datagram takes there and back.

use std::io;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use super::hosts::Hosts;
use super::{BlackBox, Ends, HostName, RoundTripTimes};

const DATAGRAM_BYTES: usize = 64;
/// Below the wires' priority, and above what disturbs.
const PRIORITY: i32 = 40;
/// Datagrams that nobody counts: the first ones find cold caches, and over a LAN no neighbour.
const WARM_UP: u32 = 16;
const LOOK_UP: Duration = Duration::from_millis(100);
/// Where another machine sends them back: the port of `echo` (RFC 862).
const FAR_PORT: u16 = 7;
/// Where none of the first comes back, none will.
const GIVE_UP_AFTER: u32 = 4;

/// Sends so many, one after the other; one that is not back after `limit` is lost.
pub fn measure(
    hosts: &Hosts,
    link: BlackBox,
    ends: Ends,
    rounds: u32,
    limit: Duration,
) -> io::Result<RoundTripTimes> {
    let open =
        |host, address| hosts.run(host, move || UdpSocket::bind(SocketAddr::new(address, 0)));
    let (near, far) = (open(HostName::Test, ends.test)?, open(link.host(), ends.other)?);
    near.connect(far.local_addr()?)?;
    near.set_read_timeout(Some(limit))?;
    far.set_read_timeout(Some(LOOK_UP))?;
    let is_over = AtomicBool::new(false);
    let times = thread::scope(|scope| {
        thread::Builder::new().spawn_scoped(scope, || echo(&far, 0, &is_over))?;
        let times = in_a_thread(|| send(&near, 0, rounds));
        is_over.store(true, Ordering::Relaxed);
        times
    })?;
    summarise(times, rounds)
}

/// Measures the round trips of datagrams that another machine sends back ([`send_back`]).
pub fn measure_far(
    hosts: &Hosts,
    ends: Ends,
    nonce: u64,
    rounds: u32,
    limit: Duration,
) -> io::Result<RoundTripTimes> {
    let open = move || UdpSocket::bind(SocketAddr::new(ends.test, 0));
    let near = hosts.run(HostName::Test, open)?;
    near.connect((ends.other, FAR_PORT))?;
    near.set_read_timeout(Some(limit))?;
    summarise(in_a_thread(|| send(&near, nonce, rounds))?, rounds)
}

fn in_a_thread<T: Send>(work: impl FnOnce() -> io::Result<T> + Send) -> io::Result<T> {
    thread::scope(|scope| {
        let thread = thread::Builder::new().spawn_scoped(scope, work)?;
        thread.join().unwrap_or_else(|_| Err(io::Error::other("a thread panicked")))
    })
}

/// Sends back what comes to a black box from who knows this number, as long as this process lives.
pub fn send_back(hosts: &Hosts, link: BlackBox, nonce: u64) -> io::Result<()> {
    let open = || UdpSocket::bind((Ipv4Addr::UNSPECIFIED, FAR_PORT));
    let socket = hosts.run(link.host(), open)?;
    let echo = move || echo(&socket, nonce, &AtomicBool::new(false));
    thread::Builder::new().spawn(echo)?;
    Ok(())
}

/// Its number, and what it has to know.
fn datagram(number: u32, nonce: u64) -> [u8; DATAGRAM_BYTES] {
    let mut datagram = [0; DATAGRAM_BYTES];
    datagram[..4].copy_from_slice(&number.to_be_bytes());
    datagram[4..12].copy_from_slice(&nonce.to_be_bytes());
    datagram
}

/// Sends back what comes and knows the number.
fn echo(socket: &UdpSocket, nonce: u64, is_over: &AtomicBool) {
    // Without it the times are longer, and say so.
    let _ = wire::be_real_time(PRIORITY);
    let mut datagram = [0; DATAGRAM_BYTES];
    while !is_over.load(Ordering::Relaxed) {
        if let Ok((DATAGRAM_BYTES, from)) = socket.recv_from(&mut datagram)
            && datagram[4..12] == nonce.to_be_bytes()
        {
            let _ = socket.send_to(&datagram, from);
        }
    }
}

fn send(socket: &UdpSocket, nonce: u64, rounds: u32) -> io::Result<Vec<u64>> {
    let _ = wire::be_real_time(PRIORITY);
    let (mut came, mut times) = (0, Vec::with_capacity(rounds as usize));
    for number in 0..WARM_UP + rounds {
        let mut datagram = datagram(number, nonce);
        let began = Instant::now();
        socket.send(&datagram)?;
        loop {
            match socket.recv(&mut datagram) {
                // One that was given up may come yet.
                Ok(_) if datagram[..4] != number.to_be_bytes() => {}
                Ok(_) => {
                    came += 1;
                    if number >= WARM_UP {
                        times.push(began.elapsed().as_nanos() as u64);
                    }
                    break;
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) => return Err(error),
            }
        }
        if number + 1 == GIVE_UP_AFTER && came == 0 {
            return Err(io::Error::other("no datagram came back"));
        }
    }
    Ok(times)
}

fn summarise(mut times: Vec<u64>, rounds: u32) -> io::Result<RoundTripTimes> {
    times.sort_unstable();
    let (Some(&min_ns), Some(&max_ns)) = (times.first(), times.last()) else {
        return Err(io::Error::other("no datagram came back"));
    };
    let at = |share: f64| times[((times.len() - 1) as f64 * share).round() as usize];
    let lost = rounds - times.len() as u32;
    let (p50_ns, p90_ns, p99_ns) = (at(0.5), at(0.9), at(0.99));
    Ok(RoundTripTimes { rounds, lost, min_ns, p50_ns, p90_ns, p99_ns, max_ns })
}
