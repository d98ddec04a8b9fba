//! The time left as a person can read it: estimates of it jump with every verdict, so what is shown follows
//! them slowly. It begins with the budget, which is a promise, falls quickly and rises slowly.

use std::time::Duration;

/// In so many seconds, two thirds of the way to a lower estimate are made.
const FALL_S: f64 = 4.0;
/// How far the end may move away, beyond the time that passes: a share of the budget a second.
const RISE_PER_S: f64 = 0.01;

/// When measuring will probably end.
#[derive(Debug)]
pub struct Countdown {
    budget_s: f64,
    end_s: f64,
    seen_s: f64,
}

impl Countdown {
    pub fn new(budget: Duration) -> Countdown {
        let budget_s = budget.as_secs_f64();
        Countdown { budget_s, end_s: budget_s, seen_s: 0.0 }
    }

    /// Takes an estimate, and gives the time left that is to be shown.
    pub fn left(&mut self, elapsed: Duration, estimate: Duration) -> Duration {
        let now_s = elapsed.as_secs_f64();
        let passed_s = (now_s - self.seen_s).max(0.0);
        self.seen_s = now_s;
        let wanted_s = (now_s + estimate.as_secs_f64()).min(self.budget_s);
        let change_s = wanted_s - self.end_s;
        self.end_s += if change_s < 0.0 {
            change_s * -(-passed_s / FALL_S).exp_m1()
        } else {
            change_s.min(passed_s * (1.0 + RISE_PER_S * self.budget_s))
        };
        let left_s = (self.end_s - now_s).max(0.0);
        let step_s = match left_s {
            s if s < 20.0 => 1.0,
            s if s < 60.0 => 5.0,
            _ => 10.0,
        };
        Duration::from_secs_f64((left_s / step_s).ceil() * step_s)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the time left that is shown in each tenth of a second, if `estimate_s` estimates it.
    fn shown(budget_s: u64, estimate_s: impl Fn(f64) -> f64) -> Vec<f64> {
        let mut countdown = Countdown::new(Duration::from_secs(budget_s));
        let at = |i: u64| i as f64 / 10.0;
        let times = (1..10 * budget_s).map(at);
        let left = |t: f64| Duration::from_secs_f64(estimate_s(t));
        times.map(|t| countdown.left(Duration::from_secs_f64(t), left(t)).as_secs_f64()).collect()
    }

    #[test]
    fn a_jump_of_the_estimate_is_none_on_the_screen() {
        // 14 s left, and a round later 83 s.
        let shown = shown(120, |t| if t < 20.0 { 14.0 } else { 83.0 });
        let largest = shown.windows(2).map(|pair| pair[1] - pair[0]).fold(0.0, f64::max);
        assert!(largest <= 10.0, "a step of {largest} s: {shown:?}");
        assert!(shown[199] <= 16.0, "it follows what is less: {}", shown[199]);
        assert!((190..230).all(|i| shown[i] < 25.0), "{:?}", &shown[190..230]);
        assert!(shown[800] > 35.0, "and what is more: {}", shown[800]);
    }

    #[test]
    fn it_is_never_more_than_what_the_budget_leaves() {
        for (i, left) in shown(60, |t| 1000.0 * (t % 3.0)).into_iter().enumerate() {
            assert!(left <= 60.0 - (i + 1) as f64 / 10.0 + 5.0, "{i}: {left}");
        }
    }
}
