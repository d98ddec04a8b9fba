//! The report of `weigh run` on a terminal.

use std::collections::HashSet;
use std::fmt::Write as _;

use crate::experiment::run_report::{RunReport, RunRow};
use crate::report::curve::{Chart, Curve, Quantity, x_text};
use crate::report::summary::State;
use crate::report::{curve_text, format};

/// The whole report.
pub fn render(report: &RunReport, width: usize, colour: bool) -> String {
    let mut text = String::new();
    if let Some(failure) = &report.failure {
        let _ = writeln!(text, "Failed: {failure}\n");
    }
    if report.state == State::Interrupted {
        text.push_str("Interrupted; this is what was measured until then.\n\n");
    }
    let charts = report.charts();
    let drawn: HashSet<&str> =
        charts.iter().flat_map(Chart::points).map(|point| point.workload.as_str()).collect();
    let alone: Vec<&RunRow> =
        report.results.iter().filter(|row| !drawn.contains(row.workload.as_str())).collect();
    if !alone.is_empty() || charts.is_empty() {
        text.push_str(&table(&alone, colour));
    }
    for chart in &charts {
        for curve in &chart.curves {
            if !text.is_empty() {
                text.push('\n');
            }
            for line in curve_lines(report, chart, curve, width, colour) {
                let _ = writeln!(text, "{line}");
            }
        }
    }
    text.push_str(&compare_copies(report));
    for index in &report.indices {
        let _ = writeln!(text, "\n{}", index.sentence());
    }
    for failure in &report.failures {
        let _ = writeln!(text, "\n{} gave no result: {}", failure.workload, failure.reason);
    }
    for warning in &report.warnings {
        let _ = writeln!(text, "\nWarning: {warning}");
    }
    let _ = writeln!(text, "\nAgain: {}\nKept:  `weigh show {}`", report.command, report.id);
    text
}

/// The rows that are points of no curve.
fn table(rows: &[&RunRow], colour: bool) -> String {
    let mut text = String::new();
    let name = longest_name(rows.iter().map(|row| row.workload.as_str()));
    let has_index = rows.iter().any(|row| row.index.is_some());
    let head = format!(
        "{:<name$} {:>12} {:<7} {:>8}  {:>25} {:>8}{}",
        "workload",
        "rate",
        "unit",
        "spread",
        "lowest to highest",
        "samples",
        if has_index { format!("{:>9}", "index") } else { String::new() }
    );
    let _ = writeln!(text, "{}", if colour { format!("\x1b[1m{head}\x1b[0m") } else { head });
    for row in rows {
        let range =
            format!("{} to {}", format::rate(row.lowest, ""), format::rate(row.highest, ""));
        let index = row.index.map(|index| format!("{index:>9.1}")).unwrap_or_default();
        let _ = writeln!(
            text,
            "{:<name$} {:>12} {:<7} {:>8}  {:>25} {:>8}{}",
            row.workload,
            format::rate(row.rate, "").trim(),
            row.unit,
            spread(row),
            range,
            row.samples,
            index
        );
    }
    text
}

/// A curve as a table with bars. Each has a scale of its own, or one that gets slow would flatten the others.
fn curve_lines(
    report: &RunReport,
    chart: &Chart,
    curve: &Curve,
    width: usize,
    colour: bool,
) -> Vec<String> {
    let rows = |name: &str| report.results.iter().find(|row| row.workload == name);
    let unit = curve.points.first().and_then(|point| rows(&point.workload)).map(|row| &row.unit);
    let rate = format!("rate, {}", unit.map_or("", String::as_str));
    let columns = [chart.x_unit.as_str(), "per operation", &rate, "spread", "efficiency"];
    let longest = curve.points.iter().map(|point| point.y).fold(0.0, f64::max);
    let points: Vec<curve_text::Point> = curve
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
                spread(row),
                efficiency.unwrap_or_default(),
            ];
            Some(curve_text::Point { cells, share: point.y / longest })
        })
        .collect();
    curve_text::lines(&curve.series, &columns, &points, width, colour)
}

fn spread(row: &RunRow) -> String {
    format!("±{} %", format::unsigned(row.spread_pct))
}

fn longest_name<'a>(names: impl Iterator<Item = &'a str>) -> usize {
    names.map(|name| name.chars().count()).fold(17, usize::max)
}

/// How evenly the copies of each workload ran.
fn compare_copies(report: &RunReport) -> String {
    let mut text = String::new();
    let name = longest_name(report.results.iter().map(|row| row.workload.as_str()));
    for row in &report.results {
        let Some(copies) = &row.copies else { continue };
        let _ = writeln!(
            text,
            "{:<name$} {:>12} to {} {} a copy, coefficient of variation {} %",
            row.workload,
            format::rate(copies.lowest, "").trim(),
            format::rate(copies.highest, "").trim(),
            row.unit,
            format::unsigned(copies.variation_pct)
        );
    }
    if text.is_empty() { text } else { format!("\nThe copies of each, alone:\n{text}") }
}
