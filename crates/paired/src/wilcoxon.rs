//! Wilcoxon's signed-rank test and interval, for a number of pairs fixed in advance (`--pairs N`).
//!
//! A fixed number needs no protection against peeking, so the interval is about 1.7 times narrower
//! than the anytime one. It is invalid if N depended on the data. The random order of every pair
//! gives the signs of d_i − θ by fair coins; the exact distribution assumes no more than that they are
//! fair *given all sizes* |d_i − θ|. So no size may depend on earlier signs: with a fixed number of pairs
//! the length of a sample is fixed, too (`weigh-engine/measure.rs`).
//! Source: Wilcoxon 1945; Hollander, Wolfe, "Nonparametric Statistical Methods", §3.1 and §3.3.

use super::Interval;
use super::estimate::{kth_walsh_average, sorted, walsh_averages};
use super::normal;

/// Up to this many pairs the distribution is counted out; beyond, the normal approximation with
/// continuity correction is used. It differs by less than 0.002 there, and errs towards large p in
/// the tails.
const EXACT_PAIRS: usize = 60;

/// The interval of the centre of symmetry, with error rate at most `alpha` in (0, 1), in the unit
/// of `d`.
///
/// `None` while there are too few values for the level: fewer than six at 5 %. Values must be
/// finite. Its ends are Walsh averages A_(k) and A_(N+1−k), with k the largest for which P(W ≤ k −
/// 1) ≤ α/2.
pub fn signed_rank_interval(d: &[f64], alpha: f64) -> Option<Interval> {
    let null = Null::new(d.len());
    let outside = null.ranks_within(alpha / 2.0)?;
    let d = sorted(d);
    Some(Interval {
        low: kth_walsh_average(&d, outside + 1),
        high: kth_walsh_average(&d, walsh_averages(d.len()) - outside),
    })
}

/// The two-sided p-value of "the centre is zero", in (0, 1]; 1 without values. Values must be
/// finite.
///
/// At most α exactly when [`signed_rank_interval`] leaves zero out. Ties and zeros count against
/// rejection.
pub fn signed_rank_p(d: &[f64]) -> f64 {
    let total = walsh_averages(d.len());
    let d = sorted(d);
    let positive = total - first_rank(total, |k| kth_walsh_average(&d, k) > 0.0);
    let negative = first_rank(total, |k| kth_walsh_average(&d, k) >= 0.0);
    let null = Null::new(d.len());
    // P(W ≥ w) = P(W ≤ N − w), as the distribution is symmetric.
    (2.0 * null.at_most(total - positive.max(negative))).min(1.0)
}

/// How many ranks from 1 to `total` come before the first for which `holds`, which then holds to
/// the end.
fn first_rank(total: u64, holds: impl Fn(u64) -> bool) -> u64 {
    let (mut low, mut high) = (0, total);
    while low < high {
        let middle = low + (high - low) / 2;
        if holds(middle + 1) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    low
}

/// The distribution of W, the sum of the ranks that fair coins choose from 1..n.
struct Null {
    pairs: usize,
    /// P(W ≤ w) for every w, when it was counted out.
    cumulative: Option<Vec<f64>>,
}

impl Null {
    fn new(pairs: usize) -> Null {
        Null { pairs, cumulative: (pairs <= EXACT_PAIRS).then(|| cumulative(pairs)) }
    }

    /// P(W ≤ w).
    fn at_most(&self, w: u64) -> f64 {
        if let Some(exact) = &self.cumulative {
            return exact[exact.len().min(w as usize + 1) - 1];
        }
        let n = self.pairs as f64;
        let mean = n * (n + 1.0) / 4.0;
        let deviation = (n * (n + 1.0) * (2.0 * n + 1.0) / 24.0).sqrt();
        normal::distribution((w as f64 + 0.5 - mean) / deviation)
    }

    /// The largest w for which P(W ≤ w) is at most `tail`; `None` when even P(W ≤ 0) exceeds it.
    fn ranks_within(&self, tail: f64) -> Option<u64> {
        let total = walsh_averages(self.pairs);
        first_rank(total, |k| self.at_most(k - 1) > tail).checked_sub(1)
    }
}

/// P(W ≤ w) for w = 0 … n(n+1)/2: rank by rank, each is in the sum or not with chance one half.
fn cumulative(pairs: usize) -> Vec<f64> {
    let mut chance = vec![0.0; walsh_averages(pairs) as usize + 1];
    chance[0] = 1.0;
    for rank in 1..=pairs {
        // Downwards, so that the entry read is still that of the ranks before.
        for w in (0..chance.len()).rev() {
            let with = if w >= rank { chance[w - rank] } else { 0.0 };
            chance[w] = 0.5 * (chance[w] + with);
        }
    }
    let mut sum = 0.0;
    for entry in &mut chance {
        sum += *entry;
        *entry = sum;
    }
    chance
}

#[cfg(test)]
mod tests {
    use super::super::simulated::{Machine, Noise};
    use super::*;

    fn measured(effect: f64, pairs: usize, seed: u64) -> Vec<f64> {
        let mut machine = Machine::new(Noise::HeavyTailed, seed);
        (0..pairs).map(|_| machine.pair(effect)).collect()
    }

    #[test]
    fn the_distribution_equals_all_assignments_of_signs() {
        for n in 1..=12_usize {
            let exact = cumulative(n);
            let mut counts = vec![0_u32; exact.len()];
            for signs in 0..1_usize << n {
                let sum: usize = (0..n).filter(|i| signs >> i & 1 == 1).map(|i| i + 1).sum();
                counts[sum] += 1;
            }
            let mut below = 0;
            for (count, found) in counts.iter().zip(exact) {
                below += count;
                assert!((f64::from(below) / f64::from(1 << n) - found).abs() < 1e-14);
            }
        }
    }

    #[test]
    fn zeros_count_against_rejection() {
        // Of 2^8 assignments of signs, one has no negative rank, and one only the first.
        assert_eq!(signed_rank_p(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0]), 2.0 / 256.0);
        assert_eq!(signed_rank_p(&[0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0]), 4.0 / 256.0);
    }

    #[test]
    fn critical_values_are_the_published_ones() {
        // Hollander and Wolfe, table A.4: two-sided 5 %, the largest W that is significant.
        for (n, critical) in [(6, 0), (8, 3), (10, 8), (15, 25), (20, 52), (25, 89)] {
            assert_eq!(Null::new(n).ranks_within(0.025), Some(critical), "n = {n}");
        }
        assert_eq!(Null::new(5).ranks_within(0.025), None);
    }

    #[test]
    fn the_approximation_takes_over_smoothly() {
        let exact = Null::new(EXACT_PAIRS);
        let approximate = Null { pairs: EXACT_PAIRS, cumulative: None };
        for w in 0..walsh_averages(EXACT_PAIRS) {
            let (e, a) = (exact.at_most(w), approximate.at_most(w));
            assert!((e - a).abs() < 2e-3, "{w}: {e} {a}");
            assert!(e > 1e-3 || a >= e, "{w}: {e} {a}");
        }
    }

    #[test]
    fn too_few_values_have_no_interval() {
        assert_eq!(signed_rank_interval(&[], 0.05), None);
        assert_eq!(signed_rank_interval(&[1.0; 5], 0.05), None);
        assert!(signed_rank_interval(&[1.0; 6], 0.05).is_some());
        assert_eq!(signed_rank_p(&[]), 1.0);
    }

    #[test]
    fn test_and_interval_always_agree() {
        for seed in 0..200 {
            let d = measured(0.01, 6 + seed as usize, seed);
            let interval = signed_rank_interval(&d, 0.05).unwrap();
            let excludes_zero = interval.low > 0.0 || interval.high < 0.0;
            assert_eq!(signed_rank_p(&d) <= 0.05, excludes_zero, "seed {seed}");
        }
        assert_eq!(signed_rank_p(&[0.0; 20]), 1.0);
    }

    #[test]
    fn the_interval_turns_with_the_arms() {
        let d = measured(0.02, 30, 3);
        let there = signed_rank_interval(&d, 0.05).unwrap();
        let back: Vec<f64> = d.iter().map(|x| -x).collect();
        let back = signed_rank_interval(&back, 0.05).unwrap();
        assert_eq!((there.low, there.high), (-back.high, -back.low));
    }

    #[test]
    fn the_interval_misses_the_truth_as_often_as_it_may() {
        const REPETITIONS: u32 = 2000;
        let missed = (0..REPETITIONS)
            .filter(|seed| {
                let d = measured(0.01, 20, u64::from(*seed));
                let interval = signed_rank_interval(&d, 0.05).unwrap();
                0.01 < interval.low || interval.high < 0.01
            })
            .count();
        let rate = missed as f64 / f64::from(REPETITIONS);
        assert!((0.03..=0.065).contains(&rate), "{rate}");
    }
}
