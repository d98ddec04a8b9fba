//! False alarms of a machine's experiments with two identical arms, and findings of its experiments
//! with a planted effect.

use std::collections::BTreeMap;

use crate::result::warning::{Warning, as_sentences};
use serde::Serialize;

use crate::result::scheme::Scheme;
use crate::result::work_name::WorkName;
use paired::binomial::{FalseAlarms, Share};

/// The version of the JSON document.
pub const SCHEMA: &str = "weighbridge/calibration/1";
/// For how long a workload is measured, in seconds.
pub const SPANS_S: [f64; 3] = [10.0, 60.0, 300.0];

#[derive(Debug, Serialize)]
pub struct Calibration {
    pub schema: &'static str,
    pub hostname: String,
    pub cpu_model: String,
    pub kernel: String,
    /// Error rate of the intervals and of each experiment's claims.
    pub alpha: f64,
    /// Ids of the experiments, the latest first.
    pub experiments: Vec<String>,
    pub workloads: Vec<WorkloadNoise>,
    /// Experiments that called any of their rows slower or faster, at their end.
    pub experiment_alarms: FalseAlarms,
    /// Rows that would be called slower or faster if each were the only one of its experiment.
    pub row_alarms: FalseAlarms,
    /// Rows whose CPU time would be called higher or lower if each were the only row of its
    /// experiment. Empty where the experiments judged the rate alone.
    pub cpu_time_row_alarms: FalseAlarms,
    /// Experiments that were made just now, out of all of them.
    pub these: These,
    /// Findings about a planted effect, where one was planted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub planted: Option<PlantedExperiments>,
}

/// The promise is made for any number of experiments that was decided on before them, not for a
/// history that grows while somebody looks at it.
#[derive(Debug, Serialize)]
pub struct These {
    pub experiments: Vec<String>,
    pub experiment_alarms: FalseAlarms,
    pub row_alarms: FalseAlarms,
    pub cpu_time_row_alarms: FalseAlarms,
    /// Warnings of these experiments, each once.
    #[serde(serialize_with = "as_sentences")]
    pub warnings: Vec<Warning>,
}

#[derive(Debug, Serialize)]
pub struct WorkloadNoise {
    #[serde(flatten)]
    pub workload: WorkName,
    /// How its pairs were taken: `weigh compare` has the choice, and so have calibrations.
    pub scheme: Scheme,
    /// Standard deviation of a pair's log-ratio, in per cent: 1.4826 · MAD, the median of the
    /// calibrations.
    pub noise_pct: f64,
    /// Time of a pair in seconds, including its launches.
    pub pair_s: f64,
    /// The smallest effect that half of all experiments show in 10 s, 1 min and 5 min for this
    /// workload; `None` where that is not enough for a verdict.
    pub smallest_effect_pct: [Option<f64>; SPANS_S.len()],
    pub experiments: usize,
    /// Number of experiments that were made just now.
    pub these_experiments: usize,
    pub pairs: usize,
    /// Rows of this workload that would be called slower or faster if each were the only one.
    pub alarms: usize,
    /// Interval of the mean effect of this command's experiments: what identical arms differ by
    /// systematically. The intervals of all rows hold together. `None` of a single experiment.
    pub bias_pct: Option<[f64; 2]>,
}

impl WorkloadNoise {
    /// Returns true if the mean of identical arms is not zero.
    pub fn is_biased(&self) -> bool {
        self.bias_pct.is_some_and(|[low, high]| low > 0.0 || high < 0.0)
    }
}

impl Calibration {
    pub fn json(&self) -> String {
        serde_json::to_string_pretty(self).expect("plain data with text keys") + "\n"
    }
}

#[derive(Debug, Serialize)]
pub struct PlantedExperiments {
    /// How much more work one arm did than it reported.
    pub share_pct: f64,
    /// Effect of the planted work on the rate: −share / (1 + share).
    pub true_effect_pct: f64,
    pub experiments: Vec<String>,
    pub workloads: Vec<PlantedWorkload>,
    /// Share of all rows whose interval covers the planted effect.
    pub covered: Share,
    pub found: Share,
    /// Workloads in which it could not be planted, with the reason.
    pub left_out: BTreeMap<String, String>,
    pub periodic: PeriodicExperiments,
}

/// Experiments whose planted effect is in one slice of several.
#[derive(Debug, Serialize)]
pub struct PeriodicExperiments {
    pub every: u32,
    pub share_pct: f64,
    pub true_effect_pct: f64,
    pub experiments: Vec<String>,
    /// Rows that were called slower, of those with enough pairs for a verdict.
    pub found: Share,
    /// Rows that were called equivalent or faster, each of which is false.
    pub denied: Share,
}

#[derive(Debug, Serialize)]
pub struct PlantedWorkload {
    #[serde(flatten)]
    pub workload: WorkName,
    /// Experiments whose interval, at their end, has the true effect in it.
    pub covered: Share,
    /// Experiments that called it slower, at their end.
    pub found: Share,
    /// The median over the experiments.
    pub pairs: f64,
}
