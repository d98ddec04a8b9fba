//! Result of an experiment in a few words, for a list of many experiments.

use paired::Verdict;
use weigh_model::format;
use weigh_model::result::load::LoadAnswers;
use weigh_model::result::report::Report;
use weigh_model::result::run::{RunReport, RunRow};
use weigh_model::result::summary::{Row, State, Summary};

use super::sentence;
use super::{atlas, budget, command_times, profile, repeated, rules, run_page, versus};

/// Writes the result in a few words, without backticks.
pub fn words(report: &Report) -> String {
    let words = match (report.header().failure, report) {
        (Some(failure), _) => format!("failed: {failure}"),
        (None, Report::Compared(s)) => compared(s),
        (None, Report::Run(report)) => run(report),
        (None, Report::Rules(report)) => first(rules::words::sentences(report)),
        (None, Report::Budget(report)) => first(budget::outline(report).sentences),
        (None, Report::Profile(report)) => first(profile::outline(report).sentences),
        (None, Report::Atlas(report)) => first(atlas::outline(report).sentences),
        (None, Report::Repeated(report)) => first(repeated::outline(report).sentences),
    };
    format::label(&words.replace('`', ""))
}

fn first(sentences: Vec<String>) -> String {
    sentences.into_iter().next().unwrap_or_default().trim_end_matches('.').to_owned()
}

fn ended(state: State, words: String) -> String {
    match state {
        State::Interrupted => format!("interrupted: {words}"),
        _ => words,
    }
}

fn compared(s: &Summary) -> String {
    let words = match (&*s.results, command_times::commands(s)) {
        ([], [times]) => {
            let time = |seconds: f64| format::time_ns(seconds * 1e9);
            let deviation = times.deviation_s().map(|deviation| format!(" ± {}", time(deviation)));
            time(times.mean_s()) + &deviation.unwrap_or_default()
        }
        ([], _) => return first(sentence::sentences(s)),
        ([row], _) if s.versus.is_some() => {
            let timed = one(&versus::of_time(row), s.margin_pct);
            if timed.ends_with('%') { timed + " time" } else { timed }
        }
        ([row], _) => one(row, s.margin_pct),
        (rows, _) => verdicts(rows),
    };
    ended(s.state, words)
}

fn one(row: &Row, margin_pct: f64) -> String {
    if let Some(few) = row.preliminary {
        return format!("{}, {}", format::PRELIMINARY, format::preliminary(few.effect_pct));
    }
    let verdict = format::verdict(row.verdict, row.within_margin, margin_pct);
    match row.low_pct.or(row.high_pct) {
        Some(_) => format!("{verdict}, {}", format::percent(row.effect_pct)),
        None => verdict,
    }
}

fn verdicts(rows: &[Row]) -> String {
    let count = |verdict: Verdict| {
        let count = rows.iter().filter(|row| row.verdict == verdict).count();
        (count > 0).then(|| format!("{count} {}", format::verdict(verdict, false, 0.0)))
    };
    let all = [Verdict::Slower, Verdict::Faster, Verdict::Equivalent, Verdict::Inconclusive];
    all.into_iter().filter_map(count).collect::<Vec<_>>().join(", ")
}

fn run(report: &RunReport) -> String {
    let words = match (&report.net, report.indices.last(), &*report.loads, &*report.results) {
        (Some(net), ..) => match net.btu {
            Some(btu) => format!("BTU {}", format::rate(btu.value, "Mb/s")) + " Mb/s",
            None => "no BTU yet".to_owned(),
        },
        (None, Some(index), ..) => format!("{} {:.1}", index.suite, index.index),
        (None, None, [load], _) => best(load),
        (None, None, _, []) => {
            return run_page::how_it_ended(report).map_or_else(String::new, |it| first(vec![it]));
        }
        (None, None, _, [RunRow { rate, unit, .. }]) => {
            format!("{} {unit}", format::rate(*rate, unit))
        }
        (None, None, _, rows) => format!("rates of {}", format::plural(rows.len(), "row")),
    };
    ended(report.state, words)
}

fn best(load: &LoadAnswers) -> String {
    let Some(point) = load.best_point() else { return "no load point".to_owned() };
    let what = if load.peak.is_some() { "peak" } else { "best" };
    let rate = format::rate(point.jobs_per_min, "jobs/min");
    format!("{what} {}, {rate} jobs/min", format::plural(point.users, "user"))
}

#[cfg(test)]
mod tests {
    use weigh_model::example;

    use super::*;

    #[test]
    fn the_result_is_one_short_line_for_every_kind() {
        let mut failed = example::audit();
        failed.failure = Some("mkfs.xfs is not installed".into());
        failed.state = State::Failed;
        failed.results.clear();
        let mut one = example::audit();
        one.results.truncate(1);
        let mut interrupted = example::audit();
        interrupted.state = State::Interrupted;
        let mut two_commands = example::versus();
        two_commands.results.truncate(1);
        let row = &mut two_commands.results[0];
        (row.verdict, row.effect_pct) = (Verdict::Slower, -50.0);
        let cases: [(Report, &str); 8] = [
            (two_commands.into(), "slower, +100 % time"),
            (example::audit().into(), "9 slower, 2 equivalent, 1 inconclusive"),
            (one.into(), "slower, −85.2 %"),
            (interrupted.into(), "interrupted: 9 slower, 2 equivalent, 1 inconclusive"),
            (failed.into(), "failed: mkfs.xfs is not installed"),
            (example::one_command().into(), "100 ms ± 1.39 ms"),
            (example::versus().into(), "1 slower, 1 faster"),
            (example::run().into(), "12.00M ops/s"),
        ];
        let all = cases.map(|(report, expected)| (words(&report), expected));
        for (words, expected) in &all {
            assert_eq!(words, expected, "{all:#?}");
        }
    }

    #[test]
    fn foreign_text_stays_on_one_line() {
        let words = words(&example::hostile().into());
        assert!(!words.contains(['\n', '\u{1b}', '`']), "{words:?}");
    }
}
