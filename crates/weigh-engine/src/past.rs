//! The pairs of a row that an earlier session measured.

use std::time::Duration;

use super::outside::OutsideUse;
use super::schedule::Schedule;
use paired::carry_over::Turn;
use weigh_model::workload::metric::Metric;

/// What an earlier session of the same experiment measured of a row.
#[derive(Clone, Debug, PartialEq)]
pub struct Past {
    /// Of its whole pairs.
    pub log_ratios: Vec<f64>,
    /// How each was measured.
    pub turns: Vec<Turn>,
    /// The same of other metrics.
    pub further: Vec<PastReading>,
    pub schedule: Schedule,
    pub outside: OutsideUse,
    /// The log-ratios of its old pairs.
    pub late: Vec<f64>,
    /// n*, where it was known after the pilot alone.
    pub planned: Option<f64>,
    pub spent: Duration,
    pub next_pair: usize,
}

/// What an earlier session measured of another metric.
#[derive(Clone, Debug, PartialEq)]
pub struct PastReading {
    pub metric: Metric,
    /// Whether none of the row's first pairs had it.
    pub is_absent: bool,
    pub log_ratios: Vec<f64>,
    pub turns: Vec<Turn>,
}
