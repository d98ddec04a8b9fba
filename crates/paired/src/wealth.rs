//! Wealth of gamblers who bet against a symmetric game: the e-value of the anytime interval.

use super::design::MIN_PAIRS;

/// How many pairs there will probably be, which decides what half of the capital is staked on.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum PairPlan {
    /// So many, as known before the first.
    AtFirst(f64),
    /// So many, as known after the first [`MIN_PAIRS`] pairs, during which that half
    /// is kept back. It may depend on them: a stake that is known before its pair is fair.
    AfterPilot(f64),
}

/// Share of the capital that each of the nine gamblers stakes, of equal starting capital.
///
/// Small stakes find small effects in many pairs, large ones large effects in few; their mean is
/// within a factor nine of the best. 0.98 stands twice so that eight pairs can decide at 5 %.
const STAKES: [f64; 9] = [0.02, 0.05, 0.1, 0.2, 0.35, 0.55, 0.8, 0.98, 0.98];

/// The capital that those of 0.98 begin with where a tenth gambler has half of all: so much that eight pairs
/// can still decide.
const LARGEST_SHARE: f64 = 0.08;

/// Who bets: the nine, and one who knows how many pairs there will be, maybe after the pilot alone.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Gamblers {
    /// For so many bets the tenth keeps what he has.
    waits: usize,
    stakes: [f64; STAKES.len() + 1],
    /// Initial share of each gambler; 1 in all, or less.
    shares: [f64; STAKES.len() + 1],
}

impl Gamblers {
    /// With so many pairs in prospect, or without a plan.
    ///
    /// If the effect is as small as n* pairs can just show, the score's mean is μ and its mean square about
    /// 0.56 (normal noise, ψ(z) = tanh(1.5 z), s the standard deviation), the logarithm of the wealth grows
    /// by n*(bμ − 0.28 b²), most for b = μ/0.56, and reaches ln(2 · 2/α) = ln 80 after n* pairs where
    /// b = √(2 ln 80 / (0.56 n*)).
    pub(crate) fn new(plan: Option<PairPlan>) -> Gamblers {
        let mut stakes = [0.0; STAKES.len() + 1];
        let mut shares = stakes;
        stakes[..STAKES.len()].copy_from_slice(&STAKES);
        let (pairs, waits) = match plan {
            Some(PairPlan::AtFirst(pairs)) if pairs > 0.0 => (pairs, 0),
            Some(PairPlan::AfterPilot(pairs)) if pairs > 0.0 => (pairs, MIN_PAIRS),
            _ => {
                shares[..STAKES.len()].fill(1.0 / STAKES.len() as f64);
                return Gamblers { waits: 0, stakes, shares };
            }
        };
        stakes[STAKES.len()] = (2.0 * 80.0_f64.ln() / (0.56 * pairs)).sqrt().min(0.98);
        shares[..7].fill((0.5 - 2.0 * LARGEST_SHARE) / 7.0);
        shares[7..9].fill(LARGEST_SHARE);
        shares[9] = 0.5;
        Gamblers { waits, stakes, shares }
    }
}

impl Gamblers {
    /// Returns the gamblers with this capital in all. The rest may be staked on something else.
    pub(crate) fn with(self, capital: f64) -> Gamblers {
        Gamblers { shares: self.shares.map(|share| share * capital), ..self }
    }

    /// Returns the gamblers for a quarter of the pairs. The gambler who knows the number of pairs
    /// stakes twice as much.
    pub(crate) fn for_a_quarter(mut self) -> Gamblers {
        let planned = &mut self.stakes[STAKES.len()];
        *planned = (2.0 * *planned).min(0.98);
        self
    }
}

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
pub(crate) struct Wealth {
    /// Capital of each gambler, over e^`log_scale`. A gambler who falls to 10⁻³⁰⁸ of the richest is
    /// bankrupt here, which only loses evidence.
    capital: [f64; STAKES.len() + 1],
    stakes: [f64; STAKES.len() + 1],
    log_scale: f64,
    /// Since the capitals were scaled.
    bets: u32,
    /// For so many more bets the tenth waits.
    waits: usize,
}

impl Wealth {
    /// The capital before the first bet.
    pub(crate) fn new(gamblers: Gamblers) -> Wealth {
        Wealth {
            capital: gamblers.shares,
            stakes: gamblers.stakes,
            log_scale: 0.0,
            bets: 0,
            waits: gamblers.waits,
        }
    }

    /// Plays one round; `score` is in [−1, 1].
    pub(crate) fn bet(&mut self, score: f64) {
        debug_assert!((-1.0..=1.0).contains(&score));
        let betting = self.stakes.len() - usize::from(self.waits > 0);
        for (capital, stake) in self.capital.iter_mut().zip(self.stakes).take(betting) {
            *capital *= 1.0 + stake * score;
        }
        self.waits = self.waits.saturating_sub(1);
        self.bets += 1;
        if self.bets == BETS_PER_SCALING {
            let richest = self.capital.iter().copied().fold(0.0, f64::max);
            self.capital = self.capital.map(|capital| capital / richest);
            self.log_scale += richest.ln();
            self.bets = 0;
        }
    }

    /// ln of the wealth now; finite.
    pub(crate) fn log(&self) -> f64 {
        let sum: f64 = self.capital.iter().sum();
        self.log_scale + sum.ln()
    }
}

/// ψ((d − θ)/s) with ψ(z) = tanh(1.5 z): odd, so that symmetry makes its mean zero, and bounded, so
/// that no sample ruins a gambler.
pub(crate) fn score(d: f64, theta: f64, scale: f64) -> f64 {
    (1.5 * (d - theta) / scale).tanh()
}

/// How far a wealth is above the one that is needed, both as logarithms: at least 0 where it is, and
/// about a straight line in θ.
///
/// Away from the middle of the values the best stake grows like the distance, and the logarithm of
/// the wealth like its square, less what the mixture costs. So the root of the ratio of the two is
/// straight, here less 1, in a form that is exact in its sign; in the middle it is −1.
pub(crate) fn excess(log_wealth: f64, log_needed: f64) -> f64 {
    let needed = log_needed + LOG_COST;
    let has = (log_wealth + LOG_COST).max(0.0);
    (log_wealth - log_needed) / (needed + (needed * has).sqrt())
}

/// ln ½(eᵃ + eᵇ).
pub(crate) fn log_mean(a: f64, b: f64) -> f64 {
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
        let mut wealth = Wealth::new(Gamblers::new(None));
        assert!(wealth.log().abs() < 1e-15);
        for n in 0..scores.len() {
            wealth.bet(scores[n]);
            let product = |stake: f64| scores[..=n].iter().map(|x| 1.0 + stake * x).product();
            let sum: f64 = STAKES.map(product).iter().sum();
            assert!((wealth.log() - (sum / 9.0).ln()).abs() < 1e-10);
        }
    }

    #[test]
    fn a_plan_moves_half_of_the_capital_and_eight_wins_still_decide() {
        let pairs = [1.0, 8.0, 40.0, 300.0, 1e6];
        for plan in pairs.map(PairPlan::AtFirst).into_iter().chain(pairs.map(PairPlan::AfterPilot))
        {
            let Gamblers { stakes, shares, .. } = Gamblers::new(Some(plan));
            assert!((shares.iter().sum::<f64>() - 1.0).abs() < 1e-12);
            assert!(stakes.iter().all(|stake| (0.0..=0.98).contains(stake)));
            let mut wealth = Wealth::new(Gamblers::new(Some(plan)));
            (0..8).for_each(|_| wealth.bet(1.0));
            assert!(wealth.log() >= 40_f64.ln(), "{plan:?}: {}", wealth.log().exp());
        }
        for none in [PairPlan::AtFirst(0.0), PairPlan::AfterPilot(0.0)] {
            assert_eq!(Gamblers::new(Some(none)), Gamblers::new(None));
        }
    }

    #[test]
    fn a_plan_stakes_what_suits_its_pairs_and_a_quarter_of_them_twice_as_much() {
        let planned = Gamblers::new(Some(PairPlan::AtFirst(40.0)));
        // √(2 ln 80 / (0.56 · 40))
        assert!((planned.stakes[9] - 0.625_5).abs() < 1e-4, "{planned:?}");
        assert!((planned.shares[0] - 0.34 / 7.0).abs() < 1e-12, "{planned:?}");
        assert_eq!(planned.shares[7..], [0.08, 0.08, 0.5]);
        assert_eq!(planned.with(0.5).shares[7..], [0.04, 0.04, 0.25]);
        let many = Gamblers::new(Some(PairPlan::AtFirst(4000.0)));
        let quarter = many.for_a_quarter();
        assert_eq!(quarter.stakes[9], 2.0 * many.stakes[9]);
        assert_eq!(quarter.stakes[..9], many.stakes[..9]);
        assert_eq!(planned.for_a_quarter().stakes[9], 0.98);
    }

    #[test]
    fn the_excess_is_straight_in_the_root_of_the_evidence_and_the_mean_is_of_the_wealth() {
        for log_wealth in [-1.0, 0.0, 2.0, 4.0, 30.0] {
            let straight = ((log_wealth + LOG_COST) / (4.0 + LOG_COST)).sqrt() - 1.0;
            assert!((excess(log_wealth, 4.0) - straight).abs() < 1e-12, "{log_wealth}");
        }
        assert_eq!(excess(4.0, 4.0), 0.0);
        assert!((score(0.3, 0.1, 0.1) - 3_f64.tanh()).abs() < 1e-12);
        assert!((score(0.0, 0.1, 0.1) + 1.5_f64.tanh()).abs() < 1e-12);
        assert!((excess(-LOG_COST, 4.0) + 1.0).abs() < 1e-12);
        let mean = (0.5 * (3_f64.exp() + 1_f64.exp())).ln();
        assert!((log_mean(3.0, 1.0) - mean).abs() < 1e-12);
        assert!((log_mean(1.0, 3.0) - mean).abs() < 1e-12);
        assert_eq!(log_mean(1000.0, -1000.0), 1000.0 + 0.5_f64.ln());
    }

    #[test]
    fn who_waits_for_a_plan_keeps_his_half_until_then() {
        let mut wealth = Wealth::new(Gamblers::new(Some(PairPlan::AfterPilot(40.0))));
        (0..MIN_PAIRS).for_each(|_| wealth.bet(-1.0));
        assert!(wealth.log() > 0.5_f64.ln());
        let before = wealth.log();
        wealth.bet(-1.0);
        // √(2 ln 80 / (0.56 · 40)) of a half.
        assert!((wealth.log() - before).exp() < 0.5);
    }

    #[test]
    fn a_hundred_thousand_wins_or_losses_stay_finite() {
        for score in [1.0, -1.0] {
            let mut wealth = Wealth::new(Gamblers::new(Some(PairPlan::AtFirst(1000.0))));
            for _ in 0..100_000 {
                wealth.bet(score);
            }
            assert!(wealth.log().is_finite());
        }
    }
}
