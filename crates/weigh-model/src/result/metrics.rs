//! Further results of a row besides its rate: resources per operation, latencies of single
//! operations, and the mean. Reports show them beside the verdict, never instead of it.

use serde::{Deserialize, Serialize};

/// All of it; each part is absent where it was not measured.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Metrics {
    /// The ratio of the mean rates, all operations over all time, as a change in per cent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mean_effect_pct: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mean_low_pct: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mean_high_pct: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resources: Option<Resources>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub latency: Option<Latency>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub counters: Option<Counters>,
}

/// Resources that the timed operations of all samples used, divided by their number.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Resources {
    pub baseline: Used,
    pub treated: Used,
}

/// Per operation, of all processes together.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Used {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user_ns_per_op: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub system_ns_per_op: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub voluntary_switches_per_op: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub involuntary_switches_per_op: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub minor_faults_per_op: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub major_faults_per_op: Option<f64>,
    /// Share of a load's driver in the CPU time of users and driver, in per cent; only for a load.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub driver_cpu_pct: Option<f64>,
}

impl Used {
    /// CPU time, in nanoseconds.
    pub fn cpu_ns(&self) -> Option<f64> {
        Some(self.user_ns_per_op? + self.system_ns_per_op?)
    }

    /// Context switches of both kinds.
    pub fn switches(&self) -> Option<f64> {
        Some(self.voluntary_switches_per_op? + self.involuntary_switches_per_op?)
    }

    /// Page faults of both kinds.
    pub fn faults(&self) -> Option<f64> {
        Some(self.minor_faults_per_op? + self.major_faults_per_op?)
    }
}

/// How long single operations take, or the runs of a command.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Latency {
    /// Unit of observation: `operation` or `run`.
    pub of: String,
    /// Cost of reading the clock, which was subtracted: the median of the launches.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub clock_ns: Option<f64>,
    /// Observations of either arm.
    pub baseline_count: u64,
    pub treated_count: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub p50_ns: Option<Contrast>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub p99_ns: Option<Contrast>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub p99_9_ns: Option<Contrast>,
}

/// Counts of the PMU, per operation.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Counters {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kernel_instructions_per_op: Option<Contrast>,
    /// Cycles per operation in user and kernel mode together.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cycles_per_op: Option<Contrast>,
}

/// A number of both arms, and what the pairs say of their ratio.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Contrast {
    pub baseline: f64,
    pub treated: f64,
    /// The typical pair's treated number over its baseline's − 1, in per cent: positive is more.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub effect_pct: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub low_pct: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub high_pct: Option<f64>,
}
