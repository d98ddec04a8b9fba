//! An atlas from the store: its list, with the results of the experiments that have its tag. So it knows
//! every sample that was stored, however the process that took it ended.

use super::request::build_treatments;
use super::stored_document::document;
use super::summarise::summarise;
use weigh_model::ids::ExperimentId;
use weigh_model::record::Stored;
use weigh_model::result::atlas::{AtlasMeasured, AtlasReport};
use weigh_store::Store;

/// Tag of the experiments of an atlas.
pub fn tag(id: &ExperimentId) -> String {
    format!("atlas/{id}")
}

/// Loads the list of an atlas, without results.
///
/// # Errors
/// A sentence, if it is no atlas.
pub fn list(store: &Store, id: &ExperimentId) -> Result<AtlasReport, String> {
    Ok(AtlasReport { id: id.to_string(), ..document(store, id)? })
}

/// Loads an atlas, and judges the samples of its experiments anew.
///
/// # Errors
/// A sentence, if its list or an experiment cannot be read.
pub fn load(store: &Store, id: &ExperimentId) -> Result<AtlasReport, String> {
    let mut report = list(store, id)?;
    let ids = store.tagged(&tag(id)).map_err(|error| error.to_string())?;
    report.elapsed_s = 0.0;
    for experiment in ids {
        let stored = store.load(&experiment).map_err(|error| error.to_string())?;
        // Also the time of an experiment in whose place another one was begun.
        report.elapsed_s += stored.elapsed_s;
        add(&mut report, &stored);
    }
    Ok(report)
}

/// Adds the result of an experiment to its entry. If there are several, the last counts: the others failed,
/// or were interrupted and could not be continued.
fn add(report: &mut AtlasReport, stored: &Stored) {
    let summary = summarise(stored);
    let Some(treatment) = summary.treatments.first() else { return };
    let is_its = |label: &str| label == treatment.label;
    let Some(result) = report.entries.iter_mut().find(|result| is_its(&result.entry.treatment))
    else {
        return;
    };
    report.margin_pct = summary.margin_pct;
    result.measured = Some(AtlasMeasured {
        id: summary.id.clone(),
        state: summary.state,
        elapsed_s: summary.elapsed_s,
        baseline: summary.baseline.clone(),
        facts: treatment.facts.clone(),
        quantities: treatment.quantities.clone(),
        rows: summary.results,
        failures: summary.failures,
        warnings: summary.warnings.iter().map(ToString::to_string).collect(),
    });
}

/// Asks the treatments of these arms whether they work here.
///
/// # Errors
/// The sentence of the first that does not.
pub fn check_available(arms: &[String]) -> Result<(), String> {
    let mut treatments = build_treatments(arms, &[])?;
    treatments.iter_mut().try_for_each(|named| named.treatment.check_inputs())
}
