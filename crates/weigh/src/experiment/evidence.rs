//! What a treatment produced besides the change of a rate: records, bytes of log, waiting.

use super::pairs::Measurements;
use crate::result::summary::RowEvidence;
use crate::store::record::Stored;
use crate::store::samples::Totals;
use crate::treatment;

/// What its treated samples produced, per operation.
pub fn of_row(stored: &Stored, measurements: &Measurements) -> RowEvidence {
    let Totals { launches, operations: timed_operations, total_operations, elapsed_s, .. } =
        *measurements.totals;
    let treated = &measurements.totals.evidence;
    let startup = stored
        .startups
        .iter()
        .find(|startup| (startup.work, startup.arm) == (measurements.work, measurements.arm));
    let sums = Sums {
        launches: launches as f64,
        operations: total_operations,
        startup_operations: startup.map_or(0.0, |startup| startup.operations),
    };
    let started = startup.map(|startup| &startup.evidence);
    let count = |count: Option<u64>| count.map(|count| count as f64);
    let records = count(treated.records);
    let startup_records = count(started.and_then(|s| s.records));
    // A start is not the same to the record every time: less than one record per launch is nothing.
    let is_noise = startup.is_some()
        && records.is_some_and(|records| sums.besides(records, startup_records) < sums.launches);
    let per_op = |total: Option<f64>, at_startup: Option<f64>| {
        // What a start makes is not nothing where it was not counted.
        if started.is_some() && at_startup.is_none() {
            return None;
        }
        let per_op = sums.per_operation(total?, at_startup)?;
        Some(if is_noise { 0.0 } else { per_op })
    };
    let ns_per_op =
        |total_s, at_startup_s| per_op(total_s, at_startup_s).map(|seconds| seconds * 1e9);
    let sink_s = started.and_then(|s| s.sink_cpu_s);
    let kauditd_s = started.and_then(|s| s.kauditd_cpu_s);
    let log_bytes_per_op =
        per_op(count(treated.log_bytes), count(started.and_then(|s| s.log_bytes)));
    let log_bytes = log_bytes_per_op.map(|bytes| (bytes * timed_operations) as u64);
    let records_per_op = per_op(records, startup_records);
    let mut other = treated.other.clone();
    if let Some(why) = started.and_then(treatment::Evidence::why_not_counted) {
        other.entry(treatment::Evidence::NOT_COUNTED.into()).or_insert(why.into());
    }
    RowEvidence {
        syscalls_per_op: stored.header.works[measurements.work].syscalls_per_op,
        records_per_op,
        log_bytes_per_op,
        lost: treated.lost,
        lost_pct: lost_pct(treated.lost, treated.received),
        backlog_wait_s: treated.backlog_wait_s,
        backlog_wait_ns_per_op: treated
            .backlog_wait_s
            .map(|wait_s| wait_s * 1e9 / total_operations),
        sink_cpu_s: treated.sink_cpu_s,
        sink_cpu_ns_per_op: ns_per_op(treated.sink_cpu_s, sink_s),
        kauditd_cpu_s: treated.kauditd_cpu_s,
        kauditd_cpu_ns_per_op: ns_per_op(treated.kauditd_cpu_s, kauditd_s),
        records: records_per_op.map(|records| (records * timed_operations) as u64),
        log_bytes,
        treated_s: log_bytes.map(|_| elapsed_s),
        other,
    }
}

/// Of all records that were due, of whomever, the least share that was dropped. Where the first record of a
/// system call finds no room, the kernel counts one as lost and makes none of the others
/// (kernel/auditsc.c, `audit_log_exit`).
fn lost_pct(lost: Option<u64>, received: Option<u64>) -> Option<f64> {
    let lost = lost.filter(|lost| *lost > 0)? as f64;
    Some(100.0 * lost / (lost + received? as f64))
}

/// Launches of a workload, and the operations of one that does next to none.
#[derive(Clone, Copy, Debug)]
pub struct Sums {
    pub launches: f64,
    /// Of all of them, with warm-up and calibration.
    pub operations: f64,
    pub startup_operations: f64,
}

impl Sums {
    fn besides(&self, total: f64, at_startup: Option<f64>) -> f64 {
        total - self.launches * at_startup.unwrap_or(0.0)
    }

    /// What an operation produced. A launch makes s besides its operations, and one of few operations
    /// tells s: Σr = n·s + p·Σops and r₁ = s + p·ops₁ give p = (Σr − n·r₁) / (Σops − n·ops₁).
    pub fn per_operation(&self, total: f64, at_startup: Option<f64>) -> Option<f64> {
        let rest = self.operations - self.launches * self.startup_operations;
        (rest > 0.0).then(|| (self.besides(total, at_startup) / rest).max(0.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_share_lost_is_of_those_counted_and_those_that_arrived() {
        assert_eq!(lost_pct(Some(30), Some(10)), Some(75.0));
        assert_eq!(lost_pct(Some(1), Some(0)), Some(100.0));
        assert_eq!((lost_pct(Some(0), Some(10)), lost_pct(Some(1), None)), (None, None));
    }

    #[test]
    fn what_a_start_produces_is_taken_off() {
        let sums = Sums { launches: 2.0, operations: 202.0, startup_operations: 1.0 };
        // Each launch makes 50 besides 3 per operation.
        assert_eq!(sums.per_operation(2.0 * 50.0 + 3.0 * 202.0, Some(53.0)), Some(3.0));
        assert_eq!(sums.per_operation(0.0, Some(53.0)), Some(0.0));
        assert_eq!(Sums { operations: 2.0, ..sums }.per_operation(9.0, None), None);
    }
}
