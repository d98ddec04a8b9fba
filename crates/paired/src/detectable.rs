//! How small an effect a number of pairs will show, before any is measured.

use super::betting::Betting;
use super::judge::MIN_PAIRS;
use super::normal;

/// The half-width of the anytime interval after `pairs` pairs whose log-ratios scatter with a
/// standard deviation of 1; times the standard deviation it is the smallest effect, as a log-ratio,
/// that about half of all experiments show. `None` below the least number of pairs for a verdict.
///
/// It is that of an ideal sample: the normal quantiles Φ⁻¹(u_i) of the van der Corput sequence,
/// which is spread evenly up to any i, so that the interval's own code answers.
pub fn half_width(pairs: usize, alpha: f64) -> Option<f64> {
    if pairs < MIN_PAIRS {
        return None;
    }
    let mut ideal = Betting::new(1.0);
    for i in 1..=pairs {
        ideal.push(normal::quantile(van_der_corput(i))).ok()?;
    }
    Some(ideal.interval(alpha).half_width()).filter(|width| width.is_finite())
}

/// The bits of `i` behind the point, in reverse: ½, ¼, ¾, ⅛, ⅝, … Never 0 or 1.
fn van_der_corput(i: usize) -> f64 {
    let bits = usize::BITS - i.leading_zeros();
    let reversed = i.reverse_bits() >> (usize::BITS - bits);
    reversed as f64 / (1_u64 << bits) as f64
}

#[cfg(test)]
mod tests {
    use super::super::simulated::{Machine, Noise};
    use super::*;

    #[test]
    fn the_sequence_is_even() {
        assert_eq!([1, 2, 3, 4, 5].map(van_der_corput), [0.5, 0.25, 0.75, 0.125, 0.625]);
    }

    #[test]
    fn it_shrinks_about_like_the_root_of_the_pairs() {
        assert_eq!(half_width(MIN_PAIRS - 1, 0.05), None);
        assert!(half_width(MIN_PAIRS, 0.05).is_some(), "an effect without noise is shown");
        let [few, many] = [50, 800].map(|pairs| half_width(pairs, 0.05).unwrap());
        assert!((3.0..5.0).contains(&(few / many)), "{few} {many}");
    }

    /// How many of 300 experiments show an effect.
    fn found(pairs: usize, deviation: f64, effect: f64) -> usize {
        let shows = |seed: &u64| {
            let mut machine = Machine::new(Noise::White, *seed);
            let mut row = Betting::new(deviation);
            (0..pairs).for_each(|_| row.push(machine.pair(effect)).unwrap());
            row.interval(0.05).low > 0.0
        };
        (0..300).filter(shows).count()
    }

    #[test]
    fn half_of_the_experiments_show_an_effect_of_this_size_and_nearly_all_twice_that() {
        // White noise of 1 % per sample: a pair's log-ratio has a standard deviation of √2 %.
        let deviation = 0.01 * 2.0_f64.sqrt();
        for pairs in [16, 60, 200] {
            let effect = deviation * half_width(pairs, 0.05).unwrap();
            let half = found(pairs, deviation, effect);
            assert!((100..=200).contains(&half), "{pairs} pairs: {half} of 300");
            let nearly_all = found(pairs, deviation, 2.0 * effect);
            assert!(nearly_all >= 285, "{pairs} pairs: {nearly_all} of 300");
        }
    }
}
