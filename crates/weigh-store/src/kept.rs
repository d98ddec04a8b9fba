//! Parts of a stored sample that memory keeps.

use weigh_model::disturbance::Disturbance;
use weigh_model::evidence::Evidence;
use weigh_model::result::scheme::Scheme;
use weigh_model::role::SampleRole;
use weigh_model::samples::{CustomReadingMean, Kept, Point, PooledTimes, Totals, Usage, Waits};
use weigh_model::workload::metric::Metric;
use weigh_model::workload::sample::{
    Sample, all_time, cpu_ns_per_op, further_value, interleaved_rate,
};

/// The columns of a sample that are not JSON, as `record::Measured` has them.
pub(super) struct SampleKey {
    pub work: usize,
    pub arm: usize,
    pub treated_arm: usize,
    pub role: SampleRole,
    pub scheme: Scheme,
    pub set: usize,
    pub pair: usize,
    pub position: usize,
    pub started_s: f64,
}

/// Reduces a sample to the parts that memory keeps, including all `judged` metrics; the rate and
/// CPU time are always kept. Unit and evidence may leave out what earlier samples of the same row
/// and arm have shown.
pub(super) fn keep(
    place: &SampleKey,
    sample: Sample,
    disturbance: Option<Disturbance>,
    evidence: Evidence,
    judged: &[Metric],
) -> Kept {
    // Of a million samples each byte is a megabyte, and shares are held against round limits.
    let share = |of: fn(Disturbance) -> Option<f64>| Some(of(disturbance?)? as f32);
    let elapsed_ns = sample.elapsed_ns as f64;
    let rate_over_all = sample.rate_over_all();
    let point = Point {
        is_treated: place.arm != 0,
        is_first: place.position == 0,
        role: place.role,
        scheme: place.scheme,
        after_treated: false,
        set: place.set,
        pair: place.pair,
        started_s: place.started_s,
        operations: sample.operations,
        elapsed_s: elapsed_ns / 1e9,
        rate: interleaved_rate(&sample.readings).unwrap_or(rate_over_all),
        cpu_ns_per_op: cpu_ns_per_op(sample.user_ns, sample.system_ns, sample.operations),
        waiting_share: share(Disturbance::waiting_share),
        waiting_share_before: share(Disturbance::waiting_share_before),
        stolen_share: share(Disturbance::stolen_share),
        was_throttled: disturbance
            .and_then(|disturbance| disturbance.throttle_events)
            .is_some_and(|events| events > 0),
        rate_over_all,
        outside: sample.outside,
    };
    let usage = usage(&sample);
    let totals = Totals {
        launches: 1,
        unit: sample.unit,
        operations: point.operations,
        total_operations: sample.total_operations.unwrap_or(point.operations),
        elapsed_s: point.elapsed_s,
        usage,
        waits: disturbance.map(Waits::from).unwrap_or_default(),
        times: sample.times.into_iter().map(PooledTimes::named).collect(),
        told: sample.readings.iter().map(CustomReadingMean::named).collect(),
        evidence,
    };
    let row = (place.work, place.treated_arm);
    let wanted: Vec<&Metric> =
        judged.iter().filter(|metric| !matches!(metric, Metric::Rate | Metric::CpuTime)).collect();
    let operations = sample.total_operations.unwrap_or(sample.operations);
    let bytes = [sample.peak_memory_bytes, sample.block_input_bytes, sample.block_output_bytes];
    let has = |metric: &Metric| {
        let amount = match metric {
            Metric::OverallRate => all_time(&sample.readings, rate_over_all),
            other => further_value(other, operations, bytes, &sample.readings),
        };
        Some((metric.clone(), amount?))
    };
    let further = (!wanted.is_empty()).then(|| wanted.into_iter().filter_map(has).collect());
    Kept { row, point, further, copy_rates: sample.copy_rates, totals }
}

fn usage(sample: &Sample) -> Usage {
    let number = |value: Option<u64>| value.map(|value| value as f64);
    Usage {
        user_ns: number(sample.user_ns),
        system_ns: number(sample.system_ns),
        voluntary_switches: number(sample.voluntary_switches),
        involuntary_switches: number(sample.involuntary_switches),
        minor_faults: number(sample.minor_faults),
        major_faults: number(sample.major_faults),
    }
}

/// Reduces a new measurement to the parts of a sample that memory keeps.
#[cfg(any(test, feature = "example"))]
pub fn keep_measured(measured: weigh_model::record::Measured) -> Kept {
    let place = SampleKey {
        work: measured.work,
        arm: measured.arm,
        treated_arm: measured.treated_arm,
        role: measured.role,
        scheme: measured.scheme,
        set: measured.set,
        pair: measured.pair,
        position: measured.position,
        started_s: measured.started_s,
    };
    keep(&place, measured.sample, measured.disturbance, measured.evidence, &[])
}
