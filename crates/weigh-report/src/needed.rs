//! Effort that undecided rows probably still need, in words. It is a range, as such forecasts are
//! rough.

use paired::Verdict;
use paired::judge::MIN_PAIRS;
use weigh_model::format;
use weigh_model::result::summary::{Future, Row, State, Summary};

/// Ends of the range that is shown: a tenth of the futures is sooner, and a tenth later.
const ENDS: [f64; 2] = [0.1, 0.9];

/// A parenthesis about `rows` of `s`, which are undecided, with a space before it; empty where there is
/// nothing to say.
pub(super) fn of(s: &Summary, rows: &[&Row]) -> String {
    let known: Vec<&Row> = rows.iter().filter(|row| !row.futures.is_empty()).copied().collect();
    let is_unknown = |row: &&&Row| row.futures.is_empty() && row.has_few_pairs();
    let unknown = rows.iter().filter(is_unknown).count();
    let mut parts = Vec::new();
    if let [row] = known[..] {
        parts.push(one(row));
    } else if let Some(futures) = together(&known) {
        let rows = format::plural(known.len(), "row");
        parts.push(format!("{rows} together need {} more", time(&futures)));
    }
    if unknown > 0 {
        parts.push(too_little_time(s, rows));
    }
    parts.extend(without_forecast(rows));
    if parts.is_empty() { String::new() } else { format!(" ({})", parts.join("; ")) }
}

/// Says how many of `rows` have no forecast: the verdict is withheld for a reason that no known number of
/// pairs takes away.
fn without_forecast(rows: &[&Row]) -> Option<String> {
    let is_it =
        |row: &&&Row| row.withheld.is_some() && row.futures.is_empty() && !row.has_few_pairs();
    match rows.iter().filter(is_it).count() {
        0 => None,
        1 if rows.len() == 1 => Some("no forecast: its verdict is not reported yet".to_owned()),
        some => Some(format!(
            "no forecast for {} with a verdict that is not reported yet",
            format::plural(some, "row")
        )),
    }
}

/// Says that some of `rows` have fewer pairs than a verdict needs, how many they have, and what to type.
fn too_little_time(s: &Summary, rows: &[&Row]) -> String {
    let least_pairs = least_pairs(rows);
    let few: Vec<&Row> = rows.iter().copied().filter(|row| row.has_few_pairs()).collect();
    let pairs = few.iter().map(|row| row.pairs);
    let (least, most) = (pairs.clone().min().unwrap_or(0), pairs.max().unwrap_or(0));
    let pairs = if least == most { format!("{most}") } else { format!("{least} to {most}") };
    let of = if few.len() == rows.len() { "" } else { " for some rows" };
    let pairs = format!("{pairs} of at least {} per row", format::plural(least_pairs, "pair"));
    if s.state == State::Interrupted {
        return format!("interrupted{of}: {pairs}; `--continue {}` measures the rest", s.id);
    }
    let budget = match time_of_a_verdict(s) {
        Some(seconds) => format!("use --budget {}, or fewer workloads", format::budget(seconds)),
        None => "use a longer --budget, or fewer workloads".to_owned(),
    };
    format!("too little time{of}: {pairs}; {budget}")
}

fn least_pairs(rows: &[&Row]) -> usize {
    // What was read from JSON has no number.
    rows.iter().map(|row| row.least_pairs).max().unwrap_or(0).max(MIN_PAIRS)
}

/// Time of the experiment if each undecided row, of whatever treatment, has the least number of pairs, at
/// their measured pace; `None` if that is unknown.
fn time_of_a_verdict(s: &Summary) -> Option<f64> {
    let rows: Vec<&Row> =
        s.results.iter().filter(|row| row.verdict == Verdict::Inconclusive).collect();
    let started = || rows.iter().flat_map(|row| row.series.iter().map(|pair| pair.started_s));
    let (first, last) =
        (started().fold(f64::INFINITY, f64::min), started().fold(f64::NEG_INFINITY, f64::max));
    let pace = (last - first) / started().count().checked_sub(1).filter(|more| *more > 0)? as f64;
    let least = least_pairs(&rows);
    let lacking: usize = rows.iter().map(|row| least.saturating_sub(row.pairs)).sum();
    // The budget as given was too short.
    let spent = s.elapsed_s.max(s.budget_s);
    Some(spent + pace * lacking as f64).filter(|seconds| seconds.is_finite())
}

fn one(row: &Row) -> String {
    let pairs = match (row.pairs_needed_low, row.pairs_needed_high) {
        (Some(low), Some(high)) if low == high => format::plural(low, "more pair"),
        (Some(low), Some(high)) => {
            let low = format::integer(low as u64);
            format!("{low} to {}", format::plural(high, "more pair"))
        }
        (low, _) => format!("at least {}", format::plural(low.unwrap_or(0), "more pair")),
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

fn time(futures: &[Future]) -> String {
    let mut sorted: Vec<f64> = futures.iter().map(|future| future.seconds).collect();
    sorted.sort_by(f64::total_cmp);
    let rank = |share: f64| ((sorted.len() as f64 * share).ceil() as usize).max(1) - 1;
    let [low, high] = ENDS.map(|share| format::seconds(sorted[rank(share)]));
    let open = futures.iter().filter(|future| future.is_at_least).count();
    // As many futures are beyond what was followed: the far end is not known.
    if open >= sorted.len() - rank(ENDS[1]) {
        format!("at least {low}")
    } else if low == high {
        format!("about {low}")
    } else {
        format!("{low} to {high}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use paired::doubt::{Doubt, Withheld};
    use weigh_model::example;

    /// A row whose futures take a second for each of these pairs.
    fn row(pairs: impl Iterator<Item = usize>, is_at_least: bool) -> Row {
        let mut row = example::audit().results.remove(11);
        let future = |n| Future { seconds: n as f64, is_at_least: is_at_least && n == 100 };
        row.futures = pairs.map(future).collect();
        (row.pairs_needed_low, row.pairs_needed_high) = (Some(10), Some(90));
        row
    }

    fn of_rows(rows: &[&Row]) -> Summary {
        Summary { results: rows.iter().copied().cloned().collect(), ..complete() }
    }

    fn complete() -> Summary {
        Summary { budget_s: 10.0, elapsed_s: 6.0, ..example::audit() }
    }

    #[test]
    fn one_row_has_its_pairs_and_several_their_time_together() {
        let short = row(1..=100, false);
        assert_eq!(of(&complete(), &[&short]), " (needs 10 to 90 more pairs, 10 s to 1 min 30 s)");
        let same = row((1..=100).map(|_| 100), false);
        assert_eq!(
            of(&complete(), &[&short, &same]),
            " (2 rows together need 1 min 50 s to 3 min 10 s more)"
        );
    }

    #[test]
    fn what_was_not_followed_to_its_end_is_more_than_that() {
        let mut far = row((1..=100).map(|_| 100), true);
        (far.pairs_needed_low, far.pairs_needed_high) = (Some(100), None);
        assert_eq!(
            of(&complete(), &[&far]),
            " (needs at least 100 more pairs, at least 1 min 40 s)"
        );
        let short = row(1..=100, false);
        assert_eq!(
            of(&complete(), &[&far, &short]),
            " (2 rows together need at least 1 min 50 s more)"
        );
    }

    #[test]
    fn rows_with_a_withheld_verdict_are_counted() {
        let withheld = |futures: Vec<Future>| {
            let mut row = row(1..=100, false);
            let because = Doubt::CarryOver;
            row.withheld = Some(Withheld { verdict: Verdict::Faster, because });
            row.futures = futures;
            row
        };
        let (open, short) = (withheld(Vec::new()), row(1..=100, false));
        assert_eq!(of(&complete(), &[&open]), " (no forecast: its verdict is not reported yet)");
        let said = of(&complete(), &[&open, &short]);
        assert!(
            said.ends_with("30 s; no forecast for 1 row with a verdict that is not reported yet)"),
            "{said}"
        );
        let known = withheld(vec![Future { seconds: 60.0, is_at_least: false }; 100]);
        let said = of(&complete(), &[&known, &short]);
        assert_eq!(said, " (2 rows together need 1 min 10 s to 2 min 30 s more)");
    }

    #[test]
    fn too_few_pairs_tell_nothing() {
        let mut few = row(std::iter::empty(), false);
        few.pairs = 3;
        few.series.truncate(3);
        for (number, pair) in few.series.iter_mut().enumerate() {
            pair.started_s = 2.0 * number as f64;
        }
        // Five more of two seconds each, and a reserve of a fifth.
        let said = " (too little time: 3 of at least 8 pairs per row; use --budget 30s, or fewer workloads)";
        assert_eq!(of(&of_rows(&[&few]), &[&few]), said);
        few.least_pairs = 12;
        let said = " (too little time: 3 of at least 12 pairs per row; use --budget 40s, or fewer workloads)";
        assert_eq!(of(&of_rows(&[&few]), &[&few]), said);
        // The budget is that of the other treatment's rows, too.
        let mut other = few.clone();
        other.series.iter_mut().for_each(|pair| pair.started_s += 6.0);
        let said = of(&of_rows(&[&few, &other]), &[&few]);
        assert!(said.contains("use --budget 60s, "), "{said}");
        let interrupted = Summary { state: State::Interrupted, id: "k3f9qx".into(), ..complete() };
        let said = of(&interrupted, &[&few]);
        let wanted =
            " (interrupted: 3 of at least 12 pairs per row; `--continue k3f9qx` measures the rest)";
        assert_eq!(said, wanted);
        few.series.clear();
        let short = row(1..=100, false);
        let said = of(&complete(), &[&few, &short]);
        assert!(said.contains("1 min 30 s; too little time for some rows: 3 of"), "{said}");
        assert_eq!(of(&complete(), &[]), "");
    }
}
