//! The manifests say which crate knows which. Within a crate, no two files import each other, directly or by
//! others. And the walks through the code that the documents describe name files and types that are there.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

type Knows = BTreeMap<String, BTreeSet<String>>;

fn root() -> PathBuf {
    PathBuf::from(env!("WORKSPACE"))
}

fn files(directory: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

/// Finds a circle: repeatedly removes entries that know no remaining entry, and returns the rest.
fn circle(mut left: Knows) -> Knows {
    loop {
        let before = left.len();
        let there: BTreeSet<String> = left.keys().cloned().collect();
        for known in left.values_mut() {
            known.retain(|other| there.contains(other));
        }
        left.retain(|_, known| !known.is_empty());
        if left.len() == before {
            return left;
        }
    }
}

/// The paths of a `use`, without its braces: of `a::{b, c::{d, e}}` they are `a::b`, `a::c::d` and `a::c::e`.
fn flat(tree: &str) -> Vec<String> {
    let Some((before, rest)) = tree.split_once('{') else { return vec![tree.trim().to_owned()] };
    let inner = rest.trim_end().strip_suffix('}').unwrap_or(rest);
    let mut depth = 0;
    let parts = inner.split(|c: char| {
        depth += i32::from(c == '{') - i32::from(c == '}');
        c == ',' && depth == 0
    });
    let parts = parts.filter(|part| !part.trim().is_empty());
    parts.flat_map(flat).map(|path| format!("{}{path}", before.trim())).collect()
}

/// The paths that a source names, as they are written: in a `use`, or from `crate` or `super` on.
fn paths(source: &str) -> Vec<String> {
    let code = source.split("#[cfg(test)]\n").next().unwrap();
    let code = code.lines().map(str::trim_start).filter(|line| !line.starts_with("//"));
    let code = code.collect::<Vec<_>>().join("\n");
    let begins = |at: usize| {
        let before = code[..at].rsplit('\n').next().unwrap();
        ["", "pub ", "pub(crate) ", "pub(super) "].contains(&before)
    };
    let uses = code.match_indices("use ").filter(|(at, _)| begins(*at));
    let uses = uses.map(|(at, word)| code[at + word.len()..].split(';').next().unwrap());
    let mut found: Vec<String> = uses.flat_map(flat).collect();
    let is_path = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == ':';
    let words = code.split(|c| !is_path(c)).map(|word| word.trim_end_matches(':'));
    let from_here = |word: &&str| ["crate::", "super::"].iter().any(|root| word.starts_with(root));
    found.extend(words.filter(from_here).map(str::to_owned));
    found
}

/// The file that a path leads to from another, both as names of modules.
fn file_of(path: &str, from: &str, files: &BTreeSet<String>) -> Option<String> {
    let mut at: Vec<&str> = from.split("::").collect();
    let mut words: Vec<&str> = path.split("::").collect();
    if words[0] == "crate" {
        (at, words) = (Vec::new(), words.split_off(1));
    }
    while words.first() == Some(&"super") {
        at.pop();
        words.remove(0);
    }
    let whole = [at, words].concat();
    let mut prefixes = (1..=whole.len()).rev().map(|length| whole[..length].join("::"));
    prefixes.find(|name| files.contains(name)).filter(|name| name != from)
}

/// Finds the files that each file of a crate knows. A file within another's directory may use that
/// file's items: they count as one.
fn files_known(source: &Path) -> Knows {
    let mut all = Vec::new();
    files(source, &mut all);
    let name = |path: &Path| {
        let inside = path.strip_prefix(source).unwrap().with_extension("");
        let inside = inside.display().to_string().replace('/', "::");
        inside.strip_suffix("::mod").map_or(inside.clone(), str::to_owned)
    };
    // What a crate's root has, all of its files may use: they are one with it.
    all.retain(|path| !["tests.rs", "lib.rs", "main.rs"].iter().any(|name| path.ends_with(name)));
    let names: BTreeSet<String> = all.iter().map(|path| name(path)).collect();
    let known = |path: &PathBuf| {
        let own = name(path);
        let paths = paths(&fs::read_to_string(path).unwrap());
        let known = paths.iter().filter_map(|path| file_of(path, &own, &names));
        let known = known.filter(|other| !own.starts_with(&format!("{other}::"))).collect();
        (own, known)
    };
    all.iter().map(known).collect()
}

#[test]
fn no_files_know_each_other() {
    let (mut arrows, mut circles) = (0, Vec::new());
    for entry in fs::read_dir(root().join("crates")).unwrap() {
        let path = entry.unwrap().path();
        let known = files_known(&path.join("src"));
        arrows += known.values().map(BTreeSet::len).sum::<usize>();
        let left = circle(known);
        if !left.is_empty() {
            circles.push(format!("{}: {left:#?}", path.display()));
        }
    }
    assert!(arrows > 500, "there are more imports than {arrows}: the test itself is broken");
    assert!(circles.is_empty(), "these know each other, or what does: {}", circles.join("\n"));
}

/// The numbered steps of a section: in which file each is, and the types that it names there, of which those
/// in bold are what is walked with.
fn walk(page: &str, heading: &str) -> Vec<(PathBuf, Vec<String>, usize)> {
    let text = fs::read_to_string(root().join(page)).unwrap();
    let section = text.split(heading).nth(1).unwrap().split("\n## ").next().unwrap();
    let steps = section.lines().filter(|line| line.starts_with(|c: char| c.is_ascii_digit()));
    let step = |line: &str| {
        let mut names = line.split('`').skip(1).step_by(2).map(str::to_owned);
        let name = names.next().unwrap();
        let file = match name.split_once('/') {
            Some((package, below)) if package.starts_with("weigh") => {
                root().join("crates").join(package).join("src").join(below)
            }
            _ => root().join(name),
        };
        let types = names.filter(|name| name.starts_with(char::is_uppercase));
        (file, types.collect(), line.matches("**`").count())
    };
    steps.map(step).collect()
}

/// How far one has to read to know what becomes of a sample, or of a rule.
#[test]
fn the_walks_are_short_and_name_files_that_are_there() {
    let sample = walk("ARCHITECTURE.md", "## A sample, from the coin to the report\n");
    let rule = walk("docs/internals-rules.md", "## A rule through `weigh rules`\n");
    for (walk, most) in [(&sample, 20), (&rule, 18)] {
        assert!((10..=most).contains(&walk.len()), "{} steps: {walk:?}", walk.len());
        let files: BTreeSet<&PathBuf> = walk.iter().map(|(file, ..)| file).collect();
        assert_eq!(files.len(), walk.len(), "named twice");
        for (file, types, _) in walk {
            let text = fs::read_to_string(file);
            let text = text.unwrap_or_else(|error| panic!("{}: {error}", file.display()));
            let is_word = |c: char| c.is_alphanumeric() || c == '_';
            let words: BTreeSet<&str> = text.split(|c| !is_word(c)).collect();
            let missing: Vec<&String> =
                types.iter().filter(|name| !words.contains(&***name)).collect();
            assert!(missing.is_empty(), "{} has no {missing:?}", file.display());
        }
    }
    let types: usize = sample.iter().map(|(_, _, bold)| bold).sum();
    assert_eq!(types, 9, "it changes its form eight times");
}

#[test]
fn paths_are_read_in_every_form() {
    let source = "pub use a::{b, c::{d,\n e}};\nlet x = super::y::z(crate::w);\n// crate::no\n";
    assert_eq!(paths(source), ["a::b", "a::c::d", "a::c::e", "super::y::z", "crate::w"]);
    let files = ["a", "a::b", "c"].map(str::to_owned).into();
    let of = |path, from| file_of(path, from, &files);
    assert_eq!(of("super::b::f", "a::x"), Some("a::b".to_owned()));
    assert_eq!(of("crate::c", "a::b"), Some("c".to_owned()));
    assert_eq!(of("b::f", "a"), Some("a::b".to_owned()));
    assert_eq!(of("std::fs", "c"), None);
}
