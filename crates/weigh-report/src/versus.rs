//! Commands against each other, in words and as a list: a row is a command there, and not a workload under a
//! treatment.

use std::borrow::Cow;

use super::command_times;
use super::needed;
use super::schemes;
use super::table::{Table, columns};
use paired::Verdict;
use paired::judge::MIN_PAIRS;
use weigh_model::format;
use weigh_model::format::quoted;
use weigh_model::result::preliminary::Preliminary;
use weigh_model::result::summary::{Row, Summary};
use weigh_model::result::versus::{Ranked, Versus, WORK};
use weigh_model::result::work_name::WorkName;

/// More commands have no sentence each: the table has them.
const MOST_SENTENCES: usize = 4;
/// From this change on, a factor is easier to read than a percentage.
const LARGE_PCT: f64 = 10.0;

/// The experiment with its rows as tables show them: where commands are compared, each by the name of the
/// command.
pub fn laid_out(s: &Summary) -> Cow<'_, Summary> {
    if s.versus.is_none() || s.results.iter().all(|row| row.workload.name != WORK) {
        return Cow::Borrowed(s);
    }
    let mut named = s.clone();
    for row in named.results.iter_mut().filter(|row| row.workload.name == WORK) {
        row.workload = row.treatment.as_str().into();
        row.treatment = WORK.to_owned();
    }
    Cow::Owned(named)
}

/// Returns the heading of the first column of tables.
pub fn heading(s: &Summary) -> &'static str {
    titles(s)[0]
}

/// Returns three headings: of the first column, and of the rates of the baseline and of the other
/// arm.
pub fn titles(s: &Summary) -> [&'static str; 3] {
    match s.versus {
        Some(_) => [WORK, "first", "this"],
        None => ["workload", "baseline", "treated"],
    }
}

/// The name of a row in a sentence: its workload under its treatment, or the command.
pub(super) fn row_name(workload: &WorkName, treatment: &str) -> String {
    match (workload.name == WORK, treatment == WORK) {
        (true, _) => quoted(treatment),
        (_, true) => quoted(workload),
        _ => format!("{} under {}", quoted(workload), quoted(treatment)),
    }
}

/// Returns true if this is the row of these names, laid out as it is or for tables.
pub(super) fn is_row(row: &Row, workload: &WorkName, treatment: &str) -> bool {
    let is_same = row.workload == *workload && row.treatment == treatment;
    let is_laid_out = row.treatment == WORK && row.workload.name == treatment;
    is_same || (workload.name == WORK && is_laid_out)
}

/// Writes the finding for each command, or their number if they are many; with three or more, all of them in
/// order. Writes the time of one command alone.
pub(super) fn sentences(s: &Summary, versus: &Versus) -> Vec<String> {
    if s.is_of_one_command() {
        return command_times::sentence(s).into_iter().collect();
    }
    if s.results.len() > MOST_SENTENCES {
        return vec![counted(s)];
    }
    let mut sentences: Vec<String> = s.results.iter().map(|row| found(row, s)).collect();
    if versus.ranking.len() > 2 {
        let place = |ranked: &Ranked| {
            let is_open = ranked.verdict == Some(Verdict::Inconclusive);
            let open = if is_open { " (inconclusive)" } else { "" };
            format!("{} {}{open}", quoted(&ranked.command), times(ranked.times))
        };
        let places: Vec<String> = versus.ranking.iter().map(place).collect();
        let by = if schemes::shares_cpu(s) { ", by CPU time in interleaved rows" } else { "" };
        sentences.push(format!("Times as long as the first{by}: {}.", places.join(", ")));
    }
    sentences
}

/// Says how many commands have each verdict.
fn counted(s: &Summary) -> String {
    let count = |verdict| s.results.iter().filter(|row| row.verdict == verdict).count();
    let within = format!("as fast, to within {}", format::margin(s.margin_pct));
    let parts = [
        (Verdict::Faster, "faster"),
        (Verdict::Slower, "slower"),
        (Verdict::Equivalent, within.as_str()),
        (Verdict::Inconclusive, "without a verdict"),
    ];
    let parts = parts.map(|(verdict, word)| (count(verdict), word));
    let parts = parts.iter().filter(|(count, _)| *count > 0);
    let parts: Vec<String> = parts.map(|(count, word)| format!("{count} {word}")).collect();
    let (all, first) = (format::plural(s.results.len(), "command"), quoted(&s.baseline));
    format!("{all} compared with {first}: {}.", parts.join(", "))
}

fn found(row: &Row, s: &Summary) -> String {
    let name = if row.workload.name == WORK { &row.treatment } else { &row.workload.name };
    let (name, first) = (quoted(name), quoted(&s.baseline));
    let timed = &of_time(row);
    let interval = format::interval(timed.low_pct, timed.high_pct);
    // One that reports a rate of its own has no time of a run.
    let ranking = s.versus.as_ref().map_or(&[][..], |versus| &versus.ranking);
    let time = match ranking.iter().any(|one| one.run_ms.is_none()) {
        _ if schemes::is_of_cpu_time(row) => schemes::CPU_TIME,
        true => "time per operation",
        false => "time",
    };
    let differs = format!("its {time} differs by {} {interval}", format::percent(timed.effect_pct));
    match row.verdict {
        Verdict::Slower | Verdict::Faster => {
            let verdict = format::verdict(row.verdict, false, 0.0);
            let difference = different(timed, time, ranking.len() <= 2);
            format!("{name} is {verdict} than {first}: it takes {difference}.")
        }
        Verdict::Equivalent => {
            let margin = format::margin(s.margin_pct);
            format!("{name} is as fast as {first}, to within {margin}: {differs}.")
        }
        Verdict::Inconclusive => {
            let runs = s.versus.as_ref().and_then(|versus| versus.runs);
            let needed = match runs {
                Some(runs) if runs < MIN_PAIRS => {
                    format!(" (a verdict takes at least {MIN_PAIRS} runs: use --runs {MIN_PAIRS})")
                }
                _ => needed::of(s, &[row]),
            };
            let is_bounded = row.low_pct.is_some() || row.high_pct.is_some();
            let differs = if is_bounded { format!(": {differs}") } else { String::new() };
            let pairs = format::plural(row.pairs, "pair");
            format!("No verdict on {name} against {first}{differs} after {pairs}{needed}.")
        }
    }
}

/// The row with its effect on the time in place of that on the rate: who compares commands thinks of times.
pub(super) fn of_time(row: &Row) -> Row {
    let time = |pct: f64| Some(100.0 * (1.0 / (1.0 + pct / 100.0) - 1.0)).filter(|t| t.is_finite());
    Row {
        effect_pct: time(row.effect_pct).unwrap_or(f64::INFINITY),
        low_pct: row.high_pct.and_then(time),
        high_pct: row.low_pct.and_then(time),
        preliminary: row.preliminary.and_then(|few| {
            let [effect_pct, low_pct, high_pct] =
                [few.effect_pct, few.high_pct, few.low_pct].map(time);
            let (effect_pct, low_pct, high_pct) = (effect_pct?, low_pct?, high_pct?);
            Some(Preliminary { effect_pct, low_pct, high_pct })
        }),
        ..row.clone()
    }
}

/// The effect of a row of [`of_time`]; with a large factor, unless a list of them follows.
fn different(timed: &Row, time: &str, has_factor: bool) -> String {
    let more = if timed.effect_pct > 0.0 { "more" } else { "less" };
    let (pct, interval) = super::findings::amount(timed);
    let is_large = timed.effect_pct.abs() >= LARGE_PCT;
    let factor = timed.cost.factor.filter(|_| has_factor && is_large);
    let as_long = if time == schemes::CPU_TIME { "as much" } else { "as long" };
    let factor = factor.map_or(String::new(), |f| format!(", {} times {as_long}", times(f)));
    format!("{pct} % {more} {time} {interval}{factor}")
}

fn times(times: f64) -> String {
    format::number_with(times, if times < 9.995 { 3 } else { 2 })
}

/// All commands, the fastest first.
pub fn table(s: &Summary) -> Option<Table> {
    let versus = s.versus.as_ref().filter(|versus| versus.ranking.len() > 1)?;
    // Experiments that other versions stored as JSON have no table of times.
    let has_times = !command_times::commands(s).is_empty();
    let cells = |ranked: &Ranked| {
        let interval = match (ranked.times_low, ranked.times_high) {
            (None, None) => String::new(),
            (low, high) => {
                let end = |end: Option<f64>, open: &str| end.map_or(open.to_owned(), times);
                format!("[{}, {}]", end(low, "0"), end(high, "∞"))
            }
        };
        let is_of = |row: &&Row| row.treatment == ranked.command;
        let is_small = s.results.iter().find(is_of).is_some_and(|row| row.within_margin);
        let verdict = ranked
            .verdict
            .map_or("the first".into(), |verdict| format::verdict(verdict, is_small, s.margin_pct));

        let run_ms = ranked.run_ms.filter(|_| !has_times);
        vec![
            format::label(&ranked.command),
            run_ms.map(|ms| format::time_ns(ms * 1e6)).unwrap_or_default(),
            times(ranked.times),
            interval,
            verdict,
        ]
    };
    let columns = columns("command|>time|>times|interval|verdict");
    Some(Table::new(columns, versus.ranking.iter().map(cells).collect()))
}

/// Above that table.
pub const TITLE: &str = "Fastest first";

/// Beneath it: what was timed.
pub fn legend(s: &Summary) -> Option<String> {
    let versus = s.versus.as_ref()?;
    let whole = command_times::commands(s).is_empty()
        && versus.ranking.iter().any(|ranked| ranked.run_ms.is_some());
    let by = if schemes::shares_cpu(s) { ", by CPU time in interleaved rows" } else { "" };
    let time = match (whole, versus.shell.as_ref().zip(versus.shell_start_ms)) {
        (false, _) => return Some(format!("times: how many times as long as the first{by}")),
        (true, None) => "time: whole command, without a shell".to_owned(),
        (true, Some((shell, ms))) => {
            let start = format::time_ns(ms * 1e6);
            format!("time: whole command, including the start of `{shell}` ({start})")
        }
    };
    Some(format!("{time}; times: how many times as long as the first"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use weigh_model::example;
    use weigh_model::result::scheme::Scheme;

    #[test]
    fn a_difference_within_the_margin_is_called_so_in_the_ranking() {
        let mut s = example::versus();
        let shown = |s: &Summary| format!("{:?}", table(s));
        assert!(!shown(&s).contains("<1 %"));
        s.results[0].within_margin = true;
        assert!(shown(&s).contains("<1 %"), "{}", shown(&s));
    }

    #[test]
    fn a_command_is_faster_or_slower_than_the_first() {
        let said = |s: &Summary| sentences(s, s.versus.as_ref().unwrap());
        let s = example::versus();
        assert_eq!(
            said(&s),
            [
                "`new --x` is faster than `old --x`: it takes 3.01 % less time [2.72, 3.38].",
                "`new --y` is slower than `old --x`: it takes 100 % more time [99.2, 101].",
                "Times as long as the first: `new --x` 0.970, `old --x` 1.000, `new --y` 2.000.",
            ]
        );
        assert_eq!(said(&laid_out(&s)), said(&s));
        let mut one = s.clone();
        one.results.remove(0);
        one.versus.as_mut().unwrap().ranking.remove(0);
        let wanted = "it takes 100 % more time [99.2, 101], 2.000 times as long.";
        assert!(said(&one)[0].ends_with(wanted), "{:?}", said(&one));
        let mut equal = s.clone();
        equal.results.truncate(1);
        equal.versus.as_mut().unwrap().ranking.truncate(2);
        let row = &mut equal.results[0];
        (row.verdict, row.effect_pct) = (Verdict::Equivalent, 0.1);
        (row.low_pct, row.high_pct) = (Some(-0.3), Some(0.5));
        assert_eq!(
            said(&equal),
            [
                "`new --x` is as fast as `old --x`, to within 1 %: its time differs by −0.10 % [−0.50, \
                 +0.30]."
            ]
        );
        equal.results[0].verdict = Verdict::Inconclusive;
        let wanted =
            "No verdict on `new --x` against `old --x`: its time differs by −0.10 % [−0.50, +0.30]";
        assert!(said(&equal)[0].starts_with(wanted), "{:?}", said(&equal));
        equal.versus.as_mut().unwrap().ranking[0].run_ms = None;
        assert!(said(&equal)[0].contains(": its time per operation differs by"));
    }

    #[test]
    fn a_row_of_commands_that_shared_a_cpu_is_about_cpu_time() {
        let mut s = example::versus();
        s.results[1].scheme = Some(Scheme::Interleaved);
        let said = |s: &Summary| sentences(s, s.versus.as_ref().unwrap());
        assert!(said(&s)[0].contains("3.01 % less time"), "{:?}", said(&s));
        assert!(said(&s)[1].contains("it takes 100 % more CPU time [99.2, 101]"), "{:?}", said(&s));
        let all = "Times as long as the first, by CPU time in interleaved rows: `new --x` 0.970";
        assert!(said(&s)[2].starts_with(all), "{:?}", said(&s));
        assert!(legend(&s).unwrap().ends_with("by CPU time in interleaved rows"));
        s.results.remove(0);
        s.versus.as_mut().unwrap().ranking.remove(0);
        assert!(said(&s)[0].ends_with("more CPU time [99.2, 101], 2.000 times as much."));
    }

    #[test]
    fn the_list_is_in_order_and_says_what_was_timed() {
        let mut s = example::versus();
        assert_eq!(
            table(&s).unwrap().to_lines(80),
            [
                "command  times  interval        verdict",
                "new --x  0.970  [0.966, 0.973]  faster",
                "old --x  1.000                  the first",
                "new --y  2.000  [1.992, 2.008]  slower",
            ]
        );
        assert_eq!(legend(&s).unwrap(), "times: how many times as long as the first");
        // As an earlier version wrote it.
        s.versus.as_mut().unwrap().commands.clear();
        let lines = table(&s).unwrap().to_lines(80);
        assert_eq!(lines[1], "new --x  97.0 ms  0.970  [0.966, 0.973]  faster");
        assert!(legend(&s).unwrap().contains("including the start of `/bin/sh -c` (620 µs)"));
    }

    #[test]
    fn many_commands_are_counted() {
        let mut s = example::versus();
        let row = Row { verdict: Verdict::Inconclusive, ..s.results[0].clone() };
        s.results.extend(vec![row; 3]);
        assert_eq!(
            sentences(&s, s.versus.as_ref().unwrap()),
            ["5 commands compared with `old --x`: 1 faster, 1 slower, 3 without a verdict."]
        );
    }

    #[test]
    fn fewer_runs_than_a_verdict_takes_are_said() {
        let mut s = example::versus();
        s.results.truncate(1);
        let row = &mut s.results[0];
        (row.verdict, row.pairs, row.low_pct, row.high_pct) =
            (Verdict::Inconclusive, 3, None, None);
        s.versus.as_mut().unwrap().runs = Some(3);
        let said = &sentences(&s, s.versus.as_ref().unwrap())[0];
        let wanted = "No verdict on `new --x` against `old --x` after 3 pairs (a verdict takes at least 8 \
                      runs: use --runs 8).";
        assert_eq!(said, wanted);
    }
}
