//! How long an experiment takes, before it begins: many rows, or a budget that is too small.

use std::time::Duration;

use super::platform::Observer;
use super::row::RowState;
use weigh_model::format;

/// Warns if the budget is too small for verdicts, which take at `least` so many pairs of each of `rows`, and
/// says what to type instead.
pub fn too_little_time(
    budget: Duration,
    (rows, least): (usize, usize),
    planned_pairs: Option<f64>,
) -> Option<String> {
    let pairs = planned_pairs.filter(|pairs| *pairs < least as f64)?;
    let needed = budget.as_secs_f64() * least as f64 / pairs;
    Some(format!(
        "{} × {} need at least {}, so --budget {} decides few rows, if any. Use --budget {}, \
         or fewer workloads.",
        format::plural(rows, "row"),
        format::plural(least, "pair"),
        format::clock(needed),
        format::clock(budget.as_secs_f64()),
        format::budget(needed)
    ))
}

/// Passes on what happens, and warns once if the first pair of each row shows that the budget is too small.
/// Before it nothing shows how long the samples of a slowed workload are.
pub struct PaceWatch<'a> {
    pub shown: &'a mut dyn Observer,
    pub budget: Duration,
    /// Pairs that a verdict on a row takes at least.
    pub least_pairs: usize,
    /// Sets of pairs that share the budget.
    pub sets: u32,
    /// When the pairs of the first set end, since the experiment began.
    pub end: Duration,
    /// True until something was said of the budget.
    pub is_due: bool,
}

impl Observer for PaceWatch<'_> {
    fn begins(&mut self, row: usize) {
        self.shown.begins(row);
    }

    fn pair(&mut self, row: usize, state: &RowState, elapsed: Duration) {
        self.shown.pair(row, state, elapsed);
    }

    fn round(&mut self, rows: &[RowState], elapsed: Duration, left: Option<Duration>) {
        self.shown.round(rows, elapsed, left);
        // One that is too long for the budget is named at the end, and has no pair until then.
        let mut open = rows.iter().filter(|row| row.failure.is_none() && !row.is_too_long);
        if self.is_due && open.all(|row| row.measured() > 0) {
            self.is_due = false;
            let left = self.end.saturating_sub(elapsed);
            let said = too_little_at_pace((self.budget, self.sets), (rows, self.least_pairs), left);
            said.iter().for_each(|sentence| self.shown.announce(sentence));
        }
    }

    fn announce(&mut self, sentence: &str) {
        self.shown.announce(sentence);
    }
}

/// Warns if the rest of the budget is too small for verdicts on all rows at the pace of their pairs.
fn too_little_at_pace(
    (budget, sets): (Duration, u32),
    (rows, least_pairs): (&[RowState], usize),
    left: Duration,
) -> Option<String> {
    let open = || rows.iter().filter(|row| row.failure.is_none());
    let lacking = |row: &RowState| {
        let pairs = least_pairs.saturating_sub(row.betting.pairs());
        row.pair_cost() * pairs as u32
    };
    let needed: Duration = open().map(lacking).sum();
    (needed > left).then(|| {
        let enough = budget + needed.saturating_sub(left) * sets;
        format!(
            "At the pace of the first pairs, {} × {} need about {}, so --budget {} probably \
             decides few rows. Use --budget {}, or fewer workloads.",
            format::plural(open().count(), "row"),
            format::plural(least_pairs, "pair"),
            format::clock(enough.as_secs_f64()),
            format::clock(budget.as_secs_f64()),
            format::budget(enough.as_secs_f64())
        )
    })
}

/// More rows do not fit a small terminal, so nobody sees how far all of them are.
const MANY_ROWS: usize = 20;

/// Says how long many rows take, where the budget suffices.
pub fn time_of_many(
    budget: Duration,
    (rows, least): (usize, usize),
    planned_pairs: Option<f64>,
) -> Option<String> {
    let pairs = planned_pairs.filter(|pairs| *pairs >= least as f64)?;
    let needed = budget.as_secs_f64() * least as f64 / pairs;
    (rows > MANY_ROWS).then(|| {
        format!(
            "{} × {} need about {} of the budget of {}.",
            format::plural(rows, "row"),
            format::plural(least, "pair"),
            format::clock(needed),
            format::clock(budget.as_secs_f64())
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::row::RowKey;
    use paired::design::Design;
    use paired::simulated::white_row;
    use weigh_model::ids::{ArmId, WorkId};

    #[derive(Default)]
    struct Told(Vec<String>);

    impl Observer for Told {
        fn pair(&mut self, _: usize, _: &RowState, _: Duration) {}
        fn round(&mut self, _: &[RowState], _: Duration, _: Option<Duration>) {}
        fn announce(&mut self, sentence: &str) {
            self.0.push(sentence.to_owned());
        }
    }

    /// A row with so many pairs of a second each.
    fn row_with(pairs: usize) -> RowState {
        let unit = RowKey { work: WorkId(0), treated_arm: ArmId(1), start_scale: 0.01.into() };
        let mut row = RowState::new(unit, &Design::default());
        row.betting = white_row(0.0, pairs, 1);
        (row.spent, row.measured) = (Duration::from_secs(1) * pairs as u32, pairs);
        row
    }

    #[test]
    fn what_one_set_lacks_each_set_lacks() {
        let rows = [1, 1].map(row_with);
        let told = |sets| {
            let budget = Duration::from_secs(40);
            too_little_at_pace((budget, sets), (&rows, 8), Duration::from_secs(10)).unwrap()
        };
        assert!(told(1).contains("need about 44 s,"), "{}", told(1));
        assert!(told(2).contains("need about 48 s,"), "{}", told(2));
    }

    #[test]
    fn slow_first_pairs_are_told_once_with_a_budget_that_suffices() {
        let told = |budget: u64, is_due: bool| {
            let (mut shown, budget) = (Told::default(), Duration::from_secs(budget));
            let mut watch = PaceWatch {
                shown: &mut shown,
                budget,
                least_pairs: 8,
                sets: 1,
                end: budget,
                is_due,
            };
            for pairs in [[1, 0], [1, 1], [2, 2]] {
                let rows = pairs.map(row_with);
                watch.round(&rows, Duration::from_secs(pairs.iter().sum::<usize>() as u64), None);
            }
            shown.0
        };
        assert_eq!(
            told(10, true),
            [
                "At the pace of the first pairs, 2 rows × 8 pairs need about 16 s, so --budget 10 s probably \
              decides few rows. Use --budget 20s, or fewer workloads."
            ]
        );
        assert_eq!(told(16, true), [""; 0]);
        assert_eq!(told(10, false), [""; 0], "it was said before");
    }

    #[test]
    fn how_long_many_rows_take_is_told() {
        let said = |rows, pairs| time_of_many(Duration::from_secs(600), (rows, 8), Some(pairs));
        assert_eq!(
            said(100, 16.0).unwrap(),
            "100 rows × 8 pairs need about 5 min 00 s of the budget of 10 min 00 s."
        );
        assert_eq!((said(100, 7.0), said(20, 16.0)), (None, None));
    }

    #[test]
    fn a_budget_of_fewer_pairs_than_a_verdict_needs_is_told_with_one_that_suffices() {
        let said = |budget, rows, pairs| {
            too_little_time(Duration::from_secs(budget), (rows, 8), Some(pairs))
        };
        assert_eq!(
            said(40, 100, 2.0).unwrap(),
            "100 rows × 8 pairs need at least 2 min 40 s, so --budget 40 s decides few rows, if any. \
             Use --budget 4m, or fewer workloads."
        );
        assert_eq!(said(40, 100, 8.0), None);
        let of_ten = too_little_time(Duration::from_secs(20), (10, 12), Some(8.0));
        assert!(of_ten.unwrap().starts_with("10 rows × 12 pairs need at least 30 s, so "));
        assert_eq!(too_little_time(Duration::from_secs(1), (1, 8), None), None);
    }
}
