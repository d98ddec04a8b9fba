//! From the log-ratios of paired samples to a verdict. Pure functions: this room knows no other.
//!
//! `docs/statistics.md` explains the choice; every formula below names its source.

pub mod betting;
pub mod binomial;
pub mod bound;
#[cfg(test)]
mod calibration;
pub mod carry_over;
mod crossing;
pub mod design;
pub mod detectable;
pub mod doubt;
pub mod estimate;
pub mod forecast;
pub mod histogram;
pub mod judge;
mod location;
pub mod mean_rate;
pub mod multiplicity;
mod normal;
pub mod parallel;
pub mod simulated;
mod spread;
pub mod stalls;
pub mod unpaired;
mod wealth;
pub mod wilcoxon;

use serde::{Deserialize, Serialize};

pub use betting::{Betting, NotFinite};
pub use design::Design;
pub use doubt::{Doubt, Withheld};
pub use judge::{Judgement, judge_rows};

/// What an experiment says of one workload under one treatment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    Slower,
    Faster,
    Equivalent,
    Inconclusive,
}

/// A confidence interval of a log-ratio; an end is infinite while the data do not bound it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interval {
    pub low: f64,
    pub high: f64,
}

impl Interval {
    /// The interval that says nothing.
    pub const UNBOUNDED: Interval = Interval { low: f64::NEG_INFINITY, high: f64::INFINITY };

    /// Half the distance between the ends; infinite while one of them is.
    pub fn half_width(&self) -> f64 {
        (self.high - self.low) / 2.0
    }

    /// Whether the whole interval is strictly closer to zero than `margin`.
    pub fn is_within(&self, margin: f64) -> bool {
        -margin < self.low && self.high < margin
    }
}
