//! Results of several runs together: the peaks of repeated loads, and the change from sample to sample for
//! each length of samples.

use paired::student::one_more;
use weigh_model::result::repeated::{FurtherPeak, LoadSet, SampleChange, SampleLength, SetPeak};
use weigh_model::result::run::RunReport;
use weigh_model::result::series::RunSeries;

/// Fewest peaks that predict a further one.
const FEWEST_PEAKS: usize = 3;
const ALPHA: f64 = 0.05;

/// Returns the confirmed peak of each set.
pub fn sets(runs: &[RunReport]) -> Vec<LoadSet> {
    runs.iter().map(|run| LoadSet { experiment: run.id.clone(), peak: peak(run) }).collect()
}

fn peak(run: &RunReport) -> Option<SetPeak> {
    let answers = run.loads.first()?;
    let best = answers.best()?;
    let point = answers.best_point()?;
    let interval = point.throughput();
    Some(SetPeak {
        users: point.users,
        jobs_per_min: point.jobs_per_min,
        low: interval.map(|interval| interval.low),
        high: interval.map(|interval| interval.high),
        is_at_the_end: best.is_at_the_end,
    })
}

/// Returns where the peak of a further set would be: Student's interval, if the logarithms are normal.
pub fn further(sets: &[LoadSet]) -> Option<FurtherPeak> {
    let peaks = sets.iter().filter_map(|set| set.peak);
    let logs: Vec<f64> = peaks.map(|peak| peak.jobs_per_min.ln()).collect();
    let further = one_more(&logs, ALPHA).filter(|_| logs.len() >= FEWEST_PEAKS)?;
    Some(FurtherPeak { low: further.low.exp(), high: further.high.exp() })
}

/// Returns how much the samples of a run of this length differ.
pub fn length(sample_s: f64, run: &RunReport) -> SampleLength {
    SampleLength { experiment: run.id.clone(), sample_s, change: change(&run.series) }
}

/// `None` if no workload has two samples.
fn change(series: &[RunSeries]) -> Option<SampleChange> {
    let of_one = |one: &RunSeries| {
        let pairs = one.samples.windows(2);
        let count = pairs.len();
        let sum: f64 = pairs.map(|pair| (pair[1].rate / pair[0].rate - 1.0).abs()).sum();
        (count > 0).then(|| (100.0 * sum / count as f64, one.workload.to_string()))
    };
    let changes: Vec<(f64, String)> = series.iter().filter_map(of_one).collect();
    let (largest_pct, workload) = changes.iter().max_by(|a, b| a.0.total_cmp(&b.0)).cloned()?;
    let workloads = changes.len();
    let mean_pct = changes.iter().map(|(change, _)| change).sum::<f64>() / workloads as f64;
    Some(SampleChange { mean_pct, largest_pct, workload, workloads })
}

#[cfg(test)]
mod tests {
    use super::*;
    use weigh_model::ids::ArmId;
    use weigh_model::result::load::{LoadAnswers, LoadPeak, LoadPoint, Throughput};
    use weigh_model::result::series::RunSample;

    fn run(id: &str, jobs_per_min: f64) -> RunReport {
        let point = LoadPoint { users: 4, jobs_per_min, ..LoadPoint::default() };
        let mut answers = LoadAnswers::new("load:x".into(), vec![point], &[]);
        let throughput = Throughput { jobs_per_min, low: 1.0, high: 9e9, samples: 8 };
        answers.peak = Some(LoadPeak {
            users: 4,
            as_good: vec![4],
            users_low: 4,
            users_high: 4,
            throughput,
            is_at_the_end: false,
        });
        RunReport { id: id.into(), loads: vec![answers], ..RunReport::default() }
    }

    #[test]
    fn a_set_without_a_confirmed_peak_predicts_nothing() {
        let mut unconfirmed = run("bbb", 5000.0);
        unconfirmed.loads[0].peak = None;
        let found = sets(&[run("aaa", 1000.0), unconfirmed, run("ccc", 1100.0)]);
        assert_eq!(found[1], LoadSet { experiment: "bbb".into(), peak: None });
        assert_eq!(found[2].peak.map(|peak| peak.jobs_per_min), Some(1100.0));
        assert_eq!(further(&found), None);
    }

    #[test]
    fn three_peaks_predict_a_further_one() {
        let found = sets(&[run("aaa", 1000.0), run("bbb", 1100.0), run("ccc", 1050.0)]);
        assert_eq!(further(&found[..2]), None);
        // The mean of the logarithms ± 4.303 · 0.04766 · √(4/3).
        let FurtherPeak { low, high } = further(&found).unwrap();
        assert!((low - 828.0).abs() < 0.5 && (high - 1330.0).abs() < 2.0, "{low} {high}");
    }

    #[test]
    fn a_change_is_the_mean_between_neighbours_over_workloads() {
        let series = |name: &str, rates: &[f64]| {
            let sample = |rate: &f64| RunSample {
                started_s: 0.0,
                operations: 1.0,
                elapsed_s: 1.0,
                rate: *rate,
            };
            let samples = rates.iter().map(sample).collect();
            RunSeries { arm: ArmId::BASELINE, workload: name.into(), unit: "ops/s".into(), samples }
        };
        let all =
            [series("a", &[100.0, 110.0, 99.0]), series("b", &[50.0, 51.0]), series("c", &[9.0])];
        let found = change(&all).unwrap();
        let is_near = |a: f64, b: f64| (a - b).abs() < 1e-9;
        assert!(is_near(found.mean_pct, 6.0) && is_near(found.largest_pct, 10.0), "{found:?}");
        assert_eq!((found.workload.as_str(), found.workloads), ("a", 2));
        assert_eq!(change(&all[2..]), None);
    }
}
