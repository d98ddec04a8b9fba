//! Readings of a sample: what it gives the row that it is of.

use weigh_model::workload::metric::Metric;
use weigh_model::workload::sample::Outside;

/// Rate of a sample, and the other metrics that are judged.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Readings {
    /// Operations per second: the primary metric, which steers the experiment.
    pub rate: f64,
    /// ln of each other metric that is judged and known, so that more is better.
    pub logs: Vec<(Metric, f64)>,
    /// Use of the partner's slices by the process, in an interleaved pair.
    pub outside: Option<Outside>,
}

impl Readings {
    /// Makes the readings of a process that has only a rate, and that does nothing outside its
    /// slices.
    pub fn of_rate(rate: f64) -> Readings {
        let outside = Outside { ns_per_slice: 0.0, slice_cpu_ns: 1.0, tasks: 1 };
        Readings { rate, outside: Some(outside), ..Readings::default() }
    }

    /// ln of a metric, of which more is better.
    pub fn log_of(&self, metric: &Metric) -> Option<f64> {
        match metric {
            Metric::Rate => Some(self.rate.ln()),
            other => self.logs.iter().find(|(metric, _)| metric == other).map(|(_, log)| *log),
        }
    }
}
