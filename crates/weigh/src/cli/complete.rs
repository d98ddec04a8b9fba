//! `weigh __complete`: what the last word of a command line may become. The completions of a shell ask
//! for the names that only weigh knows: workloads, suites, mixes, treatments, experiments and tables.

use std::path::PathBuf;

use clap::{Arg, Args, Command};

use super::{Context, list, output};
use weigh_fixture::FIXTURES;
use weigh_model::workload::{mix, suite};
use weigh_report::dialect;
use weigh_store::Store;
use weigh_treatment as treatment;

/// Print the possible completions of the last word
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  weigh __complete -- compare -w unix")]
pub struct CompleteArgs {
    /// Words after `weigh`; the last one is completed
    #[arg(last = true)]
    words: Vec<String>,
}

#[derive(Debug, PartialEq)]
enum NameKind {
    Workloads,
    Suites,
    Mixes,
    Treatments,
    Fixtures,
    Experiments,
    Tables,
}

impl CompleteArgs {
    pub fn run(self, context: &Context, root: &Command) -> Result<u8, String> {
        let Some((current, typed)) = self.words.split_last() else { return Ok(0) };
        let names = match wanted(root, typed, current) {
            None => return Ok(0),
            Some(NameKind::Workloads) => workloads()?,
            Some(NameKind::Suites) => suites()?,
            Some(NameKind::Mixes) => mixes()?,
            Some(NameKind::Tables) => dialect::names().map(str::to_owned).collect(),
            Some(NameKind::Treatments) => {
                treatment::kinds().map(|kind| kind.name().to_owned()).collect()
            }
            Some(NameKind::Fixtures) => {
                FIXTURES.iter().map(|kind| kind.name().to_owned()).collect()
            }
            Some(NameKind::Experiments) => experiments(database(typed), context)?,
        };
        let fitting = names.iter().filter(|name| name.starts_with(current.as_str()));
        output::print(&fitting.map(|name| format!("{name}\n")).collect::<String>())?;
        Ok(0)
    }
}

/// Which names fit the place of the last word; `None` where the shell knows better.
fn wanted(root: &Command, typed: &[String], current: &str) -> Option<NameKind> {
    let mut command = root;
    let mut option: Option<&Arg> = None;
    let mut positionals: Vec<&str> = Vec::new();
    for word in typed {
        if word == "--" {
            return None;
        }
        // The word after an option is its value, if it takes one.
        if option.take().is_some() {
            continue;
        }
        if word.starts_with('-') {
            option = find_option(root, command, word);
        } else if std::ptr::eq(command, root) {
            command = root.find_subcommand(word)?;
        } else {
            positionals.push(word);
        }
    }
    let argument = match option {
        Some(option) => option,
        None if current.starts_with('-') || std::ptr::eq(command, root) => return None,
        None => {
            let all: Vec<&Arg> = command.get_positionals().filter(|a| !a.is_last_set()).collect();
            // The last may be repeated.
            all.get(positionals.len()).or(all.last()).copied()?
        }
    };
    match (command.get_name(), argument.get_id().as_str()) {
        ("list", "name") => match *positionals.first()? {
            "workloads" => Some(NameKind::Workloads),
            "suites" => Some(NameKind::Suites),
            "mixes" => Some(NameKind::Mixes),
            "treatments" => Some(NameKind::Treatments),
            "fixtures" => Some(NameKind::Fixtures),
            _ => None,
        },
        (_, "mix") => Some(NameKind::Mixes),
        (_, "dialect") => Some(NameKind::Tables),
        (_, "workload" | "workloads") => Some(NameKind::Workloads),
        (_, "treatment" | "treatments" | "base") => Some(NameKind::Treatments),
        (_, "fixtures") => Some(NameKind::Fixtures),
        (_, "id" | "ids" | "before" | "after" | "go_on") => Some(NameKind::Experiments),
        _ => None,
    }
}

/// The option that a word is, where its value is a word of its own.
fn find_option<'a>(root: &'a Command, command: &'a Command, word: &str) -> Option<&'a Arg> {
    let is_it = |arg: &&Arg| match word.strip_prefix("--") {
        Some(long) => arg.get_long() == Some(long),
        None => arg.get_short().is_some_and(|short| word == format!("-{short}")),
    };
    let takes_word = |arg: &&Arg| arg.get_action().takes_values() && !arg.is_require_equals_set();
    command.get_arguments().chain(root.get_arguments()).find(is_it).filter(takes_word)
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

/// The database that the command line names, if it does.
fn database(typed: &[String]) -> Option<PathBuf> {
    let next = |pair: &[String]| (pair[0] == "--database").then(|| PathBuf::from(&pair[1]));
    let joined = |word: &String| word.strip_prefix("--database=").map(PathBuf::from);
    typed.windows(2).find_map(next).or_else(|| typed.iter().find_map(joined))
}

/// To look is no reason to make a database.
fn experiments(database: Option<PathBuf>, context: &Context) -> Result<Vec<String>, String> {
    let path = database.map_or_else(|| context.database(), Ok)?;
    let said = |error: weigh_store::Error| error.to_string();
    let Some(store) = Store::read(&path).map_err(said)? else { return Ok(Vec::new()) };
    let entries = store.history().map_err(said)?;
    let ids = entries.iter().map(|entry| entry.id.clone());
    let names = entries.iter().filter_map(|entry| entry.name.clone());
    Ok(std::iter::once("latest".to_owned()).chain(names).chain(ids).collect())
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;
    use crate::cli::Cli;

    #[test]
    fn the_place_decides_what_is_wanted() {
        let root = Cli::command();
        let wanted = |line: &str| {
            let mut words: Vec<String> = line.split(' ').map(String::from).collect();
            let current = words.pop().unwrap();
            wanted(&root, &words, &current)
        };
        for (line, names) in [
            ("compare ", Some(NameKind::Treatments)),
            ("compare audit sec", Some(NameKind::Treatments)),
            ("compare audit -w ", Some(NameKind::Workloads)),
            ("compare --budget 5m --workload uni", Some(NameKind::Workloads)),
            ("compare --base ", Some(NameKind::Treatments)),
            ("run --fixture ", Some(NameKind::Fixtures)),
            ("compare --continue ", Some(NameKind::Experiments)),
            ("run stat ", Some(NameKind::Workloads)),
            ("show k3", Some(NameKind::Experiments)),
            ("diff a ", Some(NameKind::Experiments)),
            ("forget a b ", Some(NameKind::Experiments)),
            ("--database x.db export ", Some(NameKind::Experiments)),
            ("list workloads fu", Some(NameKind::Workloads)),
            ("list mixes ", Some(NameKind::Mixes)),
            ("list ", None),
            ("load sh", Some(NameKind::Mixes)),
            ("show --as ", Some(NameKind::Tables)),
            ("import --as ", None),
            ("compare --json ", None),
            ("compare -", None),
            ("compare audit -- ", None),
            ("comp", None),
            ("import ", None),
        ] {
            assert_eq!(wanted(line), names, "{line}");
        }
    }
}
