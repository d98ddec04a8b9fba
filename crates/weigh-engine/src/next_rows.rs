//! Which rows are measured next, with so much of the budget left.

use std::time::Duration;

use super::row::RowState;
use paired::Verdict;
use paired::design::Design;
use paired::judge::MIN_PAIRS;

/// Pairs that each row gets before a verdict of another: fewer show no range.
const SHOWN: usize = 2;

/// The open rows that are worth a pair now, with so much of the budget left.
///
/// Where it lasts for all, those are all. Where it does not, each row gets the [`SHOWN`] pairs of a
/// preliminary estimate, and the rest goes to those that will be decided soonest: shared out evenly it
/// would leave every row a little short. When none is left that will probably be decided, all have their
/// turns, as such estimates are rough: those without a verdict take half of them, and a row occurs more
/// than once. Which row is measured next depends on the past only, so the promise stands.
pub fn worth_measuring(rows: &[RowState], design: &Design, left: Duration) -> Vec<usize> {
    let mut open: Vec<usize> = (0..rows.len())
        .filter(|&row| !rows[row].is_done(design) && rows[row].can_begin_pair(left))
        .collect();
    if design.fixed_pairs.is_some() {
        return open;
    }
    if open.iter().any(|row| rows[*row].comes_first()) {
        open.retain(|row| rows[*row].comes_first());
        return open;
    }
    let mut lacking = Duration::ZERO;
    open.retain(|row| {
        let lacks = rows[*row].lacks().unwrap_or_default();
        let fits = lacks.is_zero() || lacking + lacks <= left;
        lacking += if fits { lacks } else { Duration::ZERO };
        fits
    });
    // A verdict comes before precision, and before either a row needs pairs to be seen by.
    let is_shown = |row: usize| rows[row].betting.pairs() >= SHOWN;
    open.sort_by_key(|&row| {
        let state = &rows[row];
        let is_decided = state.judgement.verdict != Verdict::Inconclusive;
        let is_small = !seems_large(state, design);
        (is_shown(row), state.has_verdict(), is_decided, is_small, state.time_to_next_step())
    });
    let mut planned = Duration::ZERO;
    let last = open
        .iter()
        .take_while(|&&row| {
            if is_shown(row) {
                planned = planned.saturating_add(rows[row].time_to_next_step());
            }
            planned <= left
        })
        .count();
    if last > 0 {
        open.truncate(last);
    } else {
        let is_undecided = |&row: &usize| !rows[row].has_verdict();
        let undecided: Vec<usize> = open.iter().copied().filter(is_undecided).collect();
        let decided = open.len() - undecided.len();
        let more = (decided / undecided.len().max(1)).saturating_sub(1);
        open.extend(undecided.repeat(more));
    }
    open.sort_unstable();
    open
}

/// Returns true if a row will probably be decided by the least number of pairs: all that it has are
/// beyond the margin on one side. Later its estimated time says more.
fn seems_large(row: &RowState, design: &Design) -> bool {
    let values = row.betting.values();
    let (slower, faster) = (|d: &f64| *d < -design.margin, |d: &f64| *d > design.margin);
    values.len() >= MIN_PAIRS || values.iter().all(slower) || values.iter().all(faster)
}

/// The time that the open rows will probably take, or what is left of the budget.
pub fn time_left(rows: &[RowState], design: &Design, budget: Duration) -> Option<Duration> {
    let open = rows.iter().filter(|row| !row.is_done(design));
    let needed = open.map(|row| row.time_left(design));
    let needed = needed.fold(Duration::ZERO, Duration::saturating_add);
    Some(needed.min(budget))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::simulated::unit;
    use paired::doubt::{Doubt, Withheld};
    use paired::simulated::white_row;
    use weigh_model::result::scheme::{LEAST_INTERLEAVED, Scheme};
    use weigh_verdict::late::AGE;
    use weigh_verdict::schedule::Schedule;

    /// A row of pairs of 100 ms each that lacks so many for a verdict, and for that and precision.
    fn undecided(pairs_needed: usize, pairs_left: usize) -> RowState {
        let unit = unit(0, 1);
        let mut row = RowState::new(unit, &Design::default());
        row.betting = white_row(0.0, MIN_PAIRS, 1);
        (row.spent, row.measured) = (Duration::from_millis(100) * MIN_PAIRS as u32, MIN_PAIRS);
        row.judgement.pairs_needed = Some(pairs_needed);
        row.judgement.pairs_left = pairs_left;
        row
    }

    #[test]
    fn verdicts_in_reach_are_measured_first_whatever_their_precision_takes() {
        let rows = [undecided(1000, 1000), undecided(10, 5000), undecided(20, 5000)];
        let within =
            |seconds| worth_measuring(&rows, &Design::default(), Duration::from_secs_f64(seconds));
        assert_eq!(within(3.5), [1, 2]);
        assert_eq!(within(2.5), [1]);
        assert_eq!(within(0.5), [0, 1, 2], "none is in reach");
        assert_eq!(within(500.0), [0, 1, 2]);
    }

    /// A row with so many of the pairs that a verdict needs.
    fn begun(pairs: usize, design: &Design) -> RowState {
        let mut row = RowState::new(unit(0, 1), design);
        row.betting = white_row(0.0, pairs, 1);
        (row.spent, row.measured) = (Duration::from_millis(100) * pairs as u32, pairs);
        row.judgement.pairs_needed = Some(MIN_PAIRS.saturating_sub(pairs));
        row
    }

    #[test]
    fn a_budget_that_does_not_suffice_for_all_decides_some() {
        // Of ten rows, the first verdict takes 12 pairs (Holm): 1.0 s more after two.
        let design = Design { rows: 10, ..Design::default() };
        let within = |rows: &[RowState], seconds| {
            worth_measuring(rows, &design, Duration::from_secs_f64(seconds))
        };
        let shown = [2, 2, 2].map(|pairs| begun(pairs, &design));
        assert_eq!(within(&shown, 3.1), [0, 1, 2]);
        assert_eq!(within(&shown, 2.1), [0, 1]);
        assert_eq!(within(&shown, 1.1), [0]);
        assert_eq!(within(&shown, 0.9), [0, 1, 2], "none is in reach");
        // Of two that take as long, the one whose pairs are all slower than the margin.
        let mut large = begun(2, &design);
        large.betting = white_row(-0.2, 2, 1);
        assert_eq!(within(&[begun(2, &design), large], 1.1), [1]);
        // A row that is significant on its own needs the two pairs that ten rows ask for.
        let mut significant = begun(10, &design);
        significant.judgement.pairs_needed = Some(100);
        significant.judgement.interval.high = -0.1;
        assert_eq!(within(&[significant, begun(2, &design)], 0.3), [0]);
        // What was begun is ended, and each row is seen before that.
        assert_eq!(within(&[2, 5, 2].map(|pairs| begun(pairs, &design)), 1.1), [1]);
        assert_eq!(within(&[1, 5, 2].map(|pairs| begun(pairs, &design)), 0.8), [0, 1]);
    }

    #[test]
    fn a_row_that_pairs_alone_do_not_decide_takes_all_the_time_there_is() {
        let (design, budget) = (Design::default(), Duration::from_secs(90));
        let left = |row: RowState| time_left(&[row, undecided(10, 30)], &design, budget);
        let withheld = |because, pairs_needed| {
            let mut row = undecided(0, 20);
            row.judgement.withheld = Some(Withheld { verdict: Verdict::Faster, because });
            row.judgement.pairs_needed = pairs_needed;
            row
        };
        // Pairs of 100 ms; those of the second row are 30.
        assert_eq!(left(undecided(20, 20)), Some(Duration::from_secs(5)));
        assert_eq!(left(withheld(Doubt::CpuTime, Some(20))), Some(Duration::from_secs(5)));
        assert_eq!(left(withheld(Doubt::CarryOver, None)), Some(budget));
    }

    #[test]
    fn the_old_pair_and_the_least_number_of_interleaved_ones_are_in_the_time_left() {
        let (design, budget) = (Design::default(), Duration::from_secs(90));
        let left = |row: RowState| time_left(&[row], &design, budget).unwrap().as_secs_f64();
        let old_s = 2.0 * AGE.as_secs_f64();
        assert_eq!(left(undecided(10, 10).with_old_pairs(true)), 1.0 + old_s);
        let mut slower = undecided(10, 10).with_old_pairs(true);
        slower.judgement.estimate = -0.05;
        assert_eq!(left(slower), 1.0);
        let mut interleaved = undecided(10, 10);
        interleaved.schedule = Schedule::Fixed(Scheme::Interleaved);
        assert_eq!(left(interleaved), 0.1 * (LEAST_INTERLEAVED - MIN_PAIRS) as f64);
    }

    #[test]
    fn what_comes_first_does_so_until_it_has_its_verdict() {
        let chosen =
            |rows: &[RowState]| worth_measuring(rows, &Design::default(), Duration::from_secs(600));
        let mut decided = undecided(50, 5000).first();
        assert_eq!(chosen(&[undecided(10, 10), undecided(50, 5000).first()]), [1]);
        decided.judgement.verdict = Verdict::Slower;
        assert_eq!(chosen(&[undecided(10, 10), decided]), [0, 1]);
    }

    #[test]
    fn a_row_whose_pairs_are_known_is_begun_only_where_it_can_be_judged() {
        let unit = unit(0, 1);
        let new = |seconds| {
            let pair = Some(Duration::from_secs(seconds));
            RowState::new(unit, &Design::default()).expecting(pair)
        };
        let within = |rows: &[RowState], seconds| {
            worth_measuring(rows, &Design::default(), Duration::from_secs(seconds))
        };
        // Eight pairs each.
        assert_eq!(within(&[new(1), new(2)], 24), [0, 1]);
        assert_eq!(within(&[new(1), new(2)], 23), [0]);
        assert_eq!(within(&[new(1), new(2)], 7), [0; 0]);
        assert_eq!(within(&[RowState::new(unit, &Design::default())], 0), [0]);
    }

    #[test]
    fn what_is_out_of_reach_takes_half_of_the_turns() {
        let decided = || {
            let mut row = undecided(0, 5000);
            row.judgement.verdict = Verdict::Slower;
            row
        };
        let rows = [undecided(1000, 1000), decided(), decided(), decided()];
        let chosen = worth_measuring(&rows, &Design::default(), Duration::from_secs(5));
        assert_eq!(chosen, [0, 0, 0, 1, 2, 3]);
    }
}
