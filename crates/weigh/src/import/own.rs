//! Weigh's own JSON: an experiment, with its verdicts, or a run.

use serde::Deserialize;

use super::{Content, Document, ImportedResults, Problem, figure};
use crate::result::summary::{SCHEMA, Summary};

/// The schema of `weigh run --json`.
const RUN: &str = "weighbridge/run/1";

#[derive(Deserialize)]
struct Head {
    schema: Option<String>,
}

#[derive(Deserialize)]
struct OwnRun {
    results: Vec<OwnRunRow>,
}

#[derive(Deserialize)]
struct OwnRunRow {
    workload: String,
    unit: String,
    rate: f64,
}

/// Whether a JSON is one of ours, or why not.
pub fn is_own(text: &str) -> Result<(), String> {
    let head: Head = serde_json::from_str(text)
        .map_err(|error| format!("this looks like JSON, but is truncated or malformed: {error}"))?;
    match head.schema.as_deref() {
        Some(SCHEMA | RUN) => Ok(()),
        Some(other) => {
            Err(format!("this is JSON with the schema {other:?}, which cannot be imported"))
        }
        None => Err("this is JSON of another program".into()),
    }
}

/// Reads it.
pub fn read(text: &str) -> Result<Document, Problem> {
    is_own(text).map_err(|problem| (None, problem))?;
    let broken = |error: serde_json::Error| {
        (Some(error.line()), format!("this does not match docs/json.md: {error}"))
    };
    let head: Head = serde_json::from_str(text).map_err(broken)?;
    if head.schema.as_deref() == Some(SCHEMA) {
        let summary: Summary = serde_json::from_str(text).map_err(broken)?;
        let content = Content::Experiment(Box::new(summary));
        return Ok(Document { content, warnings: Vec::new() });
    }
    let run: OwnRun = serde_json::from_str(text).map_err(broken)?;
    if let Some(row) = run.results.iter().find(|row| row.rate <= 0.0) {
        return Err((None, format!("{:?} has the rate {}", row.workload, row.rate)));
    }
    let figures = run.results.iter().map(|row| figure(&row.workload, row.rate, &row.unit));
    Ok(Document::of(vec![ImportedResults {
        format: RUN.into(),
        label: None,
        figures: figures.collect(),
    }]))
}
