//! Experiments that are stored as one document.

use serde::de::DeserializeOwned;

use weigh_model::ids::ExperimentId;
use weigh_store::Store;

/// Reads the document of an experiment that has one.
pub(super) fn document<T: DeserializeOwned>(store: &Store, id: &ExperimentId) -> Result<T, String> {
    let document = store.document(id).map_err(|error| error.to_string())?;
    let text = document.ok_or_else(|| format!("the database has no result of {id}"))?;
    serde_json::from_str(&text).map_err(|error| format!("cannot read the result of {id}: {error}"))
}
