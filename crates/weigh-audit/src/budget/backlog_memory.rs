//! The kernel memory that a full backlog takes: what a queued record takes, measured while the backlog fills.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use super::backlog::drained;
use super::load::{paced_file, read};
use super::treated::Treated;
use linux_audit::netlink::Client;
use linux_audit::status::AuditSetting;
use weigh_engine::platform::Stop;
use weigh_host::machine::facts::unreclaimable_slab_bytes;
use weigh_treatment::audit::needs;
use weigh_workload::paced::Pace;

/// So many records that what the kernel counts late (up to 125 pages for each CPU) is little beside them.
const LIMIT: u32 = 8192;
const LOOK_EVERY: Duration = Duration::from_millis(1);
const SECONDS: f64 = 0.5;
/// More than any machine opens files in that time: the backlog is full.
const STEPS: u64 = 1_000_000;

/// Bytes of kernel memory that one queued record takes: the slope of the kernel's unreclaimable slab over
/// the number of records in the backlog, by least squares, while a load fills it. `None` where it was never
/// more than half full. Changes the settings, as [`super::backlog::search`] does.
pub fn bytes_per_record(treated: &mut Treated) -> Result<Option<f64>, Stop> {
    let pace = Pace { file: paced_file(treated)?, steps: STEPS, seconds: SECONDS };
    drained(treated)?;
    treated.client.set(AuditSetting::BacklogWaitTime(0)).map_err(needs)?;
    treated.client.set(AuditSetting::BacklogLimit(LIMIT)).map_err(needs)?;
    let client = Client::open().map_err(needs)?;
    let is_over = AtomicBool::new(false);
    let (launched, looks) = thread::scope(|scope| {
        let watcher = thread::Builder::new().spawn_scoped(scope, || look(client, &is_over))?;
        let launched = treated.launch(&pace.job(&treated.context().place.scratch));
        is_over.store(true, Ordering::Relaxed);
        Ok((launched, watcher.join().expect("the watcher does not panic")))
    })
    .map_err(needs)?;
    read(&launched?)?;
    drained(treated)?;
    let looks = looks.map_err(needs)?;
    let fullest = looks.iter().map(|(records, _)| *records).fold(0.0, f64::max);
    Ok((fullest >= f64::from(LIMIT) / 2.0).then(|| slope(&looks)))
}

/// Records in the backlog and bytes of slab, again and again.
fn look(mut client: Client, is_over: &AtomicBool) -> io::Result<Vec<(f64, f64)>> {
    let mut looks = Vec::new();
    while !is_over.load(Ordering::Relaxed) {
        let records = client.status()?.backlog;
        if let Some(bytes) = unreclaimable_slab_bytes() {
            looks.push((f64::from(records), bytes as f64));
        }
        thread::sleep(LOOK_EVERY);
    }
    Ok(looks)
}

/// Returns the slope of the least-squares line through the points.
fn slope(points: &[(f64, f64)]) -> f64 {
    let count = points.len() as f64;
    let mean = |of: fn(&(f64, f64)) -> f64| points.iter().map(of).sum::<f64>() / count;
    let (x, y) = (mean(|point| point.0), mean(|point| point.1));
    let products = points.iter().map(|point| (point.0 - x) * (point.1 - y)).sum::<f64>();
    products / points.iter().map(|point| (point.0 - x).powi(2)).sum::<f64>()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slope_is_what_each_further_record_takes() {
        let points: Vec<(f64, f64)> =
            (0..100).map(|i| (f64::from(i), 5e7 + 2304.0 * f64::from(i))).collect();
        assert!((slope(&points) - 2304.0).abs() < 1e-6);
    }
}
