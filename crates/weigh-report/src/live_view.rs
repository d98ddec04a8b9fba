//! Content of the live view: the rows, as far as they got.

use std::time::Duration;

use paired::Verdict;
use weigh_model::result::preliminary::Preliminary;
use weigh_model::result::versus::WORK;

/// One workload under one treatment, as far as it got.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LiveRow {
    pub workload: String,
    pub treatment: String,
    pub unit: String,
    pub progress: RowProgress,
    /// Stage of the row that was last told at once.
    pub(super) said: Option<Stage>,
}

impl LiveRow {
    /// A row that is not measured yet. One of a command against others is known by its arm.
    pub fn new(workload: String, unit: String, treatment: String) -> LiveRow {
        let (workload, treatment) =
            if workload == WORK { (treatment, workload) } else { (workload, treatment) };
        LiveRow { workload, unit, treatment, ..LiveRow::default() }
    }
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct RowProgress {
    /// `None` before the first pair.
    pub effect_pct: Option<f64>,
    /// `None` while that side has no bound.
    pub low_pct: Option<f64>,
    pub high_pct: Option<f64>,
    /// The estimate of a row without an interval, from two pairs on.
    pub preliminary: Option<Preliminary>,
    pub pairs: usize,
    pub stage: Stage,
    /// True if the row has a verdict and is measured further, for a narrower interval.
    pub is_narrowing: bool,
}

/// How far a row is.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Stage {
    #[default]
    Measuring,
    Decided {
        verdict: Verdict,
        within_margin: bool,
    },
    /// It gives no result; one sentence says why.
    Failed(String),
}

/// Everything that a frame shows.
pub(super) struct View {
    pub rows: Vec<LiveRow>,
    pub margin_pct: f64,
    pub budget: Duration,
    pub elapsed: Duration,
    pub left: Option<Duration>,
    /// The row whose pair is under way.
    pub current: Option<usize>,
    pub colour: bool,
}
