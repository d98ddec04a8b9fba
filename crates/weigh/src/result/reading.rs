//! What a sample gives besides its rate, and what the pairs say of it.
//!
//! A row is about its *primary* metric, the rate, which steers the experiment. Each reading is a claim of its
//! own, and counts among those that share the promise of slower and faster.

use serde::{Deserialize, Serialize};

use paired::{Verdict, Withheld};

/// A metric that can have a verdict.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Metric {
    /// Operations per second of wall time.
    Rate,
    /// CPU time of an operation, in user and kernel mode, of the workload and the processes that it started.
    /// It does not include waiting, for a disk or for a CPU that others have.
    CpuTime,
}

impl Metric {
    /// Those that are judged. With a number of pairs that is fixed in advance the rate alone: the smallest
    /// p-value of eight pairs is 1/128, which twice the claims would leave no room for.
    pub fn judged(fixed_pairs: Option<usize>) -> Vec<Metric> {
        if fixed_pairs.is_some() { vec![Metric::Rate] } else { vec![Metric::Rate, Metric::CpuTime] }
    }

    /// As documents have it.
    pub fn name(self) -> &'static str {
        match self {
            Metric::Rate => "rate",
            Metric::CpuTime => "cpu_time",
        }
    }
}

/// What the pairs of a row say of another metric than the rate. Less is better.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Reading {
    pub metric: Metric,
    /// Of `baseline` and `treated`: `ns/op`.
    pub unit: String,
    /// Median over the pairs.
    pub baseline: f64,
    /// `baseline × (1 + effect_pct / 100)`.
    pub treated: f64,
    /// Treated over baseline − 1, in per cent: positive is more.
    pub effect_pct: f64,
    /// The interval of the effect; `None` while there are too few pairs to bound that side.
    pub low_pct: Option<f64>,
    pub high_pct: Option<f64>,
    /// `slower` is more of it, `faster` less.
    pub verdict: Verdict,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub withheld: Option<Withheld>,
    pub within_margin: bool,
    pub precise: bool,
    /// Pairs in which both samples have it.
    pub pairs: usize,
}
