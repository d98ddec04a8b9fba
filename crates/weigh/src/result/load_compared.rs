//! A mix without a treatment and with it, over the number of users; the verdict on its peak is a row's.

use serde::{Deserialize, Serialize};

use super::curve::{Chart, ChartMark, Curve, CurvePoint, Quantity};
use super::load::{CROSSOVER_JOBS, Crossover, LoadPoint, as_good, peak_mark, percent_known};
use super::work_name::{USERS, WorkName};

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
    /// The fewest and the most users of the points whose median is within 1 % of the highest.
    pub peak_users_low: usize,
    pub peak_users_high: usize,
    /// Whether those are the most that were measured: then there may be a higher peak beyond.
    pub is_at_the_end: bool,
    /// Where each user gets ten jobs a minute or fewer; absent where no point had so many users.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub crossover: Option<Crossover>,
}

impl LoadCurve {
    /// From its points, and where the peak was measured.
    pub fn new(points: Vec<LoadPoint>, peak_users: usize) -> LoadCurve {
        let (peak_users_low, peak_users_high) = as_good(&points, peak_users);
        LoadCurve {
            peak_users,
            peak_users_low,
            peak_users_high,
            is_at_the_end: points.last().is_some_and(|last| last.users <= peak_users),
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
        let range = [self.peak_users_low, self.peak_users_high];
        let peak = peak_mark(peak, range, at_peak.and_then(LoadPoint::throughput), &of_arm);
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
        let baseline = LoadCurve::new(points([500.0, 1000.0, 700.0]), 2);
        let treated = LoadCurve::new(points([400.0, 795.0, 800.0]), 2);
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
        let second = "peak of `audit`: 2 users (2 to 64 are within 1 %)";
        assert_eq!(notes, ["peak of `none`: 2 users", second]);
        assert!(charts[1].marks.is_empty());
    }
}
