//! Which interpreter the programs of `interp:` were executed by in each arm, how each was built, and what
//! differs: two builds of a language seldom differ in one thing alone.

use std::collections::{BTreeMap, BTreeSet};

use super::work::Work;
use weigh_model::format;
use weigh_workload::interpreted::{self, Language};
use weigh_workload::launcher::{Job, Launched};
use weigh_workload::place::LaunchPlace;

/// Where two interpreters may lie apart without being different.
const PATH: &str = "path";
const TIMEOUT_MS: u64 = 30_000;
/// A list of flags or extensions is told this far.
const MOST_CHARS: usize = 300;

/// Facts that an interpreter reports about itself, by name.
pub type InterpreterBuild = BTreeMap<String, String>;

pub fn languages<'a>(works: impl Iterator<Item = &'a Work>) -> Vec<&'static Language> {
    let mut found: Vec<&'static Language> = Vec::new();
    for work in works {
        if let Work::Interpreted(one) = work
            && !found.contains(&one.language)
        {
            found.push(one.language);
        }
    }
    found
}

/// A launch in which the interpreter of this place tells how it was built.
pub fn job(language: &Language, place: &LaunchPlace) -> Job {
    let executable = &place.executable;
    let interpreter = executable.interpreter(language);
    let argv = language.describing_argv(executable.directory(), interpreter);
    let environment = interpreted::environment(place.is_here());
    Job { environment, ..Job::new(argv, &place.work_directory, TIMEOUT_MS) }
}

/// Parses the facts that an interpreter reported; `None` if it could not.
pub fn read(launched: &Launched) -> Option<InterpreterBuild> {
    let line = launched.stdout.lines().rev().find(|line| !line.trim().is_empty())?;
    (launched.exit_code == Some(0)).then(|| serde_json::from_str(line).ok())?
}

/// As a sentence: `perl is /usr/bin/perl 5.36.0; threads: yes; …`
pub fn sentence(language: &Language, own: &InterpreterBuild) -> String {
    let of = |name: &str| own.get(name).map(String::as_str);
    let shown = |(name, value): (&String, &String)| match value.trim() {
        "" => None,
        value => Some(format!("{name}: {}", format::shorten(value, MOST_CHARS))),
    };
    let known = own.iter().filter(|(name, _)| *name != PATH && *name != "version");
    let head = [of(PATH), of("version")].into_iter().flatten().collect::<Vec<_>>().join(", ");
    let parts: Vec<String> = std::iter::once(head).chain(known.filter_map(shown)).collect();
    format!("{} is {}.", language.name, parts.join("; "))
}

/// A value, or where it is long the words of it that the other does not have; `None` of nothing.
fn beyond(value: &str, other: &str) -> Option<String> {
    let others: BTreeSet<&str> = other.split_whitespace().collect();
    let own: Vec<&str> = value.split_whitespace().filter(|word| !others.contains(word)).collect();
    let shown = match value.chars().count().max(other.chars().count()) > MOST_CHARS {
        true => own.join(" "),
        false => value.to_owned(),
    };
    (!shown.is_empty()).then(|| format!("`{}`", format::shorten(&shown, MOST_CHARS)))
}

/// How one differs from the baseline's, in a sentence, and in which factors.
pub fn difference(
    language: &Language,
    baseline: &InterpreterBuild,
    own: &InterpreterBuild,
) -> Option<(String, Vec<String>)> {
    let names: BTreeSet<&String> = baseline.keys().chain(own.keys()).collect();
    let value = |of: &InterpreterBuild, name: &String| {
        of.get(name).map_or("", |value| value.trim()).to_owned()
    };
    let differs =
        |name: &&&String| name.as_str() != PATH && value(baseline, name) != value(own, name);
    let factors: Vec<String> = names.iter().filter(differs).map(|name| (*name).clone()).collect();
    let told = |name: &String| {
        let (own, baseline) = (value(own, name), value(baseline, name));
        match [beyond(&own, &baseline), beyond(&baseline, &own)] {
            [None, None] => format!("{name}: the same words in a different order"),
            both => {
                let [own, baseline] = both.map(|words| words.unwrap_or("nothing".into()));
                format!("{name}: {own}, not {baseline}")
            }
        }
    };
    let name = &language.name;
    if factors.is_empty() {
        let is_same = baseline.get(PATH) == own.get(PATH);
        let sentence = format!("{name} has the same configuration as the baseline's.");
        return (!is_same).then_some((sentence, factors));
    }
    let differences: Vec<String> = factors.iter().map(told).collect();
    let sentence = format!("{name} differs from the baseline's in {}.", differences.join("; "));
    Some((sentence, factors))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn perl(threads: &str, optimize: &str) -> InterpreterBuild {
        let pairs =
            [("path", optimize), ("threads", threads), ("optimize", optimize), ("empty", " ")];
        pairs.into_iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
    }

    #[test]
    fn what_differs_is_told_with_its_factors() {
        let language = &Language::all()[0];
        let differs = |own: &InterpreterBuild| difference(language, &perl("yes", "-O2"), own);
        assert_eq!(differs(&perl("yes", "-O2")), None);
        let (sentence, factors) = differs(&perl("yes", "-O3")).unwrap();
        assert_eq!(sentence, "perl differs from the baseline's in optimize: `-O3`, not `-O2`.");
        assert_eq!(factors, ["optimize"]);
        let (_, factors) = differs(&perl("no", "-O3")).unwrap();
        assert_eq!(factors, ["optimize", "threads"]);
        let mut moved = perl("yes", "-O2");
        moved.insert(PATH.into(), "/opt/perl".into());
        moved.remove("empty");
        let same = "perl has the same configuration as the baseline's.".to_owned();
        assert_eq!(differs(&moved), Some((same, Vec::new())));
    }

    #[test]
    fn a_difference_at_the_end_of_a_long_list_is_found() {
        let language = &Language::all()[0];
        let build = |last: &str| {
            let flags: Vec<String> = (0..100).map(|n| format!("--with-{n}")).collect();
            InterpreterBuild::from([("configure".into(), format!("{} {last}", flags.join(" ")))])
        };
        let (sentence, _) = difference(language, &build("-O2"), &build("-O3 -g")).unwrap();
        assert_eq!(sentence, "perl differs from the baseline's in configure: `-O3 -g`, not `-O2`.");
    }

    #[test]
    fn it_is_told_in_one_sentence() {
        let told = sentence(&Language::all()[0], &perl("yes", "-O2"));
        assert_eq!(told, "perl is -O2; optimize: -O2; threads: yes.");
    }
}
