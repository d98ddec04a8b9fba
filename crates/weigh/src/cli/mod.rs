//! The command line: one file per command. Help, man pages and completions come from these types.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{ColorChoice, CommandFactory, FromArgMatches, Parser, Subcommand};

use self::reproduce::ReproduceCommand;
use weigh_engine::request::Request;
use weigh_engine::session::{check_arms, check_works};
use weigh_store::{NO_EXPERIMENT, Store};
use weigh_workload::launcher::trace;

mod ask;
mod atlas;
mod boots;
mod budget;
mod calibrate;
mod command_line_error;
mod compare;
mod complete;
mod copies;
mod diff;
mod doctor;
mod documents;
mod doses;
mod endurance;
mod export;
mod files;
mod forget;
mod formats;
mod generate;
mod github;
mod go_on;
mod history;
mod hooks;
mod hyperfine_options;
mod import;
mod interleaving;
mod list;
mod load;
mod man;
mod measuring;
mod mixes;
mod naming;
mod net;
mod net_machines;
mod net_rank;
mod options_of_others;
mod output;
mod pairing;
mod parameters;
mod price;
mod profile;
mod profiler;
mod progress_sink;
mod repeated;
mod reproduce;
mod restore;
mod rules;
mod run;
mod run_plans;
mod short_help;
mod show;
mod trend;
mod user_list;
mod value;
mod versus;

/// The command line was wrong, or something that it asked for could not be done.
pub const ERROR: u8 = 2;
/// Some row has no verdict.
pub const INCONCLUSIVE: u8 = 3;
/// A cost is shown to be above `--fail-above`.
pub const ABOVE_LIMIT: u8 = 1;
/// As a shell reports a program that SIGINT ended.
pub const INTERRUPTED: u8 = 130;

/// Returns the exit status, which is `of_measured` only on a restored system. A system that was not
/// restored is an error in any case.
fn exit_status(is_as_before: bool, of_measured: u8) -> u8 {
    if is_as_before { of_measured } else { ERROR }
}

const EXAMPLES: &str = "\
Examples:
  sudo weigh compare audit          what does auditing all system calls cost?
  sudo weigh compare audit:rules=my.rules -w unixbench --budget 6m
                                    what do my rules cost? (time limit: 6 min)
  weigh compare seccomp --prepare 'make clean' -- make -j2
                                    what does a seccomp filter cost my build?
  weigh versus 'old --x' 'new --x'  which of these commands is faster?
  sudo weigh rules my.rules         what does each of these audit rules cost?
  weigh calibrate                   what is the smallest detectable change?
  weigh net                         how much does load slow the network?
  weigh run unixbench               UnixBench's index of this machine
  weigh load shared                 how many users can this machine serve?
  weigh show                        the latest experiment again
  weigh doctor                      is this machine fit to measure?

A treatment is a change to measure, such as audit rules or a seccomp filter.
`weigh list treatments` lists them. `weigh budget` is about log size; the option
--budget of other commands is a time. Pages docs/… are in weigh's source tree.

Exit status: 0 done, 1 a cost above --fail-above, 2 error, 3 inconclusive,
130 interrupted. `weigh doctor` and `weigh diff` differ: see their help.";

/// Measure what a change to a Linux system costs the programs that run on it, with paired A/B tests
#[derive(Debug, Parser)]
#[command(name = "weigh", version, after_help = EXAMPLES, max_term_width = 100)]
pub struct Cli {
    /// Database of the experiments [default: weighbridge/weigh.db in $XDG_DATA_HOME or ~/.local/share]
    #[arg(long, global = true, value_name = "FILE", help_heading = "Global options")]
    database: Option<PathBuf>,
    /// When to use colour; `auto` uses it on a terminal and respects NO_COLOR and CLICOLOR
    #[arg(
        long,
        global = true,
        value_name = "WHEN",
        default_value = "auto",
        help_heading = "Global options",
        hide_short_help = true
    )]
    color: ColorChoice,
    /// Print each launch on stderr: 1 its command line and its end, 2 also its output, 3 also all orders to
    /// launchers [default: 1 with --debug, else nothing]
    #[arg(long, global = true, value_name = "LEVEL", num_args = 0..=1, require_equals = true)]
    #[arg(default_missing_value = "1", value_parser = clap::value_parser!(u8).range(1..=3))]
    #[arg(help_heading = "Global options", hide_short_help = true)]
    debug: Option<u8>,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Compare(Box<compare::CompareArgs>),
    Versus(Box<versus::VersusArgs>),
    Atlas(Box<atlas::AtlasArgs>),
    Rules(rules::RulesArgs),
    Budget(budget::BudgetArgs),
    Run(Box<run::RunArgs>),
    Load(Box<load::LoadArgs>),
    Profile(profile::ProfileArgs),
    Net(Box<net::NetArgs>),
    Calibrate(calibrate::CalibrateArgs),
    Doctor(doctor::DoctorArgs),
    List(list::ListArgs),
    Show(show::ShowArgs),
    History(history::HistoryArgs),
    Diff(diff::DiffArgs),
    Export(export::ExportArgs),
    Import(import::ImportArgs),
    Tag(naming::TagArgs),
    Forget(forget::ForgetArgs),
    Restore(restore::RestoreArgs),
    Completions(generate::CompletionsArgs),
    #[command(name = "__boot", hide = true)]
    Boot(boots::BootArgs),
    #[command(name = "__complete", hide = true)]
    Complete(complete::CompleteArgs),
    Man(generate::ManArgs),
}

/// Context that commands share.
pub struct Context {
    database: Option<PathBuf>,
    pub color: ColorChoice,
    /// Arguments as typed, to show the command that measures the same again.
    pub again: ReproduceCommand,
}

impl Context {
    /// The database that the user chose, or the usual one, to be written; created where there is none.
    pub fn open_store(&self) -> Result<Store, String> {
        Store::open(&self.database()?).map_err(|error| error.to_string())
    }

    /// As [`Context::open_store`], for this request, whose arms are checked before.
    pub fn open_store_for(&self, request: &Request) -> Result<Store, String> {
        check_arms(request)?;
        self.open_store_or(|| check_works(request).map(drop))
    }

    /// As [`Context::open_store`]. What is wrong with the command line comes first if the database cannot be
    /// used, which may be why, or does not exist: none is created for a slip. Otherwise `check` would unpack
    /// the workloads beside an experiment that measures.
    pub fn open_store_or(
        &self,
        check: impl FnOnce() -> Result<(), String>,
    ) -> Result<Store, String> {
        if !self.database()?.exists() {
            check()?;
            return self.open_store();
        }
        self.open_store().map_err(|problem| check().err().unwrap_or(problem))
    }

    /// Opens the store for reading. Returns `None` if the usual one does not exist yet, and does not create
    /// it.
    pub fn find_store(&self) -> Result<Option<Store>, String> {
        let store = Store::read(&self.database()?).map_err(|error| error.to_string())?;
        match (&self.database, &store) {
            (Some(named), None) => Err(format!(
                "the database {} does not exist: correct --database, or measure something to create it",
                named.display()
            )),
            _ => Ok(store),
        }
    }

    /// Opens the store for a command that needs a stored experiment.
    pub fn read_store(&self) -> Result<Store, String> {
        self.find_store()?.ok_or_else(|| NO_EXPERIMENT.to_owned())
    }

    /// Where that is, whether or not it exists.
    pub fn database(&self) -> Result<PathBuf, String> {
        match &self.database {
            Some(path) => Ok(path.clone()),
            None => weigh_store::default_path().map_err(|error| error.to_string()),
        }
    }

    /// The directory of the database, where reports go as well.
    pub fn data_directory(&self) -> Result<PathBuf, String> {
        Ok(self.database()?.parent().map(PathBuf::from).unwrap_or_default())
    }
}

/// Reads the command line and runs its command.
pub fn main() -> ExitCode {
    match parse(std::env::args_os()) {
        Ok((cli, again)) => run(cli, again),
        // What was asked for: help, or the version.
        Err(shown) if !shown.use_stderr() => shown.exit(),
        // It quotes what was typed, which a shell may have taken from the names of files.
        Err(error) => {
            let explained = hyperfine_options::explained(&error)
                .or_else(|| options_of_others::explained(&error, &Cli::command()));
            match explained {
                Some(problem) => output::problem(&problem),
                None => command_line_error::tell(&error),
            }
            ExitCode::from(ERROR)
        }
    }
}

/// Parses a command line, and finds the arguments that measure the same again.
fn parse(
    words: impl IntoIterator<Item: Into<OsString>>,
) -> Result<(Cli, ReproduceCommand), clap::Error> {
    let words: Vec<OsString> = words.into_iter().map(Into::into).collect();
    let mut matches = short_help::command().try_get_matches_from(&words)?;
    let again = ReproduceCommand::of(&Cli::command(), &matches, &words);
    let cli = Cli::from_arg_matches_mut(&mut matches);
    cli.map(|cli| (cli, again)).map_err(|error| error.format(&mut Cli::command()))
}

/// Runs a command and turns its outcome into an exit status.
fn run(cli: Cli, again: ReproduceCommand) -> ExitCode {
    trace::set_level(cli.debug.unwrap_or_default());
    let context = Context { database: cli.database, color: cli.color, again };
    // Packages are built in places without /proc; `restore` says itself what it leaves there.
    let is_possible =
        matches!(cli.command, Command::Completions(_) | Command::Man(_) | Command::Restore(_));
    if !is_possible && !Path::new("/proc/self/stat").exists() {
        output::problem("/proc is not mounted, but weigh needs it: mount -t proc proc /proc");
        return ExitCode::from(ERROR);
    }
    let result = match cli.command {
        Command::Compare(command) => command.run(&context),
        Command::Versus(command) => command.run(&context),
        Command::Atlas(command) => command.run(&context),
        Command::Run(command) => command.run(&context),
        Command::Load(command) => command.run(&context),
        Command::Net(command) => command.run(&context),
        Command::Calibrate(command) => command.run(&context),
        Command::Budget(command) => command.run(&context),
        Command::List(command) => command.run(&context),
        Command::Show(command) => command.run(&context),
        Command::Diff(command) => command.run(&context),
        Command::Doctor(command) => command.run(&context),
        Command::Export(command) => command.run(&context),
        Command::Import(command) => command.run(&context),
        Command::Profile(command) => command.run(&context),
        Command::History(command) => command.run(&context),
        Command::Tag(command) => command.run(&context),
        Command::Forget(command) => command.run(&context),
        Command::Rules(command) => command.run(&context),
        Command::Restore(command) => command.run(),
        Command::Boot(command) => command.run(&context),
        Command::Complete(command) => command.run(&context, short_help::command()),
        Command::Completions(command) => command.run(),
        Command::Man(command) => command.run(&Cli::command()),
    };
    match result {
        Ok(code) => ExitCode::from(code),
        Err(problem) => {
            output::problem(&problem);
            ExitCode::from(ERROR)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn what_could_not_be_put_back_is_an_error_whatever_else_became_of_it() {
        for status in [0, ABOVE_LIMIT, ERROR, INCONCLUSIVE, INTERRUPTED] {
            assert_eq!(exit_status(true, status), status);
            assert_eq!(exit_status(false, status), ERROR);
        }
    }

    #[test]
    fn each_form_of_a_command_is_a_line_of_its_usage() {
        let forms = [
            ("compare", &["", "-- <COMMAND>", "--continue <ID>"][..]),
            ("versus", &["'<FIRST>' '<COMMAND>'", "'<COMMAND>'", "--continue <ID>"]),
            ("profile", &["-- <COMMAND>", "--pid <PID> --for <TIME>"]),
            ("net", &["", "--continue <ID>", "rank [OPTIONS] <ID>"]),
            ("doctor", &["", "--fix [-- <COMMAND>"]),
            ("export", &["<ID> --json", "<ID> <ID>... --html", "<ID> --as <TABLE>"]),
        ];
        for (name, forms) in forms {
            let mut cli = Cli::command();
            let usage = cli.find_subcommand_mut(name).unwrap().render_usage().to_string();
            let lines: Vec<&str> = usage.lines().collect();
            assert_eq!(lines.len(), forms.len(), "{usage}");
            for (line, form) in lines.into_iter().zip(forms) {
                assert!(line.contains(&format!("weigh {name} ")) && line.contains(form), "{usage}");
            }
        }
    }

    #[test]
    fn every_command_has_examples() {
        for command in Cli::command().get_subcommands().filter(|command| !command.is_hide_set()) {
            let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
            assert!(help.contains("weigh "), "`weigh {}` has no example", command.get_name());
        }
    }
}
