//! Promise of an experiment, and the conditions under which it counts as decided.

use serde::{Deserialize, Serialize};

use super::multiplicity::Multiplicity;

/// The least number of pairs before any verdict. Fewer cannot bound an anytime interval at 5 % on
/// both sides, and whatever the level, fewer samples say nothing about how a machine behaves.
pub const MIN_PAIRS: usize = 8;

/// Decisions made before the first pair, which must not change with the data.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Design {
    /// Error rate in (0, ½): of each interval, of each claim of equivalence, and, as `multiplicity`
    /// says, of all claims of slower and faster of an experiment together.
    pub alpha: f64,
    /// The margin of equivalence as a log-ratio, from [`margin_from_percent`]; positive.
    pub margin: f64,
    /// With `Some(n)` a row is judged once, by Wilcoxon's test, when it has `n` pairs; with `None`
    /// at any time, by betting.
    pub fixed_pairs: Option<usize>,
    /// Promise for all claims of slower and faster together. e-BH needs a design without
    /// `fixed_pairs`, as Wilcoxon's test gives no e-values.
    pub multiplicity: Multiplicity,
    /// How many pairs the budget will probably allow a row, as known before the first: half of the capital
    /// bets as suits that number ([`super::betting::Start`]).
    pub planned_pairs: Option<f64>,
    /// Weight of all planned claims together, 1 for each row. Rows that gave no result count among the ones
    /// compared all the same: which fail may depend on the data. At least that of those judged together.
    #[serde(default)]
    pub rows: usize,
}

impl Default for Design {
    /// 5 %, a margin of 1 %, judged at any time, by Holm's method.
    fn default() -> Design {
        Design {
            alpha: 0.05,
            margin: margin_from_percent(1.0),
            fixed_pairs: None,
            multiplicity: Multiplicity::Holm,
            planned_pairs: None,
            rows: 0,
        }
    }
}

/// The margin as a log-ratio: ln(1 + percent/100).
///
/// Used on both sides, so that swapping the arms swaps nothing but the sign. A margin of 1 % then
/// means from −0.990 % to +1 %: on the slow side it is stricter than its name by a hundredth.
pub fn margin_from_percent(percent: f64) -> f64 {
    (percent / 100.0).ln_1p()
}
