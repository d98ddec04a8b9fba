//! Lists of treatments for `weigh atlas`, in TOML. `suites/atlas/security.toml` is embedded; any other
//! list is a file of the user's.

use std::collections::BTreeSet;
use std::path::Path;

use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};
use toml::Spanned;

use crate::format;
use crate::workload::toml_problem;
use trust::user_file;

/// The embedded list has 30 KB.
const LONGEST_FILE: u64 = 1 << 20;

const EMBEDDED: &str = include_str!("../../../suites/atlas/security.toml");

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AtlasList {
    /// One line.
    pub summary: String,
    /// Workloads and suites of the whole atlas.
    pub workloads: Vec<String>,
    /// Workloads and suites of `--quick`.
    pub quick_workloads: Vec<String>,
    #[serde(rename = "entry")]
    pub entries: Vec<AtlasEntry>,
}

/// A treatment, and what a reader has to know of it besides its cost.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AtlasEntry {
    /// Its label, as for `weigh compare`.
    pub treatment: String,
    /// Kind of security feature or sensor, such as `tracer`.
    pub group: String,
    /// A few words that say what it is.
    pub title: String,
    /// Events that it sees or prevents.
    pub sees: String,
    /// Events that it neither sees nor prevents; completes the sentence "it misses …".
    pub misses: String,
    /// True if none of its user's programs is executed without an event.
    #[serde(default)]
    pub sees_every_exec: bool,
    /// Where such a set-up is from, or is described.
    pub source: Option<String>,
}

#[derive(Deserialize)]
struct EntryPlaces {
    entry: Vec<Spanned<IgnoredAny>>,
}

impl AtlasList {
    /// Returns the list that is built in.
    ///
    /// # Errors
    /// A sentence with the line of its file.
    pub fn embedded() -> Result<AtlasList, String> {
        parse("suites/atlas/security.toml", EMBEDDED)
    }

    /// Reads a list of the user's own.
    ///
    /// # Errors
    /// A sentence with the file and the line.
    pub fn read(path: &Path) -> Result<AtlasList, String> {
        let text = user_file::read_text(path, LONGEST_FILE)
            .map_err(|error| format!("cannot read the list {}: {error}", path.display()))?;
        parse(&path.display().to_string(), &text)
    }
}

/// A longer label would fill the line of a table: that of an agent is a list of commands.
const LONGEST_LABEL: usize = 80;

impl AtlasEntry {
    /// Its label, or its title where the label is too long for a table.
    pub fn name(&self) -> String {
        match self.treatment.chars().count() <= LONGEST_LABEL {
            true => format::label(&self.treatment),
            false => format::label(&self.title),
        }
    }

    /// Returns true if its label, group or title contains this.
    pub fn matches(&self, part: &str) -> bool {
        [&self.treatment, &self.group, &self.title].iter().any(|text| text.contains(part))
    }
}

fn parse(file: &str, text: &str) -> Result<AtlasList, String> {
    let problem = |error| toml_problem::sentence(file, text, &error);
    let list: AtlasList = toml::from_str(text).map_err(problem)?;
    let places: EntryPlaces = toml::from_str(text).map_err(problem)?;
    if list.entries.is_empty() {
        return Err(format!("{file}: the list has no [[entry]]"));
    }
    if list.workloads.is_empty() || list.quick_workloads.is_empty() {
        return Err(format!("{file}: `workloads` and `quick_workloads` must name a workload each"));
    }
    let mut known = BTreeSet::new();
    for (entry, place) in list.entries.iter().zip(places.entry) {
        if !known.insert(&entry.treatment) {
            let line = toml_problem::line_at(text, place.span().start);
            let label = &entry.treatment;
            return Err(format!("{file}:{line}: `{label}` is listed twice: remove one entry"));
        }
    }
    Ok(list)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ENTRY: &str = "[[entry]]\ntreatment = \"none\"\ngroup = \"control\"\ntitle = \"nothing\"\n\
                         sees = \"nothing\"\nmisses = \"everything\"\n";

    fn text(entries: &str) -> String {
        let head = "summary = \"s\"\nworkloads = [\"stat\"]\nquick_workloads = [\"stat\"]\n";
        format!("{head}{entries}")
    }

    #[test]
    fn a_long_label_is_named_by_its_title() {
        let name = |treatment: &str| {
            let list = parse("x.toml", &text(&ENTRY.replace("none", treatment))).unwrap();
            list.entries[0].name()
        };
        assert_eq!(name("seccomp"), "seccomp");
        assert_eq!(name(&format!("agent:start={}", "x".repeat(80))), "nothing");
    }

    #[test]
    fn the_embedded_list_has_forty_entries_or_more() {
        let list = AtlasList::embedded().unwrap();
        assert!(list.entries.len() >= 40, "{}", list.entries.len());
        assert!(list.entries.iter().filter(|entry| entry.sees_every_exec).count() >= 3);
    }

    #[test]
    fn what_is_wrong_with_a_list_is_named_with_its_line() {
        for (wrong, said) in [
            (text(&ENTRY.repeat(2)), "my.toml:10: `none` is listed twice: remove one entry"),
            (text("entry = []\n"), "my.toml: the list has no [[entry]]"),
            (text(&ENTRY.replace("group", "grop")), "my.toml:6: unknown field `grop`"),
            (
                text(ENTRY).replace("quick_workloads = [\"stat\"]", "quick_workloads = []"),
                "my.toml: `workloads` and `quick_workloads` must name a workload each",
            ),
        ] {
            let problem = parse("my.toml", &wrong).unwrap_err();
            assert!(problem.starts_with(said), "{problem}");
        }
        assert!(parse("my.toml", &text(ENTRY)).is_ok());
    }
}
