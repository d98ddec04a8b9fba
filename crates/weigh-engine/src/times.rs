//! The times that workloads tell of parts of their operations, over all samples of a row.

use jiff::Timestamp;

use weigh_model::ids::{ArmId, WorkId};
use weigh_model::record::{Stored, StoredWork};
use weigh_model::result::times::TimesRow;
use weigh_model::result::work_name::WorkName;
use weigh_model::samples::{PooledTimes, Totals, Waits};

pub fn of_run(stored: &Stored) -> Vec<TimesRow> {
    let cpus = stored.header.machine.cpus_online;
    let of_work = |(work, about): (usize, &StoredWork)| {
        let totals = stored.result_of_run(WorkId(work))?.counted_totals()?;
        Some(of_arm(&about.name, None, totals, cpus))
    };
    stored.header.works.iter().enumerate().filter_map(of_work).flatten().collect()
}

/// Returns the times of both arms of each row of a comparison.
pub fn of_comparison(stored: &Stored) -> Vec<TimesRow> {
    let cpus = stored.header.machine.cpus_online;
    let mut rows = Vec::new();
    for ((work, arm), of_row) in &stored.samples {
        let name = &stored.header.works[*work].name;
        if stored.has_failed(name) {
            continue;
        }
        for (arm, totals) in [(ArmId::BASELINE, &of_row.baseline), (*arm, &of_row.treated)] {
            let treatment = stored.header.arms.get(arm.0).cloned();
            let times =
                totals.iter().flat_map(|totals| of_arm(name, treatment.clone(), totals, cpus));
            rows.extend(times.collect::<Vec<_>>());
        }
    }
    rows
}

fn of_arm(
    workload: &WorkName,
    treatment: Option<String>,
    totals: &Totals,
    cpus: usize,
) -> Vec<TimesRow> {
    let Waits { during_s, cpu_s, disk_s, stolen_s } = totals.waits;
    let pct = |seconds: f64| if during_s > 0.0 { 100.0 * seconds / during_s } else { 0.0 };
    let row = |(of, times): (&String, &PooledTimes)| {
        let quantile = |q: f64| times.histogram.located(q);
        let count = times.histogram.count();
        TimesRow {
            workload: workload.clone(),
            treatment: treatment.clone(),
            of: of.clone(),
            count,
            per_s: count as f64 / totals.elapsed_s,
            per_op: (totals.operations > 0.0).then(|| count as f64 / totals.operations),
            p50_ns: quantile(0.5),
            p99_ns: quantile(0.99),
            p99_9_ns: quantile(0.999),
            longest_ns: times.longest_ns,
            longest_at: time_of_day(times.longest_at_ms),
            waiting_cpu_pct: pct(cpu_s).min(100.0),
            waiting_disk_pct: pct(disk_s).min(100.0),
            stolen_pct: pct(stolen_s) / cpus.max(1) as f64,
        }
    };
    totals.times.iter().filter(|(_, times)| times.histogram.count() > 0).map(row).collect()
}

fn time_of_day(ms: i64) -> String {
    Timestamp::from_millisecond(ms).map(|time| time.to_string()).unwrap_or_default()
}
