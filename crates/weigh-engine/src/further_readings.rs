//! The metrics that are stored with each load point and each network cell, besides its rate.

use super::net_cells::READINGS;
use weigh_model::result::load::LOAD_READINGS;
use weigh_model::workload::metric::{Metric, Percentile};

pub const ACTIVITY_RATE: &str = "activity_rate";
/// Packets of a cell that a wire lost by mistake.
pub const LOST_PACKETS: &str = "lost_packets";

pub fn of_points() -> Vec<Metric> {
    let latencies = [Percentile::P99, Percentile::P90].map(Metric::Latency);
    let named = LOAD_READINGS.iter().map(|name| Metric::Named((*name).into()));
    latencies.into_iter().chain(named).collect()
}

pub fn of_cells() -> Vec<Metric> {
    let names = [ACTIVITY_RATE, LOST_PACKETS].into_iter().chain(READINGS);
    names.map(|name| Metric::Named(name.into())).collect()
}
