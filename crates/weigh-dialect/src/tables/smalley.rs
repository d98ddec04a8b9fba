//! Table 9 of Smalley's report on SELinux (2001): microseconds per loop, milliseconds per shell script,
//! megabytes per second, and the overhead in per cent.
//!
//! His overhead is how much longer the same work takes: the rate of the baseline over the treated one,
//! less 1. That holds for his throughputs too.

use crate::eight_tests::{EIGHT_TESTS, is_test};
use crate::side_by_side::NOT_AVAILABLE;
use crate::{Dialect, Sheet, SheetLine, format, lines, three_digits, whole_percent};
use weigh_model::result::imported::per_second;
use weigh_report::table::{Align, Table};
use weigh_report::text::wrap;

/// Width of the sentence below the table, in columns.
const WIDTH: usize = 80;

pub static TABLE: Dialect =
    Dialect { name: "smalley", study_of: Some("SELinux"), is_of_time: false, render, page: None };

fn render(sheet: &Sheet) -> Result<String, String> {
    if sheet.lines.is_empty() {
        return Err("no result for this table".into());
    }
    let mut columns = vec![("Microbenchmark", Align::Left)];
    for (number, arm) in sheet.arms.iter().enumerate() {
        columns.push((arm.as_str(), Align::Right));
        if number > 0 {
            columns.push(("Overhead", Align::Right));
        }
    }
    columns.push(("unit", Align::Left));
    let his =
        EIGHT_TESTS.map(|(title, workload)| (title, workload, his_line(sheet, title, workload)));
    let is_his = |line: &SheetLine| {
        his.iter().any(|(_, _, found)| found.is_some_and(|found| found.name == line.name))
    };
    let others = sheet.lines.iter().filter(|line| !is_his(line));
    let others = others.map(|line| cells(&format::label(&line.name), line));
    if his.iter().all(|(_, _, found)| found.is_none()) {
        return Ok(lines(&Table::new(columns, others.collect())));
    }
    let eight = his.iter().map(|(title, _, found)| match found {
        Some(line) => cells(title, line),
        None => without_result(title, columns.len()),
    });
    let table = lines(&Table::new(columns.clone(), eight.chain(others).collect()));
    let missing = his.iter().filter(|(_, _, found)| found.is_none());
    let missing: Vec<String> =
        missing.map(|(title, workload, _)| format!("{title} (`-w {workload}`)")).collect();
    Ok(match missing.is_empty() {
        true => table,
        false => {
            let sentence = format!("Missing from his eight rows: {}.", missing.join(", "));
            format!("{table}{}\n", wrap(&sentence, WIDTH, 0).join("\n"))
        }
    })
}

/// The line of his test: of an import by his name, of our own experiment by the workload's. The other
/// placements of a workload keep their own names.
fn his_line<'a>(sheet: &'a Sheet, title: &str, workload: &str) -> Option<&'a SheetLine> {
    let is_his = |line: &&SheetLine| {
        let name = line.name.to_string();
        name == title || is_test(&name, workload)
    };
    sheet.lines.iter().find(is_his)
}

fn cells(title: &str, line: &SheetLine) -> Vec<String> {
    let mut cells = vec![title.to_owned()];
    for (number, rate) in line.rates.iter().enumerate() {
        let shown = rate.map(|rate| three_digits(converted(rate, &line.unit).0));
        cells.push(shown.unwrap_or_else(|| NOT_AVAILABLE.into()));
        if number > 0 {
            cells.push(overhead(line.rates[0], *rate));
        }
    }
    cells.push(converted(1.0, &line.unit).1);
    cells
}

/// A row without the unit, which only a result has.
fn without_result(title: &str, columns: usize) -> Vec<String> {
    let mut cells = vec![NOT_AVAILABLE.to_owned(); columns];
    cells[0] = title.to_owned();
    cells[columns - 1].clear();
    cells
}

/// A rate in the units of the table, and that unit.
fn converted(rate: f64, unit: &str) -> (f64, String) {
    if let Some(per_second) = per_second(unit) {
        return (per_second / rate, unit.replace("us", "µs"));
    }
    match unit {
        "ops/s" | "runs/s" => (1e6 / rate, "µs".into()),
        "lpm" => (60e3 / rate, "ms".into()),
        "ops/Ginstr" | "runs/Ginstr" => (1e9 / rate, "instr".into()),
        "KB/Ginstr" => (1e9 / rate, "instr/KB".into()),
        "KBps" => (rate / 1024.0, "MB/s".into()),
        other => (rate, format::label(other)),
    }
}

fn overhead(baseline: Option<f64>, treated: Option<f64>) -> String {
    match (baseline, treated) {
        (Some(baseline), Some(treated)) => whole_percent(baseline / treated),
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Shows a run of workloads that all take 2 µs, as lines of single-spaced words.
    fn shown(workloads: &[&str]) -> Vec<String> {
        let rates = workloads.iter().map(|name| ((*name).into(), "ops/s".into(), 5e5));
        let text = render(&Sheet::of_rates("id", "none", rates)).unwrap();
        text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect()
    }

    #[test]
    fn his_eight_rows_come_first_in_his_order_and_the_missing_ones_are_named() {
        let lines = shown(&["stat", "execl", "pipe", "context1@same-cpu", "context1@two-cpus"]);
        let expected = [
            "Microbenchmark none unit",
            "file copy 4KB n/a",
            "file copy 1KB n/a",
            "file copy 256B n/a",
            "pipe 2.00 µs",
            "pipe switching 2.00 µs",
            "process creation n/a",
            "execl 2.00 µs",
            "shell scripts (8) n/a",
            "stat 2.00 µs",
            "context1@two-cpus 2.00 µs",
        ];
        let without_rules: Vec<&String> =
            lines.iter().filter(|line| !line.starts_with(['-', '─'])).collect();
        assert_eq!(without_rules[..expected.len()], expected, "{lines:#?}");
        let below = lines.iter().skip_while(|line| !line.starts_with("Missing"));
        assert_eq!(
            below.cloned().collect::<Vec<_>>().join(" "),
            "Missing from his eight rows: file copy 4KB (`-w fsdisk`), file copy 1KB (`-w fstime`), file \
             copy 256B (`-w fsbuffer`), process creation (`-w spawn`), shell scripts (8) (`-w shell8`)."
        );
    }

    #[test]
    fn an_experiment_without_his_tests_keeps_its_own_rows() {
        let lines = shown(&["stat", "getppid"]);
        assert_eq!(lines.last().unwrap(), "getppid 2.00 µs");
        assert!(!lines.iter().any(|line| line.contains("execl")), "{lines:#?}");
    }
}
