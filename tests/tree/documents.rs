//! Links within the documents lead somewhere, down to the heading, and README.md or docs/README.md names
//! every page.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Component, Path, PathBuf};
use std::process::Command;

const AT_THE_TOP: [&str; 4] = ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md"];

fn root() -> &'static Path {
    Path::new(env!("WORKSPACE"))
}

/// Paths relative to the root, with the text outside of blocks of code.
fn documents() -> BTreeMap<PathBuf, String> {
    let directories =
        ["docs", "docs/evidence"].map(|name| fs::read_dir(root().join(name)).unwrap());
    let below_docs = directories.into_iter().flatten().map(|entry| entry.unwrap().path());
    let pages =
        below_docs.filter(|path| path.extension().is_some_and(|extension| extension == "md"));
    let pages = pages.map(|path| path.strip_prefix(root()).unwrap().to_owned());
    pages.chain(AT_THE_TOP.map(PathBuf::from)).map(|path| (path.clone(), prose(&path))).collect()
}

fn prose(path: &Path) -> String {
    let text = fs::read_to_string(root().join(path)).unwrap();
    let mut is_code = false;
    let is_prose = |line: &&str| {
        let is_fence = line.starts_with("```");
        is_code ^= is_fence;
        !is_code && !is_fence
    };
    text.lines().filter(is_prose).collect::<Vec<_>>().join("\n")
}

/// Returns the names that a link may have after `#`: headings as GitHub writes them, and anchors.
fn anchors(text: &str) -> BTreeSet<String> {
    let headings = text.lines().filter_map(|line| line.strip_prefix('#'));
    let headings = headings.filter_map(|line| line.trim_start_matches('#').strip_prefix(' '));
    let slug = |heading: &str| {
        let kept = heading.to_lowercase().replace(' ', "-");
        kept.chars().filter(|c| c.is_alphanumeric() || *c == '-' || *c == '_').collect()
    };
    let ids = text.split("<a id=\"").skip(1).map(|rest| rest.split('"').next().unwrap().to_owned());
    headings.map(slug).chain(ids).collect()
}

fn links(text: &str) -> impl Iterator<Item = &str> {
    text.split("](").skip(1).filter_map(|rest| rest.split(')').next())
}

/// `docs/../README.md` is `README.md`.
fn normal(path: &Path) -> PathBuf {
    let mut normal = PathBuf::new();
    for part in path.components() {
        if part == Component::ParentDir {
            normal.pop();
        } else {
            normal.push(part);
        }
    }
    normal
}

#[test]
fn links_lead_somewhere() {
    let documents = documents();
    let mut broken = Vec::new();
    for (path, text) in &documents {
        for link in links(text).filter(|link| !link.contains("://")) {
            let (file, anchor) = link.split_once('#').unwrap_or((link, ""));
            let target = match file {
                "" => path.clone(),
                file => normal(&path.with_file_name(file)),
            };
            let has_anchor =
                documents.get(&target).is_none_or(|text| anchors(text).contains(anchor));
            if !root().join(&target).exists() || !(anchor.is_empty() || has_anchor) {
                broken.push(format!("{}: {link}", path.display()));
            }
        }
    }
    assert!(broken.is_empty(), "these lead nowhere:\n{}", broken.join("\n"));
}

/// Commands of `weigh` in a document, in code between backticks and in blocks.
fn commands(text: &str) -> impl Iterator<Item = &str> {
    let spans = text.split(['`', '\n']).map(|part| part.trim_start_matches("$ "));
    spans.filter(|part| part.starts_with("weigh ") || part.starts_with("sudo weigh "))
}

/// Returns the words that name a file that the command reads: below `examples/`, or with the ending of such
/// a file.
fn files_read(command: &str) -> Vec<&str> {
    const ENDINGS: [&str; 4] = [".rules", ".json", ".toml", ".tar"];
    const WRITES: [&str; 7] =
        ["-o", "--json", "--html", "--csv", "--export-json", "--spec", "--junit"];
    // A remark behind the command names no file to read.
    let command = command.split(" #").next().unwrap_or_default();
    let words: Vec<&str> = command.split([' ', '\'', '"']).collect();
    let is_read = |number: &usize| {
        number.checked_sub(1).is_none_or(|before| !WRITES.contains(&words[before]))
    };
    let read = (0..words.len()).filter(is_read).map(|number| words[number]);
    // `audit:rules=FILE`
    let values = read.map(|word| word.rsplit(['=', ':']).next().unwrap_or(word));
    values
        .filter(|value| {
            value.starts_with("examples/") || ENDINGS.iter().any(|ending| value.ends_with(ending))
        })
        .collect()
}

#[test]
fn every_file_that_a_command_of_the_readme_reads_is_in_the_tree() {
    let text = fs::read_to_string(root().join("README.md")).unwrap();
    let named: Vec<&str> = commands(&text).flat_map(files_read).collect();
    assert!(named.len() >= 5, "{named:?}");
    let missing: Vec<&&str> = named.iter().filter(|file| !root().join(file).exists()).collect();
    assert!(missing.is_empty(), "commands of README.md name {missing:?}: add them to examples/");
}

#[test]
fn every_example_that_a_document_names_exists_and_every_example_is_named() {
    let read = |path: &PathBuf| fs::read_to_string(root().join(path)).unwrap();
    let all: Vec<String> = documents().keys().map(read).collect();
    let is_of_ours = |file: &&str| file.starts_with("examples/") && !file.contains('*');
    let named: BTreeSet<&str> = all
        .iter()
        .flat_map(|text| commands(text))
        .flat_map(files_read)
        .filter(is_of_ours)
        .collect();
    let files = fs::read_dir(root().join("examples")).unwrap();
    let names: BTreeSet<String> =
        files.map(|file| format!("examples/{}", file.unwrap().file_name().display())).collect();
    let names: BTreeSet<&str> = names.iter().map(String::as_str).collect();
    assert_eq!(named, names);
}

#[test]
fn every_page_is_in_the_index() {
    let documents = documents();
    let mut named: BTreeSet<PathBuf> = BTreeSet::from(["README.md".into()]);
    for index in ["README.md", "docs/README.md"].map(Path::new) {
        named.extend(links(&documents[index]).map(|link| normal(&index.with_file_name(link))));
    }
    let missing: Vec<_> = documents.keys().filter(|path| !named.contains(*path)).collect();
    assert!(missing.is_empty(), "neither README.md nor docs/README.md names {missing:?}");
}

/// An experiment that lacks rows is refused in a sentence, and the page stays.
#[test]
fn a_table_is_not_written_from_an_experiment_without_its_rows() {
    let page = root().join("docs/table2.md");
    let before = fs::read(&page).unwrap();
    for (report, said) in [
        ("tests/fixtures/store/yedww2.json", "the experiment has no row of dhry2, "),
        ("README.md", "README.md is not JSON"),
        ("no/such.json", "cannot read no/such.json: No such file or directory"),
    ] {
        let mut script = Command::new(root().join("scripts/table2"));
        let output = script.arg(report).current_dir(root()).output().unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(1), "{stderr}");
        assert!(stderr.starts_with("error: ") && stderr.contains(said), "{stderr}");
        assert_eq!(stderr.lines().count(), 1, "{stderr}");
    }
    assert_eq!(fs::read(&page).unwrap(), before);
}
