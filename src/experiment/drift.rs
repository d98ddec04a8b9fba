//! Whether the machine became faster or slower while a row was measured. Pairs cancel what both arms
//! share, so that is no fault of a result; but what it holds for has changed meanwhile.

use crate::report::format;
use crate::report::summary::Pair;
use crate::stats::betting::MAD_TO_SD;
use crate::stats::estimate::{mad, median};

/// Each third of the pairs has at least this many, or a few noisy ones look like a drift.
const LEAST_OF_A_THIRD: usize = 8;
/// Change of the rates that is worth a word, as a log-ratio.
const NOTABLE: f64 = 0.05;
/// It must also stand out of how the rates scatter within a third, by so many standard deviations.
const DEVIATIONS: f64 = 2.0;

/// A sentence where both arms' rates in the last third of the pairs differ from those in the first.
pub fn note(series: &[Pair]) -> Option<String> {
    let third = series.len() / 3;
    if third < LEAST_OF_A_THIRD {
        return None;
    }
    // Of the pair: half the sum of both logarithms. What only one arm does is an effect.
    let level = |pair: &Pair| f64::midpoint(pair.baseline_rate.ln(), pair.treated_rate.ln());
    let levels = |pairs: &[Pair]| -> Vec<f64> {
        pairs.iter().map(level).filter(|level| level.is_finite()).collect()
    };
    let (first, last) = (levels(&series[..third]), levels(&series[series.len() - third..]));
    let change = median(&last)? - median(&first)?;
    let scatter = MAD_TO_SD * mad(&first)?.max(mad(&last)?);
    (change.abs() >= NOTABLE.max(DEVIATIONS * scatter)).then(|| {
        format!(
            "while it was measured, the rates of both arms changed by {} (last third of the pairs against \
             the first): pairs cancel that, but the machine was not the same throughout",
            format::percent(change.exp_m1() * 100.0)
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::simulated::{Machine, Noise};

    /// Pairs whose rates change by `drift` (a log-ratio) from the first to the last.
    fn series(noise: Noise, pairs: usize, drift: f64, effect: f64, seed: u64) -> Vec<Pair> {
        let mut machine = Machine::new(noise, seed);
        let pair = |number: usize| {
            let base = drift * number as f64 / pairs as f64;
            let mut rate = |more: f64| 1000.0 * (base + more + machine.sample()).exp();
            Pair {
                started_s: number as f64,
                first_s: 0.5,
                baseline_rate: rate(0.0),
                treated_rate: rate(effect),
                baseline_first: true,
                set: 0,
                is_spoilt: false,
            }
        };
        (0..pairs).map(pair).collect()
    }

    #[test]
    fn a_machine_that_slows_down_is_told_and_an_effect_is_no_drift() {
        let slowing = note(&series(Noise::White, 60, -0.15, -0.3, 1)).unwrap();
        assert!(slowing.contains("changed by −"), "{slowing}");
        assert!(note(&series(Noise::White, 60, 0.15, 0.0, 2)).unwrap().contains("changed by +"));
        assert_eq!(note(&series(Noise::White, 60, 0.0, -0.3, 3)), None);
        assert_eq!(note(&series(Noise::White, 20, -0.5, 0.0, 4)), None);
    }

    #[test]
    fn noise_alone_is_seldom_taken_for_drift() {
        let is_told = |noise, seed: &u64| note(&series(noise, 60, 0.0, 0.0, *seed)).is_some();
        for noise in [Noise::White, Noise::HeavyTailed, Noise::Stealing, Noise::Alternating] {
            let told = (0..200).filter(|seed| is_told(noise, seed)).count();
            assert!(told <= 2, "{noise:?}: {told}");
        }
    }
}
