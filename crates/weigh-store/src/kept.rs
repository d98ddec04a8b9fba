//! Parts of a stored sample that memory keeps.

use weigh_model::disturbance::Disturbance;
use weigh_model::record::Measured;
use weigh_model::samples::{CustomReadingMean, Kept, Point, PooledTimes, Totals, Usage, Waits};
use weigh_model::workload::metric::Metric;

/// Reduces a sample to the parts that memory keeps, including all `judged` metrics; the rate and
/// CPU time are always kept. Unit and evidence may leave out what earlier samples of the same row
/// and arm have shown.
pub(super) fn keep(measured: Measured, judged: &[Metric]) -> Kept {
    let Measured { sample, disturbance, evidence, .. } = measured;
    // Of a million samples each byte is a megabyte, and shares are held against round limits.
    let share = |of: fn(Disturbance) -> Option<f64>| Some(of(disturbance?)? as f32);
    let point = Point {
        is_treated: !measured.arm.is_baseline(),
        is_first: measured.position == 0,
        role: measured.role,
        scheme: measured.scheme,
        after_treated: false,
        set: measured.set,
        pair: measured.pair,
        started_s: measured.started_s,
        operations: sample.operations,
        elapsed_s: sample.elapsed_ns as f64 / 1e9,
        rate: sample.rate(),
        cpu_ns_per_op: sample.cpu_ns_per_op(),
        waiting_share: share(Disturbance::waiting_share),
        waiting_share_before: share(Disturbance::waiting_share_before),
        stolen_share: share(Disturbance::stolen_share),
        was_throttled: disturbance
            .and_then(|disturbance| disturbance.throttle_events)
            .is_some_and(|events| events > 0),
        exit_code: sample.exit_code.unwrap_or_default(),
        rate_over_all: sample.rate_over_all(),
        outside: sample.outside,
    };
    let wanted: Vec<&Metric> =
        judged.iter().filter(|metric| !matches!(metric, Metric::Rate | Metric::CpuTime)).collect();
    let has = |metric: &Metric| Some((metric.clone(), sample.amount(metric)?));
    let further = (!wanted.is_empty()).then(|| wanted.into_iter().filter_map(has).collect());
    let totals = Totals {
        launches: 1,
        operations: point.operations,
        total_operations: sample.total_operations.unwrap_or(point.operations),
        elapsed_s: point.elapsed_s,
        usage: Usage::from(&sample),
        known_cpu: Usage::from(&sample).into(),
        waits: disturbance.map(Waits::from).unwrap_or_default(),
        told: sample.readings.iter().map(CustomReadingMean::named).collect(),
        unit: sample.unit,
        times: sample.times.into_iter().map(PooledTimes::named).collect(),
        evidence,
    };
    let row = (measured.work, measured.treated_arm);
    Kept { row, point, further, copy_rates: sample.copy_rates, totals }
}

/// Reduces a new measurement to the parts of a sample that memory keeps.
#[cfg(any(test, feature = "example"))]
pub fn keep_measured(measured: Measured) -> Kept {
    keep(measured, &[])
}
