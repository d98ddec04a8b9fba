//! Any stored experiment as a report.

use super::stored_document::document;
use super::summarise::summarise;
use super::{atlas, run_report};
use weigh_model::ids::ExperimentId;
use weigh_model::profile::runs::ProfileReport;
use weigh_model::record::ExperimentKind;
use weigh_model::result::budget::BudgetReport;
use weigh_model::result::repeated::RepeatedReport;
use weigh_model::result::report::Report;
use weigh_model::result::rules::RuleReport;
use weigh_store::Store;

/// Loads an experiment, and judges its samples anew.
pub fn load(store: &Store, id: &ExperimentId) -> Result<Report, String> {
    if let Some(imported) = store.import(id).map_err(|error| error.to_string())? {
        return Ok(imported.into());
    }
    let stored = store.load(id).map_err(|error| error.to_string())?;
    let mut report: Report = match stored.header.kind {
        ExperimentKind::Rules => document::<RuleReport>(store, id)?.into(),
        ExperimentKind::Budget => document::<BudgetReport>(store, id)?.into(),
        ExperimentKind::Profile => document::<ProfileReport>(store, id)?.into(),
        ExperimentKind::Atlas => atlas::load(store, id)?.into(),
        ExperimentKind::Repeated => document::<RepeatedReport>(store, id)?.into(),
        ExperimentKind::Run => run_report::report(&stored).into(),
        _ => summarise(&stored).into(),
    };
    // A document was written before it had one.
    report.set_id(id.to_string());
    Ok(report)
}
