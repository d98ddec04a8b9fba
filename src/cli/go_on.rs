//! `weigh compare --continue`: another session of a stored experiment.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use super::Context;
use super::audience::Terminal;
use crate::experiment::session::{Done, go_on};
use crate::store::Store;

/// Goes on with the experiment that `id` names, for so much longer.
///
/// # Errors
/// A sentence, where there is none such, or it cannot be gone on with here.
pub fn run(
    id: &str,
    budget: Duration,
    store: &Store,
    context: &Context,
    interrupted: &Arc<AtomicBool>,
) -> Result<Done, String> {
    let id = store.find(Some(id)).map_err(|error| error.to_string())?;
    if store.import(&id).map_err(|error| error.to_string())?.is_some() {
        return Err(format!("cannot go on with {id}: it was imported, not measured here"));
    }
    let stored = store.load(&id).map_err(|error| error.to_string())?;
    let measured = Duration::from_secs_f64(stored.elapsed_s.max(0.0));
    let mut audience = Terminal {
        color: context.color,
        margin_pct: stored.header.margin * 100.0,
        budget: measured + budget,
        sets: stored.header.sets,
    };
    go_on(&stored, budget, store, &mut audience, interrupted)
        .map_err(|problem| format!("cannot go on with {id}: {problem}"))
}
