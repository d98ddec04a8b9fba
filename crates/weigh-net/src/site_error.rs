//! Why cells cannot be measured.

use weigh_testbed::TestbedError;
use weigh_treatment::TreatmentError;
use weigh_workload::launcher::LauncherError;

/// Why there is no site, or no cell.
#[derive(Debug, thiserror::Error)]
pub enum SiteError {
    #[error("interrupted")]
    Interrupted,
    #[error("{0}")]
    Failed(String),
    /// The connection to another machine is gone.
    #[error("{0}")]
    Lost(String),
}

impl From<TestbedError> for SiteError {
    fn from(error: TestbedError) -> SiteError {
        match error {
            TestbedError::Interrupted => SiteError::Interrupted,
            other => SiteError::Failed(other.to_string()),
        }
    }
}

impl From<TreatmentError> for SiteError {
    fn from(error: TreatmentError) -> SiteError {
        match error {
            TreatmentError::Interrupted => SiteError::Interrupted,
            other => SiteError::Failed(other.to_string()),
        }
    }
}

impl From<LauncherError> for SiteError {
    fn from(error: LauncherError) -> SiteError {
        match error {
            LauncherError::Interrupted => SiteError::Interrupted,
            other => SiteError::Failed(other.to_string()),
        }
    }
}
