//! How much longer than its delay a datagram takes there and back.

use std::net::{SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use wire::{End, Impairment, Offload};

use crate::hogs::Hogs;
use crate::hosts::{Between, TwoHosts, address};
use crate::table::Table;
use crate::{LINK_PRIORITY, real_time, row, table_of};

/// Priority of the probes: above the hogs, below the link.
const PRIORITY: i32 = 40;
/// The delay of one direction, and how many datagrams.
const DELAYS: [(u64, usize); 5] =
    [(0, 5000), (100_000, 5000), (1_000_000, 5000), (10_000_000, 1000), (100_000_000, 150)];

/// How often a bare timer is tried.
const TIMERS: usize = 4;

/// By delay, alone and beside busy CPUs.
pub fn table() -> Result<Table, String> {
    let title = "How late packets leave (64-byte UDP; link and probes have real-time priority)";
    let head = ["delay", "CPUs", "datagrams", "late p50", "p99", "bare timer p50", "p99"];
    let more = ["there and back beyond the delay p50", "p99", "stolen"];
    let mut table = table_of(title, &[&head[..], &more[..]].concat());
    let hosts = TwoHosts::new(Offload::TcpAndUdp, real_time()).ok_or("it needs root")?;
    if let Some(why) = hosts.wire.not_real_time() {
        return Err(format!("the link has no real-time priority: {why}"));
    }
    for is_busy in [false, true] {
        let _hogs = is_busy.then(Hogs::start);
        for (delay_ns, count) in DELAYS {
            table
                .rows
                .push(one(&hosts, is_busy, delay_ns, count).map_err(|error| error.to_string())?);
            eprintln!("{:?}", table.rows.last());
        }
    }
    Ok(table)
}

fn one(
    hosts: &TwoHosts,
    is_busy: bool,
    delay_ns: u64,
    count: usize,
) -> std::io::Result<Vec<String>> {
    let impairment = Impairment { delay_ns, ..Impairment::default() };
    hosts.wire.configure(End::A, impairment)?;
    let before = stolen();
    let mut beyond = beyond(hosts, delay_ns, count)?;
    let mut timer = timer(delay_ns, count / TIMERS)?;
    let after = stolen();
    let counters = &hosts.wire.counters()?[0];
    beyond.sort_by(f64::total_cmp);
    timer.sort_by(f64::total_cmp);
    let at = |times: &[f64], share: f64| {
        let place = times.len().saturating_sub(1) as f64 * share;
        times.get(place.round() as usize).map_or("–".into(), |time| format!("{time:.0} µs"))
    };
    let own =
        |ns: u64| if delay_ns > 0 { format!("{:.0} µs", ns as f64 / 1e3) } else { "–".into() };
    Ok(row(&[
        format!("{} ms", delay_ns as f64 / 1e6),
        (if is_busy { "busy" } else { "idle" }).into(),
        count.to_string(),
        own(counters.late_p50_ns),
        own(counters.late_p99_ns),
        at(&timer, 0.5),
        at(&timer, 0.99),
        at(&beyond, 0.5),
        at(&beyond, 0.99),
        format!("{:.1} %", (after.0 - before.0) / (after.1 - before.1) * 100.0),
    ]))
}

/// CPU time that the hypervisor gave to others, and all, in ticks (proc_stat(5)).
fn stolen() -> (f64, f64) {
    let text = std::fs::read_to_string("/proc/stat").unwrap_or_default();
    let line = text.lines().next().unwrap_or_default();
    let ticks: Vec<f64> =
        line.split_whitespace().skip(1).take(8).map(|word| word.parse().unwrap_or(0.0)).collect();
    (ticks.get(7).copied().unwrap_or(0.0), ticks.iter().sum::<f64>() + 1e-9)
}

/// How late a thread of the link's priority wakes that does nothing but sleep: what this machine can do.
fn timer(delay_ns: u64, count: usize) -> std::io::Result<Vec<f64>> {
    if delay_ns == 0 {
        return Ok(Vec::new());
    }
    let sleep = move || {
        wire::be_real_time(LINK_PRIORITY)?;
        let delay = Duration::from_nanos(delay_ns);
        let late = |_| {
            let due = Instant::now() + delay;
            thread::sleep(delay);
            due.elapsed().as_nanos() as f64 / 1e3
        };
        Ok((0..count).map(late).collect())
    };
    thread::spawn(sleep).join().unwrap_or_else(|_| Err(std::io::Error::other("a thread panicked")))
}

/// Microseconds beyond the delay, of each datagram.
fn beyond(hosts: &TwoHosts, delay_ns: u64, count: usize) -> std::io::Result<Vec<f64>> {
    let open = |at: usize| {
        let place = SocketAddr::new(address(Between::Wire, false, at), 0);
        hosts.namespaces[at].run(|| UdpSocket::bind(place))
    };
    let (near, far) = (open(0)?, open(1)?);
    near.connect(far.local_addr()?)?;
    near.set_read_timeout(Some(Duration::from_secs(5)))?;
    far.set_read_timeout(Some(Duration::from_millis(200)))?;
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            let _ = wire::be_real_time(PRIORITY);
            let mut datagram = [0; 64];
            while !is_over.load(Ordering::Relaxed) {
                if let Ok((length, from)) = far.recv_from(&mut datagram) {
                    let _ = far.send_to(&datagram[..length], from);
                }
            }
        });
        let times = scope.spawn(|| {
            wire::be_real_time(PRIORITY)?;
            let mut datagram = [0; 64];
            let mut beyond = Vec::with_capacity(count);
            for number in 0..count + 20 {
                let began = Instant::now();
                near.send(&datagram)?;
                near.recv(&mut datagram)?;
                let taken_ns = began.elapsed().as_nanos() as f64;
                if number >= 20 {
                    beyond.push((taken_ns - delay_ns as f64) / 1e3);
                }
            }
            Ok(beyond)
        });
        let times =
            times.join().unwrap_or_else(|_| Err(std::io::Error::other("a thread panicked")));
        is_over.store(true, Ordering::Relaxed);
        times
    })
}
