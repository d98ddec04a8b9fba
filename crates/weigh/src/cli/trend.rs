//! `weigh history --trend`: the rate of each workload from the first to the last experiment.

use std::collections::BTreeMap;

use jiff::{Timestamp, tz::TimeZone};
use weigh_engine::report;
use weigh_model::format;
use weigh_model::record::Entry;
use weigh_model::result::report::Report;
use weigh_store::Store;

/// As wide as the bar of the highest rate.
const BAR: usize = 30;

/// A rate of an experiment without a treatment.
struct Point {
    started: String,
    id: String,
    rate: f64,
}

/// The rates of these experiments, the latest of which comes first, a block for each workload. What has no
/// rates is left out.
///
/// # Errors
/// A sentence, where an experiment cannot be read.
pub fn blocks(
    entries: &[Entry],
    store: &Store,
    wants: impl Fn(&str) -> bool,
) -> Result<String, String> {
    let mut points: BTreeMap<(String, String), Vec<Point>> = BTreeMap::new();
    for entry in entries.iter().rev() {
        for (workload, unit, rate) in rates(&report::load(store, &entry.id)?) {
            if wants(&workload) {
                let (started, id) = (local(&entry.started), entry.id.to_string());
                points.entry((workload, unit)).or_default().push(Point { started, id, rate });
            }
        }
    }
    let blocks: Vec<String> =
        points.iter().map(|((name, unit), of_it)| block(name, unit, of_it)).collect();
    Ok(blocks.join("\n"))
}

/// The rates of a machine to which nothing was done: those of a run, and those of a baseline.
fn rates(report: &Report) -> Vec<(String, String, f64)> {
    let row = |name: &dyn ToString, unit: &str, rate| (name.to_string(), unit.to_owned(), rate);
    let mut rates = match report {
        Report::Run(run) => {
            run.results.iter().map(|one| row(&one.workload, &one.unit, one.rate)).collect()
        }
        Report::Compared(s) if s.imported.is_none() => {
            s.results.iter().map(|one| row(&one.workload, &one.unit, one.baseline)).collect()
        }
        _ => Vec::new(),
    };
    // Each treatment has a row with the same baseline.
    rates.dedup_by(|one, before| one.0 == before.0);
    rates
}

fn block(name: &str, unit: &str, points: &[Point]) -> String {
    let highest = points.iter().map(|point| point.rate).fold(0.0, f64::max);
    let first = points.first().map_or(f64::NAN, |point| point.rate);
    let line = |(at, point): (usize, &Point)| {
        let bar = "█".repeat((point.rate / highest * BAR as f64).round().max(0.0) as usize);
        let change = match at {
            0 => String::new(),
            _ => format::percent((point.rate / first - 1.0) * 100.0),
        };
        let rate = format::rate(point.rate, unit);
        format!("{:<16}  {:<6}  {rate:>12}  {change:>8}  {bar}\n", point.started, point.id)
    };
    let lines: String = points.iter().enumerate().map(line).collect();
    format!("{}, {}\n{lines}", format::label(name), format::label(unit))
}

/// The time on this machine's clock; what is no time stays as it is.
pub fn local(started: &str) -> String {
    match started.parse::<Timestamp>() {
        Ok(time) => time.to_zoned(TimeZone::system()).strftime("%Y-%m-%d %H:%M").to_string(),
        Err(_) => started.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_rate_has_its_change_since_the_first_and_a_bar() {
        let point = |rate| Point { started: "2026-11-29 12:00".into(), id: "k3f9qx".into(), rate };
        let text = block("getppid", "ops/s", &[point(1e6), point(5e5)]);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[0], "getppid, ops/s");
        let bars = |line: &str| line.matches('█').count();
        assert_eq!((bars(lines[1]), bars(lines[2])), (BAR, BAR / 2), "{text}");
        assert!(lines[2].contains("−50.0 %") && !lines[1].contains('%'), "{text}");
    }
}
