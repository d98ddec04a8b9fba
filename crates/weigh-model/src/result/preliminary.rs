//! Preliminary results of a row, shown before anything bounds its effect.

use serde::{Deserialize, Serialize};

/// An estimate from few pairs, with the range of the pairs themselves: no evidence yet.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Preliminary {
    /// The estimate, in per cent.
    pub effect_pct: f64,
    /// The lowest effect of any pair.
    pub low_pct: f64,
    /// The highest.
    pub high_pct: f64,
}
