//! How the two samples of a pair are taken.

use serde::{Deserialize, Serialize};

/// One of the two ways.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Scheme {
    /// One after the other.
    InSequence,
    /// Both processes live at the same time, and take turns on one CPU.
    InTurns,
}

/// Of a row whose pairs take turns, what those say that were taken in sequence, as a control.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ControlPairs {
    pub effect_pct: f64,
    /// `None` while there are too few pairs to bound that side.
    pub low_pct: Option<f64>,
    pub high_pct: Option<f64>,
    pub pairs: usize,
    /// Whether its interval and that of the row have nothing in common.
    pub differs: bool,
}
