//! The one result that every command stores and every format renders.

use crate::facts::Facts;
use crate::profile::runs::ProfileReport;
use crate::record::ExperimentKind;
use crate::result::budget::BudgetReport;
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
    /// `weigh budget`.
    Budget(Box<BudgetReport>),
    /// `weigh profile`.
    Profile(Box<ProfileReport>),
}

impl Report {
    pub fn id(&self) -> &str {
        match self {
            Report::Compared(s) => &s.id,
            Report::Run(report) => &report.id,
            Report::Rules(report) => &report.id,
            Report::Budget(report) => &report.id,
            Report::Profile(report) => &report.id,
        }
    }

    /// Gives it the id that the store has for it.
    pub fn set_id(&mut self, id: String) {
        *match self {
            Report::Compared(s) => &mut s.id,
            Report::Run(report) => &mut report.id,
            Report::Rules(report) => &mut report.id,
            Report::Budget(report) => &mut report.id,
            Report::Profile(report) => &mut report.id,
        } = id;
    }

    /// The command line that measures the same again.
    pub fn command(&self) -> &str {
        match self {
            Report::Compared(s) => &s.command,
            Report::Run(report) => &report.command,
            Report::Rules(report) => &report.command,
            Report::Budget(report) => &report.command,
            Report::Profile(report) => &report.again,
        }
    }

    pub fn machine(&self) -> &Facts {
        match self {
            Report::Compared(s) => &s.machine,
            Report::Run(report) => &report.machine,
            Report::Rules(report) => &report.machine,
            Report::Budget(report) => &report.machine,
            Report::Profile(report) => &report.machine,
        }
    }

    /// The kind that it is stored as; `Compare` for every comparison.
    pub fn kind(&self) -> ExperimentKind {
        match self {
            Report::Compared(_) => ExperimentKind::Compare,
            Report::Run(_) => ExperimentKind::Run,
            Report::Rules(_) => ExperimentKind::Rules,
            Report::Budget(_) => ExperimentKind::Budget,
            Report::Profile(_) => ExperimentKind::Profile,
        }
    }

    /// Why the whole experiment failed, if it did.
    pub fn failure(&self) -> Option<&str> {
        match self {
            Report::Compared(s) => s.failure.as_deref(),
            Report::Run(report) => report.failure.as_deref(),
            Report::Rules(_) | Report::Profile(_) => None,
            Report::Budget(report) => report.failure.as_deref(),
        }
    }

    /// Workloads without a result.
    pub fn failures(&self) -> &[Failure] {
        match self {
            Report::Compared(s) => &s.failures,
            Report::Run(report) => &report.failures,
            Report::Rules(_) | Report::Budget(_) | Report::Profile(_) => &[],
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

impl From<BudgetReport> for Report {
    fn from(report: BudgetReport) -> Report {
        Report::Budget(Box::new(report))
    }
}

impl From<ProfileReport> for Report {
    fn from(report: ProfileReport) -> Report {
        Report::Profile(Box::new(report))
    }
}
