//! Times of parts of a row's operations, over all its samples.

use serde::{Deserialize, Serialize};

use crate::result::work_name::WorkName;

/// Times of one kind, as `select` and `insert` of a database.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TimesRow {
    #[serde(flatten)]
    pub workload: WorkName,
    /// The arm, of a comparison.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub treatment: Option<String>,
    pub of: String,
    pub count: u64,
    /// How many in a second of the timed parts.
    pub per_s: f64,
    /// How many an operation has, on average; absent where no operation was counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub per_op: Option<f64>,
    /// A percentile of too few is none.
    pub p50_ns: Option<f64>,
    pub p99_ns: Option<f64>,
    pub p99_9_ns: Option<f64>,
    pub longest_ns: u64,
    /// When the longest had ended, by the clock of the machine that it ran on.
    pub longest_at: String,
    /// For how much of the samples' time some task of the machine waited for a CPU, and for a disk.
    pub waiting_cpu_pct: f64,
    pub waiting_disk_pct: f64,
    /// How much of the CPUs' time the hypervisor gave to others.
    pub stolen_pct: f64,
}
