//! Detects that the machine became faster or slower while a row was measured. Pairs cancel changes
//! that both arms share, so the result is still correct. But the machine it holds for has changed
//! meanwhile.

use paired::estimate::{MAD_TO_SD, mad, median};
use paired::judge::MIN_PAIRS;
use weigh_model::format;
use weigh_model::result::summary::Pair;

/// Each third of the pairs has at least this many, or a few noisy ones look like a drift.
const LEAST_OF_A_THIRD: usize = 8;
/// Change of the rates that is worth a word, as a log-ratio.
const NOTABLE: f64 = 0.05;
/// It must also stand out of how the rates scatter within a third, by so many standard deviations.
const DEVIATIONS: f64 = 2.0;

/// A sentence where both arms' rates in the last third of the pairs differ from those in the first, in the
/// same direction. The pilot's pairs are left out: their samples may have another length.
pub fn note(series: &[Pair]) -> Option<String> {
    let series = series.get(MIN_PAIRS..)?;
    let third = series.len() / 3;
    if third < LEAST_OF_A_THIRD {
        return None;
    }
    let (first, last) = (&series[..third], &series[series.len() - third..]);
    let changes = [
        change(first, last, |pair| pair.baseline_rate)?,
        change(first, last, |pair| pair.treated_rate)?,
    ];
    // What only one arm does is a change of the effect.
    let is_shared = changes[0].signum() == changes[1].signum();
    is_shared.then(|| {
        let [baseline, treated] = changes.map(|change| format::percent(change.exp_m1() * 100.0));
        format!(
            "drift: the rates of both arms changed between the first and the last third of the pairs \
             (baseline {baseline}, treated {treated}). Pairs cancel a change that both arms share, but the \
             machine did not stay the same."
        )
    })
}

/// Returns the change of an arm's rate as a log-ratio, if it is notable and exceeds the arm's
/// scatter.
fn change(first: &[Pair], last: &[Pair], rate: fn(&Pair) -> f64) -> Option<f64> {
    let levels = |pairs: &[Pair]| -> Vec<f64> {
        pairs.iter().map(|pair| rate(pair).ln()).filter(|level| level.is_finite()).collect()
    };
    let (first, last) = (levels(first), levels(last));
    let change = median(&last)? - median(&first)?;
    let scatter = MAD_TO_SD * mad(&first)?.max(mad(&last)?);
    (change.abs() >= NOTABLE.max(DEVIATIONS * scatter)).then_some(change)
}

#[cfg(test)]
mod tests {
    use super::*;
    use paired::simulated::{Machine, Noise};
    use weigh_model::ids::{PairId, SetId};

    /// Pairs whose rates change by `drift` (a log-ratio) from the first to the last.
    fn series(noise: Noise, pairs: usize, drift: f64, effect: f64, seed: u64) -> Vec<Pair> {
        let mut machine = Machine::new(noise, seed);
        let pair = |number: usize| {
            let base = drift * number as f64 / pairs as f64;
            let mut rate = |more: f64| 1000.0 * (base + more + machine.sample()).exp();
            Pair {
                rates_over_all: [1.0, 1.0],
                cpu_ns_per_op: None,
                further: Vec::new(),
                started_s: number as f64,
                lasted_s: 1.0,
                baseline_rate: rate(0.0),
                treated_rate: rate(effect),
                baseline_first: true,
                after_treated: false,
                set: SetId(0),
                number: PairId(number),
                is_disturbed: false,
            }
        };
        (0..pairs).map(pair).collect()
    }

    #[test]
    fn a_machine_that_slows_down_is_told_and_an_effect_is_no_drift() {
        let slowing = note(&series(Noise::White, 60, -0.15, -0.3, 1)).unwrap();
        assert!(slowing.contains("(baseline −") && slowing.contains("treated −"), "{slowing}");
        assert!(note(&series(Noise::White, 60, 0.15, 0.0, 2)).unwrap().contains("(baseline +"));
        assert_eq!(note(&series(Noise::White, 60, 0.0, -0.3, 3)), None);
        assert_eq!(note(&series(Noise::White, 20, -0.5, 0.0, 4)), None);
    }

    #[test]
    fn what_one_arm_alone_does_and_what_the_pilot_did_is_no_drift() {
        let mut one_arm = series(Noise::White, 60, 0.0, 0.0, 5);
        let count = one_arm.len() as f64;
        for (number, pair) in one_arm.iter_mut().enumerate() {
            pair.treated_rate *= (-0.4 * number as f64 / count).exp();
        }
        assert_eq!(note(&one_arm), None);
        let mut of_another_length = series(Noise::White, 36, 0.0, 0.0, 6);
        for pair in &mut of_another_length[..MIN_PAIRS] {
            (pair.baseline_rate, pair.treated_rate) = (800.0, 800.0);
        }
        assert_eq!(note(&of_another_length), None);
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
