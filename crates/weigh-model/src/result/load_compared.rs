//! A mix without a treatment and with it, over the number of users; the verdict on its peak is a row's.

use serde::{Deserialize, Serialize};

use crate::result::alike::{RampSample, THROUGHPUT};
use crate::result::curve::{Chart, ChartMark, Curve, CurvePoint, Quantity};
use crate::result::load::{CROSSOVER_JOBS, Crossover, LoadPoint, peak_mark, percent_known};
use crate::result::work_name::{USERS, WorkName};

/// A mix whose peak was sought in two arms.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ComparedLoad {
    pub mix: String,
    pub treatment: String,
    pub baseline: LoadCurve,
    pub treated: LoadCurve,
}

/// The load points of one arm.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LoadCurve {
    /// Ascending in users.
    pub points: Vec<LoadPoint>,
    /// With how many users its peak was measured.
    pub peak_users: usize,
    /// The points that cannot be told apart from the best one, ascending, with that at which the peak was
    /// measured; and the ends of that list. Empty in documents of an earlier weigh.
    #[serde(default)]
    pub peak_as_good: Vec<usize>,
    pub peak_users_low: usize,
    pub peak_users_high: usize,
    /// True if the peak may be at the largest number of users that was measured: that is in `peak_as_good`.
    /// Then a higher peak may lie beyond.
    pub is_at_the_end: bool,
    /// Users at which each gets at most 10 jobs a minute; absent if the load did not reach it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub crossover: Option<Crossover>,
}

impl LoadCurve {
    /// From its points, where the peak was measured, and their samples.
    pub fn new(points: Vec<LoadPoint>, peak_users: usize, samples: &[RampSample]) -> LoadCurve {
        let best = THROUGHPUT.highest(samples, |_| true).unwrap_or(peak_users);
        let mut as_good = THROUGHPUT.alike(samples, best);
        if let Err(at) = as_good.binary_search(&peak_users) {
            as_good.insert(at, peak_users);
        }
        let [fewest, most] = [as_good.first(), as_good.last()].map(|end| end.copied());
        LoadCurve {
            peak_users,
            peak_users_low: fewest.unwrap_or(peak_users),
            peak_users_high: most.unwrap_or(peak_users),
            is_at_the_end: points.last().is_some_and(|last| as_good.contains(&last.users)),
            peak_as_good: as_good,
            crossover: Crossover::of(&points, CROSSOVER_JOBS),
            points,
        }
    }

    fn curve(&self, series: String, value: impl Fn(&LoadPoint) -> Option<[f64; 3]>) -> Curve {
        let point = |point: &LoadPoint| {
            let [low, y, high] = value(point)?;
            let workload: WorkName = (*series).into();
            let x = point.users as f64;
            Some(CurvePoint { workload, x, y, low: Some(low), high: Some(high) })
        };
        Curve { points: self.points.iter().filter_map(point).collect(), series }
    }

    fn marks(&self, arm: usize, label: &str) -> Vec<ChartMark> {
        let (peak, of_arm) = (self.peak_users, format!("of `{label}`"));
        let at_peak = self.points.iter().find(|point| point.users == peak);
        let as_good = &self.peak_as_good;
        let peak = peak_mark(peak, as_good, at_peak.and_then(LoadPoint::throughput), &of_arm);
        let crossover = self.crossover.map(|crossover| crossover.mark(&of_arm));
        let marks = std::iter::once(peak).chain(crossover);
        marks.map(|mark| ChartMark { curve: Some(arm), ..mark }).collect()
    }
}

impl ComparedLoad {
    /// The highest percentile of a job's time that all load points have.
    pub fn percent_known(&self) -> u8 {
        percent_known(self.baseline.points.iter().chain(&self.treated.points))
    }

    /// Throughput over users, and how long jobs take, each with both arms; what is marked is on the first.
    pub fn charts(&self, baseline: &str) -> Vec<Chart> {
        let arms = [(&self.baseline, baseline), (&self.treated, self.treatment.as_str())];
        let pct = self.percent_known();
        let job_time = |point: &LoadPoint| point.job_time_ns(pct).map(|ns| [ns; 3]);
        let curves = |value: &dyn Fn(&LoadPoint) -> Option<[f64; 3]>| -> Vec<Curve> {
            let curve = |(arm, label): &(&LoadCurve, &str)| {
                arm.curve(format!("{}, {label}", self.mix), value)
            };
            arms.iter().map(curve).collect()
        };
        let arms = arms.iter().enumerate();
        let marks = arms.flat_map(|(arm, (curve, label))| curve.marks(arm, label)).collect();
        let charts = [
            (Quantity::Rate("jobs/min".into()), curves(&LoadPoint::jobs_spread), marks),
            (Quantity::JobTime(pct), curves(&job_time), Vec::new()),
        ];
        let charts = charts.map(|(quantity, curves, marks)| Chart {
            quantity,
            x_unit: USERS.into(),
            curves,
            marks,
        });
        let has_line = |chart: &Chart| chart.curves.iter().all(|curve| curve.points.len() > 1);
        charts.into_iter().filter(has_line).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::result::alike::rounds;

    #[test]
    fn a_peak_is_at_the_end_if_the_last_point_may_be_it() {
        let point =
            |(users, jobs_per_min)| LoadPoint { users, jobs_per_min, ..LoadPoint::default() };
        let curve = |rates: &[(usize, f64)]| {
            let samples = rounds(rates, 8);
            LoadCurve::new(rates.iter().copied().map(point).collect(), 2, &samples)
        };
        assert!(!curve(&[(1, 500.0), (2, 1000.0), (4, 900.0)]).is_at_the_end);
        let at_end = curve(&[(1, 500.0), (2, 1000.0), (4, 999.0)]);
        assert_eq!((at_end.is_at_the_end, &*at_end.peak_as_good), (true, &[2, 4][..]));
        assert!(!curve(&[]).is_at_the_end, "of no point");
    }

    #[test]
    fn both_arms_are_in_each_chart_with_their_marks() {
        let points = |rates: [f64; 3]| {
            let points = [1, 2, 64].into_iter().zip(rates);
            let point = |(users, jobs_per_min)| LoadPoint {
                users,
                jobs_per_min,
                job_p99_ns: Some(1e6),
                ..LoadPoint::default()
            };
            points.map(point).collect::<Vec<_>>()
        };
        let curve = |rates: [f64; 3]| {
            let samples = |(users, jobs_per_min)| RampSample {
                users,
                jobs_per_min,
                job_ns: None,
                round: None,
            };
            let samples: Vec<RampSample> = [1, 2, 64].into_iter().zip(rates).map(samples).collect();
            LoadCurve::new(points(rates), 2, &samples)
        };
        let (baseline, treated) = (curve([500.0, 1000.0, 690.0]), curve([400.0, 795.0, 800.0]));
        assert_eq!(treated.peak_as_good, [2, 64]);
        assert_eq!((treated.peak_users_low, treated.peak_users_high), (2, 64));
        assert_eq!(treated.crossover, None);
        let (mix, treatment) = ("load:x".into(), "audit".into());
        let charts = ComparedLoad { mix, treatment, baseline, treated }.charts("none");
        assert_eq!(charts.len(), 2);
        for chart in &charts {
            let labels: Vec<&str> = chart.curves.iter().map(|curve| chart.label(curve)).collect();
            assert_eq!((chart.title(), labels), ("load:x", vec!["none", "audit"]));
        }
        let notes: Vec<&str> = charts[0].marks.iter().map(|mark| mark.note.as_str()).collect();
        let second = "peak of `audit`: 2 users (not told apart from 64)";
        assert_eq!(notes, ["peak of `none`: 2 users", second]);
        assert!(charts[1].marks.is_empty());
    }
}
