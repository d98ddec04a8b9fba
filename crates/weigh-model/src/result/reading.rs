//! Readings: results of the pairs about metrics other than the rate.
//!
//! A row is about its *primary* metric, the rate, which steers the experiment. Each reading is a
//! claim of its own, and counts among the claims that share the promise of slower and faster.

use serde::{Deserialize, Serialize};

use crate::workload::metric::{Direction, Metric};
use paired::{Verdict, Withheld};

/// Result of a row's pairs about a metric other than the rate.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Reading {
    pub metric: Metric,
    /// Unit of `baseline` and `treated`: `ns/op`.
    pub unit: String,
    /// Direction that is better: more of it, or less.
    #[serde(default)]
    pub better: Direction,
    /// Median over the pairs.
    pub baseline: f64,
    /// `baseline × (1 + effect_pct / 100)`.
    pub treated: f64,
    /// Treated over baseline − 1, in per cent: positive is more.
    pub effect_pct: f64,
    /// The interval of the effect; `None` while there are too few pairs to bound that side.
    pub low_pct: Option<f64>,
    pub high_pct: Option<f64>,
    /// `slower` is worse, `faster` better: of CPU time more and less.
    pub verdict: Verdict,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub withheld: Option<Withheld>,
    pub within_margin: bool,
    pub precise: bool,
    /// Pairs in which both samples have it.
    pub pairs: usize,
}
