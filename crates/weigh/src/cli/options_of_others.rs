//! Options that another command has: each with what the command that was typed has in its place.

use std::collections::BTreeSet;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Arg, Command};

/// How often or how long is measured, under each of the names that commands have for it.
const HOW_MANY: &[&str] = &["--samples", "--pairs", "--runs", "-r", "--sets", "--repeat"];
const WORKLOADS: &[&str] = &["--workload", "-w"];
const COPIES: &[&str] = &["--copies", "--clients"];
const VERDICTS: &[&str] =
    &["--base", "--factorial", "--margin", "--metric", "--fail-above", "--fdr"];
const PARAMETERS: &[&str] = &["--parameter-list", "-L", "--parameter-scan", "-P"];
/// The formats of `weigh export`.
const FORMATS: &[&str] = &["--json", "--csv", "--markdown", "--junit", "--html"];

/// A command, options that it lacks, and what it has instead.
const INSTEAD: [(&str, &[&str], &str); 18] = [
    ("run", WORKLOADS, "name workloads without an option, as in `weigh run stat`"),
    ("run", HOW_MANY, "--samples N sets the number of samples, and --budget TIME limits the time"),
    ("run", VERDICTS, "it measures one system without a verdict; `weigh compare` compares two"),
    ("load", WORKLOADS, "name a mix without an option, as in `weigh load shared`"),
    ("load", HOW_MANY, "--repeat N sets the number of samples, and --budget TIME limits the time"),
    ("load", COPIES, "--users LIST sets the numbers of users"),
    ("net", WORKLOADS, "--beside WORKLOAD keeps the host busy with a workload"),
    ("net", HOW_MANY, "--budget TIME limits the time, and --precision PERCENT ends it earlier"),
    (
        "calibrate",
        HOW_MANY,
        "--repeat N sets the number of experiments, and --budget TIME their length",
    ),
    ("rules", HOW_MANY, "a longer --budget TIME gives narrower intervals"),
    ("profile", &["--budget", "--timeout"], "--for TIME limits the command or the observation"),
    ("budget", &["--budget", "--timeout"], "it stops by itself when the log size is known"),
    ("compare", HOW_MANY, "--pairs N sets the number of pairs, and --budget TIME limits the time"),
    (
        "compare",
        PARAMETERS,
        "name an arm for each value, as in --base with:n=1 with:n=2 -- make -j{n}",
    ),
    ("versus", &["--base"], "write that command first, because the first one is the baseline"),
    ("versus", HOW_MANY, "--runs N sets the number of runs, and --budget TIME limits the time"),
    ("show", &["--budget"], "`weigh compare --continue ID --budget TIME` measures more pairs"),
    ("show", FORMATS, "`weigh export ID` writes other formats, as in `weigh export latest --json`"),
];

/// Explains the error of a command line if another command of `cli` has such an option.
pub fn explained(error: &clap::Error, cli: &Command) -> Option<String> {
    if error.kind() != ErrorKind::UnknownArgument {
        return None;
    }
    let Some(ContextValue::String(typed)) = error.get(ContextKind::InvalidArg) else { return None };
    let rendered = error.render().to_string();
    let (_, usage) = rendered.split_once("Usage: weigh ")?;
    let command = usage.split_whitespace().next()?;
    let owners: BTreeSet<&str> = owners(cli, typed).collect();
    if owners.is_empty() {
        return None;
    }
    let is_it = |(name, options, _): &&(&str, &[&str], &str)| {
        *name == command && options.contains(&typed.as_str())
    };
    Some(match INSTEAD.iter().find(is_it) {
        Some((.., instead)) => format!("`weigh {command}` has no {typed}: {instead}"),
        None => {
            let owners: Vec<String> = owners.iter().map(|name| format!("`weigh {name}`")).collect();
            format!(
                "`weigh {command}` has no {typed}, an option of {}; `weigh {command} --help` lists its own",
                owners.join(", ")
            )
        }
    })
}

/// The commands that have an option.
fn owners<'a>(cli: &'a Command, typed: &'a str) -> impl Iterator<Item = &'a str> {
    let is_typed = move |option: &Arg| {
        let long =
            option.get_long().into_iter().chain(option.get_visible_aliases().into_iter().flatten());
        let mut long = long.map(|name| format!("--{name}"));
        let short = option.get_short().map(|name| format!("-{name}"));
        !option.is_hide_set() && (long.any(|name| name == typed) || short.as_deref() == Some(typed))
    };
    let shown = cli.get_subcommands().filter(|command| !command.is_hide_set());
    shown.filter(move |command| command.get_arguments().any(is_typed)).map(Command::get_name)
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;
    use crate::cli::{Cli, parse};

    fn told(words: &[&str]) -> Option<String> {
        let error = parse(words.iter().copied()).map(drop).unwrap_err();
        explained(&error, &Cli::command())
    }

    #[test]
    fn an_option_of_another_command_is_explained_and_no_other() {
        let said = told(&["weigh", "run", "stat", "--pairs", "20"]).unwrap();
        assert!(said.starts_with("`weigh run` has no --pairs: --samples N"), "{said}");
        let said = told(&["weigh", "run", "-w", "stat"]).unwrap();
        assert!(said.starts_with("`weigh run` has no -w: name workloads without"), "{said}");
        let said = told(&["weigh", "show", "latest", "--json"]).unwrap();
        assert!(said.starts_with("`weigh show` has no --json: `weigh export ID` writes"), "{said}");
        let said = told(&["weigh", "history", "--margin=1%"]).unwrap();
        let wanted = "`weigh history` has no --margin, an option of `weigh compare`, `weigh versus`; `weigh \
                      history --help` lists its own";
        assert_eq!(said, wanted);
        assert_eq!(told(&["weigh", "export", "latest", "--no-such-option"]), None);
        assert_eq!(told(&["weigh", "run", "--no-such-option"]), None);
        assert_eq!(told(&["weigh", "run", "--samples", "x"]), None);
    }

    /// An option that a command gets is no longer explained, and what is named has to be there.
    #[test]
    fn each_line_is_about_an_option_that_is_missing_and_names_some_that_are_there() {
        let cli = Cli::command();
        for (command, options, instead) in INSTEAD {
            let own = |option: &str| owners(&cli, option).any(|name| name == command);
            assert!(options.iter().any(|option| !own(option)), "{command}: {options:?}");
            let named = instead.split(|c: char| c.is_whitespace() || c == ',');
            let named = named.filter(|word| word.starts_with("--") && word.len() > 2);
            for option in named {
                let is_of_another = ["`weigh compare --continue", "`weigh export latest"];
                let is_of_another = is_of_another.iter().any(|command| instead.contains(command));
                assert!(own(option) || is_of_another, "{command} has no {option}");
            }
        }
    }
}
