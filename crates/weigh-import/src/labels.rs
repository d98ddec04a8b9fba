//! Labels of the results: from the user, from the files themselves, or after the file names.

use std::collections::{HashMap, HashSet};
use std::path::Path;

use super::ImportedResults;
use weigh_model::format;
use weigh_model::result::imported::File;

/// Labels that the user gives the results.
#[derive(Debug, Default)]
pub struct Labels {
    /// In the order of the results, and from the beginning again.
    pub labels: Vec<String>,
    /// Which of them is the baseline.
    pub base: Option<String>,
}

/// Commands that are each alone in their file are alternatives, like those of one file.
pub(super) fn as_alternatives(results: &mut [(String, ImportedResults)]) {
    let is_alone = results.iter().all(|(_, of_one)| {
        of_one.format == "hyperfine" && of_one.label.is_none() && of_one.figures.len() == 1
    });
    let test = |results: &ImportedResults| results.figures[0].test.clone();
    if !is_alone || results.iter().all(|(_, of_one)| test(of_one) == test(&results[0].1)) {
        return;
    }
    for (_, of_one) in results {
        of_one.label = Some(std::mem::replace(&mut of_one.figures[0].test, "command".into()));
    }
}

/// Gives each result its label, and counts those that have the same.
pub(super) fn name(
    results: Vec<(String, ImportedResults)>,
    labels: &Labels,
) -> Result<Vec<File>, String> {
    let mut pattern = labels.labels.clone();
    // `--base off --as on`: in turn, the baseline first.
    if let ([_], Some(base)) = (&pattern[..], &labels.base)
        && pattern[0] != *base
    {
        pattern.insert(0, base.clone());
    }
    if !pattern.is_empty() && !results.len().is_multiple_of(pattern.len()) {
        return Err(format!(
            "{} do not fit {}: give --as one label per result, or a number of labels that divides the \
             number of results",
            format::plural(pattern.len(), "label"),
            format::plural(results.len(), "result")
        ));
    }
    let stem = |file: &str| {
        let stem = Path::new(file).file_stem().unwrap_or_default();
        stem.to_string_lossy().into_owned()
    };
    let mut stems: HashMap<String, HashSet<String>> = HashMap::new();
    for (file, _) in &results {
        stems.entry(stem(file)).or_default().insert(file.clone());
    }
    let mut sets: HashMap<String, usize> = HashMap::new();
    let mut files: Vec<File> = Vec::new();
    for (number, (file, results)) in results.into_iter().enumerate() {
        let is_taken = stems[&stem(&file)].len() > 1;
        let own = if is_taken { file.clone() } else { stem(&file) };
        let arm = match pattern.is_empty() {
            true => results.label.unwrap_or(own),
            false => pattern[number % pattern.len()].clone(),
        };
        let set = sets.entry(arm.clone()).or_default();
        *set += 1;
        let ImportedResults { format, figures, loads, .. } = results;
        files.push(File { file, format, arm, set: *set, figures, loads });
    }
    if let Some(base) = &labels.base
        && !files.iter().any(|file| file.arm == *base)
    {
        let mut known: Vec<&str> = files.iter().map(|file| file.arm.as_str()).collect();
        known.sort_unstable();
        known.dedup();
        return Err(format!(
            "no result has the label {base:?} of --base; labels: {}",
            known.join(", ")
        ));
    }
    Ok(files)
}
