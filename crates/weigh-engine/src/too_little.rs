//! How long an experiment takes, before it begins: many rows, or a budget that is too small.

use std::time::Duration;

use paired::judge::MIN_PAIRS;
use weigh_model::format;

/// Warns if the budget is too small for verdicts, and says what to type instead.
pub fn too_little_time(
    budget: Duration,
    rows: usize,
    planned_pairs: Option<f64>,
) -> Option<String> {
    let pairs = planned_pairs.filter(|pairs| *pairs < MIN_PAIRS as f64)?;
    let needed = budget.as_secs_f64() * MIN_PAIRS as f64 / pairs;
    Some(format!(
        "{} × {MIN_PAIRS} pairs need at least {}, so --budget {} decides few rows, if any. Use --budget {}, \
         or fewer workloads.",
        format::plural(rows, "row"),
        format::clock(needed),
        format::clock(budget.as_secs_f64()),
        format::budget(needed)
    ))
}

/// More rows do not fit a small terminal, so nobody sees how far all of them are.
const MANY_ROWS: usize = 20;

/// Says how long many rows take, where the budget suffices.
pub fn time_of_many(budget: Duration, rows: usize, planned_pairs: Option<f64>) -> Option<String> {
    let pairs = planned_pairs.filter(|pairs| *pairs >= MIN_PAIRS as f64)?;
    let needed = budget.as_secs_f64() * MIN_PAIRS as f64 / pairs;
    (rows > MANY_ROWS).then(|| {
        format!(
            "{} × {MIN_PAIRS} pairs need about {} of the budget of {}.",
            format::plural(rows, "row"),
            format::clock(needed),
            format::clock(budget.as_secs_f64())
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn how_long_many_rows_take_is_told() {
        let said = |rows, pairs| time_of_many(Duration::from_secs(600), rows, Some(pairs));
        assert_eq!(
            said(100, 16.0).unwrap(),
            "100 rows × 8 pairs need about 5 min 00 s of the budget of 10 min 00 s."
        );
        assert_eq!((said(100, 7.0), said(20, 16.0)), (None, None));
    }

    #[test]
    fn a_budget_of_fewer_pairs_than_a_verdict_needs_is_told_with_one_that_suffices() {
        let said =
            |budget, rows, pairs| too_little_time(Duration::from_secs(budget), rows, Some(pairs));
        assert_eq!(
            said(40, 100, 2.0).unwrap(),
            "100 rows × 8 pairs need at least 2 min 40 s, so --budget 40 s decides few rows, if any. \
             Use --budget 4m, or fewer workloads."
        );
        assert_eq!(said(40, 100, 8.0), None);
        assert_eq!(too_little_time(Duration::from_secs(1), 1, None), None);
    }
}
