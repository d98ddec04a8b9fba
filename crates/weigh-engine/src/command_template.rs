//! Checks the values that treatments fill in against the command, before anything is measured.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use super::work::Work;
use trust::allowed::executable_or_absent;
use trust::start::{self, Inherited};
use weigh_host::said::{self, Heard, Keep};
use weigh_model::shell::command_line;
use weigh_treatment::Named;
use weigh_workload::interpreted::Language;
use weigh_workload::setup::kind::filled_command::FilledCommand;

/// An interpreter that takes longer to start is measured all the same.
const ANSWERS_WITHIN: Duration = Duration::from_secs(2);
/// `ok`, or the end of a complaint.
const ANSWER_BYTES: usize = 200;

/// Every `{NAME}` of the command that one arm fills, all do, and no arm fills another.
pub fn check_filled(command: &[String], treatments: &[Named]) -> Result<(), String> {
    let names: Vec<BTreeSet<String>> = treatments.iter().map(filled_by).collect();
    let all: BTreeSet<&String> = names.iter().flatten().collect();
    for name in all {
        let blank = format!("{{{name}}}");
        if !command.iter().any(|word| word.contains(&blank)) {
            return Err(format!(
                "`with:{name}=…` has nothing to fill: the command does not contain {blank}"
            ));
        }
        let without = names.iter().position(|names| !names.contains(name));
        if let Some(arm) = without {
            let label = &treatments[arm].label;
            let (is_base, with) = (arm == 0, format!("with:{name}=VALUE"));
            let what_to_do = match is_base {
                true => format!("give the baseline a value: --base {with}"),
                false => format!("add +{with} to the treatment"),
            };
            return Err(format!("`{label}` does not fill {blank} in the command; {what_to_do}"));
        }
    }
    Ok(())
}

/// Every name is that of a language, and every work is a program in one of them: of any other work there
/// would be a number without a treatment.
pub fn check_interpreters(works: &[Work], treatments: &[Named]) -> Result<(), String> {
    let names: BTreeSet<String> = treatments.iter().flat_map(filled_by).collect();
    let is_language = |name: &&String| Language::all().iter().any(|one| one.name == **name);
    if let Some(name) = names.iter().find(|name| !is_language(name)) {
        let known: Vec<&str> = Language::all().iter().map(|one| one.name.as_str()).collect();
        return Err(format!(
            "`with:{name}=…` fills {{{name}}} in a command, but workloads do not contain it. Put a command \
             after `--`, or use the name of a language of `interp:` ({})",
            known.join(", ")
        ));
    }
    let is_of_none = |work: &&Work| match work {
        Work::Interpreted(one) => !names.contains(&one.language.name),
        _ => true,
    };
    match (names.first(), works.iter().find(is_of_none)) {
        (Some(name), Some(work)) => Err(format!(
            "`with:{name}=…` has no effect on `{}`: measure only -w interp-{name}",
            work.name()
        )),
        _ => treatments.iter().try_for_each(check_executable),
    }
}

/// Checks that the replacement of an interpreter on this machine can be executed.
fn check_executable(named: &Named) -> Result<(), String> {
    let is_here = !named.treatment_kinds().any(|kind| kind.is_place);
    for (name, value) in values(named).iter().filter(|(_, value)| is_here && value.contains('/')) {
        executable_or_absent(Path::new(value))
            .map_err(|error| format!("with:{name}={value}: {error}"))?;
        if let Some(language) = Language::all().iter().find(|one| one.name == *name) {
            check_language(language, value)?;
        }
    }
    Ok(())
}

/// Checks that a program executes the shortest text of this language, before all workloads fail one by one.
///
/// A program that cannot be started or takes longer fails when it is measured.
fn check_language(language: &Language, program: &str) -> Result<(), String> {
    let mut tried = start::command(program, Inherited::Callers);
    tried.args(&language.startup).stdin(Stdio::null());
    let kept = [Keep::First(ANSWER_BYTES), Keep::Last(ANSWER_BYTES)];
    match Heard::start(tried, kept).and_then(|tried| tried.output(ANSWERS_WITHIN)) {
        Ok(output) if output.stdout.trim_ascii() != b"ok" => {
            let words = [program].into_iter().chain(language.startup.iter().map(String::as_str));
            Err(format!(
                "with:{name}={program}: it is no interpreter of {name}: `{}` does not print `ok`: {}",
                command_line(words),
                said::words(&output.stderr),
                name = language.name,
            ))
        }
        Ok(_) | Err(_) => Ok(()),
    }
}

fn filled_by(named: &Named) -> BTreeSet<String> {
    values(named).into_iter().map(|(name, _)| name).collect()
}

/// Returns the values that an arm fills in, by name.
pub fn values(named: &Named) -> Vec<(String, String)> {
    let setup = named.treatment.setup(true);
    setup.get::<FilledCommand>().map_or(Vec::new(), |step| step.values.clone())
}

#[cfg(test)]
mod tests {
    use super::*;
    use weigh_treatment::parse;
    use weigh_workload::interpreted::Interpreted;

    fn check(command: Option<&str>, labels: &[&str]) -> Result<(), String> {
        let treatments: Vec<Named> = labels.iter().map(|label| parse(label).unwrap()).collect();
        match command {
            Some(line) => {
                let words: Vec<String> = line.split(' ').map(String::from).collect();
                check_filled(&words, &treatments)
            }
            None => {
                let works: Vec<Work> = ["interp:perl.fib", "interp:php.fib"]
                    .into_iter()
                    .filter_map(|name| Interpreted::named(name).map(Work::Interpreted))
                    .collect();
                check_interpreters(&works, &treatments)
            }
        }
    }

    #[test]
    fn root_executes_no_interpreter_of_another_user() {
        if !needs::root() {
            return;
        }
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("perl");
        std::fs::write(&file, "").unwrap();
        let check = || {
            let treatments = [parse(&format!("with:perl={}", file.display())).unwrap()];
            let works = [Work::Interpreted(Interpreted::named("interp:perl.fib").unwrap())];
            check_interpreters(&works, &treatments)
        };
        assert_eq!(check(), Ok(()));
        std::os::unix::fs::chown(&file, Some(1002), None).unwrap();
        assert!(check().unwrap_err().contains("belongs to another user (uid 1002)"));
    }

    #[test]
    fn a_program_that_is_no_interpreter_is_refused_before_its_workloads() {
        let check = |program: &str| {
            let treatments = [parse(&format!("with:sh={program}")).unwrap()];
            let works = [Work::Interpreted(Interpreted::named("interp:sh.fib").unwrap())];
            check_interpreters(&works, &treatments)
        };
        assert_eq!(check("/bin/sh"), Ok(()));
        assert_eq!(check("/no/such/sh"), Ok(()), "programs::check_programs reports it");
        let said = check("/bin/false").unwrap_err();
        assert!(said.contains("`/bin/false -c 'echo ok'` does not print `ok`"), "{said}");
    }

    #[test]
    fn all_arms_fill_what_one_does_and_nothing_else() {
        let command = Some("prog -j{n} {m} {other}");
        assert_eq!(check(command, &["with:n=1", "with:n=2"]), Ok(()));
        assert_eq!(check(command, &["with:n=1,m=2", "nice:3+with:n=2,m=3"]), Ok(()));
        assert_eq!(check(command, &["none", "nice:3"]), Ok(()), "braces are anybody's");
        let said = check(command, &["none", "with:n=2"]).unwrap_err();
        assert!(
            said.contains("`none` does not fill {n}") && said.contains("--base with:n=VALUE"),
            "{said}"
        );
        let said = check(command, &["with:n=1", "with:n=2", "nice:3"]).unwrap_err();
        assert!(
            said.contains("`nice:3` does not fill {n}") && said.contains("add +with:n="),
            "{said}"
        );
        let said = check(command, &["with:k=1", "with:k=2"]).unwrap_err();
        assert!(said.contains("does not contain {k}"), "{said}");
        let said = check(None, &["none", "with:n=1"]).unwrap_err();
        assert!(
            said.contains("workloads do not contain it") && said.contains("perl, python"),
            "{said}"
        );
        let said = check(None, &["none", "with:perl=x"]).unwrap_err();
        assert!(said.contains("has no effect on `interp:php.fib`"), "{said}");
        assert_eq!(check(None, &["none", "with:perl=x,php=y"]), Ok(()));
        assert_eq!(check(None, &["none", "nice:3"]), Ok(()));
    }
}
