//! Several runs that were measured one after the other, each an experiment of its own, and what they show
//! together: the peaks of a repeated load, or the change from sample to sample for each length of samples
//! (White's Table 6).

use serde::{Deserialize, Serialize};

use crate::facts::Facts;
use crate::result::summary::Failure;

/// The version of the JSON document.
pub const SCHEMA: &str = "weighbridge/repeated/1";

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct RepeatedReport {
    /// Always [`SCHEMA`].
    pub schema: String,
    pub id: String,
    /// The command line that measures the same again.
    pub command: String,
    pub machine: Facts,
    /// Why the last run failed, if it did; none followed it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sets: Vec<LoadSet>,
    /// Where the peak of a further set would be, with 95 % confidence; needs three peaks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub further: Option<FurtherPeak>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lengths: Vec<SampleLength>,
    /// Workloads without a result, of all runs.
    pub failures: Vec<Failure>,
}

/// One search for the peak of a load.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LoadSet {
    /// Its id; empty if it is not stored.
    pub experiment: String,
    /// Absent if no peak was confirmed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peak: Option<SetPeak>,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct SetPeak {
    pub users: usize,
    pub jobs_per_min: f64,
    /// Ends of its interval.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub low: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub high: Option<f64>,
    /// True if the ramp ended at this point or at one that is as good: the real peak may be higher.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_at_the_end: bool,
}

/// Interval in jobs per minute.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct FurtherPeak {
    pub low: f64,
    pub high: f64,
}

/// A run with samples of one length.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SampleLength {
    /// Its id; empty if it is not stored.
    pub experiment: String,
    pub sample_s: f64,
    /// Absent if no workload has two samples.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub change: Option<SampleChange>,
}

/// How much the rates of a run change from one sample of a workload to its next one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SampleChange {
    /// Mean over the workloads.
    pub mean_pct: f64,
    /// Mean change of the workload that changes most.
    pub largest_pct: f64,
    /// Name of that workload.
    pub workload: String,
    /// Number of workloads in the mean.
    pub workloads: usize,
}

impl RepeatedReport {
    /// The confirmed peaks.
    pub fn peaks(&self) -> impl Iterator<Item = &SetPeak> {
        self.sets.iter().filter_map(|set| set.peak.as_ref())
    }
}
