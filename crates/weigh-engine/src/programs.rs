//! Checks that the programs of commands exist, so that a typing mistake is reported before anything
//! is measured or stored.

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use super::command_comparison::CommandComparison;
use super::command_template::values;
use super::provenance::program_file;
use super::request::Request;
use trust::start::{self, Inherited};
use weigh_host::said::{Heard, Keep};
use weigh_model::format::quoted;
use weigh_treatment::{Named, Reach};
use weigh_workload::interpreted::Language;
use weigh_workload::setup::kind::variables::Variables;

/// Exit status of a command that was not found, as in all shells.
const NOT_FOUND: i32 = 127;
/// A shell that takes longer reads a long configuration of its user's, or waits for something.
const ANSWERS_WITHIN: Duration = Duration::from_secs(2);
/// Shells of which `command -v` can be asked.
const SHELLS: [&str; 6] = ["sh", "ash", "bash", "dash", "ksh", "zsh"];

/// Checks that the programs of the commands exist, or the interpreters that arms name. Those that run
/// elsewhere, or after another line was run, cannot be checked in advance.
pub fn check_programs(
    request: &Request,
    treatments: &[Named],
    directory: &Path,
) -> Result<(), String> {
    let has_lines =
        request.plan.comparison().is_some_and(|comparison| comparison.around.has_lines());
    if has_lines || !treatments.iter().all(finds_the_same) {
        return Ok(());
    }
    let is_missing =
        |program: &String| program_file(program, directory).is_none_or(|it| !it.exists());
    let missing: Vec<String> = match (request.plan.command(), request.plan.contest()) {
        (_, Some(contest)) => {
            contest.lines.iter().filter_map(|line| missing_in(contest, line, &is_missing)).collect()
        }
        // What stands in braces is filled in by arms.
        (Some(argv), None) => {
            let program = argv.first().filter(|program| !program.contains('{'));
            program.filter(|program| is_missing(program)).cloned().into_iter().collect()
        }
        (None, None) => {
            let named = treatments.iter().flat_map(interpreters);
            named.filter(|program| is_missing(program)).collect()
        }
    };
    let names: Vec<String> = missing.iter().map(quoted).collect();
    match names.as_slice() {
        [] => Ok(()),
        names => {
            Err(format!("there is no program {}; nothing was measured", names.join(" and no ")))
        }
    }
}

/// Returns true if a command of this arm is looked for here, in the directories that we know.
fn finds_the_same(named: &Named) -> bool {
    let setup = named.treatment.setup(true);
    let set = setup.get::<Variables>().map_or(&[][..], |step| &step.set);
    named.treatment.reach() < Reach::Elsewhere
        && !named.treatment_kinds().any(|kind| kind.is_place)
        && !set.iter().any(|(name, _)| name == "PATH")
}

/// The interpreters that an arm names in place of those of languages.
fn interpreters(named: &Named) -> impl Iterator<Item = String> + use<> {
    let is_language = |name: &str| Language::all().iter().any(|one| one.name == name);
    let values = values(named).into_iter();
    values.filter(move |(name, _)| is_language(name)).map(|(_, program)| program)
}

/// The program that a line begins with, where it is certain that there is none.
fn missing_in(
    contest: &CommandComparison,
    line: &str,
    is_missing: &dyn Fn(&String) -> bool,
) -> Option<String> {
    let program = line.split_whitespace().next()?.to_owned();
    // What has a directory may be made by a line before it, as `./x` by `make x`.
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_-+.".contains(c);
    if !program.chars().all(is_plain) || contest.expected.allows(NOT_FOUND) {
        return None;
    }
    let is_missing = match contest.shell.split_first() {
        None => is_missing(&program),
        Some((shell, options)) => {
            let name = Path::new(shell).file_name().and_then(|name| name.to_str());
            name.is_some_and(|name| SHELLS.contains(&name)) && !knows(shell, options, &program)
        }
    };
    is_missing.then_some(program)
}

/// Returns true if a shell would find the program, or has a built-in of this name. If the shell
/// cannot be asked, the answer is true.
fn knows(shell: &str, options: &[String], program: &str) -> bool {
    let mut asked = start::command(shell, Inherited::Callers);
    asked.args(options).arg(format!("command -v -- {program}"));
    asked.stdin(Stdio::null());
    let Ok(mut asked) = Heard::start(asked, [Keep::First(0), Keep::First(0)]) else { return true };
    asked.wait(ANSWERS_WITHIN, |_| true).map_or(true, |status| status.success())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn missing(shell: &[&str], line: &str) -> Option<String> {
        let contest = CommandComparison {
            shell: shell.iter().map(|word| (*word).to_owned()).collect(),
            ..CommandComparison::default()
        };
        let directory = std::env::temp_dir();
        let is_missing =
            |program: &String| program_file(program, &directory).is_none_or(|it| !it.exists());
        missing_in(&contest, line, &is_missing)
    }

    #[test]
    fn only_what_is_certain_not_to_be_there_is_missing() {
        let shell = ["/bin/sh", "-c"];
        for line in
            ["true 1", "cd / && true", "if true; then :; fi", "A=1 no-such-7", "$X", "sh -c x"]
        {
            assert_eq!(missing(&shell, line), None, "{line}");
        }
        assert_eq!(missing(&shell, "no-such-7 | cat").as_deref(), Some("no-such-7"));
        assert_eq!(missing(&[], "no-such-7").as_deref(), Some("no-such-7"));
        assert_eq!(missing(&[], "./no-such-7"), None, "a line before it may make it");
        assert_eq!(missing(&[], "true"), None);
        assert_eq!(missing(&["/no/such/sh", "-c"], "no-such-7"), None);
        assert_eq!(missing(&["fish", "-c"], "no-such-7"), None);
    }
}
