//! `-h`: what fits a screen. The text of an option is written once; `-h` shows its first sentence, and
//! `--help` all of it.

use clap::{Arg, Command, CommandFactory};

use super::Cli;
use weigh_model::format;

/// Examples that `-h` shows.
const EXAMPLES: usize = 2;

/// Returns the command line, each of whose texts has a short form.
pub fn command() -> Command {
    with_short_texts(Cli::command(), "weigh")
}

fn with_short_texts(command: Command, typed: &str) -> Command {
    let hidden = command.get_arguments().filter(|option| option.is_hide_short_help_set()).count();
    let more = match hidden {
        0 => format!("`{typed} --help` explains more."),
        _ => format!(
            "`{typed} --help` explains more, and has {}.",
            format::plural(hidden, "more option")
        ),
    };
    let whole = command.get_after_help().map(ToString::to_string).unwrap_or_default();
    let short = first_examples(&whole) + "\n" + &more;
    let subcommand = |command: Command| {
        let typed = format!("{typed} {}", command.get_name());
        with_short_texts(command, &typed)
    };
    let command = command.mut_args(with_short_text).mut_subcommands(subcommand);
    command.after_help(short).after_long_help(whole)
}

fn with_short_text(option: Arg) -> Arg {
    let Some(whole) = option.get_help().map(ToString::to_string) else { return option };
    let long = option.get_long_help().map_or_else(|| whole.clone(), ToString::to_string);
    option.help(first_sentence(&whole).to_owned()).long_help(long)
}

/// The sentence without its end, and without the default behind it.
fn first_sentence(text: &str) -> &str {
    let ends = [". ", "; ", " [default"].map(|end| text.find(end).unwrap_or(text.len()));
    &text[..ends.into_iter().min().unwrap_or(text.len())]
}

/// Returns the heading and the first examples. An example begins in the third column; lines about it are
/// further to the right.
fn first_examples(help: &str) -> String {
    let examples = help.split("\n\n").next().unwrap_or_default();
    let mut begun = 0;
    let is_shown = |line: &&str| {
        begun += usize::from(line.starts_with("  ") && !line.starts_with("   "));
        begun <= EXAMPLES
    };
    examples.lines().take_while(is_shown).map(|line| format!("{line}\n")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const COLUMNS: usize = 80;
    const LINES: usize = 60;

    /// Adds the short and the long help of a command and its subcommands at 80 columns.
    fn add_helps(command: &mut Command, all: &mut Vec<[String; 2]>) {
        let [short, long] = [command.render_help(), command.render_long_help()];
        all.push([short.to_string(), long.to_string()]);
        let is_ours =
            |command: &&mut Command| !command.is_hide_set() && command.get_name() != "help";
        for subcommand in command.get_subcommands_mut().filter(is_ours) {
            add_helps(subcommand, all);
        }
    }

    fn helps() -> Vec<[String; 2]> {
        let mut command = command().term_width(COLUMNS);
        command.build();
        let mut all = Vec::new();
        add_helps(&mut command, &mut all);
        all
    }

    #[test]
    fn the_short_help_of_every_command_fits_a_screen() {
        let all = helps();
        assert!(all.len() > 20, "{}", all.len());
        for [short, _] in all {
            let lines = short.trim_end().lines().count();
            assert!(lines <= LINES, "{lines} lines:\n{short}");
            let wide = short.lines().find(|line| line.chars().count() > COLUMNS);
            assert_eq!(wide, None, "{short}");
            assert!(short.contains("--help` explains more"), "{short}");
        }
    }

    #[test]
    fn the_long_help_has_every_option_and_no_wide_line() {
        for [_, long] in helps() {
            let wide = long.lines().find(|line| line.chars().count() > COLUMNS);
            assert_eq!(wide, None, "{long}");
        }
        let compare =
            helps().into_iter().map(|[_, long]| long).find(|long| long.contains("--treat "));
        let compare = compare.unwrap();
        for text in
            ["--reboot-by", "--beyond-cache", "Seed of the random order; the same seed gives"]
        {
            assert!(compare.contains(text), "{text}: {compare}");
        }
    }

    #[test]
    fn a_sentence_ends_at_its_point_or_its_default() {
        assert_eq!(first_sentence("Measure it. Then stop"), "Measure it");
        assert_eq!(
            first_sentence("A file such as ./my.toml [default: quick]"),
            "A file such as ./my.toml"
        );
        assert_eq!(first_sentence("All of it"), "All of it");
    }
}
