//! `weigh compare --continue`: another session of a stored experiment.

use clap::{Arg, Args};

use super::Context;
use super::naming::EXPERIMENT;
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
    /// Continue this stored experiment. Measures for the time of --budget, and judges stored and new pairs
    /// together
    #[arg(long = "continue", value_name = "ID", help_heading = EXPERIMENT)]
    pub go_on: Option<String>,
}

/// Options that a later session may set differently, besides the places of its report.
const OF_LATER_SESSION: &str =
    "go_on budget precision fail_above inconclusive_ok name tags wait yes";

/// Excludes an option from `--continue` if the first session settled it.
pub fn settled_by_continue(option: Arg) -> Arg {
    let is_of_output = option.get_help_heading() == Some(OUTPUT);
    match is_of_output || OF_LATER_SESSION.split(' ').any(|id| option.get_id() == id) {
        true => option,
        false => option.conflicts_with("go_on"),
    }
}

/// Goes on with the experiment that `id` names, with what `more` gives it.
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
    let done = go_on(&stored, more(&origin.request), store, &mut progress_sink, &interrupted);
    done.map_err(|problem| said(problem.into()))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use clap::{Command, CommandFactory};

    use super::*;
    use crate::cli::Cli;

    /// Places and forms of the report, which any session may choose.
    const OF_REPORT: &str =
        "anonymise csv dialect github_summary html json junit markdown text verbose";
    const OF_COMPARISON: &str = "budget fail_above go_on inconclusive_ok name tags wait";

    /// Options of a command by their names here: those that `--continue` accepts, and the others.
    fn options(command: &Command) -> [BTreeSet<String>; 2] {
        let is_settled = |option: &&Arg| {
            let conflicts = command.get_arg_conflicts_with(option);
            conflicts.iter().any(|other| other.get_id() == "go_on")
        };
        let (settled, accepted): (Vec<&Arg>, Vec<&Arg>) =
            command.get_arguments().partition(is_settled);
        [accepted, settled]
            .map(|all| all.iter().map(|option| option.get_id().to_string()).collect())
    }

    /// Each is decided: a new option of these commands is a line here.
    #[test]
    fn what_a_later_session_may_choose_is_decided_for_every_option() {
        let of_mixes = "beyond_cache block_size cold disk_directories disk_tree file_size jobs period \
                        pool_size rate resident think";
        let of_pairs = "fdr margin metrics pairs sets seed timeout";
        let around = "cleanup command prepare setup warmup";
        for (name, accepted, settled) in [
            (
                "compare",
                format!("{OF_REPORT} {OF_COMPARISON} yes"),
                format!(
                    "{of_mixes} {of_pairs} {around} active base beside client copies factorial fixtures \
                     good_answers interleave lasting no_detail pass passive profiler reboot_by sample treat \
                     treatments workloads"
                ),
            ),
            (
                "versus",
                format!("{OF_REPORT} {OF_COMPARISON} export-csv export-json export-markdown"),
                format!(
                    "{of_pairs} {around} command_names expect_exit ignore_failure interleave no_shell \
                     parameter_list parameter_scan parameter_step_size runs same_output shell show_output"
                ),
            ),
            (
                "atlas",
                format!("{OF_REPORT} budget go_on name tags wait"),
                "list only quick workloads".into(),
            ),
            (
                "net",
                format!("{OF_REPORT} budget go_on name precision tags wait"),
                "active beside from_spec grid passive seed spec timeout trace".into(),
            ),
        ] {
            let cli = Cli::command();
            let command = cli.find_subcommand(name).unwrap();
            let words = |text: &str| text.split(' ').map(str::to_owned).collect::<BTreeSet<_>>();
            assert_eq!(options(command), [words(&accepted), words(&settled)], "{name}");
        }
    }

    #[test]
    fn no_other_command_goes_on() {
        let cli = Cli::command();
        let goes_on =
            |command: &&Command| command.get_arguments().any(|one| one.get_id() == "go_on");
        let names: Vec<&str> =
            cli.get_subcommands().filter(goes_on).map(Command::get_name).collect();
        assert_eq!(names, ["compare", "versus", "atlas", "net"]);
    }
}
