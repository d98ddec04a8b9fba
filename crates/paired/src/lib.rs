//! Decides from pairs of measurements whether B is slower than A, and by how much. Valid at any stop.
//!
//! Measure two things in pairs, one sample of each, next to each other in time. Let a **fair coin** decide
//! for every pair which of the two comes first. The only input is the log-ratio of each pair, d =
//! ln(rate of B / rate of A), in the order measured. The coin is the only assumption: not normal noise, not
//! independent samples, not a machine that stays as it is. The crate does not know machines or
//! experiments.
//!
//! Start with [`judge_rows`].
//!
//! ```
//! use paired::betting::{Betting, DEFAULT_SCALE};
//! use paired::{Design, NotFinite, Verdict, judge_rows};
//!
//! // Operations per second of a program as it was, and as it is now.
//! let pairs = [
//!     (1012.0, 968.0), (998.0, 957.0), (1007.0, 974.0), (985.0, 941.0), (1003.0, 969.0),
//!     (1010.0, 973.0), (991.0, 958.0), (1001.0, 962.0), (1005.0, 967.0), (996.0, 955.0),
//! ];
//! let mut row = Betting::new(DEFAULT_SCALE);
//! for (as_it_was, as_it_is) in pairs {
//!     row.push((as_it_is / as_it_was as f64).ln())?;
//!     // Here one may look, and stop, after every pair.
//! }
//! let judged = &judge_rows([&row], &Design::default())[0];
//! assert_eq!(judged.verdict, Verdict::Slower);
//! let percent = |log_ratio: f64| 100.0 * log_ratio.exp_m1();
//! assert!((-4.5..-3.0).contains(&percent(judged.estimate)));
//! assert!(judged.interval.high < 0.0);
//! # Ok::<(), NotFinite>(())
//! ```
//!
//! - [`Betting`] holds the log-ratios of one comparison, a *row*, and gives estimate and interval.
//! - [`judge_rows`] judges all rows of an experiment together, as a [`Design`] promises.
//!   [`judge_claims`] judges rows of different weight. A [`Judgement`] has the [`Verdict`], and the reason
//!   if one was [withheld](Withheld).
//! - [`carry_over`], [`stalls`], [`bound`] and [`mean_rate`] show what the interval of a typical pair
//!   does not.
//! - [`forecast`] computes how many pairs a verdict needs, [`detectable`] what a number of pairs can show.
//! - [`dose`] puts a line through arms that differ in one number: the cost of each further unit.
//! - [`series`] is for measurements without a partner, one after the other, with looks in between.
//! - [`unpaired`], [`wilcoxon`], [`estimate`], [`binomial`], [`student`] and [`histogram`] are for data of
//!   other designs.
//! - [`simulated`] is a machine with a known effect, to try all of this.
//!
//! Effects, intervals, margins and scales are log-ratios unless a name ends in `_pct`: e^x − 1 is the
//! change of the rate, below zero is slower. Error rates are in (0, 1). Functions are pure and panic at no
//! data. If the data support no answer, the result is `None`, an unbounded interval, or an error. Every
//! formula names its source. Weighbridge's `docs/statistics.md` has the reasons and the measurements.

#![cfg_attr(not(test), deny(clippy::disallowed_methods))]
#![warn(missing_docs)]

pub mod betting;
pub mod binomial;
pub mod bound;
#[cfg(test)]
mod calibration;
pub mod carry_over;
mod crossing;
pub mod design;
pub mod detectable;
pub mod dose;
pub mod doubt;
pub mod estimate;
pub mod forecast;
pub mod histogram;
pub mod judge;
mod location;
pub mod looks;
pub mod mean_rate;
pub mod multiplicity;
mod normal;
pub mod parallel;
#[cfg(test)]
mod plans;
pub mod series;
pub mod simulated;
mod spread;
pub mod stalls;
pub mod student;
mod turn;
pub mod unpaired;
mod wealth;
pub mod wilcoxon;

use serde::{Deserialize, Serialize};

pub use betting::{Betting, NotFinite};
pub use design::Design;
pub use doubt::{Doubt, Withheld};
pub use judge::{Judgement, WeightedClaim, judge_claims, judge_rows};

/// Verdict of an experiment on one workload under one treatment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// The rate is lower: no effect is refuted, and the interval is below zero.
    Slower,
    /// The rate is higher.
    Faster,
    /// An effect as large as the margin is refuted on both sides.
    Equivalent,
    /// None of these is shown yet, or something speaks against saying so.
    #[default]
    Inconclusive,
}

/// A confidence interval of a log-ratio; an end is infinite while the data do not bound it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interval {
    /// At most [`Interval::high`]; −∞ where this side is not bounded.
    pub low: f64,
    /// +∞ where this side is not bounded.
    pub high: f64,
}

impl Interval {
    /// The interval that says nothing.
    pub const UNBOUNDED: Interval = Interval { low: f64::NEG_INFINITY, high: f64::INFINITY };

    /// Half the distance between the ends; infinite while one of them is.
    pub fn half_width(&self) -> f64 {
        (self.high - self.low) / 2.0
    }

    /// Returns true if the whole interval is strictly closer to zero than `margin`.
    pub fn is_within(&self, margin: f64) -> bool {
        -margin < self.low && self.high < margin
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interval_is_within_a_margin_that_neither_end_reaches() {
        let interval = |low, high| Interval { low, high };
        assert_eq!(interval(-1.0, 3.0).half_width(), 2.0);
        for (low, high, is_within) in [
            (-0.9, 0.9, true),
            (0.5, 0.9, true),
            (-1.0, 0.5, false),
            (-0.5, 1.0, false),
            (-1.1, 0.5, false),
            (-0.5, 1.1, false),
        ] {
            assert_eq!(interval(low, high).is_within(1.0), is_within, "{low} {high}");
        }
    }
}
