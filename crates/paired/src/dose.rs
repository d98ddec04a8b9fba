//! Cost over dose: a straight line through arms that differ in one number, and whether the cost bends.
//!
//! The cost of a dose is the 20 % trimmed mean of its pairs' log-ratios, in the baseline's own unit. Weighted
//! least squares put a line through the doses. The intervals are those of the percentile bootstrap, for
//! which trimmed means suit well (Wilcox, "Introduction to Robust Estimation and Hypothesis Testing", 2012,
//! section 4.4). It draws *blocks* with replacement, the pairs of one number of all doses together: one round
//! measured them, perhaps in the same guest. So a block is what is drawn afresh (Efron and Tibshirani, "An
//! Introduction to the Bootstrap", 1993, section 8.6). The intervals are of one look, and no verdict of a row
//! depends on them.

use std::collections::BTreeSet;
use std::ops::Range;

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::estimate::{deviation, median};

/// Fewer pairs of a dose have no line: the bootstrap of so few is too narrow.
pub const LEAST_PAIRS: usize = 8;
/// Two doses always have a straight line.
pub const LEAST_DOSES: usize = 3;

const DRAWS: usize = 1000;
const TRIMMED: f64 = 0.2;

/// An arm: its number, and its pairs.
#[derive(Clone, Debug, PartialEq)]
pub struct Dose {
    /// The number in which the arms differ.
    pub dose: f64,
    /// In the order measured, each of another block.
    pub pairs: Vec<DosePair>,
}

/// A pair of a dose.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DosePair {
    /// Number that all pairs measured together share.
    pub block: usize,
    /// Cost of an operation in the baseline, such as its time; above 0.
    pub without: f64,
    /// Cost at this dose; above 0.
    pub with: f64,
}

/// An estimate, and its interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// From the pairs as they are.
    pub value: f64,
    /// Low end of the interval.
    pub low: f64,
    /// High end of the interval.
    pub high: f64,
}

/// The line through the doses.
#[derive(Clone, Debug, PartialEq)]
pub struct Line {
    /// Cost of an operation in the baseline.
    pub baseline: f64,
    /// Cost that each further unit of the dose adds.
    pub per_unit: Estimate,
    /// Cost that the line adds at dose 0.
    pub at_zero: Estimate,
    /// Added cost of each dose, in ascending order of the doses.
    pub added: Vec<Estimate>,
    /// Slopes below and above the middle dose, where they differ. `None` where no bend is shown.
    pub bend: Option<[f64; 2]>,
}

/// Line through at least [`LEAST_DOSES`] doses in ascending order; `None` for fewer doses or pairs. A bend of
/// any of `lines` lines is reported by chance in about a share of `alpha` (Bonferroni).
pub fn line(doses: &[Dose], alpha: f64, lines: usize, seed: u64) -> Option<Line> {
    let ascend = doses.windows(2).all(|two| two[0].dose < two[1].dose);
    let suffice = doses.iter().all(|dose| dose.pairs.len() >= LEAST_PAIRS);
    if doses.len() < LEAST_DOSES || !ascend || !suffice {
        return None;
    }
    let pairs = Pairs::of(doses);
    let all: Vec<usize> = (0..pairs.blocks()).collect();
    let whole = pairs.fit(&all)?;
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let mut draw = || {
        let blocks: Vec<usize> = all.iter().map(|_| random.random_range(0..all.len())).collect();
        pairs.fit(&blocks)
    };
    let drawn: Vec<Fit> = (0..DRAWS).filter_map(|_| draw()).collect();
    if drawn.is_empty() {
        return None;
    }
    let estimate = |of: &dyn Fn(&Fit) -> f64| {
        let mut values: Vec<f64> = drawn.iter().map(of).collect();
        values.sort_by(f64::total_cmp);
        let at = |share: f64| values[(share * (values.len() - 1) as f64).round() as usize];
        Estimate { value: of(&whole), low: at(alpha / 2.0), high: at(1.0 - alpha / 2.0) }
    };
    let bend = |fit: &Fit| fit.halves[1] - fit.halves[0];
    let is_bent = doses.len() > LEAST_DOSES && {
        let differences = drawn.iter().map(bend).collect();
        excludes_zero(differences, alpha / lines as f64, || draw().as_ref().map(bend))
    };
    Some(Line {
        baseline: whole.baseline,
        per_unit: estimate(&|fit| fit.slope),
        at_zero: estimate(&|fit| fit.at_zero),
        added: (0..doses.len()).map(|dose| estimate(&|fit| fit.added[dose])).collect(),
        bend: is_bent.then_some(whole.halves),
    })
}

/// Returns true if the interval of these bootstrap values excludes 0. Few values have no quantile of a small
/// `alpha`, so more are drawn where the first leave it open: quantile k of n values is at k/(n + 1) (Davison
/// and Hinkley, "Bootstrap Methods and their Application", 1997, section 2.4).
fn excludes_zero(values: Vec<f64>, alpha: f64, mut draw: impl FnMut() -> Option<f64>) -> bool {
    // Two values are beyond each end.
    let wanted = (4.0 / alpha).ceil() as usize;
    let most = alpha / 2.0 * (wanted.max(values.len()) + 1) as f64;
    let mut count = values.len();
    let mut not_above = values.iter().filter(|value| **value <= 0.0).count();
    let mut not_below = values.iter().filter(|value| **value >= 0.0).count();
    // A draw without a fit is drawn again, as the first ones were.
    for _ in 0..2 * wanted {
        if count >= wanted || not_above.min(not_below) as f64 >= most {
            break;
        }
        let Some(value) = draw() else { continue };
        count += 1;
        not_above += usize::from(value <= 0.0);
        not_below += usize::from(value >= 0.0);
    }
    count >= wanted && (not_above.min(not_below) as f64) < most
}

/// Logs of the baseline's costs and of the ratios, by dose and block. A dose may lack a block.
struct Pairs {
    doses: Vec<f64>,
    baselines: Vec<Vec<Option<f64>>>,
    ratios: Vec<Vec<Option<f64>>>,
}

struct Fit {
    baseline: f64,
    added: Vec<f64>,
    slope: f64,
    at_zero: f64,
    /// Slope up to the middle dose, and from there on.
    halves: [f64; 2],
}

impl Pairs {
    fn of(doses: &[Dose]) -> Pairs {
        let pairs = || doses.iter().flat_map(|dose| &dose.pairs);
        let blocks: BTreeSet<usize> = pairs().map(|pair| pair.block).collect();
        let logs = |of: fn(&DosePair) -> f64| -> Vec<Vec<Option<f64>>> {
            let in_block = |dose: &Dose, block: usize| {
                dose.pairs.iter().find(|pair| pair.block == block).map(of)
            };
            let of_dose = |dose| blocks.iter().map(|block| in_block(dose, *block)).collect();
            doses.iter().map(of_dose).collect()
        };
        Pairs {
            doses: doses.iter().map(|dose| dose.dose).collect(),
            baselines: logs(|pair| pair.without.ln()),
            ratios: logs(|pair| (pair.with / pair.without).ln()),
        }
    }

    fn blocks(&self) -> usize {
        self.ratios.first().map_or(0, Vec::len)
    }

    /// Line of the pairs in these blocks; `None` if a dose has none of them.
    fn fit(&self, blocks: &[usize]) -> Option<Fit> {
        let chosen = |of: &Vec<Option<f64>>| -> Vec<f64> {
            blocks.iter().filter_map(|block| of[*block]).collect()
        };
        // Samples of one dose may take longer by far, as where only that is measured sequentially under load.
        let baselines: Vec<f64> =
            self.baselines.iter().map(|of| trimmed_mean(chosen(of))).collect();
        let baseline = median(&baselines)?.exp();
        let ratios: Vec<Vec<f64>> = self.ratios.iter().map(chosen).collect();
        let means: Vec<f64> = ratios.iter().map(|of| trimmed_mean(of.clone())).collect();
        let added: Vec<f64> = means.iter().map(|mean| baseline * mean.exp_m1()).collect();
        let weights: Vec<f64> = ratios.iter().zip(&means).map(weight).collect();
        let [at_zero, slope] = self.least_squares(&added, &weights, 0..added.len());
        let middle = added.len() / 2;
        let halves = [0..middle + 1, middle..added.len()];
        let halves = halves.map(|half| self.least_squares(&added, &weights, half)[1]);
        added.iter().all(|added| added.is_finite()).then_some(Fit {
            baseline,
            added,
            slope,
            at_zero,
            halves,
        })
    }

    /// Intercept and slope of some of the doses.
    fn least_squares(&self, added: &[f64], weights: &[f64], of: Range<usize>) -> [f64; 2] {
        let (x, y, w) = (&self.doses[of.clone()], &added[of.clone()], &weights[of]);
        let total: f64 = w.iter().sum();
        let mean = |of: &[f64]| of.iter().zip(w).map(|(v, w)| v * w).sum::<f64>() / total;
        let (mean_x, mean_y) = (mean(x), mean(y));
        let (mut covariance, mut variance) = (0.0, 0.0);
        for ((x, y), w) in x.iter().zip(y).zip(w) {
            covariance += w * (x - mean_x) * (y - mean_y);
            variance += w * (x - mean_x) * (x - mean_x);
        }
        let slope = covariance / variance;
        [mean_y - slope * mean_x, slope]
    }
}

/// Weight of a dose: the inverse of the variance of its mean.
fn weight((ratios, mean): (&Vec<f64>, &f64)) -> f64 {
    let error = deviation(ratios) * mean.exp();
    ratios.len() as f64 / error.max(1e-9).powi(2)
}

/// Mean without the lowest and the highest fifth; not a number without values.
fn trimmed_mean(mut values: Vec<f64>) -> f64 {
    values.sort_unstable_by(f64::total_cmp);
    let off = (TRIMMED * values.len() as f64) as usize;
    let kept = &values[off..values.len() - off];
    kept.iter().sum::<f64>() / kept.len() as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simulated::{Machine, Noise, allowed};

    const DOSES: [f64; 5] = [10.0, 32.0, 100.0, 316.0, 1000.0];

    /// An operation of 200 ns, to which each dose adds a time; the i-th pairs share the machine's drift.
    fn measured(noise: Noise, seed: u64, pairs: usize, added: fn(f64) -> f64) -> Vec<Dose> {
        let mut machine = Machine::new(noise, seed);
        let mut doses = DOSES.map(|dose| Dose { dose, pairs: Vec::new() });
        for block in 0..pairs {
            for dose in &mut doses {
                let with = (200.0 + added(dose.dose)) * machine.pair(0.0).exp();
                dose.pairs.push(DosePair { block, without: 200.0, with });
            }
        }
        doses.to_vec()
    }

    fn straight(dose: f64) -> f64 {
        60.0 + 0.5 * dose
    }

    #[test]
    fn intervals_miss_a_planted_slope_as_seldom_as_they_say_with_few_pairs_too() {
        const SEEDS: u64 = 150;
        let noises = [Noise::White, Noise::HeavyTailed, Noise::Stalling, Noise::Stealing];
        for (noise, pairs) in
            noises.into_iter().flat_map(|noise| [(noise, LEAST_PAIRS), (noise, 20)])
        {
            let mut misses = [0.0; 3];
            for seed in 0..SEEDS {
                let line = line(&measured(noise, seed, pairs, straight), 0.05, 1, seed).unwrap();
                let is_missed = |of: Estimate, truth| !(of.low..=of.high).contains(&truth);
                let wrong = [
                    is_missed(line.per_unit, 0.5),
                    is_missed(line.at_zero, 60.0),
                    line.bend.is_some(),
                ];
                misses.iter_mut().zip(wrong).for_each(|(sum, wrong)| *sum += f64::from(wrong));
            }
            let rates = misses.map(|sum| sum / SEEDS as f64);
            assert!(
                rates.iter().all(|rate| *rate <= allowed(SEEDS)),
                "{noise:?} {pairs}: {rates:?}"
            );
        }
    }

    #[test]
    fn a_pair_that_a_dose_lacks_moves_no_other_pair_to_another_round() {
        let mut doses = measured(Noise::White, 3, 20, straight);
        // The first dose has a cost of its own in each round; without round 2, the others keep theirs.
        doses[0].pairs.remove(2);
        let pairs = Pairs::of(&doses);
        assert_eq!((pairs.ratios[0][2], pairs.blocks()), (None, 20));
        let last = doses[0].pairs[18];
        assert_eq!(pairs.ratios[0][19], Some((last.with / last.without).ln()));
    }

    #[test]
    fn a_cost_that_bends_is_told_from_a_straight_one() {
        let bent = |dose: f64| if dose > 100.0 { dose } else { 0.2 * dose };
        let line = line(&measured(Noise::White, 1, 40, bent), 0.05, 1, 1).unwrap();
        let [below, above] = line.bend.expect("it bends");
        assert!((below - 0.2).abs() < 0.1 && (above - 1.0).abs() < 0.3, "{below} {above}");
        assert!((line.baseline - 200.0).abs() < 1.0 && line.added.len() == 5);
    }

    #[test]
    fn a_bend_of_many_lines_takes_more_than_the_first_draws() {
        let one_in = |period: usize| {
            let mut number = 0;
            move || {
                number += 1;
                Some(if number % period == 0 { -1.0 } else { 1.0 })
            }
        };
        let first = || vec![1.0; DRAWS];
        // Of 100 lines, one value in 4000 may be below 0.
        assert!(!excludes_zero(first(), 0.05 / 100.0, one_in(2000)));
        assert!(excludes_zero(first(), 0.05 / 100.0, one_in(7500)));
        assert!(excludes_zero(first(), 0.05, || panic!("the first draws suffice")));
        assert!(!excludes_zero([vec![1.0; 970], vec![-1.0; 30]].concat(), 0.05, || None));
    }

    #[test]
    fn a_block_that_all_doses_share_is_drawn_as_one() {
        // One pair in each of two rounds is no replication, whatever the number of pairs.
        let doses = |rounds: [f64; 2]| -> Vec<Dose> {
            let pair = |dose: f64, block: usize| {
                let with = 100.0 * (dose * rounds[block % 2]).exp();
                DosePair { block, without: 100.0, with }
            };
            let dose =
                |dose: f64| Dose { dose, pairs: (0..20).map(|block| pair(dose, block)).collect() };
            [1.0, 2.0, 3.0].map(dose).to_vec()
        };
        let width = |rounds| {
            let Estimate { low, high, .. } = line(&doses(rounds), 0.05, 1, 3).unwrap().per_unit;
            high - low
        };
        assert!(width([0.01, 0.03]) > 0.5 && width([0.02, 0.02]) < 1e-9);
    }

    #[test]
    fn a_dose_whose_samples_all_take_longer_moves_no_cost() {
        let doses = measured(Noise::White, 2, 20, straight);
        let mut waits = doses.clone();
        for pair in &mut waits[4].pairs {
            (pair.without, pair.with) = (20.0 * pair.without, 20.0 * pair.with);
        }
        let [calm, busy] = [doses, waits].map(|doses| line(&doses, 0.05, 1, 1).unwrap());
        assert!((calm.baseline - busy.baseline).abs() < 0.01 * calm.baseline, "{busy:?}");
        assert!((calm.per_unit.value - busy.per_unit.value).abs() < 0.01, "{busy:?}");
    }

    #[test]
    fn few_doses_and_few_pairs_have_no_line() {
        let doses = measured(Noise::White, 1, 20, straight);
        assert_eq!(line(&doses[..2], 0.05, 1, 1), None);
        assert_eq!(line(&measured(Noise::White, 1, 7, straight), 0.05, 1, 1), None);
        assert_eq!(line(&[&doses[1..], &doses[..1]].concat(), 0.05, 1, 1), None);
    }
}
