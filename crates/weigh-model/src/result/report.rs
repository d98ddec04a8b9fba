//! The one result that every command stores and every format renders.

use crate::facts::Facts;
use crate::profile::runs::ProfileReport;
use crate::record::ExperimentKind;
use crate::result::atlas::AtlasReport;
use crate::result::budget::BudgetReport;
use crate::result::repeated::RepeatedReport;
use crate::result::rules::RuleReport;
use crate::result::run::RunReport;
use crate::result::summary::{Failure, Summary};

#[derive(Debug)]
pub enum Report {
    /// Arms were compared, here or by the program whose results were imported.
    Compared(Box<Summary>),
    /// One machine alone: `weigh run`, `load` and `net`.
    Run(Box<RunReport>),
    Rules(Box<RuleReport>),
    Budget(Box<BudgetReport>),
    Profile(Box<ProfileReport>),
    Atlas(Box<AtlasReport>),
    /// Several runs of one machine: `load --sets` and `run --lengths`.
    Repeated(Box<RepeatedReport>),
}

#[derive(Clone, Copy, Debug)]
pub struct ReportHeader<'a> {
    /// As it is stored; `Compare` for every comparison.
    pub kind: ExperimentKind,
    /// In the store; empty before it is there.
    pub id: &'a str,
    /// The command line that measures the same again.
    pub command: &'a str,
    pub machine: &'a Facts,
    /// Why the whole experiment failed, if it did.
    pub failure: Option<&'a str>,
    /// Workloads without a result.
    pub failures: &'a [Failure],
}

impl Report {
    pub fn header(&self) -> ReportHeader<'_> {
        let (kind, id, command, machine) = match self {
            Report::Compared(s) => (ExperimentKind::Compare, &s.id, &s.command, &s.machine),
            Report::Run(r) => (ExperimentKind::Run, &r.id, &r.command, &r.machine),
            Report::Rules(r) => (ExperimentKind::Rules, &r.id, &r.command, &r.machine),
            Report::Budget(r) => (ExperimentKind::Budget, &r.id, &r.command, &r.machine),
            Report::Profile(r) => (ExperimentKind::Profile, &r.id, &r.again, &r.machine),
            Report::Atlas(r) => (ExperimentKind::Atlas, &r.id, &r.command, &r.machine),
            Report::Repeated(r) => (ExperimentKind::Repeated, &r.id, &r.command, &r.machine),
        };
        let (failure, failures) = match self {
            Report::Compared(s) => (s.failure.as_deref(), &*s.failures),
            Report::Run(r) => (r.failure.as_deref(), &*r.failures),
            Report::Budget(r) => (r.failure.as_deref(), &[][..]),
            Report::Repeated(r) => (r.failure.as_deref(), &*r.failures),
            Report::Rules(_) | Report::Profile(_) | Report::Atlas(_) => (None, &[][..]),
        };
        ReportHeader { kind, id, command, machine, failure, failures }
    }

    pub fn id(&self) -> &str {
        self.header().id
    }

    /// Gives it the id that the store has for it.
    pub fn set_id(&mut self, id: String) {
        *match self {
            Report::Compared(s) => &mut s.id,
            Report::Run(report) => &mut report.id,
            Report::Rules(report) => &mut report.id,
            Report::Budget(report) => &mut report.id,
            Report::Profile(report) => &mut report.id,
            Report::Atlas(report) => &mut report.id,
            Report::Repeated(report) => &mut report.id,
        } = id;
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

impl From<RepeatedReport> for Report {
    fn from(report: RepeatedReport) -> Report {
        Report::Repeated(Box::new(report))
    }
}

impl From<AtlasReport> for Report {
    fn from(report: AtlasReport) -> Report {
        Report::Atlas(Box::new(report))
    }
}
