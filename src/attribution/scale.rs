//! What weighing needs of a machine: a trait, so that the arithmetic is tested without one.

use crate::report::rules::Cost;
use crate::stats::estimate::hodges_lehmann;
use crate::stats::wilcoxon::signed_rank_interval;
use crate::treatment::Error;

pub const ALPHA: f64 = 0.05;

/// Something that rules can be put on and taken off.
pub trait Scale {
    /// Loads just these rules (ascending indices) and weighs each operation: its cost, in the
    /// metric, per operation.
    ///
    /// # Errors
    /// Where the kernel's rules are not as they should be, or the user gave up.
    fn weigh(&mut self, loaded: &[usize]) -> Result<Vec<f64>, Error>;
}

/// Costs with and without some rules, in pairs of neighbours in time.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Differences {
    /// By operation, then by pair: with − without.
    pub by_operation: Vec<Vec<f64>>,
}

impl Differences {
    /// Weighs `pairs` times with and without, in the order `ABBA`, so that what drifts steadily is in
    /// both alike.
    ///
    /// # Errors
    /// As [`Scale::weigh`].
    pub fn weigh(
        scale: &mut impl Scale,
        without: &[usize],
        with: &[usize],
        pairs: usize,
    ) -> Result<Differences, Error> {
        Differences::visit(scale, without, with, 0..pairs)
    }

    /// The same, of pairs with these numbers: odd ones begin with.
    ///
    /// # Errors
    /// As [`Scale::weigh`].
    pub fn visit(
        scale: &mut impl Scale,
        without: &[usize],
        with: &[usize],
        pairs: std::ops::Range<usize>,
    ) -> Result<Differences, Error> {
        let mut differences = Differences::default();
        for pair in pairs {
            let (low, high) = if pair % 2 == 0 {
                let low = scale.weigh(without)?;
                (low, scale.weigh(with)?)
            } else {
                let high = scale.weigh(with)?;
                (scale.weigh(without)?, high)
            };
            differences.push(low.iter().zip(&high).map(|(low, high)| high - low));
        }
        Ok(differences)
    }

    fn push(&mut self, differences: impl Iterator<Item = f64>) {
        for (operation, difference) in differences.enumerate() {
            if self.by_operation.len() <= operation {
                self.by_operation.push(Vec::new());
            }
            self.by_operation[operation].push(difference);
        }
    }

    /// Adds pairs of another time.
    pub fn extend(&mut self, other: Differences) {
        if self.by_operation.is_empty() {
            *self = other;
            return;
        }
        for (mine, others) in self.by_operation.iter_mut().zip(other.by_operation) {
            mine.extend(others);
        }
    }

    pub fn pairs(&self) -> usize {
        self.by_operation.first().map_or(0, Vec::len)
    }

    /// By pair, the differences of all operations, weighted.
    pub fn mixed(&self, weights: &[f64]) -> Vec<f64> {
        let weighted = |pair: usize| {
            self.by_operation
                .iter()
                .zip(weights)
                .map(|(values, weight)| weight * values[pair])
                .sum()
        };
        (0..self.pairs()).map(weighted).collect()
    }

    pub fn costs(&self) -> Vec<Cost> {
        self.by_operation.iter().map(|differences| centre(differences)).collect()
    }
}

/// The Hodges–Lehmann estimate with its interval: a third of the values may be disturbed by whatever
/// else the machine does, and neither moves far.
pub fn centre(values: &[f64]) -> Cost {
    centre_at(values, ALPHA)
}

/// The same with the error rate `alpha`.
pub fn centre_at(values: &[f64], alpha: f64) -> Cost {
    let value = hodges_lehmann(values).unwrap_or(0.0);
    let interval = signed_rank_interval(values, alpha);
    let (low, high) = interval.map_or((f64::NEG_INFINITY, f64::INFINITY), |i| (i.low, i.high));
    Cost { value, low, high }
}

/// A cost times a number.
pub fn times(cost: Cost, factor: f64) -> Cost {
    let ends = [cost.low * factor, cost.high * factor];
    Cost { value: cost.value * factor, low: ends[0].min(ends[1]), high: ends[0].max(ends[1]) }
}

/// The sum of costs that were measured independently: half-widths add as standard deviations do.
pub fn sum(costs: impl IntoIterator<Item = Cost>) -> Cost {
    let (mut value, mut below, mut above) = (0.0, 0.0, 0.0);
    for cost in costs {
        value += cost.value;
        below += (cost.value - cost.low).powi(2);
        above += (cost.high - cost.value).powi(2);
    }
    Cost { value, low: value - below.sqrt(), high: value + above.sqrt() }
}

/// Whether a cost is above nothing for certain (at 95 %), or below it.
pub fn is_seen(cost: &Cost) -> bool {
    cost.low > 0.0 || cost.high < 0.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_and_multiples_keep_their_intervals() {
        let one = Cost { value: 1.0, low: 0.7, high: 1.4 };
        let tripled = times(one, 3.0);
        assert!((tripled.low - 2.1).abs() < 1e-9 && (tripled.high - 4.2).abs() < 1e-9);
        assert_eq!(times(one, -1.0).low, -1.4);
        let other = Cost { value: 2.0, low: 1.6, high: 2.3 };
        let both = sum([one, other]);
        assert!((both.low - 2.5).abs() < 1e-9 && (both.high - 3.5).abs() < 1e-9, "{both:?}");
    }

    #[test]
    fn a_few_disturbed_pairs_move_nothing_far() {
        let mut values: Vec<f64> = (0..40).map(|i| 5.0 + f64::from(i % 5)).collect();
        (0..6).for_each(|i| values[i * 6] = 1e6);
        let cost = centre(&values);
        assert!((6.0..9.0).contains(&cost.value), "{cost:?}");
        assert!(is_seen(&cost) && cost.high < 12.0);
        assert!(!is_seen(&centre(&[1.0, 2.0])), "two values tell nothing");
        let surer = centre_at(&values, 1e-3);
        assert!(surer.low < cost.low && cost.high < surer.high, "{surer:?}");
    }
}
