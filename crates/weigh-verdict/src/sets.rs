//! The sets of an experiment: each judged by itself, and the whole only as far as they agree.

use super::log_ratio::{bound, percent};
use super::pairs::Measurements;
use paired::design::Design;
use paired::judge::{Judgement, MIN_PAIRS, judge_rows};
use paired::student::one_more;
use paired::{Interval, Verdict};
use weigh_model::format;
use weigh_model::ids::SetId;
use weigh_model::result::summary::SetEffect;
use weigh_model::workload::metric::Metric;

/// Number of sets needed to predict a further one.
const FEWEST_SETS: usize = 3;
/// The chance that it is elsewhere.
const ALPHA: f64 = 0.05;

/// A set by itself.
pub struct Set {
    pub judgement: Judgement,
    pairs: usize,
}

impl Set {
    pub fn effect(&self) -> SetEffect {
        SetEffect {
            effect_pct: percent(self.judgement.estimate),
            low_pct: bound(self.judgement.interval.low),
            high_pct: bound(self.judgement.interval.high),
            pairs: self.pairs,
        }
    }
}

/// The sets of a row, in order; none where there is one.
pub fn of_row(measurements: &Measurements, design: &Design) -> Vec<Set> {
    of_metric(measurements, &Metric::Rate, design)
}

/// Returns the sets of these measurements, judged by another metric.
pub fn of_metric(measurements: &Measurements, metric: &Metric, design: &Design) -> Vec<Set> {
    let series = &measurements.series;
    let count = series.iter().map(|pair| pair.set.0 + 1).max().unwrap_or(0);
    if count < 2 {
        return Vec::new();
    }
    let set = |set| {
        let of_set = series.iter().filter(|pair| pair.set == set);
        let betting = measurements.betting_of_some(of_set, metric);
        Set { judgement: judge_rows([&betting], design).remove(0), pairs: betting.pairs() }
    };
    (0..count).map(SetId).map(set).collect()
}

/// Returns true if some two sets cannot both be right: their intervals have no value in common.
pub fn differ(sets: &[Set]) -> bool {
    let intervals = || sets.iter().map(|set| set.judgement.interval);
    let highest_low = intervals().map(|interval| interval.low).fold(f64::NEG_INFINITY, f64::max);
    let lowest_high = intervals().map(|interval| interval.high).fold(f64::INFINITY, f64::min);
    highest_low > lowest_high
}

/// Takes back what the pairs of all sets together say and the sets do not all say. Sentences for the row.
///
/// Where sets differ, the interval is that from the lowest end of theirs to the highest, and the verdict is
/// the one that each of them has by itself. That only removes claims, so no promise is touched.
pub fn reconcile(whole: &mut Judgement, sets: &[Set]) -> Vec<String> {
    let mut notes = Vec::new();
    if differ(sets) {
        let judgements = || sets.iter().map(|set| &set.judgement);
        let low = judgements().map(|one| one.interval.low).fold(f64::INFINITY, f64::min);
        let high = judgements().map(|one| one.interval.high).fold(f64::NEG_INFINITY, f64::max);
        whole.interval = Interval { low, high };
        whole.precise = false;
        whole.equivalent = judgements().all(|one| one.equivalent);
        whole.within_margin &= whole.equivalent;
        if !judgements().all(|one| one.verdict == whole.verdict) {
            whole.verdict = Verdict::Inconclusive;
            whole.withheld = None;
            whole.within_margin = false;
        }
        notes.push(
            "the sets differ by more than their intervals allow, so the effect depends on the set. The \
             verdict is one on which all sets agree. The interval spans the intervals of all sets; it does \
             not predict a further set"
                .to_owned(),
        );
    }
    notes.extend(next(sets));
    notes
}

/// Where a further set would be, from the estimates of three or more: they, and not the pairs, are what
/// was drawn anew. Student's interval for one more value of a normal distribution.
fn next(sets: &[Set]) -> Option<String> {
    let with_pairs = sets.iter().filter(|set| set.pairs >= MIN_PAIRS);
    let estimates: Vec<f64> = with_pairs.map(|set| set.judgement.estimate).collect();
    if estimates.len() < FEWEST_SETS {
        return None;
    }
    let Interval { low, high } = one_more(&estimates, ALPHA)?;
    let range = format::interval(bound(low), bound(high));
    let count = estimates.len();
    Some(format!(
        "judging by {count} sets, the effect of a further set would lie within {range}, with 95 % confidence"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::late::Late;
    use crate::outside::OutsideUse;
    use crate::schedule::Schedule;
    use paired::simulated::{Machine, Noise, white_pairs};
    use weigh_model::ids::{ArmId, PairId, WorkId};
    use weigh_model::result::scheme::Scheme;
    use weigh_model::result::summary::Pair;
    use weigh_model::samples::Totals;

    /// Sets of forty pairs with these effects.
    fn sets(effects: &[f64]) -> (Judgement, Vec<Set>) {
        let totals = Totals::default();
        let row = measurements(&totals, effects);
        let design = Design::default();
        let whole = judge_rows([&row.betting()], &design).remove(0);
        (whole, of_row(&row, &design))
    }

    fn measurements<'t>(totals: &'t Totals, effects: &[f64]) -> Measurements<'t> {
        let mut series = Vec::new();
        for (set, effect) in effects.iter().enumerate() {
            let noise = white_pairs(*effect, 40, set as u64 + 1).into_iter().enumerate();
            series.extend(noise.map(|(number, d)| Pair {
                rates_over_all: [1.0, 1.0],
                cpu_ns_per_op: None,
                further: Vec::new(),
                started_s: 0.0,
                lasted_s: 0.2,
                baseline_rate: 1.0,
                treated_rate: d.exp(),
                baseline_first: true,
                after_treated: false,
                set: SetId(set),
                number: PairId(number),
                is_disturbed: false,
            }));
        }
        Measurements {
            work: WorkId(0),
            arm: ArmId(1),
            totals,
            series,
            outside: OutsideUse::default(),
            late: Late::default(),
            schedule: Schedule::Fixed(Scheme::Sequential),
            start: 0.01.into(),
        }
    }

    #[test]
    fn where_sets_agree_all_pairs_count_together() {
        let (mut whole, sets) = sets(&[-0.05, -0.05]);
        let before = whole.clone();
        assert_eq!(reconcile(&mut whole, &sets), Vec::<String>::new());
        assert_eq!(whole, before);
        assert_eq!((whole.verdict, sets.len()), (Verdict::Slower, 2));
    }

    #[test]
    fn a_verdict_that_not_every_set_has_is_taken_back_and_the_interval_spans_all() {
        let (mut whole, of_row) = sets(&[-0.10, 0.03]);
        let notes = reconcile(&mut whole, &of_row);
        assert!(notes[0].starts_with("the sets differ"), "{notes:?}");
        assert_eq!(whole.verdict, Verdict::Inconclusive);
        assert!(whole.interval.low < -0.10 && whole.interval.high > 0.03);
        // Both are slower, by how much they do not agree.
        let (mut whole, of_row) = sets(&[-0.20, -0.05]);
        reconcile(&mut whole, &of_row);
        assert_eq!(whole.verdict, Verdict::Slower);
        assert!(whole.interval.low < -0.20 && whole.interval.high > -0.05);
    }

    /// Where the rates of the sets agree, their CPU times need not.
    #[test]
    fn another_metric_is_held_by_its_own_sets() {
        let (_, of_rate) = sets(&[-0.05, -0.05]);
        assert!(!differ(&of_rate));
        let totals = Totals::default();
        let mut row = measurements(&totals, &[-0.05, -0.05]);
        for pair in &mut row.series {
            let effect: f64 = if pair.set == SetId(0) { -0.10 } else { 0.03 };
            pair.cpu_ns_per_op =
                Some([1.0, (-effect).exp() / pair.treated_rate * (-0.05f64).exp()]);
        }
        let design = Design::default();
        let betting = row.betting_of(&Metric::CpuTime);
        let mut whole = judge_rows([&betting], &design).remove(0);
        let of_cpu_time = of_metric(&row, &Metric::CpuTime, &design);
        assert!(differ(&of_cpu_time));
        reconcile(&mut whole, &of_cpu_time);
        assert_eq!((whole.verdict, whole.precise), (Verdict::Inconclusive, false));
    }

    #[test]
    fn three_sets_tell_where_a_fourth_would_be() {
        let (mut whole, of_row) = sets(&[-0.06, -0.05, -0.04]);
        let notes = reconcile(&mut whole, &of_row);
        assert!(notes.last().unwrap().contains("judging by 3 sets"), "{notes:?}");
    }

    /// Sets whose effects are drawn with a deviation of 2 %: the range for one more holds it as often as it
    /// says.
    #[test]
    fn the_range_of_a_further_set_covers_it() {
        let mut chance = Machine::new(Noise::White, 8);
        let mut set = || {
            let (mut judgement, of_row) = sets(&[-0.05, -0.05]);
            judgement.estimate = -0.05 + 2.0 * chance.sample();
            (judgement, of_row)
        };
        let covered = (0..200).filter(|_| {
            let drawn: Vec<Set> = (0..4).map(|_| Set { judgement: set().0, pairs: 40 }).collect();
            let further = percent(set().0.estimate);
            let said = next(&drawn).unwrap();
            let range = said.split(['[', ']']).nth(1).unwrap().replace('−', "-").replace('+', "");
            let ends: Vec<f64> = range.split(", ").map(|end| end.parse().unwrap()).collect();
            (ends[0]..=ends[1]).contains(&further)
        });
        // 95 %, and three standard deviations of 200 repetitions.
        assert!(covered.count() >= 180);
    }
}
