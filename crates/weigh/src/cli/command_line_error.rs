//! Errors of clap in the style of all errors: what is wrong, and below it what to do.

use super::output;

/// Prints the error, or the help where the command line has nothing else.
pub fn tell(error: &clap::Error) {
    let text = error.render().to_string();
    match text.strip_prefix("error: ") {
        Some(text) => output::problem(&restyled(text)),
        None => output::note(text.trim_end()),
    }
}

/// Keeps the sentence and the hints. Of the usage, which `--help` has in full, only the command stays.
fn restyled(text: &str) -> String {
    let (said, usage) = text.split_once("\nUsage: ").unwrap_or((text, ""));
    let is_said = |line: &&str| !line.is_empty() && !line.starts_with("For more information");
    let hint = |line: &str| match line.trim_start().strip_prefix("tip: ") {
        // A mistyped option is seldom meant as a value.
        Some(hint) if hint.starts_with("to pass ") => None,
        Some(hint) => without_internal(hint),
        None => Some(line.trim().to_owned()),
    };
    let mut lines: Vec<String> = said.lines().filter(is_said).filter_map(hint).collect();
    let is_name = |word: &&str| word.starts_with(|c: char| c.is_ascii_lowercase());
    let command: Vec<&str> = usage.split_whitespace().take_while(is_name).collect();
    if !command.is_empty() {
        lines.push(format!("`{} --help` explains the options", command.join(" ")));
    }
    lines.join("\n")
}

/// Leaves out commands that only `weigh` itself calls: `__complete`. Without any other there is no hint.
fn without_internal(hint: &str) -> Option<String> {
    let Some((before, names)) = hint.split_once(": ") else { return Some(hint.to_owned()) };
    let names: Vec<&str> = names.split(", ").filter(|name| !name.starts_with("'__")).collect();
    (!names.is_empty()).then(|| format!("{before}: {}", names.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::parse;

    #[test]
    fn a_wrong_command_line_is_told_with_what_to_do() {
        for (words, lines) in [
            (
                &["weigh", "compare", "--bugdet", "5s"][..],
                &[
                    "unexpected argument '--bugdet' found",
                    "a similar argument exists: '--budget'",
                    "`weigh compare --help` explains the options",
                ][..],
            ),
            (
                &["weigh", "compre"],
                &[
                    "unrecognized subcommand 'compre'",
                    "some similar subcommands exist: 'completions', 'compare'",
                    "`weigh --help` explains the options",
                ],
            ),
            (
                &["weigh", "rules"],
                &[
                    "the following required arguments were not provided:",
                    "<FILE|DIR>...",
                    "`weigh rules --help` explains the options",
                ],
            ),
            (
                &["weigh", "load", "--repeat", "0"],
                &["invalid value '0' for '--repeat <N>': 0 is not in 1..=26"],
            ),
        ] {
            let error = parse(words.iter().copied()).map(drop).unwrap_err();
            let text = error.render().to_string();
            let told = restyled(text.strip_prefix("error: ").unwrap());
            assert_eq!(told.lines().collect::<Vec<_>>(), lines, "{text}");
        }
    }
}
