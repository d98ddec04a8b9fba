//! Checks rate limits: throughput over the wire in some seconds, compared with the limit.

use std::thread;
use std::time::{Duration, Instant};

use wire::{End, Impairment, Offload};

use crate::bulk::rate;
use crate::hogs::Hogs;
use crate::hosts::{Between, TwoHosts};
use crate::table::Table;
use crate::{real_time, row, table_of};

const RATES: [u64; 3] = [10_000_000, 100_000_000, 1_000_000_000];
const TIME: Duration = Duration::from_secs(6);
/// TCP is at the limit by then.
const BEGIN: Duration = Duration::from_secs(2);
const WINDOW: Duration = Duration::from_secs(3);
/// Share of a 1500-byte packet that TCP carries as data, with its timestamps.
const CARRIED: f64 = 1448.0 / 1500.0;

/// By limit, alone and beside busy CPUs.
pub fn table() -> Result<Table, String> {
    let title = "A rate limit (one TCP stream; packets and bytes on the wire within 3 s)";
    let head =
        ["limit", "CPUs", "on the wire", "off by", "to the user", "of what TCP can", "dropped"];
    let mut table = table_of(title, &head);
    let hosts = TwoHosts::new(Offload::TcpAndUdp, real_time()).ok_or("it needs root")?;
    for is_busy in [false, true] {
        let _hogs = is_busy.then(Hogs::start);
        for limit in RATES {
            let impairment = Impairment { rate_bits_per_s: Some(limit), ..Impairment::default() };
            hosts.wire.configure(End::A, impairment).map_err(|error| error.to_string())?;
            let (on_wire, to_user) = thread::scope(|scope| {
                let sending = scope.spawn(|| rate(&hosts, Between::Wire, TIME));
                thread::sleep(BEGIN);
                let on_wire = on_wire(&hosts);
                let to_user =
                    sending.join().unwrap_or_else(|_| Err(std::io::Error::other("panicked")));
                on_wire.and_then(|on_wire| Ok((on_wire, to_user?)))
            })
            .map_err(|error| error.to_string())?;
            let counters = hosts.wire.counters().map_err(|error| error.to_string())?;
            let limit = limit as f64;
            table.rows.push(row(&[
                format!("{} Mbit/s", limit / 1e6),
                (if is_busy { "busy" } else { "idle" }).into(),
                format!("{:.2} Mbit/s", on_wire / 1e6),
                format!("{:+.2} %", (on_wire / limit - 1.0) * 100.0),
                format!("{:.2} Mbit/s", to_user / 1e6),
                format!("{:.1} %", to_user / limit / CARRIED * 100.0),
                counters[0].all_dropped().to_string(),
            ]));
        }
    }
    Ok(table)
}

/// Bits per second that were delivered.
fn on_wire(hosts: &TwoHosts) -> std::io::Result<f64> {
    let look =
        || Ok::<_, std::io::Error>((Instant::now(), hosts.wire.counters()?[0].delivered_bytes));
    let (began, before) = look()?;
    thread::sleep(WINDOW);
    let (ended, after) = look()?;
    Ok((after - before) as f64 * 8.0 / (ended - began).as_secs_f64())
}
