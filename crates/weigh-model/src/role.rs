//! The role of a sample in its experiment.

use serde::{Deserialize, Serialize};

/// Why a sample was taken. It is stored with the sample. The numbers are part of what is drawn from a seed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SampleRole {
    /// To be compared with the other sample of its pair. All samples of a run have this role.
    #[default]
    Compared = 0,
    /// To choose the scheme of a row: a sequential pair of its pilot. It counts only in a row whose pairs are
    /// all sequential.
    Pilot = 1,
    /// To compare processes that have run for a second (`weigh-engine/late.rs`).
    Aged = 2,
    /// To search for a peak. It is no evidence of an effect.
    Search = 3,
    /// To measure a load point again that may be the peak.
    Remeasured = 4,
}
