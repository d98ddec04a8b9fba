//! What each room of `weigh` may know is the table of ARCHITECTURE.md; the crates beside it have manifests
//! for that. A room that imports another which its row does not name fails here, and so does a circle.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

type Knows = BTreeMap<String, BTreeSet<String>>;

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
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

#[test]
fn there_is_no_circle() {
    let mut left = imports();
    loop {
        let before = left.len();
        let there: BTreeSet<String> = left.keys().cloned().collect();
        left.retain(|_, known| known.iter().any(|other| there.contains(other)));
        if left.len() == before {
            break;
        }
    }
    assert!(left.is_empty(), "these know each other, or what does: {left:?}");
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
