//! The report of `weigh run` on a terminal.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use super::run_page;
use crate::curve_text;
use crate::failed;
use crate::load_text;
use crate::net_text;
use crate::paint::{BOLD, FAINT, paint};
use crate::profiled::{self, MOST_PRINTED, ProfilerText};
use crate::screen::{Room, Screen, first_sentence};
use crate::table::{Table, columns};
use crate::text::{brief_line, wrap};
use crate::times;
use weigh_model::described;
use weigh_model::format;
use weigh_model::result::curve::{Chart, Curve, Quantity, x_text};
use weigh_model::result::load::{LoadAnswers, percent_known};
use weigh_model::result::net::NetAnswers;
use weigh_model::result::run::RunReport;
use weigh_model::result::run::RunRow;
use weigh_model::result::work_name::WorkName;

/// The whole report; what it comes to, where there is an index, is the last thing on the screen.
pub fn render(report: &RunReport, screen: &Screen) -> String {
    let Screen { room, colour, .. } = *screen;
    let mut text = String::new();
    if let Some(ending) = run_page::how_it_ended(report) {
        text.push_str(paragraph(&ending, room).trim_start_matches('\n'));
        text.push_str(if report.results.is_empty() { "" } else { "\n" });
    }
    if let Some(net) = &report.net {
        text.push_str(&net_lines(net, room, colour));
        text.push_str(&ending(report, screen));
        return text;
    }
    let counts = report.counts();
    let has_tables = report.is_scored && counts.len() > 1;
    let mut charts = report.charts();
    charts.retain(|chart| !(has_tables && chart.is_scaling()));
    let drawn: BTreeSet<&WorkName> =
        charts.iter().flat_map(Chart::points).map(|point| &point.workload).collect();
    let alone: Vec<&RunRow> =
        report.results.iter().filter(|row| !drawn.contains(&row.workload)).collect();
    if has_tables {
        let table = |count| table_of_copies(report, &alone, count, room, colour);
        text.push_str(&counts.into_iter().map(table).collect::<Vec<_>>().join("\n"));
    } else if !alone.is_empty() {
        text.push_str(&table(&alone, room, colour));
    }
    for chart in &charts {
        for curve in &chart.curves {
            if !text.is_empty() {
                text.push('\n');
            }
            for line in curve_lines(report, chart, curve, room, colour) {
                let _ = writeln!(text, "{line}");
            }
        }
    }
    text.push_str(&compare_copies(report, room, colour));
    if let Some(of_times) = times::table(&report.times) {
        let _ = write!(text, "\n{}\n{}", times::TITLE, lines(&of_times, room, colour));
        let longest = times::longest(&report.times).unwrap_or_default();
        for sentence in [&longest, times::LEGEND] {
            text.push_str(paragraph(sentence, room).trim_start_matches('\n'));
        }
    }
    text.push_str(&profiles(report, screen));
    for sentence in report.results.iter().filter_map(RunRow::lost_inserts) {
        text.push_str(&paragraph(&format::label(&sentence), room));
    }
    text.push_str(&ending(report, screen));
    for index in report.indices.iter().filter(|_| !has_tables) {
        text.push_str(&paragraph(&index.sentence(), room));
    }
    for answers in &report.loads {
        text.push_str(&paragraph(&load_text::sentences(answers).join(" "), room));
    }
    text
}

fn profiles(report: &RunReport, screen: &Screen) -> String {
    let Screen { room, colour, .. } = *screen;
    let most = if screen.is_verbose { usize::MAX } else { MOST_PRINTED };
    let mut text = String::new();
    for (title, table) in profiled::tables(&report.profiles) {
        let _ = write!(text, "\n{title}\n{}", lines(&table, room, colour));
    }
    for ProfilerText { title, lines } in profiled::printouts(&report.profiles) {
        let _ = writeln!(text, "\n{title}\n{}", profiled::first(&lines, most, room.cut).join("\n"));
    }
    text
}

/// The answers first: sentences, then the tables.
fn net_lines(net: &NetAnswers, room: Room, colour: bool) -> String {
    let mut text: String = net_text::sentences(net)
        .iter()
        .flat_map(|sentence| wrap(&format::label(sentence), room.wrap, 0))
        .map(|line| line + "\n")
        .collect();
    for (title, table) in net_text::tables(net) {
        let _ = write!(text, "\n{title}\n{}", lines(&table, room, colour));
    }
    text
}

/// Writes the failures, the disturbances, where it was measured, and the command to repeat the run.
fn ending(report: &RunReport, screen: &Screen) -> String {
    let (mut text, room) = (String::new(), screen.room);
    for (names, reason) in failed::by_reason(&report.failures, |one| one.workload.to_string()) {
        let failed = format!("{names} gave no result: {reason}");
        text.push_str(&paragraph(&failed, room));
    }
    for (number, warning) in report.warnings.iter().enumerate() {
        let whole = warning.to_string();
        let shown =
            if screen.is_verbose || room.is_file() { whole } else { first_sentence(&whole) };
        let lines = paragraph(&format!("Warning: {}", format::label(&shown)), room);
        text.push_str(if number == 0 { &lines } else { lines.trim_start_matches('\n') });
    }
    if screen.is_verbose && !report.facts.is_empty() {
        text.push_str("\nEnvironment\n");
        for fact in &report.facts {
            text.push_str(paragraph(&format::label(fact), room).trim_start_matches('\n'));
        }
    }
    text.push('\n');
    for line in context(report, room).iter().filter(|_| screen.is_verbose) {
        let _ = writeln!(text, "{}", paint(line, FAINT, screen.colour));
    }
    let _ = writeln!(text, "again: {}", format::label(&report.command));
    if !screen.is_verbose && !report.id.is_empty() {
        let _ = writeln!(text, "more:  weigh show -v {}", report.id);
    }
    if let Some(html) = screen.html {
        let _ = writeln!(text, "HTML:  {html}");
    }
    text
}

fn context(report: &RunReport, room: Room) -> Vec<String> {
    let all = report.series.iter().map(|series| series.samples.len()).sum();
    let shown: usize = report.results.iter().map(|row| row.samples).sum();
    // As of a ramp, whose results are those of some load points.
    let shown = match shown == all {
        true => String::new(),
        false => format!(" ({} in the results)", format::integer(shown as u64)),
    };
    let run = format!(
        "experiment {}: {}{shown}, started {}",
        report.id,
        format::plural(all, "sample"),
        report.started
    );
    let mut lines = wrap(&format::label(&run), room.wrap, 2);
    let machine = described::line(&report.machine);
    if !machine.is_empty() {
        lines.extend(brief_line(&format!("machine: {machine}"), room));
    }
    lines
}

/// Builds the table of one number of copies, with its indices. UnixBench reports each number of
/// copies separately.
fn table_of_copies(
    report: &RunReport,
    rows: &[&RunRow],
    count: usize,
    room: Room,
    colour: bool,
) -> String {
    let of_it: Vec<&RunRow> =
        rows.iter().filter(|row| row.workload.copies() == count).copied().collect();
    let head = match count {
        1 => "One copy of each workload".to_owned(),
        _ => format!("{count} copies of each workload at once; rates are sums over all copies"),
    };
    let mut text = format!("{head}\n{}", table(&of_it, room, colour));
    for index in report.indices.iter().filter(|index| index.copies == count) {
        text.push_str(&paragraph(&index.sentence(), room));
    }
    text
}

/// The rows that are points of no curve. What comes last goes first where the terminal is narrow.
fn table(rows: &[&RunRow], room: Room, colour: bool) -> String {
    let columns = columns(
        "workload|>rate|unit|>index|>device/files|>driver|>efficiency|>spread|>samples|\
         >user|>system|>server|>lowest to highest",
    );
    lines(&Table::new(columns, rows.iter().map(|row| cells(row)).collect()), room, colour)
}

fn cells(row: &RunRow) -> Vec<String> {
    // Of one copy it is 100 % by definition.
    let efficiency = row.efficiency_pct.filter(|_| row.workload.copies() > 1);
    let [rate, lowest, highest] =
        [row.rate, row.lowest, row.highest].map(|rate| format::rate(rate, &row.unit));
    let [user, system, server] = row.cpu_shares();
    vec![
        format::label(&row.workload),
        rate,
        format::label(&row.unit),
        row.index.map(|index| format!("{index:.1}")).unwrap_or_default(),
        row.device_share().unwrap_or_default(),
        row.driver_share().unwrap_or_default(),
        efficiency.map(|pct| format!("{pct:.0} %")).unwrap_or_default(),
        run_page::spread(row),
        format::integer(row.samples as u64),
        user,
        system,
        server,
        format!("{lowest} to {highest}"),
    ]
}

fn lines(table: &Table, room: Room, colour: bool) -> String {
    let mut lines = table.to_lines(room.cut).into_iter();
    let head = lines.next().map(|head| paint(&head, BOLD, colour));
    head.into_iter().chain(lines).map(|line| line + "\n").collect()
}

/// A curve as a table with bars. Each has a scale of its own, or one that gets slow would flatten the others.
fn curve_lines(
    report: &RunReport,
    chart: &Chart,
    curve: &Curve,
    room: Room,
    colour: bool,
) -> Vec<String> {
    let rows = |name: &WorkName| report.results.iter().find(|row| row.workload == *name);
    let unit = curve.points.first().and_then(|point| rows(&point.workload)).map(|row| &row.unit);
    let rate = format!("rate, {}", unit.map_or("", String::as_str));
    let of_load = report.loads.iter().find(|load| load.mix == chart.title());
    let pct = of_load.map_or(99, |load| percent_known(load.points.iter()));
    let within = format!("{pct} % within");
    let of_x = chart.x_unit.as_str();
    let columns =
        [of_x, "per operation", &rate, "spread", "efficiency", &within, "driver", "server", ""];
    let longest = curve.points.iter().map(|point| point.y).fold(0.0, f64::max);
    let points: Vec<curve_text::PlotRow> = curve
        .points
        .iter()
        .filter_map(|point| {
            let row = rows(&point.workload)?;
            let time = chart.quantity == Quantity::Time;
            let efficiency = row.efficiency_pct.map(|pct| format!("{pct:.0} %"));
            let cells = vec![
                x_text(point.x, &chart.x_unit),
                if time { format::time_ns(point.y) } else { String::new() },
                format::rate(row.rate, &row.unit),
                run_page::spread(row),
                efficiency.unwrap_or_default(),
                of_load.and_then(|load| job_time_at(load, point.x, pct)).unwrap_or_default(),
                row.driver_share().unwrap_or_default(),
                row.cpu_shares()[2].clone(),
                marks_at(chart, point.x),
            ];
            Some(curve_text::PlotRow { cells, share: point.y / longest })
        })
        .collect();
    curve_text::lines(&curve.series, &columns, &points, room.wrap, colour)
}

fn marks_at(chart: &Chart, x: f64) -> String {
    let there = chart.marks.iter().filter(|mark| mark.x == x);
    there.map(|mark| mark.text.as_str()).collect::<Vec<_>>().join(", ")
}

/// Within which time so many per cent of the jobs end with so many users.
fn job_time_at(load: &LoadAnswers, users: f64, pct: u8) -> Option<String> {
    let point = load.points.iter().find(|point| point.users as f64 == users)?;
    point.job_time_ns(pct).map(format::time_ns)
}

/// How evenly the copies of each workload ran.
fn compare_copies(report: &RunReport, room: Room, colour: bool) -> String {
    let Some(table) = run_page::copies(report) else { return String::new() };
    format!(
        "\nRates of single copies, and their coefficient of variation:\n{}",
        lines(&table, room, colour)
    )
}

fn paragraph(text: &str, room: Room) -> String {
    wrap(&format::label(text), room.wrap, 0)
        .into_iter()
        .fold("\n".to_owned(), |text, line| text + &line + "\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::formats::{html, junit, markdown};
    use weigh_model::example;
    use weigh_model::result::summary::{Failure, State};

    fn shown(report: &RunReport, is_verbose: bool) -> String {
        render(report, &Screen { room: Room::terminal(100), is_verbose, ..Screen::default() })
    }

    #[test]
    fn in_full_it_says_which_run_it_is_and_on_which_machine() {
        let report = example::run();
        let text = shown(&report, true);
        let place = "\nexperiment r7n2: 3 samples, started 2026-11-21T20:15:04Z\n\
                     machine: bench1, AMD EPYC 7B13, 2 CPUs";
        assert!(text.contains(place), "{text}");
        let brief = shown(&report, false);
        assert!(!brief.contains("machine: ") && brief.contains("weigh show -v r7n2"), "{brief}");
    }
    #[test]
    fn without_a_result_it_says_why_in_every_form() {
        let empty = || RunReport { results: Vec::new(), series: Vec::new(), ..example::run() };
        let (mut failed, mut interrupted, mut broken) = (empty(), empty(), empty());
        (failed.state, failed.failure) = (State::Failed, Some("there is no mkfs.xfs".into()));
        interrupted.state = State::Interrupted;
        let (workload, arm, reason) = ("stat".into(), "none".into(), "it broke".into());
        broken.failures.push(Failure { workload, arm, reason });
        for (report, why) in [
            (failed, "The run failed before anything was measured: there is no mkfs.xfs"),
            (interrupted, "Interrupted before anything was measured."),
            (broken, "No workload has a result; the failures say why."),
        ] {
            let text = shown(&report, false);
            assert!(text.starts_with(why), "{text}");
            assert!(!text.contains("\n\n\n"), "there is an empty table: {text}");
            let report = report.into();
            let markdown = (markdown::FORMAT.render)(&report).unwrap();
            assert!(
                markdown.contains("Nothing was measured on") && !markdown.contains("\n|"),
                "{markdown}"
            );
            for format in [&markdown::FORMAT, &html::FORMAT, &junit::FORMAT] {
                let text = (format.render)(&report).unwrap().replace("&#x2f;", "/");
                assert!(text.contains(why), "{}: {text}", format.name);
            }
        }
    }
}
