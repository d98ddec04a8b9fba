//! Every label in the documents is one that the grammar takes, with treatments and parameters that there are.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use weigh_model::kind::check_parameters;
use weigh_model::label;
use weigh_treatment::{KINDS, find, read_label};

fn documents() -> Vec<PathBuf> {
    let root = Path::new(env!("WORKSPACE"));
    let own = fs::read_dir(root).unwrap().chain(fs::read_dir(root.join("docs")).unwrap());
    let paths = own.map(|entry| entry.unwrap().path());
    paths.filter(|path| path.extension().is_some_and(|extension| extension == "md")).collect()
}

/// The words of what is code in a document, as a shell splits them: of its blocks line by line, and of what
/// is between backticks.
fn commands(text: &str) -> Vec<Vec<String>> {
    let (mut commands, mut is_block) = (Vec::new(), false);
    for line in text.lines() {
        if line.starts_with("```") {
            is_block = !is_block;
        } else if is_block {
            commands.push(words(line));
        } else {
            commands.extend(line.split('`').skip(1).step_by(2).map(words));
        }
    }
    commands
}

fn words(line: &str) -> Vec<String> {
    let (mut words, mut word, mut quote) = (Vec::new(), String::new(), None);
    for c in line.chars() {
        match quote {
            Some(open) if c == open => quote = None,
            None if c == '\'' => quote = Some(c),
            // The quotes of a value are part of a label that no shell has seen.
            None if c == '"' => {
                word.push(c);
                quote = Some('\\');
            }
            Some('\\') if c == '"' => {
                word.push(c);
                quote = None;
            }
            None if c.is_whitespace() => words.push(std::mem::take(&mut word)),
            _ => word.push(c),
        }
    }
    words.push(word);
    words.retain(|word| !word.is_empty());
    words
}

/// Returns true if a word is meant as the label of an arm: a treatment's name, and something after
/// it.
fn is_arm(word: &str) -> bool {
    KINDS.iter().any(|kind| {
        word.strip_prefix(kind.kind.name)
            .is_some_and(|rest| rest.starts_with([':', '+']) && rest.len() > 1)
    })
}

fn check_arm(word: &str) -> Result<(), String> {
    for term in read_label(word)?.treatments {
        let name = &term.name;
        let kind = find(name).ok_or_else(|| format!("{word}: there is no treatment {name}"))?;
        check_parameters(&term, kind.parameters).map_err(|why| format!("{word}: {why}"))?;
    }
    Ok(())
}

#[test]
fn every_label_in_the_documents_can_be_read() {
    let (mut arms, mut workloads) = (BTreeSet::new(), BTreeSet::new());
    for document in documents() {
        let text = fs::read_to_string(&document).unwrap();
        for command in commands(&text) {
            arms.extend(command.iter().filter(|word| is_arm(word)).cloned());
            let options =
                command.windows(2).filter(|pair| ["-w", "--workload"].contains(&pair[0].as_str()));
            workloads.extend(options.map(|pair| pair[1].clone()));
        }
    }
    // The one that is shown for what is wrong with it.
    arms.remove("audit:backlog=,live");
    let problems: Vec<String> = (arms.iter().filter_map(|arm| check_arm(arm).err()))
        .chain(workloads.iter().filter_map(|words| label::workloads(words).err().map(String::from)))
        .collect();
    assert!(problems.is_empty(), "{}", problems.join("\n"));
    assert!(arms.len() > 20 && workloads.len() > 8, "{arms:?} {workloads:?}: the test is broken");
    assert!(arms.contains("audit:rules=\"/srv/my rules, 2.rules\"+seccomp"), "{arms:?}");
}
