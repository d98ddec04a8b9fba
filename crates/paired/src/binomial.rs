//! Test of whether false alarms are more frequent than promised, and the share that a count shows.

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

/// The interval of Clopper and Pearson (Biometrika 26, 1934) for the chance of which `count` of `trials` are
/// the result: it leaves the true one out with a probability of at most `alpha`.
///
/// Bisected to the last digits of a double.
pub fn exact_interval(count: usize, trials: usize, alpha: f64) -> (f64, f64) {
    // Both probabilities of `count` or more grow with the rate.
    let rate_where = |count: usize, wanted: f64| {
        let (mut low, mut high) = (0.0, 1.0);
        for _ in 0..60 {
            let middle = (low + high) / 2.0;
            if at_least(count, trials, middle) < wanted { low = middle } else { high = middle }
        }
        (low + high) / 2.0
    };
    let low = if count == 0 { 0.0 } else { rate_where(count, alpha / 2.0) };
    let high = if count >= trials { 1.0 } else { rate_where(count + 1, 1.0 - alpha / 2.0) };
    (low, high)
}

/// How many of so many, and what that shows of the chance.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Share {
    /// How many of them hold.
    pub count: usize,
    /// How many there are.
    pub of: usize,
    /// The low end of the exact interval of the chance, in per cent.
    pub low_pct: f64,
    /// Its high end.
    pub high_pct: f64,
}

impl Share {
    /// How many of `cases` hold, with the interval of error rate `alpha`.
    pub fn new(cases: impl IntoIterator<Item = bool>, alpha: f64) -> Share {
        let cases: Vec<bool> = cases.into_iter().collect();
        let (count, of) = (cases.iter().filter(|holds| **holds).count(), cases.len());
        let (low, high) = exact_interval(count, of, alpha);
        Share { count, of, low_pct: 100.0 * low, high_pct: 100.0 * high }
    }
}

/// False alarms, and what the promise says to their number.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FalseAlarms {
    /// How many cases raised one.
    pub alarms: usize,
    /// How many cases there were.
    pub of: usize,
    /// The most that are no evidence, at 5 %, against the promised rate.
    pub allowed: usize,
    /// P(X ≥ alarms) for a binomial X of the promised rate.
    pub chance: f64,
}

impl FalseAlarms {
    /// So many `alarms`, `of` as many cases, each of which raises one with a chance of `alpha`.
    pub fn new(alarms: usize, of: usize, alpha: f64) -> FalseAlarms {
        let allowed = allowed(of, alpha, 0.05);
        FalseAlarms { alarms, of, allowed, chance: at_least(alarms, of, alpha) }
    }

    /// Returns true if the alarms are compatible with the promise.
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

    /// R: binom.test(19, 20)$conf.int and so on; of none, nothing is known.
    #[test]
    fn exact_intervals_are_those_of_r() {
        let known = [
            (19, 20, 0.751_267_2, 0.998_734_9),
            (20, 20, 0.831_566_5, 1.0),
            (0, 10, 0.0, 0.308_497_1),
            (5, 10, 0.187_086_0, 0.812_914_0),
            (0, 0, 0.0, 1.0),
        ];
        for (count, trials, low, high) in known {
            let found = exact_interval(count, trials, 0.05);
            assert!((found.0 - low).abs() < 1e-6 && (found.1 - high).abs() < 1e-6, "{found:?}");
        }
        let share = Share::new([true, false, true, true], 0.05);
        assert_eq!((share.count, share.of), (3, 4));
        assert!((share.low_pct - 19.412_04).abs() < 1e-4, "{share:?}");
        assert!((share.high_pct - 99.369_05).abs() < 1e-4, "{share:?}");
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

    #[test]
    fn alarms_are_within_the_promise_up_to_what_is_allowed() {
        let of = |alarms| FalseAlarms::new(alarms, 20, 0.05);
        let three = FalseAlarms { alarms: 3, of: 20, allowed: 3, chance: at_least(3, 20, 0.05) };
        assert_eq!(of(3), three);
        assert_eq!([2, 3, 4].map(|alarms| of(alarms).is_within()), [true, true, false]);
    }
}
