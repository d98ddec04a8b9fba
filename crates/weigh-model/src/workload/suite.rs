//! Suites: named lists of workloads, in TOML. Those of `suites/` are embedded; any other file is
//! given by its path.

use std::path::Path;

use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};
use toml::Spanned;

use crate::workload::{mix, toml_problem};
use trust::user_file;

/// One with all workloads and their baselines has 40 KB.
const LONGEST_FILE: u64 = 1 << 20;

static EMBEDDED: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/suites.rs"));

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Suite {
    pub name: String,
    /// One line.
    pub summary: String,
    /// Where the list is from.
    pub source: Option<String>,
    /// How the members that have a baseline are summed up.
    pub index: Option<Index>,
    /// The index of a machine that is as fast as the baselines.
    pub baseline_index: Option<f64>,
    #[serde(rename = "workload")]
    pub members: Vec<Member>,
}

/// How a suite's figures become one.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Index {
    /// UnixBench since 4.0.
    GeometricMean,
    /// UnixBench to 3.11: it prints the sum too.
    ArithmeticMean,
}

/// A workload of a suite, and what that suite adds to it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Member {
    pub name: String,
    /// Title of the workload in the suite.
    pub title: Option<String>,
    /// The rate of the machine that the index is relative to.
    pub baseline: Option<f64>,
    /// How long the original measures one pass, and how many passes it makes.
    pub classic_seconds: Option<u64>,
    pub classic_passes: Option<usize>,
    /// The line of the file where it begins, for errors; 0 where it was stored.
    #[serde(skip)]
    pub line: usize,
}

#[derive(Deserialize)]
struct MemberPlaces {
    workload: Vec<Spanned<IgnoredAny>>,
}

/// A suite of the user's own.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FromFile {
    /// As the user named it.
    pub file: String,
    pub suite: Suite,
}

/// The suites that are built in, sorted by name.
pub fn embedded() -> Result<Vec<Suite>, String> {
    EMBEDDED.iter().map(|(name, text)| parse(&format!("suites/{name}.toml"), text)).collect()
}

/// Returns true if a suite gives an index. The index is its own, or the index of a suite in
/// `suites` whose workloads it all contains.
pub fn gives_index(suites: &[Suite], suite: &Suite) -> bool {
    let has = |member: &Member| suite.members.iter().any(|own| own.name == member.name);
    suite.index.is_some()
        || suites.iter().any(|other| other.index.is_some() && other.members.iter().all(has))
}

/// Reads those of the names that a user gave that are files; no workload or suite of ours is called so. Each
/// once: it may change meanwhile, and what is measured is what is stored.
pub fn from_files(names: &[String]) -> Result<Vec<FromFile>, String> {
    let mut files: Vec<FromFile> = Vec::new();
    let is_file = |name: &&String| {
        let is_other = name.starts_with(mix::PREFIX) || name.starts_with(mix::GRID);
        // `WORKLOAD/ACTIVITY` is none, unless there is such a file.
        let is_path =
            name.starts_with(['/', '.']) || name.contains('/') && Path::new(name).exists();
        !is_other && (is_path || name.ends_with(".toml"))
    };
    for name in names.iter().filter(is_file) {
        if !files.iter().any(|other| other.file == *name) {
            files.push(FromFile { file: name.clone(), suite: read(Path::new(name))? });
        }
    }
    Ok(files)
}

fn read(path: &Path) -> Result<Suite, String> {
    let text = user_file::read_text(path, LONGEST_FILE)
        .map_err(|error| format!("cannot read the suite {}: {error}", path.display()))?;
    parse(&path.display().to_string(), &text)
}

fn parse(file: &str, text: &str) -> Result<Suite, String> {
    let problem = |error| toml_problem::sentence(file, text, &error);
    let mut suite: Suite = toml::from_str(text).map_err(problem)?;
    let places: MemberPlaces = toml::from_str(text).map_err(problem)?;
    for (member, place) in suite.members.iter_mut().zip(places.workload) {
        member.line = toml_problem::line_at(text, place.span().start);
    }
    if suite.members.is_empty() {
        return Err(format!("{file}: the suite has no [[workload]]"));
    }
    let has_baselines = suite.members.iter().any(|member| member.baseline.is_some());
    if [suite.index.is_some(), suite.baseline_index.is_some()] != [has_baselines; 2] {
        return Err(format!(
            "{file}: an index needs `index`, `baseline_index` and the `baseline` of a workload"
        ));
    }
    if suite.baseline_index.is_some_and(|points| !points.is_finite() || points <= 0.0) {
        return Err(format!("{file}: `baseline_index` must be above 0"));
    }
    for member in &suite.members {
        let place = format!("{file}:{}", member.line);
        if member.baseline.is_some_and(|rate| !rate.is_finite() || rate <= 0.0) {
            return Err(format!("{place}: the baseline of `{}` must be above 0", member.name));
        }
        if member.classic_seconds.is_some_and(|seconds| !(1..=600).contains(&seconds)) {
            return Err(format!("{place}: `{}` must run for 1 to 600 seconds", member.name));
        }
        if member.classic_passes.is_some_and(|passes| !(1..=1000).contains(&passes)) {
            return Err(format!("{place}: `{}` must run 1 to 1000 times", member.name));
        }
    }
    Ok(suite)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_embedded_suites_are_sound_and_unixbenchs_index_is_whole() {
        let suites = embedded().unwrap();
        let unixbench = suites.iter().find(|suite| suite.name == "unixbench").unwrap();
        assert_eq!(unixbench.members.len(), 12);
        assert!(unixbench.members.iter().all(|member| member.baseline.is_some()));
        let quick = suites.iter().find(|suite| suite.name == "quick").unwrap();
        assert!((8..=12).contains(&quick.members.len()));
    }

    #[test]
    fn a_suite_that_has_all_of_another_gives_its_index() {
        let suites = embedded().unwrap();
        let mut giving: Vec<&str> = suites
            .iter()
            .filter(|suite| gives_index(&suites, suite))
            .map(|suite| suite.name.as_str())
            .collect();
        giving.sort_unstable();
        assert_eq!(giving, ["unixbench", "unixbench-3.11", "unixbench-4.1", "unixbench-all"]);
        let own = "name='x'\nsummary='y'\nindex='arithmetic-mean'\nbaseline_index=1.0\n\
                   [[workload]]\nname='stat'\nbaseline=1.0\n";
        assert!(gives_index(&[], &parse("my.toml", own).unwrap()));
    }

    #[test]
    fn a_broken_suite_is_named_with_its_line() {
        let broken = "name=\"x\"\nsummary=\"y\"\n[[workload]]\nnam=\"stat\"\n";
        assert!(parse("my.toml", broken).unwrap_err().starts_with("my.toml:"));
        let empty = "name=\"x\"\nsummary=\"y\"\nworkload=[]\n";
        assert!(parse("my.toml", empty).unwrap_err().contains("no [[workload]]"));
        let with = |index: &str, baseline: &str| {
            let text =
                format!("name='x'\nsummary='y'\n{index}\n[[workload]]\nname='stat'\n{baseline}\n");
            parse("my.toml", &text)
        };
        let index = "index='geometric-mean'\nbaseline_index=10.0";
        assert!(with(index, "baseline=5.0").is_ok());
        let zero = with(index, "baseline=0.0").unwrap_err();
        assert_eq!(zero, "my.toml:5: the baseline of `stat` must be above 0");
        assert!(with(index, "").unwrap_err().contains("needs `index`"));
        assert!(with("", "baseline=5.0").unwrap_err().contains("needs `index`"));
        let harmonic = with("index='harmonic-mean'", "baseline=5.0").unwrap_err();
        assert!(harmonic.starts_with("my.toml:3:"), "{harmonic}");
        assert!(harmonic.contains("`geometric-mean` or `arithmetic-mean`"), "{harmonic}");
    }

    proptest! {
        #[test]
        fn foreign_text_never_panics(text in "\\PC{0,200}") {
            let _ = parse("x.toml", &text);
        }
    }
}
