//! What the pairs say of CPU time, as a table, and in the sentence where the rate is left open.

use super::table::{Align, Table};
use crate::format::{self, quoted};
use crate::result::reading::{Metric, Reading};
use crate::result::summary::{Row, Summary};
use paired::Verdict;

pub const TITLE: &str = "CPU time per operation";
pub const LEGEND: &str =
    "user and kernel mode; waiting for a disk, or for a CPU that others have, is not in it";

/// So many workloads are named for each verdict.
const MOST_NAMED: usize = 6;
const LONGEST_NAME: usize = 24;

/// One line per row that has it; `None` where none has.
pub fn table(s: &Summary) -> Option<Table> {
    let rows: Vec<(&Row, &Reading)> = with_cpu_time(s).collect();
    let several = rows.iter().any(|(row, _)| row.treatment != rows[0].0.treatment);
    let cells = rows.iter().map(|(row, reading)| {
        let treatment = if several { format::label(&row.treatment) } else { String::new() };
        vec![
            format::shorten(&format::label(&row.workload), LONGEST_NAME),
            treatment,
            format::change_ns(reading.baseline, reading.treated),
            format::percent(reading.effect_pct),
            format::interval(reading.low_pct, reading.high_pct),
            verdict(reading, s.margin_pct),
            format::integer(reading.pairs as u64),
        ]
    });
    let columns = vec![
        ("workload", Align::Left),
        ("treatment", Align::Left),
        ("CPU/op", Align::Right),
        ("change", Align::Right),
        ("interval", Align::Left),
        ("verdict", Align::Left),
        ("pairs", Align::Right),
    ];
    let cells: Vec<Vec<String>> = cells.collect();
    (!cells.is_empty()).then(|| Table::new(columns, cells))
}

/// The workloads whose rate is left open, and their CPU time is not.
pub fn sentence(s: &Summary) -> Option<String> {
    let is_open = |(row, reading): &(&Row, &Reading)| {
        row.verdict == Verdict::Inconclusive && reading.verdict != Verdict::Inconclusive
    };
    let decided: Vec<(&Row, &Reading)> = with_cpu_time(s).filter(is_open).collect();
    let several = decided.iter().any(|(row, _)| row.treatment != decided[0].0.treatment);
    let name = |row: &Row| match several {
        true => format!("{} under {}", quoted(&row.workload), quoted(&row.treatment)),
        false => quoted(&row.workload),
    };
    let margin = format::margin(s.margin_pct);
    let clause = |wanted: Verdict, one: &str, many: &str| {
        let names: Vec<String> = decided
            .iter()
            .filter(|(_, reading)| reading.verdict == wanted)
            .map(|(row, _)| name(row))
            .collect();
        let verb = if names.len() == 1 { one } else { many };
        let rest = names.len().saturating_sub(MOST_NAMED);
        let mut named = names.into_iter().take(MOST_NAMED).collect::<Vec<_>>();
        let last = if rest > 0 { Some(format!("{rest} more")) } else { named.pop() }?;
        Some(match named.is_empty() {
            true => format!("{last} {verb}"),
            false => format!("{} and {last} {verb}", named.join(", ")),
        })
    };
    let within = [format!("is equal within {margin}"), format!("are equal within {margin}")];
    let clauses: Vec<String> = [
        clause(Verdict::Slower, "takes more", "take more"),
        clause(Verdict::Faster, "takes less", "take less"),
        clause(Verdict::Equivalent, &within[0], &within[1]),
    ]
    .into_iter()
    .flatten()
    .collect();
    let said = clauses.join("; ");
    (!clauses.is_empty()).then(|| format!("By CPU time, which does not include waiting, {said}."))
}

fn with_cpu_time(s: &Summary) -> impl Iterator<Item = (&Row, &Reading)> {
    s.results.iter().filter_map(|row| {
        let is_cpu_time = |reading: &&Reading| reading.metric == Metric::CpuTime;
        Some((row, row.readings.iter().find(is_cpu_time)?))
    })
}

/// In words of an amount: slower is more of it.
fn verdict(reading: &Reading, margin_pct: f64) -> String {
    let within = format::margin(margin_pct);
    match (reading.verdict, reading.within_margin) {
        (Verdict::Slower, true) => format!("more, <{within}"),
        (Verdict::Slower, false) => "more".into(),
        (Verdict::Faster, true) => format!("less, <{within}"),
        (Verdict::Faster, false) => "less".into(),
        (Verdict::Equivalent, _) => format!("equal within {within}"),
        (Verdict::Inconclusive, _) => "inconclusive".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::sample;
    use super::*;

    fn reading(verdict: Verdict) -> Reading {
        Reading {
            metric: Metric::CpuTime,
            unit: "ns/op".into(),
            baseline: 100.0,
            treated: 103.0,
            effect_pct: 3.0,
            low_pct: Some(2.0),
            high_pct: Some(4.0),
            verdict,
            withheld: None,
            within_margin: false,
            precise: false,
            pairs: 40,
        }
    }

    #[test]
    fn what_the_rate_leaves_open_is_named_with_what_cpu_time_says() {
        let mut s = sample::audit();
        assert_eq!((sentence(&s), table(&s)), (None, None));
        let verdicts = [Verdict::Slower, Verdict::Equivalent, Verdict::Inconclusive];
        for (row, verdict) in s.results.iter_mut().zip(verdicts) {
            row.verdict = Verdict::Inconclusive;
            row.readings = vec![reading(verdict)];
        }
        let names: Vec<String> = s.results.iter().map(|row| quoted(&row.workload)).collect();
        assert_eq!(
            sentence(&s).unwrap(),
            format!(
                "By CPU time, which does not include waiting, {} takes more; {} is equal within 1 %.",
                names[0], names[1]
            )
        );
        let table = table(&s).unwrap();
        assert_eq!(table.rows.len(), 3);
        assert_eq!(table.rows[0][1..].join(" "), "100 → 103 ns +3.00 % [+2.00, +4.00] more 40");
        s.results[0].verdict = Verdict::Slower;
        assert!(!sentence(&s).unwrap().contains("more"), "its rate says so");
    }
}
