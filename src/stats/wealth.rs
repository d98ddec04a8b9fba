//! What a gambler owns who bets against a symmetric game: the e-value of the anytime interval.

/// Share of the capital that each of the nine gamblers stakes, of equal starting capital.
///
/// Small stakes find small effects in many pairs, large ones large effects in few; their mean is
/// within a factor nine of the best. 0.98 stands twice so that eight pairs can decide at 5 %.
const STAKES: [f64; 9] = [0.02, 0.05, 0.1, 0.2, 0.35, 0.55, 0.8, 0.98, 0.98];

/// About what a mixture of stakes has less than the best of them, as a logarithm.
const LOG_COST: f64 = 2.5;

/// How many bets are made before the capitals are scaled down: 0.02⁶⁴ ≈ 10⁻¹⁰⁹ and 1.98⁶⁴ ≈ 10¹⁹
/// are far from the ends of `f64`.
const BETS_PER_SCALING: u32 = 64;

/// The mixture martingale Σ_j w_j Π_i (1 + b_j x_i), scaled so that no number of bets overflows.
///
/// If every score x_i is in [−1, 1] and has mean at most 0 given the past, this is a non-negative
/// supermartingale that starts at 1, and Ville's inequality bounds the chance that it ever reaches
/// c by 1/c. Source: Waudby-Smith, Ramdas, "Estimating means of bounded random variables by
/// betting", arXiv 2010.09686.
#[derive(Clone, Debug)]
pub(super) struct Wealth {
    /// What each gambler has, over e^`log_scale`. One who falls to 10⁻³⁰⁸ of the richest is
    /// bankrupt here, which only loses evidence.
    capital: [f64; STAKES.len()],
    log_scale: f64,
    bets: u32,
}

impl Wealth {
    /// The capital before the first bet: 1.
    pub(super) fn new() -> Wealth {
        Wealth { capital: [1.0; STAKES.len()], log_scale: 0.0, bets: 0 }
    }

    /// Plays one round; `score` is in [−1, 1].
    pub(super) fn bet(&mut self, score: f64) {
        debug_assert!((-1.0..=1.0).contains(&score));
        for (capital, stake) in self.capital.iter_mut().zip(STAKES) {
            *capital *= 1.0 + stake * score;
        }
        self.bets += 1;
        if self.bets == BETS_PER_SCALING {
            let richest = self.capital.iter().copied().fold(0.0, f64::max);
            self.capital = self.capital.map(|capital| capital / richest);
            self.log_scale += richest.ln();
            self.bets = 0;
        }
    }

    /// ln of the wealth now; finite.
    pub(super) fn log(&self) -> f64 {
        let sum: f64 = self.capital.iter().sum();
        self.log_scale + (sum / STAKES.len() as f64).ln()
    }
}

/// ψ((d − θ)/s) with ψ(z) = tanh(1.5 z): odd, so that symmetry makes its mean zero, and bounded, so
/// that no sample ruins a gambler.
pub(super) fn score(d: f64, theta: f64, scale: f64) -> f64 {
    (1.5 * (d - theta) / scale).tanh()
}

/// How far a wealth is above the one that is needed, both as logarithms: at least 0 where it is, and
/// about a straight line in θ.
///
/// Away from the middle of the values the best stake grows like the distance, and the logarithm of
/// the wealth like its square, less what the mixture costs. So the root of the ratio of the two is
/// straight, here less 1, in a form that is exact in its sign; in the middle it is −1.
pub(super) fn excess(log_wealth: f64, log_needed: f64) -> f64 {
    let needed = log_needed + LOG_COST;
    let has = (log_wealth + LOG_COST).max(0.0);
    (log_wealth - log_needed) / (needed + (needed * has).sqrt())
}

/// ln ½(eᵃ + eᵇ).
pub(super) fn log_mean(a: f64, b: f64) -> f64 {
    let (large, small) = if a > b { (a, b) } else { (b, a) };
    large + (0.5 + 0.5 * (small - large).exp()).ln()
}

#[cfg(test)]
mod tests {
    use rand::{RngExt, SeedableRng};
    use rand_chacha::ChaCha8Rng;

    use super::*;

    #[test]
    fn equals_the_formula() {
        let mut rng = ChaCha8Rng::seed_from_u64(9);
        let scores: Vec<f64> = (0..150).map(|_| rng.random_range(-1.0..1.0)).collect();
        let mut wealth = Wealth::new();
        assert_eq!(wealth.log(), 0.0);
        for n in 0..scores.len() {
            wealth.bet(scores[n]);
            let product = |stake: f64| scores[..=n].iter().map(|x| 1.0 + stake * x).product();
            let sum: f64 = STAKES.map(product).iter().sum();
            assert!((wealth.log() - (sum / 9.0).ln()).abs() < 1e-10);
        }
    }

    #[test]
    fn a_hundred_thousand_wins_or_losses_stay_finite() {
        for score in [1.0, -1.0] {
            let mut wealth = Wealth::new();
            for _ in 0..100_000 {
                wealth.bet(score);
            }
            assert!(wealth.log().is_finite());
        }
    }
}
