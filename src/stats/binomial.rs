//! Whether a number of false alarms is more than the promised rate explains.

use serde::Serialize;

/// P(X ≥ `count`) for `trials` independent trials that each succeed with chance `rate` in (0, 1).
///
/// Summed term by term; the absolute error is below 1e-12 up to a million trials.
pub fn at_least(count: usize, trials: usize, rate: f64) -> f64 {
    if count == 0 {
        return 1.0;
    }
    // In logarithms, as (1 − rate)ⁿ is zero for a computer long before n is unusual.
    let odds = (rate / (1.0 - rate)).ln();
    let mut log_chance = trials as f64 * (-rate).ln_1p();
    let mut below = 0.0;
    for k in 0..count.min(trials + 1) {
        below += log_chance.exp();
        log_chance += odds + ((trials - k) as f64 / (k + 1) as f64).ln();
    }
    (1.0 - below).max(0.0)
}

/// The largest count that is no evidence, at error rate `alpha`, of a rate above `rate`.
pub fn allowed(trials: usize, rate: f64, alpha: f64) -> usize {
    // A tie is evidence, and rounding decides none.
    let limit = alpha * (1.0 + 1e-9);
    (0..trials).take_while(|count| at_least(count + 1, trials, rate) > limit).count()
}

/// False alarms, and what the promise says to their number.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Tally {
    pub alarms: usize,
    pub of: usize,
    /// The most that are no evidence, at 5 %, against the promised rate.
    pub allowed: usize,
    /// P(X ≥ alarms) for a binomial X of the promised rate.
    pub chance: f64,
}

impl Tally {
    /// So many `alarms`, `of` as many cases, each of which raises one with a chance of `alpha`.
    pub fn new(alarms: usize, of: usize, alpha: f64) -> Tally {
        let allowed = allowed(of, alpha, 0.05);
        Tally { alarms, of, allowed, chance: at_least(alarms, of, alpha) }
    }

    /// Whether the promise may well be kept.
    pub fn is_within(&self) -> bool {
        self.alarms <= self.allowed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agrees_with_counting_by_hand() {
        assert_eq!(at_least(0, 10, 0.05), 1.0);
        assert!((at_least(1, 2, 0.5) - 0.75).abs() < 1e-12);
        assert!((at_least(2, 2, 0.5) - 0.25).abs() < 1e-12);
        assert_eq!(at_least(3, 2, 0.5), 0.0);
        // R: pbinom(2, 20, 0.05, lower.tail = FALSE) and pbinom(3, …).
        assert!((at_least(3, 20, 0.05) - 0.075_483_665).abs() < 1e-8);
        assert!((at_least(4, 20, 0.05) - 0.015_901_526).abs() < 1e-8);
    }

    #[test]
    fn three_of_twenty_are_allowed_at_five_percent() {
        assert_eq!(allowed(20, 0.05, 0.05), 3);
        assert_eq!(allowed(0, 0.05, 0.05), 0);
        assert_eq!(allowed(1, 0.05, 0.05), 0);
    }

    #[test]
    fn a_hundred_thousand_trials_do_not_underflow() {
        let half = at_least(5000, 100_000, 0.05);
        assert!((0.45..0.55).contains(&half), "{half}");
    }
}
