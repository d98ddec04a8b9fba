//! Why a treatment could not do what it was asked to.

use weigh_workload::launcher::NotSeen;

/// Each is a sentence, and says what it costs: the row, the sample, or the experiment.
#[derive(Debug, thiserror::Error)]
pub enum TreatmentError {
    /// It cannot be applied here; the sentence says what is missing.
    #[error("{0}")]
    Unavailable(String),
    /// It was applied, but did not show itself where it should (or did where it should not): what
    /// was measured meanwhile is not evidence of anything.
    #[error("{0}")]
    NotInForce(String),
    /// The output could not be kept, as on a full disk.
    ///
    /// This sample does not count; the samples before it do.
    #[error("{0}")]
    NotKept(String),
    /// The surroundings of a sample could not be made, or failed: the row has no result.
    #[error("{0}")]
    NoInstance(String),
    #[error("interrupted")]
    Interrupted,
}

/// Converts the failure of a step to observe a worker.
///
/// If the worker was killed, its row has no result, and the other rows go on.
impl From<NotSeen> for TreatmentError {
    fn from(missing: NotSeen) -> TreatmentError {
        match missing.is_killed {
            true => TreatmentError::NoInstance(missing.to_string()),
            false => TreatmentError::NotInForce(missing.to_string()),
        }
    }
}
