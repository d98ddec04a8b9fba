//! Table 9 of Smalley's report on SELinux (2001): microseconds per loop, milliseconds per shell script,
//! megabytes per second, and the overhead in per cent.
//!
//! His overhead is how much longer the same work takes: the rate of the baseline over the treated one,
//! less 1. That holds for his throughputs too.

use crate::dialect::{Dialect, Sheet, format, lines, three_digits, whole_percent};
use crate::table::{Align, Table};
use weigh_model::result::imported::per_second;

pub static TABLE: Dialect = Dialect { name: "smalley", is_of_time: false, render, page: None };

fn render(sheet: &Sheet) -> Result<String, String> {
    let mut columns = vec![("Microbenchmark", Align::Left)];
    for (number, arm) in sheet.arms.iter().enumerate() {
        columns.push((arm.as_str(), Align::Right));
        if number > 0 {
            columns.push(("Overhead", Align::Right));
        }
    }
    columns.push(("unit", Align::Left));
    let rows: Vec<Vec<String>> = sheet
        .lines
        .iter()
        .map(|line| {
            let mut cells = vec![format::label(&line.name)];
            for (number, rate) in line.rates.iter().enumerate() {
                let shown = rate.map(|rate| three_digits(converted(rate, &line.unit).0));
                cells.push(shown.unwrap_or_else(|| "n/a".into()));
                if number > 0 {
                    cells.push(overhead(line.rates[0], *rate));
                }
            }
            cells.push(converted(1.0, &line.unit).1);
            cells
        })
        .collect();
    if rows.is_empty() {
        return Err("no result for this table".into());
    }
    Ok(lines(&Table::new(columns, rows)))
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
