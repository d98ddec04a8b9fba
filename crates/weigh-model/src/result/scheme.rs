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
