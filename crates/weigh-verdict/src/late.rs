//! Checks that a row's effect is the same in processes that have lived for a second.
//!
//! A sample lasts 10 to 250 ms. Later events are in no sample: a thread that is started on a timer,
//! a cache that overflows, a log that is flushed each second. So before a row is *equivalent* or
//! *faster*, it needs a pair of processes that have worked for a second. Such a pair can only
//! refute these verdicts.

use std::time::Duration;

use super::interleaved::withhold;
use paired::Verdict;
use paired::doubt::Doubt;
use paired::estimate::{deviation, median};
use paired::judge::Judgement;

/// Least age of both processes of such a pair when they are timed.
pub const AGE: Duration = Duration::from_millis(1100);
/// If the first old pair differs from the young ones, the median of so many old pairs decides.
const MOST_PAIRS: usize = 3;
/// An old pair may be so many standard deviations of the young ones away, and the margin.
const DEVIATIONS: f64 = 3.0;

/// The old pairs of a row.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Late {
    /// True if the row takes old pairs.
    pub is_wanted: bool,
    pub log_ratios: Vec<f64>,
    /// How far they may be from the effect.
    pub(super) tolerance: f64,
}

impl Late {
    /// Continues a row that has these old pairs.
    pub fn after(log_ratios: Vec<f64>) -> Late {
        Late { log_ratios, ..Late::default() }
    }

    /// Extra time of the first old pair, compared with a young one; 0 if the row needs no old pair or has
    /// one.
    pub fn time_left_s(&self) -> f64 {
        let lacks_one = self.is_wanted && self.log_ratios.is_empty();
        if lacks_one { 2.0 * AGE.as_secs_f64() } else { 0.0 }
    }

    /// With what its young pairs, and the margin, allow.
    pub fn beside(&mut self, young: &[f64], margin: f64) {
        self.tolerance = margin + DEVIATIONS * deviation(young);
    }

    /// Returns the doubt about calling the row equivalent or faster, if the young pairs have this
    /// effect.
    pub fn doubt(&self, effect: f64) -> Option<Doubt> {
        let is_like = |d: f64| (d - effect).abs() <= self.tolerance;
        match &self.log_ratios[..] {
            _ if !self.is_wanted => None,
            [] => Some(Doubt::NotYetAged),
            // With several sets there is one of each.
            old if old.iter().all(|d| is_like(*d)) => None,
            old if old.len() < MOST_PAIRS => Some(Doubt::NotYetAged),
            old => median(old).filter(|d| !is_like(*d)).map(|_| Doubt::LateCost),
        }
    }
}

/// Withdraws verdicts that hold only for young processes. *Slower* stays; that it is within the margin does
/// not.
pub fn guard(rate: &mut Judgement, late: &Late) {
    let is_favourable = matches!(rate.verdict, Verdict::Equivalent | Verdict::Faster);
    let Some(doubt) = late.doubt(rate.estimate).filter(|_| is_favourable || rate.within_margin)
    else {
        return;
    };
    (rate.within_margin, rate.equivalent) = (false, false);
    if is_favourable {
        withhold(rate, doubt, (doubt == Doubt::NotYetAged).then_some(1));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use paired::betting::Betting;
    use paired::design::Design;
    use paired::judge::judge_rows;
    use paired::simulated::white_pairs;

    fn doubt(old: &[f64]) -> Option<Doubt> {
        let mut late = Late { is_wanted: true, log_ratios: old.to_vec(), tolerance: 0.0 };
        late.beside(&[0.001, -0.001, 0.002, -0.002, 0.0], 0.01);
        late.doubt(0.0)
    }

    #[test]
    fn one_old_pair_is_enough_where_it_is_like_the_young_ones() {
        assert_eq!(doubt(&[]), Some(Doubt::NotYetAged));
        assert_eq!(doubt(&[0.01]), None);
    }

    #[test]
    fn two_of_three_decide_where_it_is_not() {
        assert_eq!(doubt(&[-0.1]), Some(Doubt::NotYetAged));
        assert_eq!(doubt(&[-0.1, 0.0]), Some(Doubt::NotYetAged));
        assert_eq!(doubt(&[-0.1, 0.0, 0.0]), None);
        assert_eq!(doubt(&[-0.1, 0.0, -0.1]), Some(Doubt::LateCost));
    }

    #[test]
    fn rows_that_take_none_are_as_they_are() {
        assert_eq!(Late::default().doubt(0.0), None);
    }

    #[test]
    fn favourable_verdicts_wait_for_old_pairs() {
        let judged = |effect: f64| {
            let values: Vec<f64> =
                white_pairs(0.0, 40, 7).iter().map(|d| effect + 0.1 * d).collect();
            let row = Betting::from_log_ratios(&values, 0.002).unwrap();
            judge_rows([&row], &Design::default()).remove(0)
        };
        let mut late = Late { is_wanted: true, ..Late::default() };
        for effect in [0.0, 0.005, 0.05] {
            let mut favourable = judged(effect);
            guard(&mut favourable, &late);
            let because = favourable.withheld.map(|withheld| withheld.because);
            assert_eq!((because, favourable.pairs_needed), (Some(Doubt::NotYetAged), Some(1)));
        }
        for effect in [-0.05, -0.004] {
            let mut slower = judged(effect);
            guard(&mut slower, &late);
            assert_eq!((slower.verdict, slower.within_margin), (Verdict::Slower, false));
        }
        late.log_ratios = vec![-0.2; 3];
        let mut equal = judged(0.0);
        guard(&mut equal, &late);
        assert_eq!(equal.withheld.map(|withheld| withheld.because), Some(Doubt::LateCost));
    }

    #[test]
    fn one_old_pair_of_each_set_is_enough() {
        assert_eq!(doubt(&[0.0, 0.001]), None);
    }
}
