//! Throughput of a link that does nothing, compared with a plain pair of `veth`, in pairs of random
//! order.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsRawFd;
use std::thread;
use std::time::{Duration, Instant};

use paired::betting::{Betting, DEFAULT_SCALE};
use paired::{Design, judge_rows};
use rand::RngExt;
use wire::{Impairment, Offload, Scheduling};

use crate::hosts::{Between, TwoHosts, address};
use crate::table::Table;
use crate::{real_time, row, table_of};

const TIME: Duration = Duration::from_secs(1);
const WRITE_BYTES: usize = 64 << 10;
const SENDER_CPU: usize = 0;
const RECEIVER_CPU: usize = 1;

/// One connection, from one CPU to another; bits per second that arrived.
pub fn rate(hosts: &TwoHosts, between: Between, time: Duration) -> io::Result<f64> {
    let place = SocketAddr::new(address(between, false, 1), 0);
    let listener = hosts.namespaces[1].run(|| TcpListener::bind(place))?;
    let place = listener.local_addr()?;
    let socket = hosts.namespaces[0].run(|| {
        let socket = TcpStream::connect(place)?;
        use_reno(&socket)?;
        Ok(socket)
    })?;
    let (mut receiver, _) = listener.accept()?;
    thread::scope(|scope| {
        let receiving = scope.spawn(move || {
            let _ = wire::stay_on(&[RECEIVER_CPU]);
            let mut data = vec![0; 4 * WRITE_BYTES];
            let mut bytes = 0_u64;
            let mut began = None;
            loop {
                let length = receiver.read(&mut data)?;
                let began = *began.get_or_insert_with(Instant::now);
                if length == 0 {
                    return Ok(bytes as f64 * 8.0 / began.elapsed().as_secs_f64());
                }
                bytes += length as u64;
            }
        });
        let sending = scope.spawn(move || {
            let _ = wire::stay_on(&[SENDER_CPU]);
            let data = vec![7; WRITE_BYTES];
            let mut socket = socket;
            let began = Instant::now();
            while began.elapsed() < time {
                socket.write_all(&data)?;
            }
            Ok::<(), io::Error>(())
        });
        sending.join().map_err(|_| io::Error::other("a thread panicked"))??;
        receiving.join().map_err(|_| io::Error::other("a thread panicked"))?
    })
}

fn use_reno(socket: &TcpStream) -> io::Result<()> {
    let name = b"reno";
    // SAFETY: the name lives as long as the call, which is told its length.
    let done = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::IPPROTO_TCP,
            libc::TCP_CONGESTION,
            name.as_ptr().cast(),
            name.len() as libc::socklen_t,
        )
    };
    if done < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// How the link's thread runs. With real-time priority it stays where it began: in `weigh net` that is with
/// the black boxes, and so with the receiver of what W_test sends, and with the sender of what it receives.
fn links() -> [(&'static str, Scheduling); 3] {
    let beside = |cpu| Scheduling { cpus: vec![cpu], ..real_time() };
    [
        ("real-time thread, on the receiver's CPU", beside(RECEIVER_CPU)),
        ("real-time thread, on the sender's CPU", beside(SENDER_CPU)),
        ("ordinary thread, on any CPU", Scheduling::default()),
    ]
}

/// The wire over `veth`, with offload.
pub fn table(pairs: usize) -> Result<Table, String> {
    let title = "A link that does nothing against veth (one TCP stream, reno, 64 KiB writes)";
    let mut table =
        table_of(title, &["link", "veth", "wire", "wire/veth", "95 % interval", "pairs"]);
    for (name, scheduling) in links() {
        let hosts = TwoHosts::new(Offload::TcpAndUdp, scheduling).ok_or("it needs root")?;
        for end in [wire::End::A, wire::End::B] {
            hosts.wire.configure(end, Impairment::default()).map_err(|error| error.to_string())?;
        }
        let mut betting = Betting::new(DEFAULT_SCALE);
        let mut sums = [0.0; 2];
        for pair in 0..pairs {
            let mut rates = [0.0; 2];
            let mut order = [Between::Veth, Between::Wire];
            if rand::rng().random_bool(0.5) {
                order.reverse();
            }
            for between in order {
                let found = rate(&hosts, between, TIME).map_err(|error| error.to_string())?;
                rates[usize::from(between == Between::Wire)] = found / 1e9;
            }
            eprintln!("{name}: pair {} of {pairs}: {rates:.1?} Gbit/s", pair + 1);
            sums = [sums[0] + rates[0].ln(), sums[1] + rates[1].ln()];
            betting.push((rates[1] / rates[0]).ln()).map_err(|error| error.to_string())?;
        }
        let judged = &judge_rows([&betting], &Design::default())[0];
        let mean = |at: usize| format!("{:.1} Gbit/s", (sums[at] / pairs as f64).exp());
        let ratio = |log: f64| format!("{:.2}", log.exp());
        table.rows.push(row(&[
            name.into(),
            mean(0),
            mean(1),
            ratio(judged.estimate),
            format!("{} to {}", ratio(judged.interval.low), ratio(judged.interval.high)),
            pairs.to_string(),
        ]));
    }
    Ok(table)
}
