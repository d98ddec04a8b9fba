//! Man pages: what the command line's types say, and the sections that they have no place for.

use clap::Command;

const FILES: &[(&str, &str)] = &[
    (
        "$XDG_DATA_HOME/weighbridge/weigh.db",
        "The database of all experiments; below ~/.local/share where XDG_DATA_HOME is not set. --database \
         names another.",
    ),
    ("$XDG_DATA_HOME/weighbridge/reports/ID.html", "The HTML report of an experiment."),
    (
        "$XDG_STATE_HOME/weighbridge/*.journal",
        "What was changed and has to be restored. Where XDG_STATE_HOME is not set, and for root where \
         others can change what is in it: /var/lib/weighbridge for root, ~/.local/state/weighbridge \
         for others.",
    ),
    ("$TMPDIR/weigh-PID-*", "Scratch: the workloads and their files, while an experiment runs."),
];

const ENVIRONMENT: &[(&str, &str)] = &[
    ("XDG_DATA_HOME, XDG_STATE_HOME, TMPDIR", "Where files are; see FILES."),
    ("NO_COLOR, CLICOLOR, CLICOLOR_FORCE", "Whether output is coloured with --color auto."),
    (
        "WEIGH_WORKLOADS",
        "A file with another build of the workloads, to measure instead of weigh's own.",
    ),
    ("GITHUB_STEP_SUMMARY", "The file that --github-summary adds to, where it names none."),
];

/// Exit statuses of commands without a list of their own.
const EXIT_STATUS: &str = "0 done, 2 error.";

pub fn page(command: &Command) -> Result<String, String> {
    let mut text = Vec::new();
    // `weigh help` has no page: it prints the help of others.
    let command = command.clone().disable_help_subcommand(true);
    let man = clap_mangen::Man::new(command.clone()).manual("Weighbridge");
    let mut render = || {
        man.render_title(&mut text)?;
        man.render_name_section(&mut text)?;
        man.render_synopsis_section(&mut text)?;
        man.render_description_section(&mut text)?;
        man.render_options_section(&mut text)?;
        if command.get_subcommands().any(|command| !command.is_hide_set()) {
            man.render_subcommands_section(&mut text)?;
        }
        Ok(())
    };
    render().map_err(|error: std::io::Error| format!("the man page: {error}"))?;
    let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
    Ok(String::from_utf8_lossy(&text).into_owned() + &sections(&help))
}

/// Returns the help's sections after the options, with the sections that all commands share.
fn sections(help: &str) -> String {
    let (mut notes, mut examples, mut status) =
        (String::new(), String::new(), EXIT_STATUS.to_owned());
    for paragraph in help.split("\n\n").map(str::trim_end).filter(|text| !text.is_empty()) {
        let (first, rest) = paragraph.split_once('\n').unwrap_or((paragraph, ""));
        if let Some(said) = paragraph.strip_prefix("Exit status: ") {
            status = said.to_owned();
        } else if first.starts_with("Example") {
            examples += &unjustified(rest);
        } else if first != "Environment:" {
            notes += &format!(".PP\n{}\n", troff(paragraph));
        }
    }
    let mut text = String::new();
    let mut section = |title: &str, body: &str| {
        if !body.is_empty() {
            text += &format!(".SH \"{title}\"\n{body}");
        }
    };
    section("NOTES", notes.strip_prefix(".PP\n").unwrap_or(&notes));
    section("EXAMPLES", &examples);
    section("EXIT STATUS", &(troff(&status) + "\n"));
    section("ENVIRONMENT", &list(ENVIRONMENT));
    section("FILES", &list(FILES));
    text
}

/// Lines as they are: a command is to be copied.
fn unjustified(text: &str) -> String {
    let lines: Vec<&str> =
        text.lines().map(|line| line.strip_prefix("  ").unwrap_or(line)).collect();
    format!(".nf\n{}\n.fi\n", troff(&lines.join("\n")))
}

fn list(items: &[(&str, &str)]) -> String {
    let item =
        |(name, meaning): &(&str, &str)| format!(".TP\n{}\n{}\n", troff(name), troff(meaning));
    items.iter().map(item).collect()
}

/// Text in which nothing is a request, and a hyphen is one that can be copied.
fn troff(text: &str) -> String {
    let text = text.replace('\\', "\\e").replace('-', "\\-");
    let safe = |line: &str| match line.starts_with(['.', '\'']) {
        true => format!("\\&{line}"),
        false => line.to_owned(),
    };
    text.lines().map(safe).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;
    use crate::cli::Cli;

    #[test]
    fn every_page_has_its_sections_and_copyable_examples() {
        let root = Cli::command();
        for command in
            root.get_subcommands().chain([&root]).filter(|command| !command.is_hide_set())
        {
            let text = page(&command.clone().disable_help_subcommand(true)).unwrap();
            for title in ["SYNOPSIS", "EXAMPLES", "EXIT STATUS", "ENVIRONMENT", "FILES"] {
                assert!(
                    text.contains(&format!(".SH \"{title}\""))
                        || text.contains(&format!(".SH {title}")),
                    "{title}: {text}"
                );
            }
            assert_eq!(text.matches(".nf\n").count(), text.matches(".fi\n").count());
            let examples = text.split(".SH \"EXAMPLES\"\n").nth(1).unwrap();
            assert!(examples.starts_with(".nf\n"), "{examples}");
        }
        let compare = page(root.find_subcommand("compare").unwrap()).unwrap();
        assert!(compare.contains("3 inconclusive") && compare.contains("130 interrupted"));
    }

    #[test]
    fn no_line_of_text_is_a_request() {
        assert_eq!(troff(".x\n'y\n--a \\b"), "\\&.x\n\\&'y\n\\-\\-a \\eb");
    }
}
