//! What each room of `weigh` may know is the table of ARCHITECTURE.md; the crates beside it have manifests
//! for that. A room that imports another which its row does not name fails here, and so does a circle, of
//! rooms or of files.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

type Knows = BTreeMap<String, BTreeSet<String>>;

fn root() -> PathBuf {
    PathBuf::from(env!("WORKSPACE"))
}

/// The words between backticks.
fn quoted(cell: &str) -> BTreeSet<String> {
    cell.split('`').skip(1).step_by(2).map(|word| word.trim_end_matches('/').to_owned()).collect()
}

/// The rows of the table whose room is a module of `weigh`.
fn table() -> Knows {
    let text = fs::read_to_string(root().join("ARCHITECTURE.md")).unwrap();
    let rows = text.lines().filter_map(|line| {
        let mut cells = line.strip_prefix("| `weigh/")?.split(" | ");
        let room = cells.next()?.trim_end_matches('`').trim_end_matches('/');
        let knows = cells.last()?;
        Some((room.to_owned(), quoted(knows)))
    });
    rows.collect()
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

/// The rooms that a source names: `crate::ROOM`, also in `use crate::{ROOM, …}`. Its tests may know more.
fn named(source: &str) -> BTreeSet<String> {
    let code = source.split("#[cfg(test)]\nmod tests {").next().unwrap();
    let code = code.lines().filter(|line| !line.trim_start().starts_with("//"));
    let code = code.collect::<Vec<_>>().join("\n");
    let mut rooms = BTreeSet::new();
    let word = |text: &str| -> String {
        text.chars()
            .take_while(|c| c.is_ascii_lowercase() || *c == '_' || c.is_ascii_digit())
            .collect()
    };
    for rest in code.split("crate::").skip(1) {
        match rest.strip_prefix('{') {
            Some(list) => {
                let list = list.split("};").next().unwrap();
                // Of `a::{b, c}, d` the rooms are `a` and `d`.
                let mut depth = 0;
                let mut begins = true;
                for (at, c) in list.char_indices() {
                    if begins && depth == 0 && c.is_ascii_lowercase() {
                        rooms.insert(word(&list[at..]));
                        begins = false;
                    }
                    depth += i32::from(c == '{') - i32::from(c == '}');
                    begins |= c == ',' && depth == 0;
                }
            }
            None => drop(rooms.insert(word(rest))),
        }
    }
    rooms.retain(|room| !room.is_empty());
    rooms
}

/// What the sources import, room by room.
fn imports() -> Knows {
    let source = root().join("crates/weigh/src");
    let mut all = Vec::new();
    files(&source, &mut all);
    let mut imports = Knows::new();
    for path in all {
        let inside = path.strip_prefix(&source).unwrap();
        let room = inside.iter().next().unwrap().to_str().unwrap().trim_end_matches(".rs");
        let is_test = inside.to_str().unwrap().ends_with("tests.rs");
        // These two put the rooms together.
        if is_test || ["main", "lib"].contains(&room) {
            continue;
        }
        let mut known = named(&fs::read_to_string(&path).unwrap());
        known.remove(room);
        imports.entry(room.to_owned()).or_default().extend(known);
    }
    imports
}

#[test]
fn every_room_knows_what_the_table_says_and_no_more() {
    let (table, imports) = (table(), imports());
    let rooms: Vec<&String> = imports.keys().collect();
    assert_eq!(table.keys().collect::<Vec<_>>(), rooms, "rooms of the table, and of the sources");
    for (room, known) in &imports {
        let allowed = &table[room];
        let more: Vec<&String> = known.difference(allowed).collect();
        assert!(more.is_empty(), "`{room}` imports {more:?}, and ARCHITECTURE.md does not say so");
        let less: Vec<&String> = allowed.iter().filter(|other| rooms.contains(other)).collect();
        let less: Vec<_> = less.into_iter().filter(|other| !known.contains(*other)).collect();
        assert!(less.is_empty(), "`{room}` no longer imports {less:?}: ARCHITECTURE.md says so");
    }
}

/// What is left when those are taken away, again and again, that know nobody who is left.
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

#[test]
fn no_rooms_know_each_other() {
    let left = circle(imports());
    assert!(left.is_empty(), "these know each other, or what does: {left:?}");
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

/// What each file knows. A file that lies within another's directory may use what that one has: they are one.
fn files_known() -> Knows {
    let source = root().join("crates/weigh/src");
    let mut all = Vec::new();
    files(&source, &mut all);
    let name = |path: &Path| {
        let inside = path.strip_prefix(&source).unwrap().with_extension("");
        let inside = inside.display().to_string().replace('/', "::");
        inside.strip_suffix("::mod").map_or(inside.clone(), str::to_owned)
    };
    all.retain(|path| !path.ends_with("tests.rs"));
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
    let known = files_known();
    let arrows: usize = known.values().map(BTreeSet::len).sum();
    assert!(arrows > 500, "there are more imports than {arrows}: the test itself is broken");
    let left = circle(known);
    assert!(left.is_empty(), "these know each other, or what does: {left:#?}");
}

/// The numbered steps of a section of ARCHITECTURE.md: in which file each is, and the types that it names
/// there, of which those in bold are what is walked with. Names without a directory are below `room`.
fn walk(heading: &str, room: &str) -> Vec<(PathBuf, Vec<String>, usize)> {
    let text = fs::read_to_string(root().join("ARCHITECTURE.md")).unwrap();
    let section = text.split(heading).nth(1).unwrap().split("\n## ").next().unwrap();
    let steps = section.lines().filter(|line| line.starts_with(|c: char| c.is_ascii_digit()));
    let step = |line: &str| {
        let mut names = line.split('`').skip(1).step_by(2).map(str::to_owned);
        let name = names.next().unwrap();
        let file = match name.split_once('/') {
            None => root().join("crates/weigh/src").join(room).join(name),
            Some((package, below)) if package.starts_with("weigh") => {
                root().join("crates").join(package).join("src").join(below)
            }
            Some(_) => root().join(name),
        };
        let types = names.filter(|name| name.starts_with(char::is_uppercase));
        (file, types.collect(), line.matches("**`").count())
    };
    steps.map(step).collect()
}

/// How far one has to read to know what becomes of a sample, or of a rule.
#[test]
fn the_walks_are_short_and_name_files_that_are_there() {
    let sample = walk("## A sample, from the coin to the report\n", "experiment");
    let rule = walk("## A rule through `weigh rules`\n", "attribution");
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
    assert_eq!(types, 11, "it changes its type ten times");
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

#[test]
fn imports_are_read_in_every_form() {
    let rooms = |source: &str| named(source).into_iter().collect::<Vec<_>>();
    assert_eq!(
        rooms("use crate::store::Store;\nlet x = crate::shell::quote(y);"),
        ["shell", "store"]
    );
    assert_eq!(rooms("use crate::{a::{b, c}, d};\nuse x;"), ["a", "d"]);
    assert_eq!(rooms("// crate::no\n#[cfg(test)]\nmod tests {\n use crate::no;"), [""; 0]);
}
