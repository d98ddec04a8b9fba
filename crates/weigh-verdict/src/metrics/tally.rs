//! Resources that the operations of a row used, and the row's mean rates.

use crate::pair_roles::{PairsByRole, sort};
use paired::Interval;
use paired::mean_rate::{Exposure, mean_ratio};
use weigh_model::ids::Side;
use weigh_model::result::load::DRIVER_READING;
use weigh_model::result::metrics::{Resources, Used};
use weigh_model::result::scheme::Scheme;
use weigh_model::samples::{CustomReadingMean, Point, RowSamples, Totals};
use weigh_model::workload::metric::WHOLE_RUNS;

/// A row beside its judgement.
pub struct Tally<'a> {
    of_row: &'a RowSamples,
    /// Pairs that the row is judged by, the baseline's sample first.
    pairs: Vec<[&'a Point; 2]>,
    scheme: Option<Scheme>,
}

impl<'a> Tally<'a> {
    pub fn new(of_row: &'a RowSamples, has_pilot: bool) -> Tally<'a> {
        let by_arm = |[first, second]: [&'a Point; 2]| match first.is_treated {
            true => [second, first],
            false => [first, second],
        };
        let PairsByRole { counted, .. } = sort(of_row, has_pilot);
        let scheme = counted.first().map(|taken| taken.scheme());
        let pairs = counted.into_iter().map(|taken| by_arm(taken.both)).collect();
        Tally { of_row, pairs, scheme }
    }

    /// `None` where an arm has no sample.
    pub fn resources(&self) -> Option<Resources> {
        let RowSamples { baseline, treated, .. } = self.of_row;
        Some(Resources { baseline: per_op(baseline.as_ref()?), treated: per_op(treated.as_ref()?) })
    }

    pub fn mean_ratio(&self, alpha: f64) -> Option<(f64, Interval)> {
        // In turns the rate is that of the slices, and stalls must not vanish.
        let work = |point: &Point| match self.scheme {
            Some(Scheme::Interleaved) => point.operations,
            _ => point.rate * point.elapsed_s,
        };
        let exposure = |point: &Point| Exposure { work: work(point), time: point.elapsed_s };
        let exposures: Vec<[Exposure; 2]> =
            self.pairs.iter().map(|pair| pair.map(exposure)).collect();
        mean_ratio(&exposures, alpha)
    }

    /// How long each run of an arm took, in nanoseconds, where a sample is one run.
    pub fn runs(&self, arm: Side) -> Option<Vec<f64>> {
        let totals = [&self.of_row.baseline, &self.of_row.treated];
        let is_other = |unit: &String| unit != WHOLE_RUNS;
        let has_unit =
            totals.into_iter().flatten().any(|totals| totals.unit.as_ref().is_some_and(is_other));
        let is_run = |point: &Point| point.operations == 1.0;
        // A run that shared a CPU is as long as its CPU time.
        let is_alone = self.scheme != Some(Scheme::Interleaved);
        let runs = || self.pairs.iter().map(|pair| pair[arm].elapsed_s * 1e9).collect();
        (!has_unit && is_alone && self.of_row.points.iter().all(is_run)).then(runs)
    }
}

/// Sums over sums: a mean of ratios would give a sample of few operations the weight of one of many.
fn per_op(totals: &Totals) -> Used {
    let per_op = |sum: Option<f64>| sum.map(|sum| sum / totals.operations);
    Used {
        user_ns_per_op: per_op(totals.usage.user_ns),
        system_ns_per_op: per_op(totals.usage.system_ns),
        voluntary_switches_per_op: per_op(totals.usage.voluntary_switches),
        involuntary_switches_per_op: per_op(totals.usage.involuntary_switches),
        minor_faults_per_op: per_op(totals.usage.minor_faults),
        major_faults_per_op: per_op(totals.usage.major_faults),
        driver_cpu_pct: totals.told.get(DRIVER_READING).map(CustomReadingMean::mean),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weigh_model::example::measured;
    use weigh_store::keep_measured;

    fn of_row(samples: &[(usize, usize, usize, &str)]) -> RowSamples {
        let mut of_row = RowSamples::default();
        for &(pair, position, arm, sample) in samples {
            let sample = serde_json::from_str(sample).unwrap();
            of_row.add(keep_measured(measured(arm, pair, position, sample)));
        }
        of_row
    }

    #[test]
    fn what_was_used_is_divided_by_operations_and_the_mean_is_of_whole_pairs() {
        let base = r#"{"operations":100,"elapsed_ns":1000,"user_ns":500,"minor_faults":1}"#;
        let less = r#"{"operations":300,"elapsed_ns":1000,"user_ns":100,"minor_faults":3}"#;
        let slow = r#"{"operations":10,"elapsed_ns":1000,"user_ns":500}"#;
        let of_row = of_row(&[(0, 0, 0, base), (0, 1, 1, slow), (1, 0, 1, slow), (1, 1, 0, less)]);
        let tally = Tally::new(&of_row, false);
        let Resources { baseline, treated } = tally.resources().unwrap();
        assert_eq!(baseline.user_ns_per_op, Some(1.5));
        assert_eq!(baseline.minor_faults_per_op, Some(0.01));
        assert_eq!((treated.user_ns_per_op, treated.minor_faults_per_op), (Some(50.0), None));
        assert_eq!(baseline.cpu_ns(), None);
        let (estimate, _) = tally.mean_ratio(0.05).unwrap();
        assert!((estimate - 0.05_f64.ln()).abs() < 1e-12);
        assert_eq!(tally.runs(Side::BASELINE), None);
    }

    #[test]
    fn half_a_pair_is_in_no_mean() {
        let run = r#"{"operations":1,"elapsed_ns":7}"#;
        let of_row = of_row(&[(0, 0, 0, run)]);
        assert_eq!(Tally::new(&of_row, false).mean_ratio(0.05), None);
        assert!(Tally::new(&of_row, false).resources().is_none());
    }

    #[test]
    fn a_sample_that_is_one_run_tells_how_long_it_took() {
        let run = |ns: u32| format!(r#"{{"operations":1,"elapsed_ns":{ns}}}"#);
        let of_row = of_row(&[(0, 0, 1, &run(7)), (0, 1, 0, &run(5))]);
        let tally = Tally::new(&of_row, false);
        assert_eq!(Side::BOTH.map(|arm| tally.runs(arm)), [Some(vec![5.0]), Some(vec![7.0])]);
    }
}
