//! Interface of a machine that measures rules. It is a trait, so that tests of the arithmetic need
//! no machine. The module also derives costs from the measurements.

use std::time::Duration;

use super::loaded_rules::RuleId;
use paired::estimate::hodges_lehmann;
use paired::student::two_sided_quantile;
use paired::wilcoxon::signed_rank_interval;
use weigh_model::result::rules::CostInterval;
use weigh_treatment::TreatmentError;

pub const ALPHA: f64 = 0.05;

/// Fewer pairs tell nothing.
pub const MIN_PAIRS: usize = 8;
pub const MAX_PAIRS: usize = 1000;

/// Who is told how far it is: a phrase, and a share of 1.
pub type ProgressFn<'a> = &'a mut dyn FnMut(&str, f64);

/// Something that rules can be put on and taken off.
pub trait CostMeter {
    /// Loads just these rules, in this order, and measures each operation: its cost, in the metric, per
    /// operation.
    fn measure_with(&mut self, loaded: &[RuleId]) -> Result<Vec<f64>, TreatmentError>;
}

/// Costs with and without some rules, in pairs of neighbours in time.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Differences {
    /// By operation, then by pair: with − without.
    pub by_operation: Vec<Vec<f64>>,
}

impl Differences {
    /// Measures `pairs` times with and without, in the order `ABBA`, so that what drifts steadily is in
    /// both alike.
    pub fn measure(
        meter: &mut impl CostMeter,
        without: &[RuleId],
        with: &[RuleId],
        pairs: usize,
    ) -> Result<Differences, TreatmentError> {
        Differences::measure_some(meter, without, with, 0..pairs)
    }

    /// Measures the pairs with these numbers. Odd pairs begin with the rules `with`.
    pub fn measure_some(
        meter: &mut impl CostMeter,
        without: &[RuleId],
        with: &[RuleId],
        pairs: std::ops::Range<usize>,
    ) -> Result<Differences, TreatmentError> {
        let mut differences = Differences::default();
        for pair in pairs {
            let (low, high) = if pair % 2 == 0 {
                let low = meter.measure_with(without)?;
                (low, meter.measure_with(with)?)
            } else {
                let high = meter.measure_with(with)?;
                (meter.measure_with(without)?, high)
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

    /// By operation; pairs are in the order of time.
    pub fn costs(&self) -> Vec<CostInterval> {
        self.by_operation.iter().map(|differences| centre_over_time(differences)).collect()
    }
}

/// Into so many stretches of time a measurement is cut, each of which has pairs enough for a centre that one
/// disturbed pair does not move far.
const BATCHES: usize = 6;
const LEAST_IN_BATCH: usize = 4;

/// Computes the centre as [`centre`] does, if changes of the clock and of neighbours last longer
/// than a pair. They scale neighbouring pairs alike, so these pairs tell less than as many
/// independent pairs. The interval therefore includes the interval of batch means (Student's, of
/// the centres of [`BATCHES`] stretches). Source: Law and Carson, "A sequential procedure for
/// determining the length of a steady-state simulation", 1979. Changes that last longer than such a
/// stretch are in no interval of one run.
pub fn centre_over_time(values: &[f64]) -> CostInterval {
    let cost = centre(values);
    if values.len() < BATCHES * LEAST_IN_BATCH {
        return cost;
    }
    let batch = |at: usize| &values[at * values.len() / BATCHES..(at + 1) * values.len() / BATCHES];
    let centres: Vec<f64> = (0..BATCHES).filter_map(|at| hodges_lehmann(batch(at))).collect();
    let mean = centres.iter().sum::<f64>() / centres.len() as f64;
    let squares: f64 = centres.iter().map(|centre| (centre - mean).powi(2)).sum();
    let freedom = centres.len() - 1;
    let error = (squares / freedom as f64 / centres.len() as f64).sqrt();
    let half = two_sided_quantile(ALPHA, freedom) * error;
    CostInterval { low: cost.low.min(mean - half), high: cost.high.max(mean + half), ..cost }
}

/// The Hodges–Lehmann estimate with its interval: a third of the values may be disturbed by whatever
/// else the machine does, and neither moves far.
pub fn centre(values: &[f64]) -> CostInterval {
    centre_at(values, ALPHA)
}

/// Computes the centre with the error rate `alpha`.
pub fn centre_at(values: &[f64], alpha: f64) -> CostInterval {
    let value = hodges_lehmann(values).unwrap_or(0.0);
    let interval = signed_rank_interval(values, alpha);
    let (low, high) = interval.map_or((f64::NEG_INFINITY, f64::INFINITY), |i| (i.low, i.high));
    CostInterval { value, low, high }
}

pub fn times(cost: CostInterval, factor: f64) -> CostInterval {
    let ends = [cost.low * factor, cost.high * factor];
    CostInterval {
        value: cost.value * factor,
        low: ends[0].min(ends[1]),
        high: ends[0].max(ends[1]),
    }
}

/// The sum of costs that were measured independently: half-widths add as standard deviations do.
pub fn sum(costs: impl IntoIterator<Item = CostInterval>) -> CostInterval {
    let (mut value, mut below, mut above) = (0.0, 0.0, 0.0);
    for cost in costs {
        value += cost.value;
        below += (cost.value - cost.low).powi(2);
        above += (cost.high - cost.value).powi(2);
    }
    CostInterval { value, low: value - below.sqrt(), high: value + above.sqrt() }
}

pub fn weighted_sum(costs: &[CostInterval], weights: &[f64]) -> CostInterval {
    sum(costs.iter().zip(weights).map(|(cost, weight)| times(*cost, *weight)))
}

/// How many pairs of this length fit, within reason.
pub fn pairs_in(seconds: f64, pair: Duration) -> usize {
    let fit = seconds / pair.as_secs_f64().max(1e-6);
    (fit as usize).clamp(MIN_PAIRS, MAX_PAIRS)
}

/// Returns true if a cost is certainly above or below zero (at 95 %).
pub fn is_seen(cost: &CostInterval) -> bool {
    cost.low > 0.0 || cost.high < 0.0
}

#[cfg(test)]
mod tests {
    use paired::simulated::{Machine, Noise};
    use rand::{RngExt, SeedableRng};
    use rand_chacha::ChaCha8Rng;

    use super::*;

    #[test]
    fn sums_and_multiples_keep_their_intervals() {
        let one = CostInterval { value: 1.0, low: 0.7, high: 1.4 };
        let tripled = times(one, 3.0);
        assert!((tripled.low - 2.1).abs() < 1e-9 && (tripled.high - 4.2).abs() < 1e-9);
        assert_eq!(times(one, -1.0).low, -1.4);
        let other = CostInterval { value: 2.0, low: 1.6, high: 2.3 };
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

    /// A clock that has another speed for some tenths of the run: how often an interval has what the machine
    /// takes on average, of a cost of 100 by pairs that scatter by 2.
    fn coverage(interval: fn(&[f64]) -> CostInterval, pairs_of_a_speed: f64, by: f64) -> f64 {
        const RUNS: u64 = 400;
        let covers = |seed: &u64| {
            let mut random = ChaCha8Rng::seed_from_u64(*seed);
            let mut noise = Machine::new(Noise::White, *seed);
            let mut speed = if random.random_bool(0.5) { by } else { -by };
            let of_pair = |_| {
                if random.random_bool(1.0 / pairs_of_a_speed) {
                    speed = -speed;
                }
                100.0 * (1.0 + speed) + 2.0 * 100.0 * noise.sample()
            };
            let cost = interval(&(0..48).map(of_pair).collect::<Vec<f64>>());
            (cost.low..=cost.high).contains(&100.0)
        };
        (0..RUNS).filter(covers).count() as f64 / RUNS as f64
    }

    #[test]
    fn a_clock_that_drifts_within_the_run_is_covered() {
        // Neighbouring pairs have one speed for a twelfth of the run.
        let (drifting, independent) =
            (coverage(centre_over_time, 4.0, 0.05), coverage(centre, 4.0, 0.05));
        assert!(drifting >= 0.88 && independent < drifting - 0.08, "{drifting} {independent}");
        let steady = coverage(centre_over_time, 4.0, 0.0);
        assert!(steady >= 0.95, "{steady}");
        // Whatever leads one way all the time has its middle in the interval.
        let ramp: Vec<f64> = (0..48).map(|pair| 95.0 + f64::from(pair) * 10.0 / 47.0).collect();
        let cost = centre_over_time(&ramp);
        assert!(cost.low < 97.5 && cost.high > 102.5, "{cost:?}");
    }
}
