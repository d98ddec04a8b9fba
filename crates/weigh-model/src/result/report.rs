//! The one result that every command stores and every format renders.

use crate::result::rules::RuleReport;
use crate::result::run::RunReport;
use crate::result::summary::{Failure, Summary};

/// What an experiment found.
#[derive(Debug)]
pub enum Report {
    /// Arms were compared, here or by the program whose results were imported.
    Compared(Box<Summary>),
    /// One machine alone: `weigh run`, `load` and `net`.
    Run(Box<RunReport>),
    /// `weigh rules`.
    Rules(Box<RuleReport>),
}

impl Report {
    pub fn id(&self) -> &str {
        match self {
            Report::Compared(s) => &s.id,
            Report::Run(report) => &report.id,
            Report::Rules(report) => &report.id,
        }
    }

    /// Why the whole experiment failed, if it did.
    pub fn failure(&self) -> Option<&str> {
        match self {
            Report::Compared(s) => s.failure.as_deref(),
            Report::Run(report) => report.failure.as_deref(),
            Report::Rules(_) => None,
        }
    }

    /// Workloads without a result.
    pub fn failures(&self) -> &[Failure] {
        match self {
            Report::Compared(s) => &s.failures,
            Report::Run(report) => &report.failures,
            Report::Rules(_) => &[],
        }
    }
}

impl From<Summary> for Report {
    fn from(summary: Summary) -> Report {
        Report::Compared(Box::new(summary))
    }
}

impl From<RunReport> for Report {
    fn from(report: RunReport) -> Report {
        Report::Run(Box::new(report))
    }
}

impl From<RuleReport> for Report {
    fn from(report: RuleReport) -> Report {
        Report::Rules(Box::new(report))
    }
}
