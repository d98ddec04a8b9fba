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
    /// What it produced could not be kept, as on a full disk: this sample does not count, those before it do.
    #[error("{0}")]
    NotKept(String),
    /// What a sample needs around it could not be made, or failed: the row that needs it has no result.
    #[error("{0}")]
    NoInstance(String),
    #[error("interrupted")]
    Interrupted,
}

/// What shows on a worker, where a step was to look and could not. One that was killed has no result in its
/// row, and the other rows go on.
impl From<NotSeen> for TreatmentError {
    fn from(missing: NotSeen) -> TreatmentError {
        match missing.is_killed {
            true => TreatmentError::NoInstance(missing.to_string()),
            false => TreatmentError::NotInForce(missing.to_string()),
        }
    }
}
