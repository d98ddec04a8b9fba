//! The answers of a ramp, from its stored samples.

use std::collections::BTreeMap;

use paired::estimate::{MAD_TO_SD, mad, median};
use weigh_model::facts::Facts;
use weigh_model::ids::WorkId;
use weigh_model::record::Stored;
use weigh_model::result::alike::RampSample;
use weigh_model::result::busy_machine::BusyMachine;
use weigh_model::result::load::{
    DRIVER_READING, LoadAnswers, LoadPoint, MEAN_JOB_TIME, Throughput,
};
use weigh_model::result::work_name::WorkName;
use weigh_model::samples::{Point, RowSamples, Totals, Usage};
use weigh_model::workload::metric::{Metric, Percentile};

/// Returns the answers for each mix that was to be measured with several numbers of users. A load point
/// that failed has no samples that count, though it was measured before.
pub fn load_answers(stored: &Stored) -> Vec<LoadAnswers> {
    let mut mixes: BTreeMap<&str, Vec<(usize, Option<&RowSamples>)>> = BTreeMap::new();
    for (work, about) in stored.header.works.iter().enumerate() {
        if let Some(users) = about.name.users() {
            let row = stored.result_of_run(WorkId(work));
            mixes.entry(&about.name.name).or_default().push((users.get(), row));
        }
    }
    let machine = &stored.header.machine;
    let answers_of = |(mix, points): (&str, Vec<(usize, Option<&RowSamples>)>)| {
        let of_row = |(users, row): &(usize, Option<_>)| Some((*users, (*row)?));
        let measured: Vec<_> = points.iter().filter_map(of_row).collect();
        let is_ramp = points.len() > 1 || measured.iter().any(|(_, row)| row.has_rounds());
        (is_ramp && !measured.is_empty()).then(|| answers(mix, measured, machine))
    };
    mixes.into_iter().filter_map(answers_of).collect()
}

fn answers(mix: &str, mut points: Vec<(usize, &RowSamples)>, machine: &Facts) -> LoadAnswers {
    points.sort_by_key(|(users, _)| *users);
    let ramp_samples = ramp_samples(&points);
    let measured = points.into_iter().filter_map(|(users, row)| {
        let found = load_point(users, row, row.counted_totals(), &row.counted(), machine)?;
        Some(LoadPoint { in_rounds: row.has_rounds(), ..found })
    });
    let answers = LoadAnswers::new(WorkName::from(mix), measured.collect(), &ramp_samples);
    LoadAnswers { quota_cpus: machine.cpu_share.limiting_quota(), ..answers }
}

/// All samples of a ramp in the order in which they were taken.
fn ramp_samples(points: &[(usize, &RowSamples)]) -> Vec<RampSample> {
    let of_row = |(users, row): &(usize, &RowSamples)| {
        let samples = samples_of(*users, row, |point| point.is_in_round().then_some(point.pair.0));
        row.points.iter().map(|point| point.started_s).zip(samples).collect::<Vec<_>>()
    };
    let mut all: Vec<(f64, RampSample)> = points.iter().flat_map(of_row).collect();
    all.sort_by(|a, b| a.0.total_cmp(&b.0));
    all.into_iter().map(|(_, sample)| sample).collect()
}

/// The samples of a load point, in the rounds that are theirs.
pub fn samples_of(
    users: usize,
    row: &RowSamples,
    round: impl Fn(&Point) -> Option<usize>,
) -> Vec<RampSample> {
    let of_point = |(at, point): (usize, &Point)| RampSample {
        users,
        jobs_per_min: point.rate,
        job_ns: row.further_of(at, MEAN_JOB_TIME),
        round: round(point),
    };
    row.points.iter().enumerate().map(of_point).collect()
}

/// Returns the load point of the samples that count, all from one arm; `totals` are that arm's. At
/// a peak, only samples taken after the choice of the peak count.
pub fn load_point(
    users: usize,
    row: &RowSamples,
    totals: Option<&Totals>,
    counts: &dyn Fn(&Point) -> bool,
    machine: &Facts,
) -> Option<LoadPoint> {
    let cpus = machine.usable_cpus();
    let points = || row.points.iter().filter(|point| counts(point));
    let of = |value: &dyn Fn(&Point) -> Option<f64>| {
        median(&points().filter_map(value).collect::<Vec<_>>())
    };
    let cpu_share = |point: &Point| {
        let cpu_ns = point.cpu_ns_per_op? * point.operations;
        Some(100.0 * cpu_ns / (point.elapsed_s * 1e9 * cpus))
    };
    let values = |metric: Metric| -> Vec<f64> {
        let of_points = row.points.iter().zip(&row.further).filter(|(point, _)| counts(point));
        let all = of_points.flat_map(|(_, further)| further).filter(|(other, _)| *other == metric);
        all.map(|(_, found)| found.value).collect()
    };
    let further = |metric: Metric| median(&values(metric));
    let per_launch = |ns: fn(&Usage) -> Option<f64>| {
        let totals = totals?;
        Some(ns(&totals.usage)? / 1e9 / totals.launches as f64)
    };
    let cpu_pct = of(&cpu_share).map(|share| share.min(100.0));
    // How busy other CPUs are does not matter to a load that may not use them.
    let has_all = cpus >= machine.cpus_online as f64;
    let rates: Vec<f64> = points().map(|point| point.rate).collect();
    let spread = |rate: f64| Some(100.0 * MAD_TO_SD * mad(&rates)? / rate);
    let named = |name: &str| further(Metric::Named(name.into()));
    let interval = Throughput::of(&rates);
    Some(LoadPoint {
        users,
        spread_pct: median(&rates).and_then(spread),
        jobs_per_min: of(&|point| Some(point.rate))?,
        samples: points().count(),
        elapsed_s: of(&|point| Some(point.elapsed_s))?,
        user_s: per_launch(|usage| usage.user_ns),
        system_s: per_launch(|usage| usage.system_ns),
        deviation_s: named("finish_deviation").map(|ns| ns / 1e9),
        waiting_pct: of(&|point| Some(100.0 * f64::from(point.waiting_share?))),
        cpu_pct,
        job_p99_ns: further(Metric::Latency(Percentile::P99)),
        job_p90_ns: further(Metric::Latency(Percentile::P90)),
        mean_job_ns: named(MEAN_JOB_TIME),
        job_timing_index: named("job_timing_index"),
        first_finish_s: named("first_finish").map(|ns| ns / 1e9),
        driver_cpu_pct: mean(&values(Metric::Named(DRIVER_READING.into()))),
        in_rounds: false,
        jobs_per_min_low: interval.map(|found| found.low),
        jobs_per_min_high: interval.map(|found| found.high),
        machine: BusyMachine {
            psi_cpu_pct: named("psi_cpu"),
            psi_io_pct: named("psi_io"),
            psi_memory_pct: named("psi_memory"),
            cpu_busy_pct: if has_all { named("cpu_busy") } else { cpu_pct },
            run_queue: named("run_queue"),
            memory_left_pct: named("memory_left"),
            disk_busy_pct: named("disk_busy"),
            file_bytes_per_job: named("file_bytes"),
            device_bytes_per_job: named("device_bytes"),
        },
    })
}

/// As the rows of a run have it of every reading: so table and sentence have one figure.
fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use weigh_model::example::{load_points, point, stored};
    use weigh_model::ids::ArmId;
    use weigh_model::result::summary::Failure;
    use weigh_model::role::SampleRole;

    #[test]
    fn cpu_time_is_a_share_of_what_a_load_may_use() {
        let mut stored = stored(load_points([1, 2]));
        for at in 0..2 {
            let points = (0..3).map(|pair| {
                // Users who keep half a CPU busy.
                let cpu_ns_per_op = Some(0.5e9);
                Point { cpu_ns_per_op, operations: 1.0, elapsed_s: 1.0, ..point(pair, 60.0) }
            });
            let row = RowSamples { points: points.collect(), ..RowSamples::default() };
            stored.samples.insert((WorkId(at), ArmId::BASELINE), row);
        }
        let mut with = |allowed: &str, quota_cpus| {
            let machine = &mut stored.header.machine;
            machine.cpus_online = 2;
            machine.cpu_share.allowed = Some(allowed.into());
            machine.cpu_share.quota_cpus = quota_cpus;
            let answers = &load_answers(&stored)[0];
            let point = &answers.points[0];
            (point.cpu_pct, point.machine.cpu_busy_pct, answers.quota_cpus)
        };
        assert_eq!(with("0-1", None), (Some(25.0), None, None));
        assert_eq!(with("1", None), (Some(50.0), Some(50.0), None));
        assert_eq!(with("0-1", Some(0.5)), (Some(100.0), Some(100.0), Some(0.5)));
    }

    #[test]
    fn a_load_point_that_failed_after_a_sample_is_none() {
        let mut stored = stored(load_points([1, 2, 64]));
        let of = |work: usize, row: usize| {
            let points = (0..3).map(|pair| point(pair, 100.0 * row as f64)).collect();
            ((WorkId(work), ArmId::BASELINE), RowSamples { points, ..RowSamples::default() })
        };
        stored.samples.extend([of(0, 1), of(1, 2), of(2, 30)]);
        for point in &mut stored.samples.get_mut(&(WorkId(2), ArmId::BASELINE)).unwrap().points {
            point.role = SampleRole::Remeasured;
        }
        let users = |stored: &Stored| -> Vec<usize> {
            load_answers(stored)[0].points.iter().map(|point| point.users).collect()
        };
        assert_eq!(users(&stored), [1, 2, 64]);
        let (arm, reason) = ("none".to_owned(), "it was killed".to_owned());
        let workload = stored.header.works[2].name.clone();
        stored.failures.push(Failure { workload, arm, reason });
        assert_eq!(users(&stored), [1, 2]);
        assert_eq!(load_answers(&stored)[0].peak, None, "not of samples that do not count");
    }
}
