//! A mix without a treatment and with it, over the number of users; the verdict on its peak is a row's.

use serde::{Deserialize, Serialize};

use super::curve::{Chart, ChartMark, Curve, CurvePoint, Quantity};
use super::load::{CROSSOVER_JOBS, Crossover, LoadPoint, as_good, percent_known};
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

    fn marks(&self, curve: Option<usize>) -> Vec<ChartMark> {
        let [x, low, high] =
            [self.peak_users, self.peak_users_low, self.peak_users_high].map(|users| users as f64);
        let peak = ChartMark { text: "peak".into(), x, low, high, curve };
        let crossover = self.crossover.map(|Crossover { users, above }| ChartMark {
            text: "crossover".into(),
            x: users as f64,
            low: above.unwrap_or(users) as f64,
            high: users as f64,
            curve,
        });
        std::iter::once(peak).chain(crossover).collect()
    }
}

impl ComparedLoad {
    /// The highest percentile of a job's time that all load points have.
    pub fn percent_known(&self) -> u8 {
        percent_known(self.baseline.points.iter().chain(&self.treated.points))
    }

    /// Throughput over users, and how long jobs take, each with both arms.
    pub fn charts(&self, baseline: &str) -> Vec<Chart> {
        let arms = [(&self.baseline, baseline), (&self.treated, self.treatment.as_str())];
        let jobs = |point: &LoadPoint| {
            let spread = point.spread_pct.unwrap_or_default() / 100.0;
            Some([1.0 - spread, 1.0, 1.0 + spread].map(|part| part.max(0.0) * point.jobs_per_min))
        };
        let pct = self.percent_known();
        let job_time = |point: &LoadPoint| point.job_time_ns(pct).map(|ns| [ns; 3]);
        let curves = |value: &dyn Fn(&LoadPoint) -> Option<[f64; 3]>| -> Vec<Curve> {
            let curve = |(arm, label): &(&LoadCurve, &str)| {
                arm.curve(format!("{}, {label}", self.mix), value)
            };
            arms.iter().map(curve).collect()
        };
        let marks = arms.iter().enumerate().flat_map(|(arm, (curve, _))| curve.marks(Some(arm)));
        let marks: Vec<ChartMark> = marks.collect();
        let charts = [
            (Quantity::Rate("jobs/min".into()), curves(&jobs)),
            (Quantity::JobTime(pct), curves(&job_time)),
        ];
        let charts = charts.map(|(quantity, curves)| Chart {
            quantity,
            x_unit: USERS.into(),
            curves,
            marks: marks.clone(),
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
            assert_eq!(chart.marks.len(), 2);
        }
    }
}
