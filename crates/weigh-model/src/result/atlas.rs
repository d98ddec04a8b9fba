//! Costs of all treatments of a list: results of many comparisons, on one page.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::atlas_list::AtlasEntry;
use crate::facts::Facts;
use crate::result::quantity::EvidenceQuantity;
use crate::result::summary::{Failure, Row, State};
use paired::Verdict;

/// The version of the JSON document.
pub const SCHEMA: &str = "weighbridge/atlas/1";

/// The list with its results. The store has it without results, which are those of the experiments that
/// have its tag.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct AtlasReport {
    /// Always [`SCHEMA`].
    pub schema: String,
    pub id: String,
    /// The command line that measures the same again.
    pub command: String,
    pub machine: Facts,
    /// Workloads and suites that each treatment is measured with.
    pub workloads: Vec<String>,
    /// How long all entries are measured together; absent where each is measured as `weigh compare` does.
    pub budget: Option<Duration>,
    /// Time of all sessions of all experiments.
    pub elapsed_s: f64,
    /// Rates within so many per cent are equivalent.
    pub margin_pct: f64,
    pub entries: Vec<AtlasResult>,
}

/// One entry of the list, and its result.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct AtlasResult {
    pub entry: AtlasEntry,
    /// Why nothing was measured the last time that it was tried.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub obstacle: Option<Obstacle>,
    /// Its experiment, once that has begun.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub measured: Option<AtlasMeasured>,
}

/// Reason why an entry has no experiment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Obstacle {
    /// One sentence.
    pub reason: String,
    /// True if this machine or user lacks something; false if the measurement failed.
    pub is_of_machine: bool,
}

/// Results of the experiment of an entry.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct AtlasMeasured {
    /// As `weigh show` takes it.
    pub id: String,
    pub state: State,
    pub elapsed_s: f64,
    pub baseline: String,
    /// Changes made to the system, as the treatment states them.
    pub facts: Vec<String>,
    pub quantities: Vec<EvidenceQuantity>,
    pub rows: Vec<Row>,
    pub failures: Vec<Failure>,
    /// Sentences about what limits its rows.
    #[serde(default)]
    pub warnings: Vec<String>,
}

impl AtlasResult {
    pub fn of(entry: AtlasEntry) -> AtlasResult {
        AtlasResult { entry, obstacle: None, measured: None }
    }

    pub fn state(&self) -> Option<State> {
        self.measured.as_ref().map(|measured| measured.state)
    }

    /// Returns true if something is still to be measured: nothing was begun, or it was not finished.
    pub fn is_left(&self) -> bool {
        !matches!(self.state(), Some(State::Complete | State::Running))
    }

    /// Returns true if a row has no verdict.
    pub fn is_open(&self) -> bool {
        self.rows().iter().any(|row| row.verdict == Verdict::Inconclusive)
    }

    pub fn rows(&self) -> &[Row] {
        self.measured.as_ref().map(|measured| &*measured.rows).unwrap_or_default()
    }
}
