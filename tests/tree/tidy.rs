//! What reviewers should not have to say: sizes, names, and leftovers.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// Of code: a file is one idea. Comments, blank lines and the tests at its end are free.
const MAX_FILE_LINES: usize = 400;
const MAX_FUNCTION_LINES: usize = 70;
const MAX_COLUMNS: usize = 110;

fn sources(extensions: &[&str]) -> Vec<(String, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
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

#[test]
fn files_are_short() {
    let too_long = |(name, text): &(String, String)| {
        let lines = lines_of_code(text);
        (lines > MAX_FILE_LINES)
            .then(|| format!("{name}: {lines} lines of code, more than {MAX_FILE_LINES}"))
    };
    report(sources(&["rs", "c", "h"]).iter().filter_map(too_long).collect());
}

/// Up to the tests at its end.
fn without_tests(text: &str) -> &str {
    text.split_once("#[cfg(test)]\nmod tests {").map_or(text, |(code, _)| code)
}

fn lines_of_code(text: &str) -> usize {
    let is_comment =
        |line: &str| ["//", "/*", "* ", "*/"].iter().any(|mark| line.starts_with(mark));
    without_tests(text)
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty() && *line != "*" && !is_comment(line))
        .count()
}

#[test]
fn comments_and_tests_are_no_lines_of_code() {
    let text = "//! what\n\nfn f() {}\n/* why\n * so\n */\nint x;\n#[cfg(test)]\nmod tests {\n}\n";
    assert_eq!(lines_of_code(text), 2);
}

/// Where functions begin and end, counted from 0, in text that is laid out by rustfmt.
fn functions_of_rust(text: &str) -> Vec<(usize, usize)> {
    let mut found = Vec::new();
    let mut start: Option<(usize, usize)> = None;
    for (number, line) in text.lines().enumerate() {
        let indent = line.len() - line.trim_start().len();
        let head = line.trim_start();
        let before_name = head.split_once("fn ").map(|(before, _)| before.trim_end());
        let begins = before_name.is_some_and(|before| {
            let words = ["pub", "pub(super)", "pub(crate)", "const", "async", "unsafe"];
            before.split_whitespace().all(|word| words.contains(&word))
        });
        if start.is_none() && begins {
            start = Some((number, indent));
        }
        if let Some((first, own_indent)) = start {
            let ends = indent == own_indent && (head == "}" || head.ends_with(" {}"));
            if ends
                || (number == first && head.ends_with('}'))
                || head.ends_with(';') && indent == own_indent
            {
                found.push((first, number));
                start = None;
            }
        }
    }
    found
}

/// The same of C, whose functions have their braces at the first column.
fn functions_of_c(text: &str) -> Vec<(usize, usize)> {
    let lines: Vec<&str> = text.lines().collect();
    let ends = |number: usize| lines[number..].iter().position(|line| *line == "}");
    let opened = (1..lines.len()).filter(|number| lines[*number] == "{");
    opened.filter_map(|number| Some((number - 1, number + ends(number)?))).collect()
}

#[test]
fn functions_are_short() {
    let mut problems = Vec::new();
    let rust = sources(&["rs"]).into_iter().map(|(name, text)| (name, functions_of_rust(&text)));
    let c = sources(&["c"]).into_iter().map(|(name, text)| (name, functions_of_c(&text)));
    for (name, functions) in rust.chain(c) {
        for (first, last) in functions {
            let lines = last - first + 1;
            if lines > MAX_FUNCTION_LINES {
                problems.push(format!("{name}:{}: a function of {lines} lines", first + 1));
            }
        }
    }
    report(problems);
}

#[test]
fn functions_of_both_languages_are_found() {
    let rust = "pub const fn a() {\n    1\n}\nunsafe fn b() {}\n";
    assert_eq!(functions_of_rust(rust), [(0, 2), (3, 3)]);
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

#[test]
fn a_type_name_means_one_thing() {
    let mut places: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (file, text) in sources(&["rs"]) {
        if file.starts_with("crates/") && !file.ends_with("tests.rs") {
            for name in type_names(&text) {
                places.entry(name).or_default().push(file.clone());
            }
        }
    }
    assert!(places.len() > 300, "there are more types: the test itself is broken");
    let twice = places.iter().filter(|(_, files)| files.len() > 1);
    report(twice.map(|(name, files)| format!("{name}: {}", files.join(", "))).collect());
}

/// Of what is not a test: structs, enums, unions, traits and types, but for those of a trait.
fn type_names(text: &str) -> Vec<String> {
    let name = |line: &str| {
        let words = line.trim_start();
        let words = match words.strip_prefix("pub") {
            Some(rest) => rest.split_once(' ')?.1,
            None => words,
        };
        let (kind, rest) = words.split_once(' ')?;
        let is_type = match kind {
            "struct" | "enum" | "union" | "trait" => true,
            "type" => !line.starts_with(' '),
            _ => false,
        };
        let is_letter = |c: char| c.is_alphanumeric() || c == '_';
        let name: String = rest.chars().take_while(|c| is_letter(*c)).collect();
        (is_type && name.starts_with(char::is_uppercase)).then_some(name)
    };
    without_tests(text).lines().filter_map(name).collect()
}
