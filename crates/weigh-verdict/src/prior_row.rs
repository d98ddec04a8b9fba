//! The pairs of a row that an earlier session measured.

use std::time::Duration;

use super::outside::OutsideUse;
use super::schedule::Schedule;
use paired::carry_over::Turn;
use weigh_model::ids::PairId;
use weigh_model::result::scheme::Scheme;
use weigh_model::workload::metric::Metric;

/// Measurements of a row by an earlier session of the same experiment.
#[derive(Clone, Debug, PartialEq)]
pub struct PriorRow {
    /// Log-ratios of the whole pairs.
    pub log_ratios: Vec<f64>,
    /// How each was measured.
    pub turns: Vec<Turn>,
    /// Log-ratios and turns of other metrics.
    pub further: Vec<PastReading>,
    pub schedule: Schedule,
    pub outside: OutsideUse,
    /// The log-ratios of its old pairs.
    pub late: Vec<f64>,
    /// n*, where it was known after the pilot alone.
    pub planned: Option<f64>,
    pub spent: Duration,
    pub next_pair: PairId,
}

impl PriorRow {
    /// A row without a whole pair.
    pub fn new(next_pair: PairId) -> PriorRow {
        PriorRow {
            log_ratios: Vec::new(),
            turns: Vec::new(),
            further: Vec::new(),
            schedule: Schedule::Fixed(Scheme::Sequential),
            outside: OutsideUse::default(),
            late: Vec::new(),
            planned: None,
            spent: Duration::ZERO,
            next_pair,
        }
    }
}

/// Measurements of another metric by an earlier session.
#[derive(Clone, Debug, PartialEq)]
pub struct PastReading {
    pub metric: Metric,
    /// True if none of the row's first pairs had the metric.
    pub is_absent: bool,
    pub log_ratios: Vec<f64>,
    pub turns: Vec<Turn>,
}
