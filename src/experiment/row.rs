//! The rows of an experiment while it is measured, and what is known of them by now.

use std::time::Duration;

use crate::stats::Verdict;
use crate::stats::betting::Betting;
use crate::stats::judge::{Design, Judgement, judge_rows};

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
    /// Time that its pairs took, launches and all.
    pub(super) spent: Duration,
}

impl Row {
    /// A row without pairs.
    pub fn new(unit: Unit, design: &Design) -> Row {
        let betting = Betting::new(unit.start_scale);
        let judgement = judge_rows([&betting], design).remove(0);
        Row { unit, betting, judgement, failure: None, spent: Duration::ZERO }
    }

    /// Whether it needs no more pairs.
    pub fn is_done(&self, design: &Design) -> bool {
        let has_all = design.fixed_pairs.is_some_and(|pairs| self.betting.pairs() >= pairs);
        let is_decided = design.fixed_pairs.is_none()
            && self.judgement.verdict != Verdict::Inconclusive
            && self.judgement.precise;
        self.failure.is_some() || has_all || is_decided
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

/// The time that the open rows will probably take, or what is left of the budget.
pub fn time_left(rows: &[Row], design: &Design, budget: Duration) -> Option<Duration> {
    let mut needed = Duration::ZERO;
    for row in rows.iter().filter(|row| !row.is_done(design)) {
        let Some(pairs) = row.judgement.pairs_needed.or(Some(1)) else { continue };
        needed += row.pair_cost().saturating_mul(u32::try_from(pairs).unwrap_or(u32::MAX));
    }
    Some(needed.min(budget))
}
