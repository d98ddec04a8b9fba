//! The report of `weigh run` as HTML: what is on the page.

use crate::html::chart;
use crate::html::run::{self, RunPage};
use crate::load_text;
use crate::net_text;
use crate::profiled;
use crate::table::{Table, columns};
use crate::times;
use weigh_model::format;
use weigh_model::result::curve::{Chart, x_text};
use weigh_model::result::load::LoadAnswers;
use weigh_model::result::run::RunReport;
use weigh_model::result::run::RunRow;
use weigh_model::result::summary::State;
use weigh_model::result::work_name::{COPIES, USERS};

pub fn render(report: &RunReport) -> Result<String, String> {
    let page = RunPage {
        id: &report.id,
        started: &report.started,
        title: title(report),
        sentences: sentences(report),
        charts: charts(report),
        stacks: report.loads.iter().map(LoadAnswers::charts).collect(),
        is_scored: report.is_scored,
        results: results(report),
        tables: tables(report),
        abnormal: report.net.as_ref().map_or(&[], |net| &net.abnormal),
        copies: copies(report),
        printouts: profiled::printouts(&report.profiles),
        failures: &report.failures,
        warnings: &report.warnings,
        facts: &report.facts,
        machine: &report.machine,
        command: &report.command,
    };
    run::render(&page).map_err(|error| format!("the HTML report could not be written: {error}"))
}

/// Returns the charts that show more than the table of results.
fn charts(report: &RunReport) -> Vec<Chart> {
    let charts = report.charts().into_iter().filter(Chart::has_shape);
    charts.filter(|chart| !is_of_load(report, chart)).collect()
}

/// Returns true if the chart belongs to a mix, which shows throughput and job times in one picture.
fn is_of_load(report: &RunReport, chart: &Chart) -> bool {
    chart.x_unit == USERS && report.loads.iter().any(|load| load.mix == chart.title())
}

/// Returns the tables besides the results, each with its title.
fn tables(report: &RunReport) -> Vec<(String, Table)> {
    let times = times::table(&report.times).map(|table| {
        let title = format!("{} ({})", times::TITLE, times::LEGEND);
        (title, table)
    });
    let profiles = profiled::tables(&report.profiles);
    let loads = report.loads.iter().map(LoadAnswers::charts);
    let flat = loads.filter(|charts| !charts.iter().any(Chart::has_shape));
    let flat = flat.filter(|charts| !charts.is_empty());
    let flat = flat.map(|charts| (charts[0].title().to_owned(), chart::table(&charts)));
    let net = report.net.iter().flat_map(net_text::tables);
    flat.chain(net).chain(times).chain(profiles).collect()
}

/// Returns the title, a sentence in a line. A ramp and a grid show their answer, as it comes first.
pub fn title(report: &RunReport) -> String {
    if let Some(answer) = answers(report).into_iter().next() {
        return answer.replace('`', "");
    }
    let place = match report.machine.hostname.as_str() {
        "" => "on this machine".to_owned(),
        host => format!("on {host}"),
    };
    match report.results.len() {
        0 => format!("Nothing was measured {place}"),
        1 => format!("1 measurement was taken {place}"),
        count => format!("{} were taken {place}", format::plural(count, "measurement")),
    }
}

/// How it ended, and the indices.
pub fn sentences(report: &RunReport) -> Vec<String> {
    let ending = how_it_ended(report);
    let indices = report.indices.iter().map(|index| index.sentence());
    ending.into_iter().chain(indices).chain(answers(report).into_iter().skip(1)).collect()
}

/// Returns how it ended if not well, or why there is nothing in it.
pub fn how_it_ended(report: &RunReport) -> Option<String> {
    let is_empty = report.results.is_empty();
    match (&report.failure, report.state) {
        (Some(failure), _) if is_empty => {
            Some(format!("The run failed before anything was measured: {failure}"))
        }
        (Some(failure), _) => Some(format!("The run failed: {failure}")),
        (None, State::Interrupted) if is_empty => {
            Some("Interrupted before anything was measured.".into())
        }
        (None, State::Interrupted) => Some("Interrupted: these results are partial.".into()),
        (None, State::Running) if is_empty => Some("No result yet.".into()),
        _ if is_empty && !report.failures.is_empty() => {
            Some("No workload has a result; the failures say why.".into())
        }
        _ => is_empty.then(|| "Nothing was measured.".into()),
    }
}

fn answers(report: &RunReport) -> Vec<String> {
    let loads = report.loads.iter().flat_map(load_text::sentences);
    loads.chain(report.net.iter().flat_map(net_text::sentences)).collect()
}

pub fn results(report: &RunReport) -> Table {
    let columns = columns(
        "workload|>at|>rate|unit|>time per operation|>spread|>lowest|>highest|>samples|\
         >user|>system|>server|>device/files|>driver|>efficiency|>index",
    );
    Table::new(columns, report.results.iter().map(cells).collect())
}

fn cells(row: &RunRow) -> Vec<String> {
    // Of copies and users, the name has the number.
    let on_curve =
        row.on_curve.as_ref().filter(|on| ![COPIES, USERS].contains(&on.x_unit.as_str()));
    let at = on_curve.map(|on| format!("{} {}", x_text(on.x, &on.x_unit), on.x_unit));
    let [user, system, server] = row.cpu_shares();
    vec![
        format::label(&row.workload),
        at.map(|at| format::label(&at)).unwrap_or_default(),
        format::rate(row.rate, &row.unit),
        format::label(&row.unit),
        row.time_ns().map(format::time_ns).unwrap_or_default(),
        spread(row),
        format::rate(row.lowest, &row.unit),
        format::rate(row.highest, &row.unit),
        format::integer(row.samples as u64),
        user,
        system,
        server,
        row.device_share().unwrap_or_default(),
        row.driver_share().unwrap_or_default(),
        row.efficiency_pct.map(|pct| format!("{pct:.0} %")).unwrap_or_default(),
        row.index.map(|index| format!("{index:.1}")).unwrap_or_default(),
    ]
}

/// How far the samples scatter; nothing of one sample, which does not.
pub fn spread(row: &RunRow) -> String {
    match row.samples {
        1 => String::new(),
        _ => format!("±{} %", format::unsigned(row.spread_pct)),
    }
}

/// How evenly the copies of each workload ran.
pub fn copies(report: &RunReport) -> Option<Table> {
    let rows = report.results.iter().filter_map(|row| {
        // One copy alone has nothing to differ from.
        let copies = row.copies.as_ref().filter(|copies| copies.lowest < copies.highest)?;
        Some(vec![
            format::label(&row.workload),
            format::rate(copies.lowest, &row.unit),
            format::rate(copies.highest, &row.unit),
            format::label(&row.unit),
            format!("{} %", format::unsigned(copies.variation_pct)),
        ])
    });
    let columns = columns("workload|>slowest|>fastest|unit|>variation");
    Some(Table::new(columns, rows.collect())).filter(|table| !table.rows.is_empty())
}
