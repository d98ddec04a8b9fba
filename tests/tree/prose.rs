//! How documents and comments are written: lines of Markdown, and the first words of doc comments. `make
//! prose` lists long sentences and checks the spelling.

use std::fs;
use std::path::{Path, PathBuf};

const MAX_COLUMNS: usize = 100;
/// The first line of a doc comment stands alone in an editor: a noun phrase or a verb.
const NO_FIRST_WORDS: [&str; 6] = ["Of ", "The same", "That ", "Those ", "What ", "Whether "];

fn root() -> &'static Path {
    Path::new(env!("WORKSPACE"))
}

fn files(directory: &Path, extension: &str, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files(&path, extension, found);
        } else if path.extension().is_some_and(|of_file| of_file == extension) {
            found.push(path);
        }
    }
}

fn below(directories: &[&str], extension: &str) -> Vec<(String, String)> {
    let mut found = Vec::new();
    directories.iter().for_each(|name| files(&root().join(name), extension, &mut found));
    let read = |path: PathBuf| {
        let name = path.strip_prefix(root()).unwrap().display().to_string();
        (name, fs::read_to_string(path).unwrap())
    };
    found.into_iter().map(read).collect()
}

/// The lines of prose that are too long, by number. Code, tables, single links and pictures, and blocks that
/// a program writes (`<!-- begin … -->` to `<!-- end -->`) may be wider.
fn long_lines(text: &str) -> Vec<(usize, usize)> {
    let (mut is_code, mut is_written) = (false, false);
    let mut found = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let content = line.trim_start();
        is_code ^= content.starts_with("```");
        if content.starts_with("<!--") {
            is_written = content.contains("begin") || is_written && !content.contains("end");
        }
        let columns = line.chars().count();
        let is_wide = content.starts_with(['|', '!']) || content.split(' ').count() < 3;
        if columns > MAX_COLUMNS && !(is_code || is_written || is_wide) {
            found.push((number + 1, columns));
        }
    }
    found
}

#[test]
fn documents_fit_100_columns() {
    let mut pages = below(&["docs"], "md");
    for name in ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md"] {
        pages.push((name.to_owned(), fs::read_to_string(root().join(name)).unwrap()));
    }
    pages.extend(below(&["crates"], "md"));
    // A program writes all of it.
    pages.retain(|(name, _)| name != "docs/hard-checks.md");
    let in_page = |(name, text): &(String, String)| -> Vec<String> {
        let long = long_lines(text).into_iter();
        long.map(|(line, columns)| format!("{name}:{line}: {columns} columns")).collect()
    };
    let problems: Vec<String> = pages.iter().flat_map(in_page).collect();
    assert!(problems.is_empty(), "\n{}", problems.join("\n"));
}

#[test]
fn long_lines_are_found() {
    let long = "word ".repeat(30);
    let page = format!(
        "{long}\n```\n{long}\n```\n| {long}\n<!-- begin: x -->\n{long}\n<!-- end -->\n{long}"
    );
    assert_eq!(long_lines(&page), [(1, 150), (9, 150)]);
}

/// The first lines of doc comments that do not stand alone, by number.
fn unclear_comments(code: &str) -> Vec<usize> {
    let mut found = Vec::new();
    let mut before = None;
    for (number, line) in code.lines().enumerate() {
        let comment = ["/// ", "//! "].iter().find_map(|mark| line.trim_start().strip_prefix(mark));
        let begins = comment.filter(|_| before.is_none());
        if begins.is_some_and(|text| NO_FIRST_WORDS.iter().any(|words| text.starts_with(words))) {
            found.push(number + 1);
        }
        before = ["///", "//!"].iter().find(|mark| line.trim_start().starts_with(**mark));
    }
    found
}

#[test]
fn doc_comments_begin_with_a_noun_or_a_verb() {
    let mut problems = Vec::new();
    for (name, code) in below(&["crates", "tests", "benches"], "rs") {
        let unclear = unclear_comments(&code).into_iter();
        problems.extend(unclear.map(|line| format!("{name}:{line}")));
    }
    assert!(problems.is_empty(), "\n{}", problems.join("\n"));
}

/// These were seen behind a 1.
const PLURALS: [&str; 6] = ["samples", "pairs", "rows", "cells", "packets", "workloads"];

/// The lines in which a number that is not a constant stands before a noun in the plural, by number.
/// `format::plural` has both forms.
fn plurals(code: &str) -> Vec<usize> {
    let is_slip = |(before, after): (&str, &str)| {
        let placeholder = before.rsplit('{').next().unwrap_or_default();
        let (name, form) = placeholder.split_once(':').unwrap_or((placeholder, ""));
        let is_constant =
            !name.is_empty() && name.chars().all(|c| c.is_ascii_uppercase() || c == '_');
        let noun = after.split(|c: char| !c.is_ascii_alphabetic()).next().unwrap_or_default();
        // A unit: jobs/min.
        let is_unit = after[noun.len()..].starts_with('/');
        PLURALS.contains(&noun) && !is_constant && !is_unit && form != "?"
    };
    let tested = code.split("#[cfg(test)]").next().unwrap_or_default();
    let is_shown = |line: &str| {
        !["//", "assert", "println!"].iter().any(|begin| line.trim_start().starts_with(begin))
    };
    let lines = tested.lines().enumerate().filter(|(_, line)| is_shown(line));
    let has_slip = |line: &str| {
        line.match_indices("} ").any(|(at, _)| is_slip((&line[..at], &line[at + 2..])))
    };
    lines.filter(|(_, line)| has_slip(line)).map(|(number, _)| number + 1).collect()
}

#[test]
fn no_number_stands_before_a_plural() {
    let mut problems = Vec::new();
    let is_shipped = |name: &str| !name.ends_with("tests.rs") && !name.contains("/tests/");
    for (name, code) in below(&["crates"], "rs").iter().filter(|(name, _)| is_shipped(name)) {
        problems.extend(plurals(code).into_iter().map(|line| format!("{name}:{line}")));
    }
    assert!(problems.is_empty(), "use format::plural\n{}", problems.join("\n"));
}

#[test]
fn plurals_are_found() {
    let code =
        "\"{:>6} samples  {}\"\n\"{MIN_PAIRS} pairs\"\n// {n} rows\n\"{} pairs/s, {n} rows\"\n";
    assert_eq!(plurals(code), [1, 4]);
    assert_eq!(plurals("#[cfg(test)]\n\"{} rows\""), [0; 0]);
}

#[test]
fn unclear_comments_are_found() {
    let code = "/// Of it.\nfn a() {}\n    /// The number\n    /// Of arms.\n/// What it is.\n";
    assert_eq!(unclear_comments(code), [1]);
    assert_eq!(unclear_comments("x\n//! Whether\n"), [0; 0]);
    assert_eq!(unclear_comments("x\n/// Whether it is\n"), [2]);
}
