//! What an operation takes, as tables: a short one for people at a terminal, and one with the effects.

use super::format;
use super::metrics::{Contrast, Latency, Metrics, Used};
use super::summary::{Row, Summary};
use super::table::{Align, Table};

/// The table of a terminal, with the column dropped first last; `None` where there are no latencies.
pub fn table(s: &Summary) -> Option<Table> {
    let has_quantile = |latency: &Latency| latency.p50_ns.is_some();
    let is_shown = |row: &&Row| row.metrics.latency.as_ref().is_some_and(has_quantile);
    let rows: Vec<&Row> = s.results.iter().filter(is_shown).collect();
    if rows.is_empty() {
        return None;
    }
    let several = rows.iter().any(|row| row.treatment != rows[0].treatment);
    let cells = |row: &&Row| {
        let mut cells = vec![
            format::shorten(&format::label(&row.workload), LONGEST_NAME),
            if several { format::label(&row.treatment) } else { String::new() },
        ];
        cells.extend(quantiles(&row.metrics).map(|contrast| {
            contrast.map(|c| format::change_ns(c.baseline, c.treated)).unwrap_or_default()
        }));
        cells.push(used(&row.metrics, Used::cpu_ns, format::change_ns));
        cells
    };
    let columns = vec![
        ("workload", Align::Left),
        ("treatment", Align::Left),
        ("p50", Align::Right),
        ("p99", Align::Right),
        ("p99.9", Align::Right),
        ("CPU/op", Align::Right),
    ];
    Some(Table::new(columns, rows.iter().map(cells).collect()))
}

const LONGEST_NAME: usize = 24;

/// The same with the effects, context switches, faults and what the PMU counted.
pub fn wide_table(s: &Summary) -> Option<Table> {
    let rows: Vec<&Row> =
        s.results.iter().filter(|row| row.metrics != Metrics::default()).collect();
    if rows.is_empty() {
        return None;
    }
    let several = rows.iter().any(|row| row.treatment != rows[0].treatment);
    let cells = |row: &&Row| {
        let mut cells = vec![
            format::label(&row.workload),
            if several { format::label(&row.treatment) } else { String::new() },
        ];
        for contrast in quantiles(&row.metrics) {
            cells.push(
                contrast.map(|c| format::change_ns(c.baseline, c.treated)).unwrap_or_default(),
            );
            cells.push(contrast.map(effect).unwrap_or_default());
        }
        cells.push(used(&row.metrics, Used::cpu_ns, format::change_ns));
        cells.push(used(&row.metrics, Used::switches, change_count));
        cells.push(used(&row.metrics, Used::faults, change_count));
        let counters = row.metrics.counters.as_ref();
        for contrast in [
            counters.and_then(|counters| counters.kernel_instructions_per_op.as_ref()),
            counters.and_then(|counters| counters.cycles_per_op.as_ref()),
        ] {
            let change = contrast.map(|c| change_count(c.baseline, c.treated));
            cells.push(change.unwrap_or_default());
        }
        cells
    };
    let columns = vec![
        ("workload", Align::Left),
        ("treatment", Align::Left),
        ("p50", Align::Right),
        ("changed by, %", Align::Left),
        ("p99", Align::Right),
        ("changed by, %", Align::Left),
        ("p99.9", Align::Right),
        ("changed by, %", Align::Left),
        ("CPU/op", Align::Right),
        ("switches/op", Align::Right),
        ("faults/op", Align::Right),
        ("kernel instructions/op", Align::Right),
        ("cycles/op", Align::Right),
    ];
    Some(Table::new(columns, rows.iter().map(cells).collect()))
}

fn quantiles(metrics: &Metrics) -> [Option<&Contrast>; 3] {
    let of = |quantile: fn(&Latency) -> &Option<Contrast>| {
        metrics.latency.as_ref().and_then(|latency| quantile(latency).as_ref())
    };
    [of(|latency| &latency.p50_ns), of(|latency| &latency.p99_ns), of(|latency| &latency.p99_9_ns)]
}

/// The interval alone: it says more than the estimate, and both would be too wide.
fn effect(contrast: &Contrast) -> String {
    match (contrast.low_pct, contrast.high_pct) {
        (None, None) => contrast.effect_pct.map(format::signed).unwrap_or_default(),
        (low, high) => format::interval(low, high),
    }
}

fn used(
    metrics: &Metrics,
    number: fn(&Used) -> Option<f64>,
    change: fn(f64, f64) -> String,
) -> String {
    let both = metrics
        .resources
        .as_ref()
        .and_then(|resources| Some((number(&resources.baseline)?, number(&resources.treated)?)));
    both.map(|(baseline, treated)| change(baseline, treated)).unwrap_or_default()
}

fn change_count(baseline: f64, treated: f64) -> String {
    format!("{} → {}", format::per_op(baseline), format::per_op(treated))
}

#[cfg(test)]
mod tests {
    use super::super::sample;
    use super::*;

    #[test]
    fn a_line_per_workload_that_fits_the_terminal() {
        let table = table(&sample::audit()).expect("the fixture has latencies");
        assert_eq!(table.columns.len(), 5);
        for (width, columns) in [(100, 5), (80, 4)] {
            let lines = table.to_lines(width);
            assert_eq!(lines.len(), 13);
            assert!(lines.iter().all(|line| line.chars().count() <= width));
            let kept = table.columns[..columns].iter();
            assert!(kept.into_iter().all(|(title, _)| lines[0].contains(title.as_str())));
        }
    }

    #[test]
    fn without_latencies_there_is_no_table_and_without_anything_no_wide_one() {
        let mut s = sample::audit();
        for row in &mut s.results {
            row.metrics.latency = None;
        }
        assert!(table(&s).is_none());
        let titles = |s: &Summary| -> Vec<String> {
            wide_table(s).unwrap().columns.into_iter().map(|(title, _)| title).collect()
        };
        assert_eq!(titles(&s)[..2], ["workload", "CPU/op"]);
        for row in &mut s.results {
            row.metrics = Metrics::default();
        }
        assert!(wide_table(&s).is_none());
    }
}
