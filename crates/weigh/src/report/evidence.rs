//! What the treatments produced, as a table: the storage cost that no benchmark shows.

use std::collections::BTreeSet;

use super::table::{Align, Table};
use crate::format;
use crate::format::quoted;
use crate::result::summary::{Row, RowEvidence, Summary};

const SECONDS_PER_DAY: f64 = 86_400.0;

/// The rows that have evidence; `None` when no treatment gave any.
pub fn table(s: &Summary) -> Option<Table> {
    let rows: Vec<&Row> = s.results.iter().filter(|row| says_something(&row.evidence)).collect();
    if rows.is_empty() {
        return None;
    }
    let other: BTreeSet<&String> = rows.iter().flat_map(|row| row.evidence.other.keys()).collect();
    let titles: Vec<String> = other.iter().map(|key| key.replace('_', " ")).collect();
    let mut columns = vec![
        ("workload", Align::Left),
        ("treatment", Align::Left),
        ("records/op", Align::Right),
        ("log B/op", Align::Right),
        ("lost", Align::Right),
        ("wait/op", Align::Right),
        ("max log rate", Align::Right),
        ("CPU spent elsewhere/op", Align::Left),
        ("syscalls/op", Align::Right),
    ];
    columns.extend(titles.iter().map(|title| (title.as_str(), Align::Left)));
    let several = rows.iter().any(|row| row.treatment != rows[0].treatment);
    let cells = rows.iter().map(|row| {
        let mut cells = vec![
            format::label(&row.workload),
            if several { format::label(&row.treatment) } else { String::new() },
        ];
        cells.extend(measured(&row.evidence));
        let value = |key: &&String| row.evidence.other.get(*key).map(|v| format::label(v));
        cells.extend(other.iter().map(|key| value(key).unwrap_or_default()));
        cells
    });
    Some(Table::new(columns, cells.collect()))
}

/// The storage cost in a sentence, for a screen without the table; `None` where nothing was recorded.
pub fn storage(s: &Summary) -> Option<String> {
    let evidence = || s.results.iter().map(|row| &row.evidence);
    let of = |number: fn(&RowEvidence) -> Option<f64>, text: fn(f64) -> String| {
        let numbers = || evidence().filter_map(number).filter(|number| *number > 0.0);
        let low = numbers().fold(f64::INFINITY, f64::min);
        let high = numbers().fold(0.0, f64::max);
        let [low_text, high_text] = [low, high].map(text);
        match low_text == high_text {
            _ if high == 0.0 => None,
            true => Some(high_text),
            false => Some(format!("{low_text} to {high_text}")),
        }
    };
    let mut clauses =
        vec![format!("{} records per operation", of(|e| e.records_per_op, format::per_op)?)];
    clauses
        .extend(of(|e| e.log_bytes_per_op, format::bytes).map(|bytes| format!("{bytes} of log")));
    let growth = |row: &Row| bytes_per_day(&row.evidence).unwrap_or(0.0);
    let most = s.results.iter().max_by(|a, b| growth(a).total_cmp(&growth(b)))?;
    if growth(most) > 0.0 {
        let day = format::bytes(growth(most));
        clauses.push(format!("up to {day} a day at maximum rate ({})", quoted(&most.workload)));
    }
    let lost = evidence().filter_map(|e| e.lost).fold(0, u64::saturating_add);
    clauses.push(match lost {
        0 => "none lost".to_owned(),
        _ => format!("{} lost", format::integer(lost)),
    });
    Some(format!("{}.", clauses.join(", ")))
}

/// What a workload declares of itself is no evidence of a treatment.
fn says_something(evidence: &RowEvidence) -> bool {
    *evidence != RowEvidence { syscalls_per_op: evidence.syscalls_per_op, ..RowEvidence::default() }
}

fn measured(evidence: &RowEvidence) -> [String; 7] {
    let per_op = |value: Option<f64>| value.map(format::per_op).unwrap_or_default();
    [
        per_op(evidence.records_per_op),
        per_op(evidence.log_bytes_per_op),
        lost(evidence).unwrap_or_default(),
        evidence.backlog_wait_ns_per_op.map(|ns| format::seconds(ns / 1e9)).unwrap_or_default(),
        bytes_per_day(evidence)
            .map(|bytes| format!("{}/day", format::bytes(bytes)))
            .unwrap_or_default(),
        cpu_elsewhere(evidence).unwrap_or_default(),
        per_op(evidence.syscalls_per_op),
    ]
}

/// `16,910 (≥ 12.0 %)`
fn lost(evidence: &RowEvidence) -> Option<String> {
    let count = format::integer(evidence.lost?);
    Some(match evidence.lost_pct {
        Some(pct) => format!("{count} (≥ {} %)", format::unsigned(pct)),
        None => count,
    })
}

/// What others than the workload's processes computed because of an operation: the receiver of the
/// records and the kernel's thread that sends them.
fn cpu_elsewhere(evidence: &RowEvidence) -> Option<String> {
    let kauditd_ns = evidence.kauditd_cpu_ns_per_op?;
    let kauditd = format!("kauditd {}", format::time_ns(kauditd_ns));
    Some(match evidence.sink_cpu_ns_per_op {
        Some(sink_ns) => format!("receiver {}, {kauditd}", format::time_ns(sink_ns)),
        None => kauditd,
    })
}

/// What the log would grow by in a day of nothing but this workload.
fn bytes_per_day(evidence: &RowEvidence) -> Option<f64> {
    let rate = evidence.log_bytes? as f64 / evidence.treated_s?;
    rate.is_finite().then_some(rate * SECONDS_PER_DAY)
}

#[cfg(test)]
mod tests {
    use super::super::sample;
    use super::*;

    #[test]
    fn storage_is_what_full_speed_writes_in_a_day() {
        let evidence = RowEvidence {
            log_bytes: Some(1 << 20),
            treated_s: Some(2.0),
            ..RowEvidence::default()
        };
        assert_eq!(bytes_per_day(&evidence), Some(45_298_483_200.0));
        let none = RowEvidence { treated_s: Some(0.0), ..evidence };
        assert_eq!(bytes_per_day(&none), None);
    }

    #[test]
    fn storage_is_a_sentence_too() {
        let mut s = sample::audit();
        assert_eq!(
            storage(&s).unwrap(),
            "3 records per operation, 500 B of log, up to 14.4 TiB a day at maximum rate (`pipe`), \
             16,910 lost."
        );
        s.results.truncate(2);
        s.results[1].evidence.records_per_op = Some(148.25);
        assert!(storage(&s).unwrap().starts_with("3 to 148.2 records"), "{:?}", storage(&s));
        assert!(storage(&s).unwrap().ends_with("none lost."));
        s.results.iter_mut().for_each(|row| row.evidence.records_per_op = Some(0.0));
        assert_eq!(storage(&s), None);
    }

    #[test]
    fn the_cpu_time_of_others_is_told_apart() {
        let mut evidence =
            RowEvidence { kauditd_cpu_ns_per_op: Some(4200.0), ..RowEvidence::default() };
        assert_eq!(cpu_elsewhere(&evidence).unwrap(), "kauditd 4.20 µs");
        evidence.sink_cpu_ns_per_op = Some(12_000.0);
        assert_eq!(cpu_elsewhere(&evidence).unwrap(), "receiver 12.0 µs, kauditd 4.20 µs");
        assert_eq!(cpu_elsewhere(&RowEvidence::default()), None);
    }

    #[test]
    fn only_columns_with_something_in_them() {
        let mut s = sample::audit();
        for row in &mut s.results {
            row.evidence = RowEvidence::default();
        }
        assert!(table(&s).is_none());
        s.results[0].evidence.other.insert("seccomp_mode".into(), "2".into());
        let table = table(&s).expect("one row has evidence");
        let titles: Vec<&str> = table.columns.iter().map(|(title, _)| title.as_str()).collect();
        assert_eq!(titles, ["workload", "seccomp mode"]);
        assert_eq!(table.rows.len(), 1);
    }
}
