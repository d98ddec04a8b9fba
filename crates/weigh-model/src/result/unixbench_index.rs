//! UnixBench's index, by the version that a report states.

use crate::workload::suite;
use paired::estimate::geometric_mean;

/// How an index comes from results.
#[derive(Clone, Copy)]
pub struct Formula {
    pub mean: suite::Index,
    /// Points of a machine as fast as the baselines.
    pub points: f64,
}

impl Formula {
    /// Returns the formula of the version that a report states: up to 3.11 the mean is linear.
    pub fn of_version(version: &str) -> Formula {
        match version.starts_with("3.") {
            true => Formula { mean: suite::Index::ArithmeticMean, points: 1.0 },
            false => Formula { mean: suite::Index::GeometricMean, points: 10.0 },
        }
    }

    pub fn index(self, result: f64, baseline: f64) -> f64 {
        result / baseline * self.points
    }

    pub fn score(self, indices: &[f64]) -> Option<f64> {
        match self.mean {
            _ if indices.is_empty() => None,
            suite::Index::ArithmeticMean => {
                Some(indices.iter().sum::<f64>() / indices.len() as f64)
            }
            suite::Index::GeometricMean => geometric_mean(indices),
        }
    }
}
