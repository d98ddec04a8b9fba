//! `weigh compare --continue`: another session of a stored experiment.

use super::Context;
use super::audience::Terminal;
use weigh_engine::origin::Origin;
use weigh_engine::request::Request;
use weigh_engine::session::{Done, More, go_on};
use weigh_host::interruption::listen_for_signals;
use weigh_store::Store;

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
    let origin = Origin::of(&stored).map_err(said)?;
    let (margin_pct, sets) = (stored.header.margin * 100.0, stored.header.sets);
    let mut audience = Terminal::of_pairs(context.color, margin_pct, sets);
    // Not before it is read: until then a signal ends weigh, however much there is to read.
    let interrupted = listen_for_signals()?;
    go_on(&stored, more(&origin.request), store, &mut audience, &interrupted).map_err(said)
}

#[cfg(test)]
mod tests {
    use clap::{Arg, CommandFactory, Id};

    /// What another session may have otherwise; all else is as it was.
    const OF_ANOTHER_SESSION: &str = "go_on budget fail_above inconclusive_ok name tags yes precision json \
                                      csv html markdown junit github_summary dialect text verbose \
                                      anonymise database color help passive";
    /// They require a command, which is refused.
    const OF_A_COMMAND: &str = "prepare setup cleanup warmup";

    #[test]
    fn an_option_of_a_later_session_is_used_or_refused() {
        for name in ["compare", "versus", "net"] {
            let mut all = crate::cli::Cli::command();
            all.build();
            let command = all.find_subcommand(name).unwrap();
            let find = |id: &str| command.get_arguments().find(|arg| arg.get_id() == id);
            let go_on = find("go_on").unwrap();
            let excludes = |one: &Arg, other: &Arg| {
                command.get_arg_conflicts_with(one).iter().any(|arg| arg.get_id() == other.get_id())
            };
            let is_refused = |arg: &Arg| excludes(go_on, arg) || excludes(arg, go_on);
            let others = OF_ANOTHER_SESSION.split(' ').chain(OF_A_COMMAND.split(' '));
            let others: Vec<&str> = others.collect();
            let is_known = |arg: &&Arg| is_refused(arg) || others.contains(&arg.get_id().as_str());
            let ignored: Vec<&Id> =
                command.get_arguments().filter(|arg| !is_known(arg)).map(Arg::get_id).collect();
            assert!(ignored.is_empty(), "{name} --continue ignores {ignored:?}");
        }
    }
}
