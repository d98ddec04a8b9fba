//! Which cells of a grid went another way than usual: their rate is far from that of their other sweeps,
//! or TCP waited in vain. What TCP did then is kept, and drawn.

use paired::estimate::{deviation, median};
use weigh_model::ids::{PairId, WorkId};
use weigh_model::record::{Detailed, Stored};
use weigh_model::result::net_cells::Abnormal;
use weigh_model::samples::Point;
use weigh_net::cell::Cell;

/// Samples that a cell needs before a deviation is reported.
const LEAST_SAMPLES: usize = 5;
/// Median absolute deviations, as estimates of the standard deviation.
const FAR: f64 = 3.0;
pub const TIMEOUTS: &str = "timeouts";
pub const RETRANSMISSIONS: &str = "retransmissions";
pub const DROPPED: &str = "dropped_packets";
pub const DROPPED_BY_QUEUE: &str = "queue_dropped_packets";

/// Returns the abnormal cells among the samples whose TCP was watched, the worst first.
pub fn abnormal(stored: &Stored, cells: &[Cell]) -> Vec<Abnormal> {
    let mut found: Vec<Abnormal> = watched(stored)
        .filter_map(|detailed| {
            let (cell, watch) = (cells.get(detailed.work.0)?, detailed.detail.watch.clone()?);
            let seen = SeenSample::of(stored, detailed)?;
            let is_to_be_told = seen.is_far || seen.timeouts > 0.0;
            is_to_be_told.then(|| Abnormal {
                cell: cell.name(),
                bytes: cell.bytes,
                sweep: detailed.pair.0 + 1,
                rate: seen.rate,
                median: seen.median,
                is_far: seen.is_far,
                timeouts: seen.timeouts as u64,
                retransmissions: seen.retransmissions as u64,
                dropped: seen.dropped as u64,
                connections: watch.connections,
            })
        })
        .collect();
    let distance = |one: &Abnormal| (one.rate / one.median).ln().abs();
    found.sort_by(|a, b| distance(b).total_cmp(&distance(a)));
    found
}

/// Returns the work and pair of each watched sample that need not be kept.
pub fn ordinary(stored: &Stored) -> Vec<(WorkId, PairId)> {
    watched(stored)
        .filter(|detailed| {
            SeenSample::of(stored, detailed)
                .is_some_and(|seen| !seen.is_far && seen.timeouts == 0.0)
        })
        .map(|detailed| (detailed.work, detailed.pair))
        .collect()
}

fn watched(stored: &Stored) -> impl Iterator<Item = &Detailed> {
    stored.details.iter().filter(|detailed| detailed.detail.watch.is_some())
}

/// A sample among those of its cell.
struct SeenSample {
    rate: f64,
    median: f64,
    is_far: bool,
    timeouts: f64,
    retransmissions: f64,
    dropped: f64,
}

impl SeenSample {
    fn of(stored: &Stored, detailed: &Detailed) -> Option<SeenSample> {
        let row = stored.samples_of_run(detailed.work)?;
        let at = row.points.iter().position(|point| point.pair == detailed.pair)?;
        let reading = |name: &str| row.further_of(at, name).unwrap_or(0.0);
        let rates: Vec<f64> = row.points.iter().map(|point: &Point| point.rate).collect();
        let (middle, rate) = (median(&rates)?, rates[at]);
        Some(SeenSample {
            rate,
            median: middle,
            is_far: rates.len() >= LEAST_SAMPLES && (rate - middle).abs() > FAR * deviation(&rates),
            timeouts: reading(TIMEOUTS),
            retransmissions: reading(RETRANSMISSIONS),
            dropped: reading(DROPPED) + reading(DROPPED_BY_QUEUE),
        })
    }
}
