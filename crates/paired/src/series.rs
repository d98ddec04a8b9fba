//! The typical value of a series: of measurements one after the other, without partners to compare them with.
//! They may depend on each other, as those of a busy machine do, and a few may be wild.
//!
//! Two intervals are made, and the wider end counts on each side. The first lies between two of the sorted
//! values, and assumes no distribution (the sign test inverted: Hollander, Wolfe and Chicken, "Nonparametric
//! Statistical Methods", 2014, section 3.6); neighbours that lie on the same side of the median make it as
//! wide as fewer values would. The second is Student's interval of the means of a few long batches: what
//! changes within a batch does not mislead it (Schmeiser, "Batch size effects in the analysis of simulation
//! output", 1982). How often both together hold the truth is what the tests at the end count.

use std::sync::LazyLock;

use crate::estimate::median;
use crate::looks;
use crate::student::two_sided_quantile;

/// The median of a series, and its interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Typical {
    /// Half of the values are less.
    pub median: f64,
    /// The low end.
    pub low: f64,
    /// The high end.
    pub high: f64,
}

/// The chance that the interval of the batches' means misses, for normal and independent means.
const BATCHES_MISS: f64 = 0.02;
/// Student's, which that chance asks for with two, three and four batches.
static QUANTILES: LazyLock<[f64; 3]> =
    LazyLock::new(|| [1, 2, 3].map(|freedom| two_sided_quantile(BATCHES_MISS, freedom)));
/// A series so long has a batch more.
const LONG: usize = 18;
/// The share of its information that even a series of values which hardly differ from their neighbours keeps
/// is not 0.
const MOST_ALIKE: f64 = 0.95;

impl Typical {
    /// The typical value of a series in the order measured; `None` for fewer than two values, or if one is
    /// not above 0.
    ///
    /// Valid at every [look](looks), also where one stops as soon as the interval is narrow.
    pub fn of(series: &[f64]) -> Option<Typical> {
        let logs: Vec<f64> = series.iter().map(|value| value.ln()).collect();
        let middle = median(series).filter(|_| logs.iter().all(|log| log.is_finite()))?;
        let half = batches_half_width(&logs)?.exp();
        let mut sorted = series.to_vec();
        sorted.sort_by(f64::total_cmp);
        let rank = rank(series, middle);
        let (low, high) = (sorted[rank], sorted[sorted.len() - 1 - rank]);
        Some(Typical { median: middle, low: low.min(middle / half), high: high.max(middle * half) })
    }

    /// How far it reaches to either side, as a share.
    pub fn half_width(&self) -> f64 {
        (self.high / self.low).sqrt() - 1.0
    }
}

/// The interval of the median by the sign test alone, for values that are independent, or whose order a coin
/// decided, such as ratios within pairs; `None` of fewer than the chance to miss takes.
pub fn sign_interval(values: &[f64], misses: f64) -> Option<(f64, f64)> {
    let outside = coins_outside(values.len(), misses)?;
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    Some((sorted[outside], sorted[sorted.len() - 1 - outside]))
}

/// From 0: how many of the sorted values lie outside of the interval on each side.
fn rank(series: &[f64], median: f64) -> usize {
    let count = series.len();
    let effective = effective_count(series, median) as usize;
    let outside = coins_outside(effective, looks::misses(count));
    outside.map_or(0, |outside| {
        // As far inside of the values as it is of those that are independent.
        let share = (outside + 1) as f64 / (effective + 1) as f64;
        ((share * (count + 1) as f64) as usize).saturating_sub(1)
    })
}

/// The most coins of so many that as few fall heads, or tails, with no more than this chance, less one;
/// `None` where that is so of not even one.
fn coins_outside(coins: usize, chance_allowed: f64) -> Option<usize> {
    let mut chance = 0.5f64.powi(coins as i32);
    let mut both_sides = 2.0 * chance;
    let mut outside = 0;
    if both_sides > chance_allowed {
        return None;
    }
    while outside + 1 < coins / 2 {
        chance *= (coins - outside) as f64 / (outside + 1) as f64;
        both_sides += 2.0 * chance;
        if both_sides > chance_allowed {
            break;
        }
        outside += 1;
    }
    Some(outside)
}

/// How many independent values tell as much of the median: n (1 − r)/(1 + r), for a series in which each
/// value has a correlation of r with the next one (Bayley and Hammersley, "The effective number of
/// independent observations in an autocorrelated time series", 1946). The correlation is that of the sides of
/// the median on which they lie, which no wild value moves; what is found is too low by (1 + 3r)/n (Kendall,
/// "Note on bias in the estimation of autocorrelation", 1954).
fn effective_count(series: &[f64], median: f64) -> f64 {
    let count = series.len() as f64;
    let side = |value: f64| match value.total_cmp(&median) {
        std::cmp::Ordering::Less => -1.0,
        std::cmp::Ordering::Equal => 0.0,
        std::cmp::Ordering::Greater => 1.0,
    };
    let products = series.windows(2).map(|two| side(two[0]) * side(two[1]));
    let found = products.sum::<f64>() / (count - 1.0);
    let alike = (found + (1.0 + 3.0 * found.max(0.0)) / count).clamp(0.0, MOST_ALIKE);
    count * (1.0 - alike) / (1.0 + alike)
}

/// Half the width of Student's interval for the mean, by the means of batches; `None` of a single value.
fn batches_half_width(logs: &[f64]) -> Option<f64> {
    let batches = if logs.len() < LONG { 3 } else { 4 }.min(logs.len());
    let freedom = batches.checked_sub(2)? + 1;
    let bounds = |batch: usize| batch * logs.len() / batches;
    let means = (0..batches).map(|batch| mean(&logs[bounds(batch)..bounds(batch + 1)]));
    let means: Vec<f64> = means.collect();
    let squares: f64 = means.iter().map(|one| (one - mean(&means)).powi(2)).sum();
    let deviation = (squares / freedom as f64 / batches as f64).sqrt();
    Some(QUANTILES[freedom - 1] * deviation)
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::{RngExt, SeedableRng};
    use rand_chacha::ChaCha8Rng;

    /// How scores differ from sweep to sweep.
    #[derive(Clone, Copy, Debug)]
    enum Kind {
        White,
        /// Student's t with 3 degrees of freedom.
        HeavyTailed,
        /// Exponential: half of the values are far above the median.
        Skewed,
        /// AR(1) with this correlation of neighbours.
        Dependent(f64),
        /// As 24 sweeps of `weigh net --grid btu-quick` on a virtual machine were: 21 between 899 and 1,235
        /// Mb/s, 3 between 466 and 543 (statistics-2.md, F4); drawn anew.
        Swept,
    }

    const KINDS: [Kind; 7] = [
        Kind::White,
        Kind::HeavyTailed,
        Kind::Skewed,
        Kind::Dependent(0.3),
        Kind::Dependent(0.5),
        Kind::Dependent(0.7),
        Kind::Swept,
    ];

    impl Kind {
        /// So many values, and the true median.
        fn drawn(self, count: usize, seed: u64) -> (Vec<f64>, f64) {
            let mut chance = ChaCha8Rng::seed_from_u64(seed);
            let normal = |chance: &mut ChaCha8Rng| {
                let radius = (-2.0 * (1.0 - chance.random::<f64>()).ln()).sqrt();
                radius * (std::f64::consts::TAU * chance.random::<f64>()).cos()
            };
            let mut last = normal(&mut chance);
            let mut log = || match self {
                Kind::White => normal(&mut chance),
                Kind::HeavyTailed => {
                    let square: f64 = (0..3).map(|_| normal(&mut chance).powi(2)).sum();
                    normal(&mut chance) / (square / 3.0).sqrt()
                }
                Kind::Skewed => -chance.random::<f64>().ln() - std::f64::consts::LN_2,
                Kind::Dependent(kept) => {
                    last = kept * last + (1.0 - kept * kept).sqrt() * normal(&mut chance);
                    last
                }
                Kind::Swept => {
                    let drawn = chance.random_range(0..24);
                    let rate = match drawn {
                        0..21 => 899.0 + (1235.0 - 899.0) * f64::from(drawn) / 20.0,
                        _ => 466.0 + (543.0 - 466.0) * f64::from(drawn - 21) / 2.0,
                    };
                    100.0 * (rate / SWEPT_MEDIAN).ln()
                }
            };
            ((0..count).map(|_| (0.01 * log()).exp()).collect(), 1.0)
        }

        /// Half widths at which one stops: looks begin with an interval of about 2.1 deviations.
        fn precisions(self) -> [f64; 5] {
            match self {
                Kind::Swept => [0.5, 0.2, 0.1, 0.05, 0.02],
                _ => [0.03, 0.02, 0.015, 0.01, 0.005],
            }
        }
    }

    /// Between the eighth and the ninth of those above 899.
    const SWEPT_MEDIAN: f64 = 1041.8;
    const CASES: u64 = 2000;

    /// How often the interval misses the true median, in per cent: after so many values, and where one stops
    /// as soon as it is narrow or after 69.
    fn misses_pct(kind: Kind, counts: &[usize]) -> (Vec<f64>, [f64; 5]) {
        let (mut fixed, mut stopped) = (vec![0; counts.len()], [0; 5]);
        for seed in 0..CASES {
            let (series, truth) = kind.drawn(69, seed);
            let of = |count: usize| Typical::of(&series[..count]).unwrap();
            let misses = |found: &Typical| !(found.low..=found.high).contains(&truth);
            for (missed, count) in fixed.iter_mut().zip(counts) {
                *missed += u32::from(misses(&of(*count)));
            }
            let looks: Vec<Typical> =
                looks::counts().take_while(|count| *count <= series.len()).map(of).collect();
            for (missed, precision) in stopped.iter_mut().zip(kind.precisions()) {
                let narrow = looks.iter().find(|found| found.half_width() <= precision);
                *missed += u32::from(narrow.or(looks.last()).is_some_and(misses));
            }
        }
        let pct = |missed: u32| 100.0 * f64::from(missed) / CASES as f64;
        (fixed.into_iter().map(pct).collect(), stopped.map(pct))
    }

    /// `cargo test -p paired --lib series -- --nocapture` prints the table of docs/evidence/net.md.
    #[test]
    fn the_interval_covers_the_median_of_dependent_and_wild_values_wherever_one_stops() {
        const FEW: [usize; 3] = [3, 5, 7];
        const MANY: [usize; 6] = [8, 14, 21, 31, 46, 69];
        for kind in KINDS {
            let (fixed, stopped) = misses_pct(kind, &[&FEW[..], &MANY].concat());
            println!(
                "{kind:?}: after {FEW:?}, {MANY:?}: {fixed:.1?}; where one stops: {stopped:.1?}"
            );
            let worst = fixed[FEW.len()..].iter().chain(&stopped).copied().fold(0.0, f64::max);
            assert!(worst <= 7.0, "{kind:?}: {worst}");
            // Of few values nobody can tell that they depend on each other.
            let limit = match kind {
                Kind::Dependent(0.7) => 15.0,
                Kind::Dependent(0.5) => 9.0,
                _ => 5.0,
            };
            assert!(fixed[..FEW.len()].iter().all(|pct| *pct <= limit), "{kind:?}: {fixed:?}");
        }
    }

    #[test]
    fn the_sign_test_is_inverted_where_values_are_independent() {
        // Above and below by turns: no neighbours on one side, so no fewer than all count.
        let of = |count: u32| {
            let half = count.div_ceil(2);
            let one = |i: u32| i / 2 + 1 + if i.is_multiple_of(2) { 0 } else { half };
            let series: Vec<f64> = (0..count).map(|i| f64::from(one(i))).collect();
            rank(&series, median(&series).unwrap())
        };
        // P(fewer than 3 of 14 coins) = 0.0065 on each side, fewer than 4: 0.029. From the fourth look on the
        // chance shrinks.
        assert_eq!([8, 14, 20, 21, 31].map(of), [0, 2, 4, 4, 7]);
    }

    #[test]
    fn the_sign_interval_lies_between_values_of_those_ranks() {
        let values: Vec<f64> = (1..=20).rev().map(f64::from).collect();
        // 2 P(fewer than 6 of 20 coins) = 0.041.
        assert_eq!(sign_interval(&values, 0.05), Some((6.0, 15.0)));
        assert_eq!(sign_interval(&values[..6], 0.05), Some((15.0, 20.0)));
        assert_eq!(sign_interval(&values[..5], 0.05), None);
    }

    #[test]
    fn a_drift_widens_it_alike_to_both_sides() {
        let drifting: Vec<f64> = (0..32).map(|i| (0.01 * f64::from(i)).exp()).collect();
        let Typical { median, low, high } = Typical::of(&drifting).unwrap();
        assert!(low < drifting[0] && high > drifting[31], "{low} {high}");
        assert!((low * high / (median * median) - 1.0).abs() < 1e-12, "{low} {median} {high}");
    }

    #[test]
    fn no_interval_leaves_out_the_middle_whatever_may_be_missed() {
        assert_eq!([4, 5, 6].map(|coins| coins_outside(coins, 1.0)), [Some(1), Some(1), Some(2)]);
    }

    #[test]
    fn values_that_resemble_their_neighbours_count_for_fewer() {
        let of = |sides: [i32; 10]| effective_count(&sides.map(f64::from), 1.5);
        // Neighbours on one side less those on both, of nine: 1, −3 and 7.
        let alike = 1.0 / 9.0 + (1.0 + 3.0 / 9.0) / 10.0;
        let expected = 10.0 * (1.0 - alike) / (1.0 + alike);
        assert!((of([1, 1, 1, 2, 2, 1, 2, 2, 1, 1]) - expected).abs() < 1e-12);
        assert_eq!(of([1, 2, 2, 1, 2, 1, 1, 2, 2, 1]), 10.0);
        let least = 10.0 * 0.05 / 1.95;
        assert!((of([1, 1, 1, 1, 1, 2, 2, 2, 2, 2]) - least).abs() < 1e-12);
    }

    #[test]
    fn batches_have_students_interval() {
        let is = |logs: &[f64], freedom: usize, deviation: f64| {
            let expected = two_sided_quantile(0.02, freedom) * deviation;
            let found = batches_half_width(logs).unwrap();
            assert!((found - expected).abs() < 1e-9, "{logs:?}: {found} {expected}");
        };
        is(&[0.0, 2.0], 1, 1.0);
        is(&[0.0, 3.0, 6.0], 2, 3_f64.sqrt());
        let stairs = |lengths: &[usize]| -> Vec<f64> {
            let stair = |(height, length)| std::iter::repeat_n(height as f64, length);
            lengths.iter().copied().enumerate().flat_map(stair).collect()
        };
        is(&stairs(&[5, 6, 6]), 2, (1.0_f64 / 3.0).sqrt());
        is(&stairs(&[4, 5, 4, 5]), 3, (5.0_f64 / 12.0).sqrt());
        assert_eq!(batches_half_width(&[1.0]), None);
        let typical = Typical { median: 2.0, low: 1.0, high: 4.0 };
        assert_eq!(typical.half_width(), 1.0);
    }

    #[test]
    fn neighbours_on_one_side_and_few_values_widen_it() {
        let apart: Vec<f64> = (0..32).map(|i| f64::from(100 + 8 * (i % 2) + i % 3)).collect();
        let together: Vec<f64> = apart.iter().map(|_| 0.0).collect();
        assert_eq!(Typical::of(&together), None, "no logarithm");
        let mut together = apart.clone();
        together.sort_by(f64::total_cmp);
        let width = |series: &[f64]| Typical::of(series).unwrap().half_width();
        assert!(width(&together) > 2.0 * width(&apart));
        assert!(width(&apart[..6]) > width(&apart));
        assert_eq!(Typical::of(&[5.0]), None);
        let still = Typical::of(&[7.0; 3]).unwrap();
        assert_eq!((still.median, still.low, still.high), (7.0, 7.0, 7.0));
    }

    /// The chances that the sign test of independent values misses at a look, summed over all looks.
    #[test]
    fn all_looks_together_miss_in_less_than_five_per_cent() {
        let missed = |count: usize| {
            let outside = coins_outside(count, looks::misses(count)).unwrap();
            let chances = (0..=outside).scan(0.5f64.powi(count as i32), |chance, k| {
                let now = *chance;
                *chance *= (count - k) as f64 / (k + 1) as f64;
                Some(now)
            });
            2.0 * chances.sum::<f64>()
        };
        let all: f64 = looks::counts().take_while(|count| *count < 1000).map(missed).sum();
        assert!(all < 0.05, "{all}");
    }
}
