//! How the two samples of a pair are taken.

use serde::{Deserialize, Serialize};

/// One of the two ways.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Scheme {
    /// One after the other.
    Sequential,
    /// Interleaved: the processes live at the same time, and alternate on one CPU.
    Interleaved,
}

/// Least number of interleaved pairs for *equivalent*, *faster* and "costs at most": 24 find 92 to 100 % of
/// four planted costs outside the median slice, 16 find 62 to 100 %
/// (docs/evidence/statistics-interleaving.md).
pub const LEAST_INTERLEAVED: usize = 24;

/// s₀: the spread of a row's log-ratios expected before the first pair, as a standard deviation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StartScales {
    pub sequential: f64,
    /// `None` where only the sequential scale is given.
    pub interleaved: Option<f64>,
}

/// Where nothing is known of turns.
impl From<f64> for StartScales {
    fn from(sequential: f64) -> StartScales {
        StartScales { sequential, interleaved: None }
    }
}
