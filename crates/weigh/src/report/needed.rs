//! What undecided rows probably still need, in words: a range, as such forecasts are rough.

use crate::format;
use crate::result::summary::{Future, Row};
use paired::judge::MIN_PAIRS;

/// Ends of the range that is told: a tenth of the futures is sooner, and a tenth later.
const ENDS: [f64; 2] = [0.1, 0.9];

/// A parenthesis about `rows`, which are undecided, with a space before it; empty where there is nothing to
/// say.
pub(super) fn of(rows: &[&Row]) -> String {
    let known: Vec<&Row> = rows.iter().filter(|row| !row.futures.is_empty()).copied().collect();
    let unknown = rows.iter().filter(|row| row.futures.is_empty() && row.has_few_pairs()).count();
    let mut parts = Vec::new();
    if let [row] = known[..] {
        parts.push(one(row));
    } else if let Some(futures) = together(&known) {
        parts.push(format!("{} more for all of them together", time(&futures)));
    }
    if unknown > 0 {
        let who = match (unknown == rows.len(), unknown) {
            (true, _) => "".into(),
            (false, 1) => "1 of them has ".into(),
            (false, _) => format!("{unknown} of them have "),
        };
        parts.push(format!("{who}fewer than the {MIN_PAIRS} pairs that a verdict takes"));
    }
    if parts.is_empty() { String::new() } else { format!(" ({})", parts.join("; ")) }
}

fn one(row: &Row) -> String {
    let pairs = match (row.pairs_needed_low, row.pairs_needed_high) {
        (Some(low), Some(high)) if low == high => format::plural(low, "more pair"),
        (Some(low), Some(high)) => {
            let low = format::integer(low as u64);
            format!("{low} to {}", format::plural(high, "more pair"))
        }
        (low, _) => format!("more than {}", format::plural(low.unwrap_or(0), "more pair")),
    };
    format!("needs {pairs}, {}", time(&row.futures))
}

/// How long all rows take, one after the other, in each future.
fn together(rows: &[&Row]) -> Option<Vec<Future>> {
    let count = rows.iter().map(|row| row.futures.len()).min()?;
    let sum = |future: usize| {
        let of_rows = rows.iter().map(|row| row.futures[future]);
        of_rows.fold(Future::default(), |sum, one| Future {
            seconds: sum.seconds + one.seconds,
            is_at_least: sum.is_at_least || one.is_at_least,
        })
    };
    Some((0..count).map(sum).collect())
}

/// The range of a time.
fn time(futures: &[Future]) -> String {
    let mut sorted: Vec<f64> = futures.iter().map(|future| future.seconds).collect();
    sorted.sort_by(f64::total_cmp);
    let rank = |share: f64| ((sorted.len() as f64 * share).ceil() as usize).max(1) - 1;
    let [low, high] = ENDS.map(|share| format::seconds(sorted[rank(share)]));
    let open = futures.iter().filter(|future| future.is_at_least).count();
    // As many futures are beyond what was followed: the far end is not known.
    if open >= sorted.len() - rank(ENDS[1]) {
        format!("more than {low}")
    } else if low == high {
        format!("about {low}")
    } else {
        format!("{low} to {high}")
    }
}

#[cfg(test)]
mod tests {
    use super::super::sample;
    use super::*;

    /// A row whose futures take a second for each of these pairs.
    fn row(pairs: impl Iterator<Item = usize>, is_at_least: bool) -> Row {
        let mut row = sample::audit().results.remove(11);
        let future = |n| Future { seconds: n as f64, is_at_least: is_at_least && n == 100 };
        row.futures = pairs.map(future).collect();
        (row.pairs_needed_low, row.pairs_needed_high) = (Some(10), Some(90));
        row
    }

    #[test]
    fn one_row_has_its_pairs_and_several_their_time_together() {
        let short = row(1..=100, false);
        assert_eq!(of(&[&short]), " (needs 10 to 90 more pairs, 10 s to 1 min 30 s)");
        let same = row((1..=100).map(|_| 100), false);
        assert_eq!(
            of(&[&short, &same]),
            " (1 min 50 s to 3 min 10 s more for all of them together)"
        );
    }

    #[test]
    fn what_was_not_followed_to_its_end_is_more_than_that() {
        let mut far = row((1..=100).map(|_| 100), true);
        (far.pairs_needed_low, far.pairs_needed_high) = (Some(100), None);
        assert_eq!(of(&[&far]), " (needs more than 100 more pairs, more than 1 min 40 s)");
        let short = row(1..=100, false);
        assert_eq!(of(&[&far, &short]), " (more than 1 min 50 s more for all of them together)");
    }

    #[test]
    fn too_few_pairs_tell_nothing() {
        let mut few = row(std::iter::empty(), false);
        few.pairs = 3;
        assert_eq!(of(&[&few]), " (fewer than the 8 pairs that a verdict takes)");
        let short = row(1..=100, false);
        assert!(
            of(&[&few, &short]).ends_with(
                "1 min 30 s; 1 of them has fewer than the 8 pairs that a verdict takes)"
            )
        );
        assert_eq!(of(&[]), "");
    }
}
