//! Samples of a workload in the order in which they were taken.

use crate::ids::ArmId;
use crate::result::work_name::WorkName;

#[derive(Clone, Debug)]
pub struct RunSeries {
    pub workload: WorkName,
    /// The baseline in a run, which has one arm.
    pub arm: ArmId,
    pub unit: String,
    pub samples: Vec<RunSample>,
}

#[derive(Clone, Debug)]
pub struct RunSample {
    /// Seconds from the start of the experiment.
    pub started_s: f64,
    /// In the timed part.
    pub operations: f64,
    /// Length of the timed part.
    pub elapsed_s: f64,
    pub rate: f64,
}
