//! Whether it matters which sample of a pair is measured first: what a treated sample leaves behind
//! for the baseline's next, or simply the second launch in a row.

use super::Interval;
use super::estimate::hodges_lehmann;
use super::wilcoxon::signed_rank_interval;

/// The log-ratios of pairs with the baseline first, less those of pairs with the treatment first.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct OrderEffect {
    pub estimate: f64,
    pub interval: Interval,
}

impl OrderEffect {
    /// Whether the interval leaves "the order does not matter" out.
    pub fn is_significant(&self) -> bool {
        self.interval.low > 0.0 || self.interval.high < 0.0
    }
}

/// From the log-ratios in `pairs`, each with whether its baseline was first. `None` while there are
/// too few for the level, or all were in one order.
///
/// With c_i = 1 where the baseline was first and −1 elsewhere, g_i = c_i (d_i − θ̂) is the second
/// sample's noise less the first's. If the order does not matter, both are drawn alike and g_i is
/// symmetric about zero, so Wilcoxon's interval of its centre misses zero with chance `alpha`; twice
/// the centre is the difference of the two orders. Centres, not means: one stall would hide all.
pub fn order_effect(pairs: &[(f64, bool)], alpha: f64) -> Option<OrderEffect> {
    let of_order = |baseline_first: bool| -> Vec<f64> {
        pairs.iter().filter(|(_, first)| *first == baseline_first).map(|(d, _)| *d).collect()
    };
    let [there, back] = [true, false].map(|first| hodges_lehmann(&of_order(first)));
    // Neither order counts for more, however the coins fell.
    let effect = f64::midpoint(there?, back?);
    let differences: Vec<f64> = pairs
        .iter()
        .map(|(d, baseline_first)| if *baseline_first { d - effect } else { effect - d })
        .collect();
    let centre = signed_rank_interval(&differences, alpha)?;
    Some(OrderEffect {
        estimate: 2.0 * hodges_lehmann(&differences)?,
        interval: Interval { low: 2.0 * centre.low, high: 2.0 * centre.high },
    })
}

#[cfg(test)]
mod tests {
    use rand::{RngExt, SeedableRng};
    use rand_chacha::ChaCha8Rng;

    use super::super::simulated::{Machine, Noise};
    use super::*;

    /// Pairs under an effect of −2 %, where the second sample of each is `warmer` than the first.
    fn measured(noise: Noise, seed: u64, warmer: f64) -> Vec<(f64, bool)> {
        let mut machine = Machine::new(noise, seed);
        let mut coin = ChaCha8Rng::seed_from_u64(!seed);
        (0..30)
            .map(|_| {
                let (first, second) = (machine.sample(), machine.sample() + warmer);
                let baseline_first = coin.random();
                let gain = second - first;
                (-0.02 + if baseline_first { gain } else { -gain }, baseline_first)
            })
            .collect()
    }

    fn significant(noise: Noise, warmer: f64, repetitions: u64) -> f64 {
        let found = (0..repetitions)
            .filter(|seed| {
                order_effect(&measured(noise, *seed, warmer), 0.05).unwrap().is_significant()
            })
            .count();
        found as f64 / repetitions as f64
    }

    #[test]
    fn no_order_effect_is_seldom_claimed() {
        for noise in [Noise::White, Noise::HeavyTailed, Noise::Autocorrelated, Noise::Stealing] {
            let rate = significant(noise, 0.0, 1000);
            assert!(rate <= 0.05 + 3.0 * (0.05_f64 * 0.95 / 1000.0).sqrt(), "{noise:?}: {rate}");
        }
    }

    #[test]
    fn a_warmer_second_sample_is_found_with_its_size() {
        assert!(significant(Noise::White, 0.015, 100) >= 0.95);
        let found = order_effect(&measured(Noise::White, 1, 0.03), 0.05).unwrap();
        assert!(found.interval.low < 0.06 && 0.06 < found.interval.high, "{found:?}");
        assert!((found.estimate - 0.06).abs() < 0.02, "{found:?}");
    }

    #[test]
    fn one_order_or_few_pairs_say_nothing() {
        assert_eq!(order_effect(&[], 0.05), None);
        assert_eq!(order_effect(&[(0.1, true); 20], 0.05), None);
        assert_eq!(order_effect(&[(0.1, true), (0.2, false)], 0.05), None);
    }
}
