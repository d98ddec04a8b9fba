//! The rows of an experiment while it is measured, and what is known of them by now.

use std::time::Duration;

use crate::stats::Verdict;
use crate::stats::betting::Betting;
use crate::stats::design::Design;
use crate::stats::judge::{Judgement, MIN_PAIRS, judge_rows};

/// A workload under a treatment.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Unit {
    pub work: usize,
    /// The arm that is held against arm 0.
    pub treated_arm: usize,
    /// s₀: the spread of the pairs' log-ratios expected before the first, for [`Betting::new`].
    pub start_scale: f64,
}

/// A row as it is measured.
pub struct Row {
    pub unit: Unit,
    pub betting: Betting,
    pub judgement: Judgement,
    /// Why this workload gives no result.
    pub failure: Option<String>,
    /// Whether that was in the baseline's arm.
    pub(super) failed_alone: bool,
    /// Time that its pairs took, launches and all.
    pub(super) spent: Duration,
}

impl Row {
    /// A row without pairs.
    pub fn new(unit: Unit, design: &Design) -> Row {
        let betting = Betting::new(unit.start_scale);
        let judgement = judge_rows([&betting], design).remove(0);
        Row { unit, betting, judgement, failure: None, failed_alone: false, spent: Duration::ZERO }
    }

    /// Whether it needs no more pairs.
    pub fn is_done(&self, design: &Design) -> bool {
        let has_all = design.fixed_pairs.is_some_and(|pairs| self.betting.pairs() >= pairs);
        let is_decided = design.fixed_pairs.is_none()
            && self.judgement.verdict != Verdict::Inconclusive
            && self.judgement.precise;
        self.failure.is_some() || has_all || is_decided
    }

    /// The time that it will probably take until it needs no more pairs.
    fn time_left(&self) -> Duration {
        let pairs = u32::try_from(self.judgement.pairs_left).unwrap_or(u32::MAX);
        self.pair_cost().saturating_mul(pairs)
    }

    /// Whether another pair will probably end in the time left. A first one is always begun, so that
    /// a budget that is too small shows a number and says that it is inconclusive.
    pub fn can_begin_pair(&self, left: Duration) -> bool {
        self.betting.pairs() == 0 || self.pair_cost() <= left
    }

    /// Time that one of its pairs takes on average.
    pub fn pair_cost(&self) -> Duration {
        self.spent / self.betting.pairs().max(1) as u32
    }
}

/// Judges all rows together. Those that failed are not: they have no result, and do not count among
/// those compared.
pub fn judge(rows: &mut [Row], design: &Design) {
    let judgements =
        judge_rows(rows.iter().filter(|row| row.failure.is_none()).map(|row| &row.betting), design);
    for (row, judgement) in rows.iter_mut().filter(|row| row.failure.is_none()).zip(judgements) {
        row.judgement = judgement;
    }
}

/// The open rows that are worth a pair now, with so much of the budget left.
///
/// Where it lasts for all, those are all. Where it does not, it goes to those that will be decided
/// soonest: shared out evenly it would leave every row a little short. A row that cannot be decided
/// in the time left has a turn when the others are done. Which row is measured next depends on the
/// past only, so the promise stands.
pub fn worth_measuring(rows: &[Row], design: &Design, left: Duration) -> Vec<usize> {
    let mut open: Vec<usize> = (0..rows.len())
        .filter(|&row| !rows[row].is_done(design) && rows[row].can_begin_pair(left))
        .collect();
    if design.fixed_pairs.is_some() {
        return open;
    }
    // A verdict comes before precision, and before either a row needs pairs to be judged by.
    open.sort_by_key(|&row| {
        let state = &rows[row];
        let is_decided = state.judgement.verdict != Verdict::Inconclusive;
        (state.betting.pairs() >= MIN_PAIRS, is_decided, state.time_left())
    });
    let mut planned = Duration::ZERO;
    let last = open
        .iter()
        .take_while(|&&row| {
            planned += rows[row].time_left();
            rows[row].betting.pairs() < MIN_PAIRS || planned <= left
        })
        .count();
    if last > 0 {
        open.truncate(last);
    }
    open.sort_unstable();
    open
}

/// The time that the open rows will probably take, or what is left of the budget.
pub fn time_left(rows: &[Row], design: &Design, budget: Duration) -> Option<Duration> {
    let open = rows.iter().filter(|row| !row.is_done(design));
    let needed = open.map(Row::time_left).fold(Duration::ZERO, Duration::saturating_add);
    Some(needed.min(budget))
}
