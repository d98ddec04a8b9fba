//! The anytime-valid interval of a paired comparison, by betting on bounded scores.
//!
//! For a candidate effect θ, one coin is bet on d_i − θ being positive, another on its being
//! negative:
//!
//! ```text
//! M±_n(θ) = Σ_j w_j Π_{i≤n} (1 ± b_j ψ((d_i − θ)/s_i)),   ψ(z) = tanh(1.5 z)
//! CS_n    = {θ : M⁺_n(θ) < 2/α and M⁻_n(θ) < 2/α}
//! ```
//!
//! The order of every pair was decided by a fair coin. So if θ is the effect, d_i − θ is symmetric
//! about zero given the past, whatever drift or tails the noise has; ψ is odd and bounded and s_i
//! knows the past only; every factor has mean 1; and by Ville's inequality the chance that the
//! interval *ever* leaves the effect out is at most α. One may look after each pair and stop when
//! one likes. Sources: Ramdas et al. 2210.01948; Waudby-Smith, Ramdas 2010.09686; Howard et al.
//! 1810.08240.

use thiserror::Error;

use super::Interval;
use super::crossing::last_outside;
use super::estimate::{
    MAD_TO_SD, hodges_lehmann_of_sorted, mad_of_sorted, median_of_sorted, sorted,
};
use super::location::m_estimate;
use super::spread::earlier_mads;
use super::turn::Turn;
pub use super::wealth::PairPlan;
use super::wealth::{Gamblers, Wealth, excess, log_mean, score};

/// The scale of log-ratios that a machine without a history is assumed to have: 1 %.
pub const DEFAULT_SCALE: f64 = 0.01;

/// The least scale of log-ratios, one part in a million.
///
/// When half of the past values are equal (a counter of instructions), their deviation is zero and
/// nothing can be divided by it. A clock or a counter tells no smaller difference from rounding,
/// and any scale that knows only the past keeps the interval valid: the floor only limits how
/// narrow it gets.
pub const SCALE_FLOOR: f64 = 1e-6;

/// A log-ratio that is infinite or not a number: one of its rates was zero or not measured.
#[derive(Clone, Copy, Debug, PartialEq, Error)]
#[error("a log-ratio must be a finite number, not {0}")]
pub struct NotFinite(pub f64);

/// Settings that are fixed before the first pair, so that they cannot depend on later data.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Start {
    /// s₀: the spread of log-ratios expected, as a standard deviation: from this machine's history, else
    /// [`DEFAULT_SCALE`]. Wrong by a factor ten it costs a few pairs, never validity; it is raised to
    /// [`SCALE_FLOOR`].
    pub scale: f64,
    /// n*: how many pairs there will probably be. Half of the capital is staked as suits that number best.
    pub plan: Option<PairPlan>,
    /// Capital that is staked on these pairs, of 1 in all. A gambler may stake some on the pairs of
    /// one kind and keep the rest for pairs of another kind. The choice between the kinds may then
    /// depend on the data of both.
    pub capital: f64,
    /// True if the two processes of a pair alternate on one CPU.
    pub interleaved: bool,
}

impl From<f64> for Start {
    /// Creates a start from a scale alone.
    fn from(scale: f64) -> Start {
        Start { scale, plan: None, capital: 1.0, interleaved: false }
    }
}

/// The log-ratios of one row so far, in the order measured, and the evidence that they hold.
///
/// A push moves at most n numbers; an interval takes about 14 passes over the values.
#[derive(Clone, Debug)]
pub struct Betting {
    start: Start,
    start_scale: f64,
    gamblers: Gamblers,
    values: Vec<f64>,
    /// How each pair was measured; empty where that is not known.
    turns: Vec<Turn>,
    /// s_i, fixed before d_i was seen.
    scales: Vec<f64>,
    sorted: Vec<f64>,
    above_zero: Wealth,
    below_zero: Wealth,
    /// sup_n ln ½(M⁺_n + M⁻_n)(0); at least 0, its value before the first pair.
    best_log_at_zero: f64,
}

impl Betting {
    /// Before the first pair.
    pub fn new(start: impl Into<Start>) -> Betting {
        let start = start.into();
        let Start { scale, plan, capital, .. } = start;
        let gamblers = Gamblers::new(plan).with(capital);
        Betting {
            start,
            start_scale: scale.clamp(SCALE_FLOOR, 1.0 / SCALE_FLOOR),
            gamblers,
            values: Vec::new(),
            turns: Vec::new(),
            scales: Vec::new(),
            sorted: Vec::new(),
            above_zero: Wealth::new(gamblers),
            below_zero: Wealth::new(gamblers),
            best_log_at_zero: 0.0,
        }
    }

    /// All of `log_ratios`, in the order measured: recomputes what an experiment said. The same as
    /// pushing them one by one, in O(n log n) instead of O(n²).
    ///
    /// # Errors
    /// [`NotFinite`] for the first value that is infinite or not a number.
    pub fn from_log_ratios(
        log_ratios: &[f64],
        start: impl Into<Start>,
    ) -> Result<Betting, NotFinite> {
        if let Some(d) = log_ratios.iter().find(|d| !d.is_finite()) {
            return Err(NotFinite(*d));
        }
        let mut betting = Betting::new(start);
        let mut scales = vec![betting.start_scale; log_ratios.len()];
        earlier_mads(log_ratios, |past, mad| scales[past] = betting.scale_after(past, mad));
        for (d, scale) in log_ratios.iter().zip(scales) {
            betting.bet(*d, scale);
        }
        betting.sorted = sorted(log_ratios);
        Ok(betting)
    }

    /// This row with a [`PairPlan::AfterPilot`] of so many pairs, for one that had no plan when its pilot was
    /// over.
    pub fn plan_after_pilot(self, pairs: f64) -> Betting {
        let start = Start { plan: Some(PairPlan::AfterPilot(pairs)), ..self.start };
        let planned = Betting::from_log_ratios(&self.values, start);
        planned.expect("values of the row itself").with_turns(self.turns)
    }

    /// Adds the log-ratio of the next pair, ln(treated rate / baseline rate).
    ///
    /// # Errors
    /// [`NotFinite`], and nothing is changed, when `d` is infinite or not a number.
    pub fn push(&mut self, d: f64) -> Result<(), NotFinite> {
        if !d.is_finite() {
            return Err(NotFinite(d));
        }
        self.bet(d, self.next_scale());
        let place = self.sorted.partition_point(|x| *x < d);
        self.sorted.insert(place, d);
        Ok(())
    }

    /// [`Betting::push`] of a pair of which it is known how it was measured; of all of a row, or of none.
    ///
    /// # Errors
    /// The same.
    pub fn push_turn(&mut self, d: f64, turn: Turn) -> Result<(), NotFinite> {
        self.push(d)?;
        self.turns.push(turn);
        Ok(())
    }

    /// Returns the pairs with `turns`: how each pair was measured.
    pub fn with_turns(self, turns: Vec<Turn>) -> Betting {
        Betting { turns, ..self }
    }

    /// True if the two processes of a pair alternated on one CPU.
    pub fn is_interleaved(&self) -> bool {
        self.start.interleaved
    }

    /// How each pair was measured, where that is known of all.
    pub fn turns(&self) -> Option<&[Turn]> {
        let is_known = !self.turns.is_empty() && self.turns.len() == self.values.len();
        is_known.then_some(&self.turns)
    }

    /// Plays one round at zero, and keeps the value and its scale.
    fn bet(&mut self, d: f64, scale: f64) {
        let score = score(d, 0.0, scale);
        self.above_zero.bet(score);
        self.below_zero.bet(-score);
        self.best_log_at_zero = self.best_log_at_zero.max(self.log_e_zero());
        self.values.push(d);
        self.scales.push(scale);
    }

    /// The log-ratios in the order measured.
    pub fn values(&self) -> &[f64] {
        &self.values
    }

    /// How many pairs there are.
    pub fn pairs(&self) -> usize {
        self.values.len()
    }

    /// The estimate of the effect, a log-ratio, that is inside every interval: the root of
    /// Σψ((d_i − θ)/s_i) = 0. `None` before the first pair.
    pub fn estimate(&self) -> Option<f64> {
        m_estimate(&self.values, &self.scales, median_of_sorted(&self.sorted)?)
    }

    /// The Hodges–Lehmann estimate, which belongs to Wilcoxon's interval; `None` before the first pair.
    pub fn pseudo_median(&self) -> Option<f64> {
        hodges_lehmann_of_sorted(&self.sorted)
    }

    /// CS_n, the interval now, for an error rate `alpha` in (0, 1) over all moments together.
    ///
    /// Not intersected with those of earlier moments, though that would be valid too: an
    /// intersection can be empty or leave out the estimate when the effect changes, and hides just
    /// that. The ends are rounded outwards by less than a ten-thousandth of the half-width.
    pub fn interval(&self, alpha: f64) -> Interval {
        Interval { low: self.low_end(alpha), high: self.end(-1.0, alpha) }
    }

    /// The low end of [`Betting::interval`] alone, in half the time.
    pub fn low_end(&self, alpha: f64) -> f64 {
        self.end(1.0, alpha)
    }

    /// ln M⁺_n(θ): the evidence that the effect is above `theta`; falls as `theta` grows.
    ///
    /// At least ln(1/α) refutes "at most θ" with error rate α at any moment.
    pub fn log_e_value_upper(&self, theta: f64) -> f64 {
        self.log_wealth(theta, 1.0)
    }

    /// ln M⁻_n(θ): the evidence that the effect is below `theta`; rises with `theta`.
    pub fn log_e_value_lower(&self, theta: f64) -> f64 {
        self.log_wealth(theta, -1.0)
    }

    /// ln M±(θ), by `sign`, of those pairs alone in which neither sample came after a treated one: the
    /// evidence that holds whatever treated samples leave behind for the next. They are a quarter, and of
    /// one order; so this is asked for besides the other evidence, never instead of it.
    pub fn clean_log_e(&self, theta: f64, sign: f64) -> f64 {
        self.clean_wealth(theta, sign).log()
    }

    /// The lesser of the logarithms of the evidence that these pairs alone have against an effect of
    /// −`margin` or lower, and against one of `margin` or higher.
    pub fn clean_log_e_within(&self, margin: f64) -> f64 {
        self.clean_log_e(-margin, 1.0).min(self.clean_log_e(margin, -1.0))
    }

    /// Capital of a gambler who bets `sign` on d_i − `theta`, of the clean pairs alone.
    pub(crate) fn clean_wealth(&self, theta: f64, sign: f64) -> Wealth {
        let mut wealth = Wealth::new(self.gamblers.for_a_quarter());
        for ((d, scale), turn) in self.values.iter().zip(&self.scales).zip(&self.turns) {
            if turn.is_clean() {
                wealth.bet(sign * score(*d, theta, *scale));
            }
        }
        wealth
    }

    /// ln ½(M⁺_n + M⁻_n)(0): the e-value against "no effect", now.
    pub fn log_e_zero(&self) -> f64 {
        log_mean(self.above_zero.log(), self.below_zero.log())
    }

    /// The anytime-valid p-value of "no effect", in [0, 1]: 1 / sup_n ½(M⁺_n + M⁻_n)(0).
    ///
    /// It never rises: evidence that was there once stays valid (Ville's inequality bounds the
    /// supremum).
    pub fn p_zero(&self) -> f64 {
        (-self.best_log_at_zero).exp()
    }

    /// Returns true if the interval excludes 0 now.
    pub(crate) fn leaves_zero_out(&self, alpha: f64) -> bool {
        self.above_zero.log().max(self.below_zero.log()) >= (2.0 / alpha).ln()
    }

    /// s_i of the next pair. One value has no spread, so the first two pairs take s_0.
    pub(crate) fn next_scale(&self) -> f64 {
        match mad_of_sorted(&self.sorted) {
            Some(mad) if self.sorted.len() >= 2 => self.scale_after(self.sorted.len(), mad),
            _ => self.start_scale,
        }
    }

    /// s_i from the MAD of the `past` = i − 1 pairs before it: ln s_i = w ln(1.4826 MAD) + (1 − w)
    /// ln s_0 with w = i/(i + 3).
    fn scale_after(&self, past: usize, mad: f64) -> f64 {
        let i = (past + 1) as f64;
        let weight = i / (i + 3.0);
        let spread = (MAD_TO_SD * mad).max(SCALE_FLOOR);
        (weight * spread.ln() + (1.0 - weight) * self.start_scale.ln()).exp()
    }

    /// ln of the wealth of the gambler who bets `sign` on d_i − `theta`.
    fn log_wealth(&self, theta: f64, sign: f64) -> f64 {
        self.wealth(theta, sign).log()
    }

    /// Capital of the gambler who bets `sign` on d_i − `theta`.
    pub(crate) fn wealth(&self, theta: f64, sign: f64) -> Wealth {
        let mut wealth = Wealth::new(self.gamblers);
        for (d, scale) in self.values.iter().zip(&self.scales) {
            wealth.bet(sign * score(*d, theta, *scale));
        }
        wealth
    }

    /// The low end of the interval (`sign` 1) or its high end (−1): where the wealth, which is
    /// monotone in θ, reaches 2/α.
    fn end(&self, sign: f64, alpha: f64) -> f64 {
        let needed = (2.0 / alpha).ln();
        let (Some(centre), Some(scale)) = (median_of_sorted(&self.sorted), self.scales.last())
        else {
            return -sign * f64::INFINITY;
        };
        let resolution = scale / (self.pairs() as f64).sqrt();
        let excess = |theta| excess(self.log_wealth(theta, sign), needed);
        last_outside(centre, resolution, -sign, excess)
    }
}

#[cfg(test)]
mod tests {
    use super::super::simulated::{Machine, Noise};
    use super::*;

    fn measured(noise: Noise, effect: f64, pairs: usize, seed: u64) -> Vec<f64> {
        let mut machine = Machine::new(noise, seed);
        (0..pairs).map(|_| machine.pair(effect)).collect()
    }

    fn betting(d: &[f64]) -> Betting {
        Betting::from_log_ratios(d, DEFAULT_SCALE).unwrap()
    }

    #[test]
    fn all_at_once_is_the_same_as_one_by_one() {
        for (n, noise) in
            [(0, Noise::White), (1, Noise::White), (3, Noise::White), (500, Noise::Drifting)]
        {
            let d = measured(noise, -0.01, n, 7);
            let mut pushed = Betting::new(DEFAULT_SCALE);
            d.iter().for_each(|d| pushed.push(*d).unwrap());
            let whole = betting(&d);
            assert_eq!((&whole.scales, &whole.sorted), (&pushed.scales, &pushed.sorted));
            assert_eq!(whole.p_zero(), pushed.p_zero());
            assert_eq!(whole.interval(0.05), pushed.interval(0.05));
        }
    }

    #[test]
    fn half_the_capital_is_half_the_evidence() {
        let d = measured(Noise::White, -0.01, 60, 4);
        let whole = betting(&d);
        let start = Start { capital: 0.5, ..Start::from(DEFAULT_SCALE) };
        let half = Betting::from_log_ratios(&d, start).unwrap();
        assert!((whole.log_e_zero() - half.log_e_zero() - 2f64.ln()).abs() < 1e-12);
        assert!(half.interval(0.05).low < whole.interval(0.05).low);
        assert_eq!(Betting::new(start).p_zero(), 1.0);
    }

    #[test]
    fn a_shift_of_the_data_shifts_the_interval() {
        let d = measured(Noise::HeavyTailed, 0.0, 60, 4);
        let moved: Vec<f64> = d.iter().map(|x| x + 0.5).collect();
        let (a, b) = (betting(&d).interval(0.05), betting(&moved).interval(0.05));
        assert!((a.low + 0.5 - b.low).abs() < 1e-6 && (a.high + 0.5 - b.high).abs() < 1e-6);
    }

    #[test]
    fn evidence_is_monotone_in_theta() {
        let row = betting(&measured(Noise::HeavyTailed, 0.0, 50, 5));
        let thetas: Vec<f64> = (-50..=50).map(|i| f64::from(i) * 1e-3).collect();
        for pair in thetas.windows(2) {
            assert!(row.log_e_value_upper(pair[0]) >= row.log_e_value_upper(pair[1]));
            assert!(row.log_e_value_lower(pair[0]) <= row.log_e_value_lower(pair[1]));
        }
    }

    #[test]
    fn the_ends_are_where_the_evidence_reaches_two_over_alpha() {
        for seed in 0..20 {
            let row = betting(&measured(Noise::White, 0.02, 8 + 7 * seed as usize, seed));
            let interval = row.interval(0.05);
            let threshold = (2.0_f64 / 0.05).ln();
            let inwards = 1e-4 * interval.half_width();
            assert!(row.log_e_value_upper(interval.low) >= threshold);
            assert!(row.log_e_value_upper(interval.low + inwards) < threshold);
            assert!(row.log_e_value_lower(interval.high) >= threshold);
            assert!(row.log_e_value_lower(interval.high - inwards) < threshold);
        }
    }

    #[test]
    fn the_interval_is_unbounded_below_eight_pairs() {
        let d = measured(Noise::White, 0.0, 8, 6);
        assert_eq!(betting(&[]).interval(0.05), Interval::UNBOUNDED);
        assert_eq!(betting(&d[..7]).interval(0.05), Interval::UNBOUNDED);
        assert!(betting(&d).interval(0.05).half_width().is_finite());
    }

    #[test]
    fn equal_values_do_not_divide_by_zero() {
        let row = betting(&[0.003; 100]);
        let interval = row.interval(0.05);
        assert!(interval.low <= 0.003 && 0.003 <= interval.high);
        assert!(interval.half_width() < 1e-5);
        assert!(row.p_zero() < 1e-9);
        assert_eq!([row.estimate(), row.pseudo_median()], [Some(0.003); 2]);
        let empty = betting(&[]);
        assert_eq!([empty.estimate(), empty.pseudo_median()], [None; 2]);
    }

    #[test]
    fn a_value_that_is_not_finite_is_refused_and_changes_nothing() {
        let mut row = betting(&[0.1, 0.2]);
        assert_eq!(row.push(f64::INFINITY), Err(NotFinite(f64::INFINITY)));
        assert!(row.push(f64::NAN).is_err());
        assert_eq!(row.values(), [0.1, 0.2]);
    }

    #[test]
    fn scales_are_those_of_the_formula() {
        let row = betting(&[0.03, -0.01, 0.02, 0.05]);
        let scale = |i: f64, mad: f64| {
            let weight = i / (i + 3.0);
            (1.4826 * mad).powf(weight) * DEFAULT_SCALE.powf(1.0 - weight)
        };
        // The MADs of the first two and of the first three.
        let expected = [DEFAULT_SCALE, DEFAULT_SCALE, scale(3.0, 0.02), scale(4.0, 0.01)];
        for (found, expected) in row.scales.iter().zip(expected) {
            assert!((found / expected - 1.0).abs() < 1e-12, "{found} {expected}");
        }
    }

    #[test]
    fn turns_are_known_of_all_pairs_or_of_none() {
        let turn = Turn { baseline_first: true, after_treated: false };
        let with = |turns: &[Turn]| betting(&[0.1, 0.2]).with_turns(turns.to_vec());
        assert_eq!(with(&[]).turns(), None);
        assert_eq!(with(&[turn]).turns(), None);
        assert_eq!(with(&[turn; 2]).turns(), Some(&[turn; 2][..]));
        let mut pushed = Betting::new(DEFAULT_SCALE);
        assert_eq!(pushed.turns(), None);
        pushed.push_turn(0.1, turn).unwrap();
        assert!(pushed.push_turn(f64::NAN, turn).is_err());
        assert_eq!(pushed.turns(), Some(&[turn][..]));
    }

    #[test]
    fn zero_is_left_out_exactly_where_the_interval_leaves_it_out() {
        for (effect, alpha) in [(-0.02, 0.05), (0.0, 0.5), (0.02, 0.01)] {
            let d = measured(Noise::White, effect, 40, 9);
            let mut found = [false; 2];
            for pairs in 8..=d.len() {
                let row = betting(&d[..pairs]);
                let interval = row.interval(alpha);
                let is_outside = interval.low > 0.0 || interval.high < 0.0;
                assert_eq!(row.leaves_zero_out(alpha), is_outside, "{effect} {pairs}");
                found[usize::from(is_outside)] = true;
            }
            assert!(found[usize::from(effect != 0.0)], "{effect}");
        }
    }

    #[test]
    fn clean_evidence_is_that_of_the_clean_pairs_alone() {
        let d = measured(Noise::White, 0.02, 40, 3);
        let turn = |i: usize| Turn {
            baseline_first: i.is_multiple_of(2),
            after_treated: i.is_multiple_of(4),
        };
        let row = betting(&d).with_turns((0..d.len()).map(turn).collect());
        let by_hand = |theta: f64, sign: f64| {
            let mut wealth = Wealth::new(row.gamblers.for_a_quarter());
            for i in (2..d.len()).step_by(4) {
                wealth.bet(sign * ((d[i] - theta) * 1.5 / row.scales[i]).tanh());
            }
            wealth.log()
        };
        for (theta, sign) in [(0.0, 1.0), (0.01, -1.0)] {
            assert!((row.clean_log_e(theta, sign) - by_hand(theta, sign)).abs() < 1e-9);
        }
        let within = by_hand(-0.03, 1.0).min(by_hand(0.03, -1.0));
        assert!((row.clean_log_e_within(0.03) - within).abs() < 1e-9);
    }

    #[test]
    fn a_plan_after_the_pilot_is_as_if_it_had_been_there_and_keeps_the_turns() {
        let d = measured(Noise::White, -0.02, 20, 3);
        let plan = Some(PairPlan::AfterPilot(60.0));
        let start = Start { plan, ..Start::from(DEFAULT_SCALE) };
        let planned = Betting::from_log_ratios(&d, start).unwrap();
        let turns = vec![Turn { baseline_first: true, after_treated: false }; d.len()];
        let later = betting(&d).with_turns(turns.clone()).plan_after_pilot(60.0);
        assert_eq!(later.log_e_zero(), planned.log_e_zero());
        assert_ne!(later.log_e_zero(), betting(&d).log_e_zero());
        assert_eq!(later.turns(), Some(&turns[..]));
    }
}
