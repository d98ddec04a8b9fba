//! Checks that spare reviewers a remark: sizes, names, and leftovers.

use std::fs;
use std::path::{Path, PathBuf};

/// Longest C function; clippy.toml limits Rust.
const MAX_FUNCTION_LINES: usize = 70;
const MAX_COLUMNS: usize = 110;

fn sources(extensions: &[&str]) -> Vec<(String, String)> {
    let root = Path::new(env!("WORKSPACE"));
    let mut found = Vec::new();
    let mut open: Vec<PathBuf> =
        ["crates", "tests", "workloads", "benches"].iter().map(|part| root.join(part)).collect();
    while let Some(directory) = open.pop() {
        for entry in fs::read_dir(&directory).into_iter().flatten() {
            let path = entry.expect("an entry of a directory of ours").path();
            let is_wanted = path
                .extension()
                .is_some_and(|extension| extensions.iter().any(|wanted| extension == *wanted));
            if path.is_dir() {
                open.push(path);
            } else if is_wanted {
                let name = path.strip_prefix(root).expect("below the root").display().to_string();
                found.push((name, fs::read_to_string(&path).expect("our sources are text")));
            }
        }
    }
    assert!(!found.is_empty(), "there is nothing to look at: the test itself is broken");
    found.sort();
    found
}

fn report(problems: Vec<String>) {
    assert!(problems.is_empty(), "\n{}", problems.join("\n"));
}

/// Where functions begin and end, counted from 0. Their braces are at the first column.
fn functions_of_c(text: &str) -> Vec<(usize, usize)> {
    let lines: Vec<&str> = text.lines().collect();
    let ends = |number: usize| lines[number..].iter().position(|line| *line == "}");
    let opened = (1..lines.len()).filter(|number| lines[*number] == "{");
    opened.filter_map(|number| Some((number - 1, number + ends(number)?))).collect()
}

#[test]
fn functions_of_c_are_short() {
    let mut problems = Vec::new();
    for (name, text) in sources(&["c"]) {
        for (first, last) in functions_of_c(&text) {
            let lines = last - first + 1;
            if lines > MAX_FUNCTION_LINES {
                problems.push(format!("{name}:{}: a function of {lines} lines", first + 1));
            }
        }
    }
    report(problems);
}

#[test]
fn functions_of_c_are_found() {
    assert_eq!(functions_of_c("static int a(int b)\n{\n\treturn b;\n}\n"), [(0, 3)]);
}

#[test]
fn lines_fit_a_screen() {
    let mut problems = Vec::new();
    for (name, text) in sources(&["rs", "c", "h"]) {
        for (number, line) in text.lines().enumerate() {
            let columns = line.chars().map(|c| if c == '\t' { 4 } else { 1 }).sum::<usize>();
            // A workload's own words are shown as one line, and so written as one.
            let is_text =
                ["r#\"", ".summary =", ".source ="].iter().any(|mark| line.contains(mark));
            if columns > MAX_COLUMNS && !is_text {
                problems.push(format!("{name}:{}: {columns} columns", number + 1));
            }
        }
    }
    report(problems);
}

#[test]
fn every_module_says_what_it_is() {
    let silent = |(name, text): &(String, String)| {
        let is_silent = name.starts_with("crates/") && !text.starts_with("//!");
        is_silent.then(|| format!("{name}: no `//!` at its head"))
    };
    report(sources(&["rs"]).iter().filter_map(silent).collect());
}

#[test]
fn nothing_is_left_for_later() {
    // Put together here, so that this file does not find itself.
    let words = ["TO".to_owned() + "DO", "FIX".to_owned() + "ME", "dbg".to_owned() + "!("];
    let mut problems = Vec::new();
    for (name, text) in sources(&["rs", "c", "h"]) {
        for (number, line) in text.lines().enumerate() {
            if let Some(word) = words.iter().find(|word| line.contains(word.as_str())) {
                problems.push(format!("{name}:{}: {word}", number + 1));
            }
        }
    }
    report(problems);
}
