//! `hyperfine --export-json`: one or several commands, and the time of each of their runs.

use serde::Deserialize;

use super::{ImportedResults, Problem, figure};
use crate::result::imported::Figure;
use paired::estimate::median;

#[derive(Deserialize)]
struct HyperfineExport {
    results: Vec<TimedCommand>,
}

#[derive(Deserialize)]
struct TimedCommand {
    command: String,
    /// Seconds; absent in exports of versions before 1.0.
    #[serde(default)]
    times: Option<Vec<f64>>,
    mean: f64,
}

/// Whether a text is one, however long it is.
pub fn is_it(text: &str) -> bool {
    serde_json::from_str::<HyperfineExport>(text).is_ok()
}

/// Reads the export: each command is a result by itself, called like the command.
pub fn read(text: &str) -> Result<Vec<ImportedResults>, Problem> {
    let export: HyperfineExport = serde_json::from_str(text).map_err(|error| {
        (Some(error.line()), format!("this is not JSON of hyperfine --export-json: {error}"))
    })?;
    let several = export.results.len() > 1;
    let results = export.results.into_iter().map(|command| {
        let runs = command.times.unwrap_or_default();
        let value = median(&runs).unwrap_or(command.mean);
        if !(value > 0.0 && value.is_finite() && runs.iter().all(|run| *run > 0.0)) {
            return Err((None, format!("{:?} has a time that is not above 0", command.command)));
        }
        // Several commands in one file are alternatives: the same test, done in another way.
        let test = if several { "command" } else { command.command.as_str() };
        Ok(ImportedResults {
            format: "hyperfine".into(),
            label: several.then(|| command.command.clone()),
            figures: vec![Figure { runs, ..figure(test, value, "s") }],
        })
    });
    results.collect()
}
