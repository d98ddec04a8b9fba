//! How two samples differ that were not paired: by the intervals of each, which assume nothing of the
//! shape of the noise.

use super::Interval;
use super::estimate::sorted;
use super::normal;

/// Up to this many values the binomial distribution is summed up; beyond, the normal approximation
/// with continuity correction is used. 2⁻¹⁰⁰⁰ is still a number.
const EXACT_VALUES: usize = 1000;

/// The interval of the median by the sign test, with error rate at most `alpha` in (0, 1): the order
/// statistics X_(k) and X_(n+1−k), with k the largest for which P(B ≤ k − 1) ≤ α/2 and B ~ Bin(n, ½).
/// Unbounded while there are too few values: fewer than six at 5 %.
///
/// The values must be finite, and independent of each other: drift makes it too narrow. Source:
/// Hollander, Wolfe, "Nonparametric Statistical Methods", §3.6.
pub fn median_interval(values: &[f64], alpha: f64) -> Interval {
    let outside = outside(values.len(), alpha / 2.0);
    if outside == 0 {
        return Interval::UNBOUNDED;
    }
    let values = sorted(values);
    Interval { low: values[outside - 1], high: values[values.len() - outside] }
}

/// The interval of `after − before` from an interval of each: if either is wrong with probability at
/// most α/2, this one is with at most α, however the two depend on each other (Bonferroni).
pub fn difference(before: Interval, after: Interval) -> Interval {
    Interval { low: after.low - before.high, high: after.high - before.low }
}

/// The largest k ≤ n/2 with P(B ≤ k − 1) ≤ `tail`, B ~ Bin(n, ½); 0 where there is none.
fn outside(n: usize, tail: f64) -> usize {
    let trials = n as f64;
    let mut term = 0.5_f64.powf(trials);
    let mut sum = 0.0;
    let mut at_most = |successes: usize| {
        if n > EXACT_VALUES {
            return normal::distribution((2.0 * successes as f64 + 1.0 - trials) / trials.sqrt());
        }
        sum += term;
        term *= (trials - successes as f64) / (successes as f64 + 1.0);
        sum
    };
    (0..n / 2).take_while(|successes| at_most(*successes) <= tail).count()
}

#[cfg(test)]
mod tests {
    use super::super::simulated::{Machine, Noise};
    use super::*;

    #[test]
    fn the_ranks_are_those_of_the_tables() {
        // Hollander and Wolfe, table A.2: two-sided 5 %.
        assert_eq!([5, 6, 8, 9, 20, 50].map(|n| outside(n, 0.025)), [0, 1, 1, 2, 6, 18]);
        // The approximation continues what was counted out.
        assert!(outside(1001, 0.025).abs_diff(outside(1000, 0.025)) <= 1);
        assert_eq!(outside(0, 0.025), 0);
        // Summed in whole numbers: 956 and 1446 binomial coefficients are within 2.5 %.
        assert_eq!([2000, 3000].map(|n| outside(n, 0.025)), [956, 1446]);
        // 2^-10 is within 0.1 %, and the approximation is not.
        assert_eq!(outside(10, 0.001), 1);
    }

    #[test]
    fn the_interval_lies_between_values_of_those_ranks() {
        let values: Vec<f64> = (1..=20).rev().map(f64::from).collect();
        assert_eq!(median_interval(&values, 0.05), Interval { low: 6.0, high: 15.0 });
        assert_eq!(median_interval(&values[..6], 0.05), Interval { low: 15.0, high: 20.0 });
        assert_eq!(median_interval(&values[..5], 0.05), Interval::UNBOUNDED, "2/2^5 is 6 %");
    }

    #[test]
    fn the_interval_covers_the_median_as_often_as_it_promises() {
        const EXPERIMENTS: usize = 1000;
        let mut machine = Machine::new(Noise::HeavyTailed, 3);
        let missed = (0..EXPERIMENTS).filter(|_| {
            let values: Vec<f64> = (0..20).map(|_| machine.pair(0.1)).collect();
            let interval = median_interval(&values, 0.05);
            interval.low > 0.1 || interval.high < 0.1
        });
        // 5 % and three standard deviations of 1000 repetitions.
        assert!(missed.count() <= 70);
    }

    #[test]
    fn the_difference_of_what_is_unbounded_is_unbounded() {
        let known = Interval { low: 1.0, high: 2.0 };
        assert_eq!(difference(known, known), Interval { low: -1.0, high: 1.0 });
        assert_eq!(difference(known, Interval::UNBOUNDED), Interval::UNBOUNDED);
        assert_eq!(median_interval(&[1.0, 2.0], 0.05), Interval::UNBOUNDED);
    }
}
