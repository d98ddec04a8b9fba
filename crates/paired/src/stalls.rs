//! Rare long delays, which a typical pair does not show: how many were seen, and how frequent they may be
//! without having been seen.

use super::betting::Betting;
use super::binomial::at_least;
use super::estimate::{MAD_TO_SD, mad, median};

/// A log-ratio is a stall when it lies so many standard deviations beside the median.
const DEVIATIONS: f64 = 5.0;

/// The stalls among the pairs of a row.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Stalls {
    /// Limit of a stall, as a log-ratio: the value is farther from the median than this.
    pub threshold: f64,
    /// How many pairs were looked at.
    pub pairs: usize,
    /// Pairs in which the baseline's sample was so much slower than usual, beside the other one.
    pub baseline: usize,
    /// Number of stalls of the treated sample.
    pub treated: usize,
}

impl Stalls {
    /// Counts the stalls of the pairs so far; `None` before the first pair. `margin` is the size
    /// that is too small to matter.
    pub fn of(row: &Betting, margin: f64) -> Option<Stalls> {
        let centre = median(row.values())?;
        let spread = MAD_TO_SD * mad(row.values())?;
        let threshold = margin.max(DEVIATIONS * spread);
        let count = |is_stall: &dyn Fn(f64) -> bool| {
            row.values().iter().filter(|d| is_stall(**d - centre)).count()
        };
        Some(Stalls {
            threshold,
            pairs: row.pairs(),
            baseline: count(&|distance| distance > threshold),
            treated: count(&|distance| distance < -threshold),
        })
    }

    /// Returns true if the treated arm stalls more often than the baseline, at error rate `alpha`.
    ///
    /// The test is the sign test. If both arms stall alike, each stall belongs to either arm with
    /// chance ½, for a given number of stalls.
    pub fn are_the_treatments(&self, alpha: f64) -> bool {
        self.treated > 0 && at_least(self.treated, self.treated + self.baseline, 0.5) <= alpha
    }

    /// The share of treated samples that may stall: more is refuted with error rate `alpha`, whenever one
    /// stops.
    ///
    /// Under a share of p, k stalls among n have the wealth
    ///
    /// ```text
    /// M_n(p) = ½ · 1{k = 0} / (1 − p)ⁿ + ½ · B(k + 1, n − k + 1) / (pᵏ (1 − p)ⁿ⁻ᵏ)
    /// ```
    ///
    /// half of it staked on "never", half on all shares alike. It is a martingale that starts at 1, so
    /// Ville's inequality refutes every p with M_n(p) ≥ 1/α. Without a stall that is the rule of three with
    /// ln 2/α for ln 1/α: the share is below about 3.7/n, and a little less for the other half. The bound is
    /// the largest p that is left.
    pub fn treated_at_most(&self, alpha: f64) -> f64 {
        let (n, k) = (self.pairs as f64, self.treated as f64);
        // ln B(k + 1, n − k + 1) = −ln((n + 1) · (n over k))
        let ways: f64 = (1..=self.treated).map(|i| ((n - k + i as f64) / i as f64).ln()).sum();
        let log_beta = -((n + 1.0).ln() + ways);
        let log_wealth = |p: f64| {
            let stalled = if self.treated == 0 { 0.0 } else { k * p.ln() };
            let log_chance = stalled + (n - k) * (-p).ln_1p();
            let log_wealth = match self.treated {
                0 => (0.5 * (1.0 + log_beta.exp())).ln(),
                // In logs to the end: of thousands of pairs the function itself is too small for a number.
                _ => 0.5_f64.ln() + log_beta,
            };
            log_wealth - log_chance
        };
        let needed = (1.0 / alpha).ln();
        // Beyond k/n the wealth rises with p.
        let (mut low, mut high) = (k / n, 1.0);
        for _ in 0..60 {
            let middle = f64::midpoint(low, high);
            if log_wealth(middle) < needed {
                low = middle;
            } else {
                high = middle;
            }
        }
        high
    }
}

#[cfg(test)]
mod tests {
    use rand::{RngExt, SeedableRng};
    use rand_chacha::ChaCha8Rng;

    use super::super::simulated::white_pairs;
    use super::*;

    fn seen(treated: usize, pairs: usize) -> Stalls {
        Stalls { threshold: 0.4, pairs, baseline: 0, treated }
    }

    #[test]
    fn stalls_are_told_from_noise_and_by_arm() {
        let mut d = white_pairs(-0.3, 60, 4);
        let of = |d: &[f64]| {
            let row = Betting::from_log_ratios(d, 0.01).unwrap();
            Stalls::of(&row, 0.01).unwrap()
        };
        assert_eq!((of(&d).baseline, of(&d).treated), (0, 0));
        (d[3], d[17], d[40]) = (-1.4, -1.4, 0.8);
        let found = of(&d);
        assert_eq!((found.baseline, found.treated, found.pairs), (1, 2, 60));
        assert!((0.03..0.12).contains(&found.threshold), "{found:?}");
        assert_eq!(Stalls::of(&Betting::new(0.01), 0.01), None);
        assert_eq!(of(&[0.0; 9]).threshold, 0.01);
    }

    #[test]
    fn an_excess_of_one_arm_is_shown_by_the_sign_test() {
        let with = |treated, baseline| Stalls { baseline, ..seen(treated, 50) };
        assert!(!with(0, 0).are_the_treatments(0.1) && !with(3, 0).are_the_treatments(0.1));
        assert!(with(4, 0).are_the_treatments(0.1) && !with(0, 4).are_the_treatments(0.1));
        assert!(!with(5, 4).are_the_treatments(0.1));
    }

    #[test]
    fn the_bound_is_about_the_rule_of_three_and_grows_with_what_was_seen() {
        // 1 − (α/2 · (1 + 1/(n + 1)))^(1/n)
        let exact = |n: f64| 1.0 - (0.025 * (1.0 + 1.0 / (n + 1.0))).powf(1.0 / n);
        for n in [8, 40, 300] {
            assert!((seen(0, n).treated_at_most(0.05) - exact(n as f64)).abs() < 1e-9);
        }
        // Thousands of pairs with hundreds of stalls: none of its factors may become zero.
        for (stalled, pairs) in [(150, 1500), (300, 3000), (3000, 30_000)] {
            let bound = seen(stalled, pairs).treated_at_most(0.05);
            assert!((0.1..0.14).contains(&bound), "{stalled} of {pairs}: {bound}");
        }
        let bounds = [0, 1, 2, 5, 39, 40].map(|treated| seen(treated, 40).treated_at_most(0.05));
        assert!(bounds.windows(2).all(|two| two[0] < two[1]), "{bounds:?}");
        assert!(bounds[2] > 0.2 && bounds[2] < 0.3, "{bounds:?}");
        assert!((bounds[5] - 1.0).abs() < 1e-9);
    }

    #[test]
    fn the_bound_is_where_the_wealth_refutes() {
        // B(k + 1, n − k + 1) = k! (n − k)! / (n + 1)!
        for (treated, pairs, beta) in
            [(1, 8, 1.0 / 72.0), (3, 40, 6.0 / (41.0 * 40.0 * 39.0 * 38.0))]
        {
            let p = seen(treated, pairs).treated_at_most(0.05);
            let chance = p.powi(treated as i32) * (1.0 - p).powi((pairs - treated) as i32);
            assert!((0.5 * beta / chance - 20.0).abs() < 1e-9, "{treated} of {pairs}: {p}");
            assert!(p > treated as f64 / pairs as f64);
        }
    }

    /// Looked at after every pair from the eighth to the 200th.
    #[test]
    fn it_is_ever_below_the_truth_no_more_often_than_promised() {
        const EXPERIMENTS: u64 = 2000;
        for share in [0.01, 0.05, 0.3] {
            let missed = (0..EXPERIMENTS).filter(|seed| {
                let mut coins = ChaCha8Rng::seed_from_u64(*seed);
                let mut treated = 0;
                (1..=200).any(|pairs| {
                    treated += usize::from(coins.random_bool(share));
                    pairs >= 8 && seen(treated, pairs).treated_at_most(0.05) < share
                })
            });
            let missed = missed.count() as f64 / EXPERIMENTS as f64;
            assert!(
                missed <= 0.05 + 3.0 * (0.05_f64 * 0.95 / EXPERIMENTS as f64).sqrt(),
                "{missed}"
            );
        }
    }
}
