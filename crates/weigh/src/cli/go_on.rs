//! `weigh compare --continue`: another session of a stored experiment.

use clap::{Arg, Args};

use super::Context;
use super::progress_sink::Terminal;
use super::reproduce::OUTPUT;
use weigh_engine::provenance::Provenance;
use weigh_engine::request::Request;
use weigh_engine::session::{Done, More, go_on};
use weigh_host::interruption::listen_for_signals;
use weigh_store::Store;

/// `--continue`.
#[derive(Debug, Args)]
pub struct ContinueOption {
    /// Continue this stored experiment for the time of --budget, and judge old and new pairs together
    #[arg(long = "continue", value_name = "ID")]
    pub go_on: Option<String>,
}

/// Options that a later session may set differently, besides the places of its report.
const OF_LATER_SESSION: [&str; 8] =
    ["go_on", "budget", "precision", "fail_above", "inconclusive_ok", "name", "tags", "yes"];

/// Excludes an option from `--continue` if the first session settled it.
pub fn settled_by_continue(option: Arg) -> Arg {
    let is_of_output = option.get_help_heading() == Some(OUTPUT);
    match is_of_output || OF_LATER_SESSION.contains(&option.get_id().as_str()) {
        true => option,
        false => option.conflicts_with("go_on"),
    }
}

/// Goes on with the experiment that `id` names, with what `more` gives it.
///
/// # Errors
/// A sentence, where there is none such, or it cannot be continued here.
pub fn run(
    id: &str,
    more: impl Fn(&Request) -> More,
    store: &Store,
    context: &Context,
) -> Result<Done, String> {
    let id = store.find(Some(id)).map_err(|error| error.to_string())?;
    if store.import(&id).map_err(|error| error.to_string())?.is_some() {
        return Err(format!("cannot continue {id}: it was imported, not measured here"));
    }
    let stored = store.load(&id).map_err(|error| error.to_string())?;
    let said = |problem: String| format!("cannot continue {id}: {problem}");
    let origin = Provenance::of(&stored).map_err(said)?;
    let (margin_pct, sets) = (stored.header.margin * 100.0, stored.header.sets);
    let mut progress_sink = Terminal::of_pairs(context.color, margin_pct, sets);
    // Not before it is read: until then a signal ends weigh, however much there is to read.
    let interrupted = listen_for_signals()?;
    go_on(&stored, more(&origin.request), store, &mut progress_sink, &interrupted).map_err(said)
}
