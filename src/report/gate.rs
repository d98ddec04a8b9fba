//! The gate of a CI job (`--fail-above`): which rows are shown to cost more than the limit.

use serde::{Deserialize, Serialize};

use super::format;
use super::sentence::quoted;
use super::summary::Summary;

/// What became of it. What passes is not shown to cost less than the limit.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Gate {
    /// The limit, in per cent of the baseline's rate.
    pub fail_above_pct: f64,
    pub passed: bool,
    /// The rows that are shown to cost more.
    pub above: Vec<Above>,
}

/// A row by its names.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Above {
    pub workload: String,
    pub treatment: String,
}

impl Gate {
    /// Whether this row is why it failed.
    pub fn is_above(&self, workload: &str, treatment: &str) -> bool {
        self.above.iter().any(|row| row.workload == workload && row.treatment == treatment)
    }
}

/// The result in a sentence; `None` where there was no limit.
pub fn sentence(s: &Summary) -> Option<String> {
    let gate = s.gate.as_ref()?;
    let limit = format::margin(gate.fail_above_pct);
    if gate.passed {
        return Some(format!("Gate passed: nothing is shown to cost more than {limit}."));
    }
    let name = |row: &Above| format!("{} under {}", quoted(&row.workload), quoted(&row.treatment));
    let names: Vec<String> = gate.above.iter().map(name).collect();
    Some(format!("Gate failed: shown to cost more than {limit}: {}.", names.join(", ")))
}
