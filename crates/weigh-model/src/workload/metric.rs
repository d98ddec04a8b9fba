//! The metrics that a sample can have besides its rate, and how much it has of one.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// No program needs a longer name for what it reports.
pub const LONGEST_NAME: usize = 40;
/// Unit of a program that is timed from its execution to its end.
pub const WHOLE_RUNS: &str = "runs/s";
/// Reading of an interleaved sample: the rate that it is compared by.
pub const INTERLEAVED: &str = "interleaved";
/// Its rate over all time, with the longest slices clipped.
pub const CLIPPED: &str = "interleaved_clipped";
/// A percentile of an operation's time that can be asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Percentile {
    P50,
    P90,
    P99,
    P99_9,
}

impl Percentile {
    pub const ALL: [Percentile; 4] =
        [Percentile::P50, Percentile::P90, Percentile::P99, Percentile::P99_9];

    /// Which share of the operations took no longer.
    pub fn quantile(self) -> f64 {
        match self {
            Percentile::P50 => 0.5,
            Percentile::P90 => 0.9,
            Percentile::P99 => 0.99,
            Percentile::P99_9 => 0.999,
        }
    }

    /// Returns the ending of a latency metric's name, e.g. `p99`.
    pub fn end(self) -> &'static str {
        self.name().trim_start_matches("latency_")
    }

    pub fn name(self) -> &'static str {
        match self {
            Percentile::P50 => "latency_p50",
            Percentile::P90 => "latency_p90",
            Percentile::P99 => "latency_p99",
            Percentile::P99_9 => "latency_p99.9",
        }
    }
}

/// A metric that can have a verdict. In documents it is its name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(into = "String", from = "String")]
pub enum Metric {
    /// Operations per second of wall time.
    Rate,
    /// Rate over all time for interleaved processes, whose rate is the rate of their median slice.
    /// It counts operations per second over all slices; a slice longer than three times the median
    /// counts for that long.
    OverallRate,
    /// CPU time of an operation, in user and kernel mode, of the workload and the processes that it started.
    /// It does not include waiting, for a disk or for a CPU that others have.
    CpuTime,
    /// A percentile of the time of one operation; `latency_p99` for example.
    Latency(Percentile),
    /// One of [`SAMPLE_METRICS`](super::sample::SAMPLE_METRICS), or one that the program itself reports,
    /// in the `readings` of its line.
    Named(Arc<str>),
}

/// Direction in which an amount of a metric is better.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Direction {
    Higher,
    #[default]
    Lower,
}

/// How much a sample has of a metric.
#[derive(Clone, Debug, PartialEq)]
pub struct MetricValue {
    pub value: f64,
    /// `ns/op`, `B`.
    pub unit: Arc<str>,
    pub better: Direction,
}

impl MetricValue {
    /// One of which less is better.
    pub fn of(value: f64, unit: &str) -> MetricValue {
        MetricValue { value, unit: unit.into(), better: Direction::Lower }
    }

    /// ln of it, so that more is better; `None` of nothing, which has no ratio.
    pub fn log(&self) -> Option<f64> {
        let log = self.value.ln();
        let log = if self.better == Direction::Higher { log } else { -log };
        Some(log).filter(|log| log.is_finite())
    }
}

impl Metric {
    /// Lists the judged metrics: the rate, CPU time, and the metrics that the user asked for.
    ///
    /// If the number of pairs is fixed in advance, only the rate and the requested metrics are
    /// judged. The smallest p-value of eight pairs is 1/128, which leaves no room for twice the
    /// claims.
    pub fn judged(fixed_pairs: Option<usize>, asked_for: &[Metric]) -> Vec<Metric> {
        let mut judged = vec![Metric::Rate];
        judged.extend(fixed_pairs.is_none().then_some(Metric::CpuTime));
        for metric in asked_for {
            if !judged.contains(metric) {
                judged.push(metric.clone());
            }
        }
        judged
    }

    /// Returns true if it is judged without being asked for, so no row waits for its verdict.
    pub fn is_implicit(&self) -> bool {
        matches!(self, Metric::Rate | Metric::OverallRate | Metric::CpuTime)
    }

    /// One that a user asks for by name.
    pub fn parse(name: &str) -> Result<Metric, String> {
        let is_name = |c: char| c.is_ascii_alphanumeric() || "_-.".contains(c);
        if name.is_empty() || name.len() > LONGEST_NAME || !name.chars().all(is_name) {
            return Err(format!(
                "the name of a metric has at most {LONGEST_NAME} letters, digits, `_`, `-` and `.`"
            ));
        }
        match Metric::from(name.to_owned()) {
            Metric::Rate => Err("`rate` is always judged".into()),
            Metric::OverallRate => Err("`all_time` is judged with --interleave=on".into()),
            Metric::Named(name) if [INTERLEAVED, CLIPPED].contains(&&*name) => {
                Err(format!("`{name}` is reserved for a reading of weigh: rename yours"))
            }
            Metric::Named(name) if name.starts_with("latency") => Err(format!(
                "there is no metric `{name}`; use one of {}",
                Percentile::ALL.map(Percentile::name).join(", ")
            )),
            metric => Ok(metric),
        }
    }

    /// As documents have it.
    pub fn name(&self) -> &str {
        match self {
            Metric::Rate => "rate",
            Metric::OverallRate => "all_time",
            Metric::CpuTime => "cpu_time",
            Metric::Latency(percentile) => percentile.name(),
            Metric::Named(name) => name,
        }
    }
}

impl From<Metric> for String {
    fn from(metric: Metric) -> String {
        metric.name().to_owned()
    }
}

impl From<String> for Metric {
    fn from(name: String) -> Metric {
        let known = [Metric::Rate, Metric::OverallRate, Metric::CpuTime];
        let latencies = Percentile::ALL.map(Metric::Latency);
        known
            .into_iter()
            .chain(latencies)
            .find(|metric| metric.name() == name)
            .unwrap_or_else(|| Metric::Named(name.into()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_metric_is_its_name_in_documents() {
        for name in ["rate", "cpu_time", "peak_memory", "block_input", "latency_p99.9", "jobs"] {
            let metric: Metric = serde_json::from_str(&format!("\"{name}\"")).unwrap();
            assert_eq!(serde_json::to_string(&metric).unwrap(), format!("\"{name}\""));
        }
        assert_eq!(Metric::parse("latency_p99").unwrap(), Metric::Latency(Percentile::P99));
        assert_eq!(Metric::parse("jobs").unwrap(), Metric::Named("jobs".into()));
    }

    #[test]
    fn what_cannot_be_asked_for_is_refused() {
        for name in
            ["", "rate", "interleaved", "all_time", "latency_p98", "a b", "µs", &"x".repeat(41)]
        {
            assert!(Metric::parse(name).is_err(), "{name}");
        }
    }

    #[test]
    fn what_is_judged_has_the_rate_first_and_nothing_twice() {
        let asked = ["jobs", "cpu_time", "jobs"].map(|name| Metric::parse(name).unwrap());
        let names = |fixed| -> Vec<String> {
            Metric::judged(fixed, &asked).into_iter().map(String::from).collect()
        };
        assert_eq!(names(None), ["rate", "cpu_time", "jobs"]);
        assert_eq!(names(Some(8)), ["rate", "jobs", "cpu_time"]);
    }

    #[test]
    fn of_more_that_is_better_the_log_grows() {
        let lower = MetricValue::of(2.0, "B");
        let higher = MetricValue { better: Direction::Higher, ..lower.clone() };
        assert_eq!((lower.log(), higher.log()), (Some(-2f64.ln()), Some(2f64.ln())));
        assert_eq!(MetricValue::of(0.0, "B").log(), None);
    }
}
