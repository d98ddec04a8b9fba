//! The gate of a CI job (`--fail-above`): which rows are shown to cost more than the limit.

use serde::{Deserialize, Serialize};

use crate::result::work_name::WorkName;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Gate {
    /// The limit, in per cent of the baseline's rate.
    pub fail_above_pct: f64,
    /// True if each row is shown to cost less than the limit.
    pub passed: bool,
    /// The rows that are shown to cost more.
    pub above: Vec<NamedRow>,
    /// The rows of which neither is shown.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub open: Vec<NamedRow>,
}

/// A row by its names.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct NamedRow {
    #[serde(flatten)]
    pub workload: WorkName,
    pub treatment: String,
}

impl Gate {
    /// Returns true if this row made the gate fail.
    pub fn is_above(&self, workload: &WorkName, treatment: &str) -> bool {
        has(&self.above, workload, treatment)
    }

    /// Returns true if this row is shown to cost neither more nor less.
    pub fn is_open(&self, workload: &WorkName, treatment: &str) -> bool {
        has(&self.open, workload, treatment)
    }
}

fn has(rows: &[NamedRow], workload: &WorkName, treatment: &str) -> bool {
    rows.iter().any(|row| row.workload == *workload && row.treatment == treatment)
}
