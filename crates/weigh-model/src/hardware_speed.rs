//! Rates of the parts of a machine, measured before by the suite `hardware`.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Name of the suite.
pub const SUITE: &str = "hardware";

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct HardwareSpeed {
    /// Experiment that measured it, and when that began.
    pub experiment: String,
    pub started: String,
    /// Host name and processor, for a data directory that several machines use.
    pub hostname: String,
    pub cpu_model: String,
    pub rates: BTreeMap<String, PartRate>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PartRate {
    pub rate: f64,
    pub unit: String,
}
