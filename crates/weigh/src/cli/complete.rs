//! `weigh __complete`: what the last word of a command line may become. clap's engine knows commands,
//! options and paths. The names that only weigh knows, and the parameters of labels, are added here.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::builder::StyledStr;
use clap::{Arg, Args, Command, ValueHint};
use clap_complete::engine::{
    ArgValueCompleter, CompletionCandidate, PathCompleter, ValueCompleter as _,
};

use super::{Context, list, output};
use weigh_dialect as dialect;
use weigh_fixture::FIXTURES;
use weigh_model::kind::{Kind, Parameter, is_placeholder};
use weigh_model::workload::{mix, suite};
use weigh_net::grid::Grid;
use weigh_store::Store;
use weigh_treatment as treatment;

/// Placeholders of parameters that take a path.
const PATHS: [&str; 3] = ["FILE", "PATH", "LIB"];
/// Separator of a command and its arguments from the words before.
const ESCAPE: &str = "--";

/// Print the possible completions of the last word, each with its help after a tab
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  weigh __complete -- compare -w unix")]
pub struct CompleteArgs {
    /// Words after `weigh`; the last one is completed
    #[arg(last = true)]
    words: Vec<OsString>,
}

impl CompleteArgs {
    pub fn run(self, context: &Context, root: Command) -> Result<u8, String> {
        let Some((current, typed)) = self.words.split_last() else { return Ok(0) };
        let candidates = match typed.iter().position(|word| word == ESCAPE) {
            Some(at) if at + 1 == typed.len() => programs(current),
            // The shell completes files.
            Some(_) => Vec::new(),
            None => {
                let database = database(typed).map_or_else(|| context.database(), Ok)?;
                complete(root, &self.words, &Arc::new(database))
            }
        };
        output::print(&candidates.iter().filter_map(line).collect::<String>())?;
        Ok(0)
    }
}

fn complete(
    root: Command,
    words: &[OsString],
    database: &Arc<PathBuf>,
) -> Vec<CompletionCandidate> {
    let mut root = with_names(root, words, database);
    let line = std::iter::once("weigh".into()).chain(words.iter().cloned()).collect();
    let here = std::env::current_dir().ok();
    // An error says that there is no completion.
    clap_complete::engine::complete(&mut root, line, words.len(), here.as_deref())
        .unwrap_or_default()
}

/// Returns nothing for a name with control characters: a shell would take it for several, or execute it.
fn line(candidate: &CompletionCandidate) -> Option<String> {
    let value = candidate.get_value().to_str()?;
    let help = candidate.get_help().map(ToString::to_string).unwrap_or_default();
    let help = help.lines().next().unwrap_or_default();
    (!value.contains(char::is_control)).then(|| format!("{value}\t{help}\n"))
}

/// Adds to each argument of a command, and of its subcommands, what completes it.
fn with_names(command: Command, words: &[OsString], database: &Arc<PathBuf>) -> Command {
    let name = command.get_name().to_owned();
    command
        .mut_args(|argument| match completer(&name, &argument, words, database) {
            Some(completer) => argument.add(completer),
            None if takes_path(&argument) => argument.value_hint(ValueHint::AnyPath),
            None => argument,
        })
        .mut_subcommands(|subcommand| with_names(subcommand, words, database))
}

fn takes_path(argument: &Arg) -> bool {
    let names = argument.get_value_names().into_iter().flatten();
    names.into_iter().any(|name| ["FILE", "DIRECTORY"].contains(&name.as_str()))
}

fn completer(
    command: &str,
    argument: &Arg,
    words: &[OsString],
    database: &Arc<PathBuf>,
) -> Option<ArgValueCompleter> {
    let database = Arc::clone(database);
    let names: Names = match (command, argument.get_id().as_str()) {
        ("list", "name") => words.iter().rev().skip(1).find_map(|word| listed(word))?,
        (_, "mix") => mixes,
        (_, "grid") => grids,
        (_, "dialect") => tables,
        (_, "workload" | "workloads" | "beside") => workloads,
        (_, "treatment" | "treatments" | "base") => {
            return Some(ArgValueCompleter::new(|current: &OsStr| labels(&treatments(), current)));
        }
        (_, "fixtures" | "fixture") => {
            return Some(ArgValueCompleter::new(|current: &OsStr| labels(&fixtures(), current)));
        }
        (_, "id" | "ids" | "before" | "after" | "go_on") => {
            return Some(of_names(move || experiments(&database)));
        }
        (_, "pid") => return Some(of_names(processes)),
        _ => return None,
    };
    Some(of_names(names))
}

/// Completes with the names that a function returns. Without names there is no completion.
fn of_names<F>(names: F) -> ArgValueCompleter
where
    F: Fn() -> Result<Vec<String>, String> + Send + Sync + 'static,
{
    ArgValueCompleter::new(move |current: &OsStr| {
        let names = names().unwrap_or_default();
        let fitting = names.iter().filter(|name| name.starts_with(&*current.to_string_lossy()));
        fitting.map(CompletionCandidate::new).collect()
    })
}

type Names = fn() -> Result<Vec<String>, String>;

/// Returns the names that `weigh list WORD` lists.
fn listed(word: &OsStr) -> Option<Names> {
    let names: Names = match word.to_str()? {
        "workloads" => workloads,
        "suites" => suites,
        "mixes" => mixes,
        "treatments" => || Ok(treatments().iter().map(|kind| kind.name.to_owned()).collect()),
        "fixtures" => || Ok(fixtures().iter().map(|kind| kind.name.to_owned()).collect()),
        _ => return None,
    };
    Some(names)
}

/// Lists the values of `-w`: suites, load points and workloads.
fn workloads() -> Result<Vec<String>, String> {
    let mut names = suites()?;
    names.extend(mixes()?.into_iter().map(|mix| format!("load:{mix}")));
    names.extend(list::read_workloads()?.into_iter().map(|workload| workload.name));
    Ok(names)
}

fn suites() -> Result<Vec<String>, String> {
    Ok(suite::embedded()?.into_iter().map(|suite| suite.name).collect())
}

fn mixes() -> Result<Vec<String>, String> {
    Ok(mix::embedded()?.into_iter().map(|mix| mix.name).collect())
}

fn grids() -> Result<Vec<String>, String> {
    Ok(Grid::names().map(str::to_owned).collect())
}

fn tables() -> Result<Vec<String>, String> {
    Ok(dialect::names().map(str::to_owned).collect())
}

/// To look is no reason to make a database.
fn experiments(database: &Path) -> Result<Vec<String>, String> {
    let said = |error: weigh_store::Error| error.to_string();
    let Some(store) = Store::read(database).map_err(said)? else { return Ok(Vec::new()) };
    let entries = store.history().map_err(said)?;
    let ids = entries.iter().map(|entry| entry.id.to_string());
    let names = entries.iter().filter_map(|entry| entry.name.clone());
    Ok(std::iter::once("latest".to_owned()).chain(names).chain(ids).collect())
}

fn processes() -> Result<Vec<String>, String> {
    let entries = std::fs::read_dir("/proc").map_err(|error| error.to_string())?;
    let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    Ok(names.filter(|name| name.parse::<u32>().is_ok()).collect())
}

/// Programs in `PATH`, or at a path.
fn programs(current: &OsStr) -> Vec<CompletionCandidate> {
    let begun = current.to_string_lossy();
    if begun.contains('/') {
        return paths(&begun);
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    let files = std::env::split_paths(&path).filter_map(|directory| directory.read_dir().ok());
    let names = files.flatten().filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    let names: BTreeSet<String> = names.filter(|name| name.starts_with(&*begun)).collect();
    names.into_iter().map(CompletionCandidate::new).collect()
}

fn paths(begun: &str) -> Vec<CompletionCandidate> {
    PathCompleter::any().complete(OsStr::new(begun))
}

fn treatments() -> Vec<&'static Kind> {
    treatment::kinds().collect()
}

fn fixtures() -> Vec<&'static Kind> {
    FIXTURES.iter().map(|fixture| &fixture.kind).collect()
}

/// Completes the last treatment of a label: its name, then its parameters, then their paths.
fn labels(kinds: &[&Kind], current: &OsStr) -> Vec<CompletionCandidate> {
    let Some(current) = current.to_str() else { return Vec::new() };
    let ends = ["::", "+"].iter().filter_map(|end| Some(current.rfind(end)? + end.len()));
    let (before, last) = current.split_at(ends.max().unwrap_or(0));
    let candidates = match last.split_once(':') {
        None => names(kinds, last),
        Some((name, written)) => match kinds.iter().find(|kind| kind.name == name) {
            Some(kind) => parameters(kind.parameters, written)
                .into_iter()
                .map(|candidate| candidate.add_prefix(format!("{name}:")))
                .collect(),
            None => Vec::new(),
        },
    };
    candidates.into_iter().map(|candidate| candidate.add_prefix(before)).collect()
}

fn names(kinds: &[&Kind], begun: &str) -> Vec<CompletionCandidate> {
    let mut candidates = Vec::new();
    for kind in kinds.iter().filter(|kind| kind.name.starts_with(begun)) {
        let candidate =
            |text: &str| CompletionCandidate::new(text).help(Some(StyledStr::from(kind.summary)));
        candidates.push(candidate(kind.name));
        if !kind.parameters.is_empty() {
            candidates.push(candidate(&format!("{}:", kind.name)));
        }
    }
    candidates
}

fn parameters(known: &[Parameter], written: &str) -> Vec<CompletionCandidate> {
    let (earlier, last) = written.split_at(written.rfind(',').map_or(0, |comma| comma + 1));
    let mut candidates = Vec::new();
    for parameter in known {
        let help = || Some(StyledStr::from(parameter.help));
        match (parameter.form.split_once('='), last.split_once('=')) {
            (Some((key, value)), Some((typed, begun)))
                if key == typed && PATHS.contains(&value) =>
            {
                let found = paths(begun).into_iter();
                candidates.extend(found.map(|path| path.add_prefix(format!("{key}="))));
            }
            (Some((key, _)), None) if !is_placeholder(key) && key.starts_with(last) => {
                candidates.push(CompletionCandidate::new(format!("{key}=")).help(help()));
            }
            (None, None) if PATHS.contains(&parameter.form) => candidates.extend(paths(last)),
            (None, None) if !is_placeholder(parameter.form) && parameter.form.starts_with(last) => {
                candidates.push(CompletionCandidate::new(parameter.form).help(help()));
            }
            _ => {}
        }
    }
    candidates.into_iter().map(|candidate| candidate.add_prefix(earlier)).collect()
}

/// The database that the command line names, if it does.
fn database(typed: &[OsString]) -> Option<PathBuf> {
    let next = |pair: &[OsString]| (pair[0] == "--database").then(|| PathBuf::from(&pair[1]));
    let joined = |word: &OsString| Some(PathBuf::from(word.to_str()?.strip_prefix("--database=")?));
    typed.windows(2).find_map(next).or_else(|| typed.iter().find_map(joined))
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;
    use crate::cli::Cli;

    fn completed(line: &str) -> Vec<String> {
        let words: Vec<OsString> = line.split(' ').map(OsString::from).collect();
        let nowhere = Arc::new(PathBuf::from("/nonexistent/weigh.db"));
        let candidates = complete(Cli::command(), &words, &nowhere);
        let values = candidates.iter().map(|candidate| candidate.get_value());
        values.map(|value| value.to_str().unwrap().to_owned()).collect()
    }

    #[test]
    fn the_place_decides_what_completes_a_word() {
        for (line, candidate) in [
            ("comp", "compare"),
            ("compare ", "seccomp"),
            ("compare audit sec", "seccomp:"),
            ("compare audit -w ", "unixbench"),
            ("compare --budget 5m --workload uni", "unixbench"),
            ("compare --workload=uni", "--workload=unixbench"),
            ("compare -w load:sha", "load:shared"),
            ("compare --base ", "none"),
            ("compare --interleave ", "off"),
            ("run --fixture f", "fs:"),
            ("run stat getpp", "getppid"),
            ("net --grid ", "today"),
            ("list workloads fut", "futex-wait"),
            ("list mixes sh", "shared"),
            ("list tre", "treatments"),
            ("load sh", "shared"),
            ("show --as ni", "nitzberg"),
            ("compare --fail", "--fail-above"),
            ("--colo", "--color"),
        ] {
            let candidates = completed(line);
            assert!(candidates.iter().any(|one| one == candidate), "{line}: {candidates:?}");
        }
    }

    #[test]
    fn a_label_is_completed_part_by_part() {
        assert_eq!(completed("compare seccomp:pro"), ["seccomp:profile="]);
        assert_eq!(completed("compare audit:backlog=64,wai"), ["audit:backlog=64,wait="]);
        assert_eq!(
            completed("compare audit:backlog=64+seccomp:com"),
            ["audit:backlog=64+seccomp:compares="]
        );
        assert_eq!(
            completed("compare rootfs:a.tar::nic"),
            ["rootfs:a.tar::nice", "rootfs:a.tar::nice:"]
        );
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("my.rules");
        std::fs::write(&file, "").unwrap();
        let begun = file.to_str().unwrap().strip_suffix("rules").unwrap();
        let whole = format!("audit:rules={}", file.display());
        assert_eq!(completed(&format!("compare audit:rules={begun}")), [whole]);
        assert_eq!(completed("compare nosuch:x"), [""; 0]);
    }

    #[test]
    fn hidden_commands_are_not_offered() {
        let commands = completed("");
        assert!(commands.iter().any(|command| command == "compare"), "{commands:?}");
        assert!(!commands.iter().any(|command| command.starts_with("__")), "{commands:?}");
    }
}
