//! What a treatment produced besides the change of a rate: records, bytes of log, waiting.

use super::pairs::Measurements;
use crate::report::summary::Evidence;
use crate::store::record::Stored;
use crate::store::samples::Totals;

/// What its treated samples produced, per operation.
pub fn of_row(stored: &Stored, measurements: &Measurements) -> Evidence {
    let Totals { launches, operations: timed_operations, total_operations, elapsed_s, .. } =
        *measurements.totals;
    let treated = &measurements.totals.evidence;
    let startup = stored
        .startups
        .iter()
        .find(|startup| (startup.work, startup.arm) == (measurements.work, measurements.arm));
    let launches = launches as f64;
    let startup_operations = startup.map_or(0.0, |startup| startup.operations);
    // A launch makes s records besides its operations, and one of few operations tells s:
    // Σr = n·s + p·Σops and r₁ = s + p·ops₁ give p = (Σr − n·r₁) / (Σops − n·ops₁).
    // A start is not the same to the record every time: less than one record per launch is nothing.
    let besides = |total: Option<u64>, at_startup: Option<u64>| {
        Some(total? as f64 - launches * at_startup.unwrap_or(0) as f64)
    };
    let rest = total_operations - launches * startup_operations;
    let started = startup.map(|startup| &startup.evidence);
    let records = besides(treated.records, started.and_then(|s| s.records));
    let is_noise = startup.is_some() && records.is_some_and(|records| records < launches);
    let per_op = |besides: Option<f64>| {
        let per_op = if is_noise { 0.0 } else { besides? / rest };
        (rest > 0.0).then(|| per_op.max(0.0))
    };
    let log_bytes = besides(treated.log_bytes, started.and_then(|s| s.log_bytes));
    let log_bytes_per_op = per_op(log_bytes);
    let log_bytes = log_bytes_per_op.map(|bytes| (bytes * timed_operations) as u64);
    Evidence {
        syscalls_per_op: stored.header.works[measurements.work].syscalls_per_op,
        records_per_op: per_op(records),
        log_bytes_per_op,
        lost: treated.lost,
        backlog_wait_s: treated.backlog_wait_s,
        backlog_wait_ns_per_op: treated
            .backlog_wait_s
            .map(|wait_s| wait_s * 1e9 / total_operations),
        log_bytes,
        treated_s: log_bytes.map(|_| elapsed_s),
        other: treated.other.clone(),
    }
}
