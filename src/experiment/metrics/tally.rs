//! Sums over the whole pairs of each row: what the operations used, and the mean rates.

use std::collections::BTreeMap;

use crate::report::metrics::{Resources, Used};
use crate::stats::Interval;
use crate::stats::mean_rate::{Exposure, mean_ratio};
use crate::store::record::Measured;
use crate::workload::sample::Sample;

/// What the timed operations of one arm used.
#[derive(Clone, Debug, Default)]
struct Sums {
    operations: f64,
    user_ns: Total,
    system_ns: Total,
    voluntary_switches: Total,
    involuntary_switches: Total,
    minor_faults: Total,
    major_faults: Total,
}

/// A sum that is unknown as soon as one part is.
#[derive(Clone, Copy, Debug)]
struct Total(Option<f64>);

impl Default for Total {
    fn default() -> Total {
        Total(Some(0.0))
    }
}

impl Total {
    fn add(&mut self, part: Option<u64>) {
        self.0 = self.0.zip(part).map(|(sum, part)| sum + part as f64);
    }
}

impl Sums {
    fn add(&mut self, sample: &Sample) {
        self.operations += sample.operations;
        self.user_ns.add(sample.user_ns);
        self.system_ns.add(sample.system_ns);
        self.voluntary_switches.add(sample.voluntary_switches);
        self.involuntary_switches.add(sample.involuntary_switches);
        self.minor_faults.add(sample.minor_faults);
        self.major_faults.add(sample.major_faults);
    }

    /// Sums over sums: a mean of ratios would give a sample of few operations the weight of one of many.
    fn per_op(&self) -> Used {
        let per_op = |total: Total| total.0.map(|sum| sum / self.operations);
        Used {
            user_ns_per_op: per_op(self.user_ns),
            system_ns_per_op: per_op(self.system_ns),
            voluntary_switches_per_op: per_op(self.voluntary_switches),
            involuntary_switches_per_op: per_op(self.involuntary_switches),
            minor_faults_per_op: per_op(self.minor_faults),
            major_faults_per_op: per_op(self.major_faults),
        }
    }
}

/// All whole pairs of a row; the baseline is the first of each two.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    sums: [Sums; 2],
    exposures: Vec<[Exposure; 2]>,
    has_batches: bool,
}

impl Tally {
    fn add(&mut self, pair: [&Sample; 2]) {
        for (sums, sample) in self.sums.iter_mut().zip(pair) {
            sums.add(sample);
            self.has_batches |= sample.operations != 1.0 || sample.unit.is_some();
        }
        self.exposures.push(pair.map(|sample| {
            let time = sample.elapsed_ns as f64;
            Exposure { work: sample.rate() * time, time }
        }));
    }

    pub fn resources(&self) -> Resources {
        let [baseline, treated] = &self.sums;
        Resources { baseline: baseline.per_op(), treated: treated.per_op() }
    }

    pub fn mean_ratio(&self, alpha: f64) -> Option<(f64, Interval)> {
        mean_ratio(&self.exposures, alpha)
    }

    /// How long each run of an arm took, in nanoseconds, where a sample is one run.
    pub fn runs(&self, arm: usize) -> Option<Vec<f64>> {
        let runs = || self.exposures.iter().map(|pair| pair[arm].time).collect();
        (!self.has_batches).then(runs)
    }
}

/// By work and treated arm. The samples of a pair are next to each other in the order measured.
pub fn of_rows(samples: &[Measured]) -> BTreeMap<(usize, usize), Tally> {
    let mut tallies: BTreeMap<(usize, usize), Tally> = BTreeMap::new();
    let place = |m: &Measured| (m.work, m.treated_arm, m.set, m.pair);
    for both in samples.windows(2) {
        let [first, second] = both else { continue };
        let is_pair = place(first) == place(second) && first.position == 0;
        if is_pair && (first.arm == 0) != (second.arm == 0) {
            let (baseline, treated) =
                if first.arm == 0 { (first, second) } else { (second, first) };
            let tally = tallies.entry((first.work, first.treated_arm)).or_default();
            tally.add([&baseline.sample, &treated.sample]);
        }
    }
    tallies
}

#[cfg(test)]
mod tests {
    use super::*;

    fn measured(pair: usize, position: usize, arm: usize, sample: &str) -> Measured {
        let sample: Sample = serde_json::from_str(sample).unwrap();
        let (evidence, disturbance) = Default::default();
        let (work, treated_arm, set, started_s) = (0, 1, 0, 0.0);
        #[rustfmt::skip]
        let measured = Measured {
            work, arm, treated_arm, set, pair, position, started_s, sample, evidence, disturbance,
        };
        measured
    }

    #[test]
    fn sums_are_over_whole_pairs_and_divided_by_operations() {
        let base = r#"{"operations":100,"elapsed_ns":1000,"user_ns":500,"minor_faults":1}"#;
        let less = r#"{"operations":300,"elapsed_ns":1000,"user_ns":100,"minor_faults":3}"#;
        let slow = r#"{"operations":10,"elapsed_ns":1000,"user_ns":500}"#;
        let samples = [
            measured(0, 0, 0, base),
            measured(0, 1, 1, slow),
            measured(1, 0, 1, slow),
            measured(1, 1, 0, less),
            measured(2, 0, 0, base),
        ];
        let tally = of_rows(&samples).remove(&(0, 1)).unwrap();
        let Resources { baseline, treated } = tally.resources();
        assert_eq!(baseline.user_ns_per_op, Some(1.5));
        assert_eq!(baseline.minor_faults_per_op, Some(0.01));
        assert_eq!((treated.user_ns_per_op, treated.minor_faults_per_op), (Some(50.0), None));
        assert_eq!(baseline.cpu_ns(), None);
        let (estimate, _) = tally.mean_ratio(0.05).unwrap();
        assert!((estimate - 0.05_f64.ln()).abs() < 1e-12);
        assert_eq!(tally.runs(0), None);
    }

    #[test]
    fn a_sample_that_is_one_run_tells_how_long_it_took() {
        let run = |ns: u32| format!(r#"{{"operations":1,"elapsed_ns":{ns}}}"#);
        let samples = [measured(0, 0, 1, &run(7)), measured(0, 1, 0, &run(5))];
        let tally = of_rows(&samples).remove(&(0, 1)).unwrap();
        assert_eq!((tally.runs(0), tally.runs(1)), (Some(vec![5.0]), Some(vec![7.0])));
    }
}
