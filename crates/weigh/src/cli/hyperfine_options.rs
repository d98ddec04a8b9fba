//! Options of hyperfine that `weigh versus` does not have, each with what to use in its place.

use clap::error::{ContextKind, ContextValue, ErrorKind};

/// The long name, the short one, and the clause that follows.
const NOT_HERE: [(&str, &str, &str); 11] = [
    ("--min-runs", "-m", "weigh measures until it has a verdict; --runs N sets the number of runs"),
    ("--max-runs", "-M", "--budget TIME limits the time, and --runs N sets the number of runs"),
    ("--conclude", "-C", "there is none; --cleanup runs once, at the end"),
    ("--reference", "", "write that command first, because the first one is the baseline"),
    ("--reference-name", "", "write that command first, and give its name with --command-name"),
    ("--input", "", "there is none, and stdin is empty; write 'COMMAND < FILE'"),
    ("--output", "", "there is none; write 'COMMAND > FILE', or use --show-output"),
    ("--style", "", "use --color never for a report without colours"),
    ("--time-unit", "-u", "there is none, because the unit depends on the times"),
    ("--sort", "", "there is none; the report has a list with the fastest command first"),
    ("--export-", "", "use --export-json, --export-csv or --export-markdown"),
];

/// Explains the error of a command line if it has such an option.
pub fn explained(error: &clap::Error) -> Option<String> {
    if error.kind() != ErrorKind::UnknownArgument {
        return None;
    }
    let Some(ContextValue::String(typed)) = error.get(ContextKind::InvalidArg) else { return None };
    let is_of_versus = error.render().to_string().contains("Usage: weigh versus ");
    let is_it = |(long, short, _): &&(&str, &str, &str)| {
        typed == long || typed == short || long.ends_with('-') && typed.starts_with(long)
    };
    let (.., instead) = NOT_HERE.iter().find(is_it).filter(|_| is_of_versus)?;
    Some(format!("`weigh versus` has no {typed}, as hyperfine has: {instead}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::parse;

    #[test]
    fn each_option_of_hyperfine_has_an_answer_and_other_commands_have_none() {
        let told = |words: &[&str]| {
            let error = parse(words.iter().copied()).map(drop).unwrap_err();
            explained(&error)
        };
        for (typed, instead) in [
            (&["--min-runs", "5"][..], "--runs N"),
            (&["-M", "5"], "--budget TIME"),
            (&["--style=none"], "--color never"),
            (&["--export-asciidoc", "x"], "--export-markdown"),
            (&["--export-orgmode=x"], "--export-json"),
            (&["-u", "second"], "there is none"),
            (&["--reference", "a"], "write that command first"),
        ] {
            let said = told(&[&["weigh", "versus", "a", "b"], typed].concat()).unwrap();
            assert!(
                said.starts_with("`weigh versus` has no -") && said.contains(instead),
                "{said}"
            );
        }
        assert_eq!(told(&["weigh", "versus", "a", "--no-such-option"]), None);
        assert_eq!(told(&["weigh", "run", "stat", "--style", "basic"]), None);
    }
}
