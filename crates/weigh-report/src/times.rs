//! Times of the parts of operations, as a table.

use super::table::{Align, Table};
use weigh_model::format;
use weigh_model::result::times::TimesRow;

pub const TITLE: &str = "Times of single operations";
pub const LEGEND: &str = "longest: the worst case, and when it ended (UTC); waiting: share of the time in \
                          which a task waited for a CPU, and for a disk; stolen: CPU time that the \
                          hypervisor took";

/// Builds the table; `None` without times. A narrow terminal drops the last columns first.
pub fn table(rows: &[TimesRow]) -> Option<Table> {
    use Align::{Left, Right};
    let has_arms = rows.iter().any(|row| row.treatment.is_some());
    let arm = has_arms.then_some(("arm", Left));
    let columns = [("workload", Left)].into_iter().chain(arm).chain([
        ("what", Left),
        ("p50", Right),
        ("p99", Right),
        ("p99.9", Right),
        ("longest", Right),
        ("at", Left),
        ("count", Right),
        ("waiting", Left),
        ("stolen", Right),
    ]);
    let cells = |row: &TimesRow| {
        let known = |ns: Option<f64>| ns.map(format::time_ns).unwrap_or_default();
        let mut cells = vec![format::label(&row.workload)];
        cells.extend(row.treatment.iter().map(format::label));
        cells.extend([
            format::label(&row.of),
            known(row.p50_ns),
            known(row.p99_ns),
            known(row.p99_9_ns),
            format::time_ns(row.longest_ns as f64),
            clock(&row.longest_at),
            format::integer(row.count),
            format!("{:.0} %, {:.0} %", row.waiting_cpu_pct, row.waiting_disk_pct),
            format!("{:.1} %", row.stolen_pct),
        ]);
        cells
    };
    let table = Table::new(columns.collect(), rows.iter().map(cells).collect());
    (!rows.is_empty()).then_some(table)
}

/// The longest of all, in a sentence; the table may have no room for when that was.
pub fn longest(rows: &[TimesRow]) -> Option<String> {
    let row = rows.iter().max_by_key(|row| row.longest_ns)?;
    let arm = row.treatment.iter().map(|arm| format!(" under {}", format::quoted(arm)));
    Some(format!(
        "Worst case: {} ({} of {}{}), ended at {} UTC.",
        format::time_ns(row.longest_ns as f64),
        format::label(&row.of),
        format::quoted(&row.workload),
        arm.collect::<String>(),
        clock(&row.longest_at)
    ))
}

/// Without the day.
fn clock(time: &str) -> String {
    let of_day = time.split_once('T').map_or(time, |(_, of_day)| of_day);
    format::label(of_day.trim_end_matches('Z'))
}
