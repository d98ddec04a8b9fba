//! From the log-ratios of paired samples to a verdict. Pure functions: this room knows no other.
//!
//! `docs/statistics.md` explains the choice; every formula below names its source.

use serde::{Deserialize, Serialize};

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
