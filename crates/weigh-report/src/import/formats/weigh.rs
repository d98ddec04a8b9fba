//! Weigh's own JSON: an experiment, with its verdicts, or a run.

use serde::Deserialize;

use crate::import::{Content, Document, ForeignFormat, ImportedResults, Problem, figure};
use weigh_model::result::imported::Figure;
use weigh_model::result::run::SCHEMA as RUN;
use weigh_model::result::summary::{SCHEMA, Summary};
use weigh_model::result::work_name::WorkName;

pub static IMPORT: ForeignFormat = ForeignFormat {
    name: "weigh",
    what: "weigh compare --json or weigh run --json",
    rank: 8,
    is_json: true,
    is_it: |text| is_own(text).is_ok(),
    read,
};

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
    #[serde(flatten)]
    workload: WorkName,
    unit: String,
    rate: f64,
}

impl OwnRunRow {
    fn figure(&self) -> Figure {
        let copies = u32::try_from(self.workload.copies()).ok().filter(|copies| *copies > 1);
        Figure { copies, ..figure(&self.workload.name, self.rate, &self.unit) }
    }
}

/// Checks that a JSON document is ours, or returns the reason why not.
pub fn is_own(text: &str) -> Result<(), String> {
    let head: Head = serde_json::from_str(text)
        .map_err(|error| format!("the JSON is truncated or malformed: {error}"))?;
    match head.schema.as_deref() {
        Some(SCHEMA | RUN) => Ok(()),
        Some(other) => Err(format!("JSON with the schema {other:?} cannot be imported")),
        None => Err("this is JSON of a different program".into()),
    }
}

fn read(text: &str) -> Result<Document, Problem> {
    is_own(text).map_err(|problem| (None, problem))?;
    let broken = |error: serde_json::Error| {
        (Some(error.line()), format!("the JSON does not match docs/json.md: {error}"))
    };
    let head: Head = serde_json::from_str(text).map_err(broken)?;
    if head.schema.as_deref() == Some(SCHEMA) {
        let summary: Summary = serde_json::from_str(text).map_err(broken)?;
        let content = Content::Experiment(Box::new(summary));
        return Ok(Document { content, warnings: Vec::new() });
    }
    let run: OwnRun = serde_json::from_str(text).map_err(broken)?;
    if let Some(row) = run.results.iter().find(|row| row.rate <= 0.0) {
        return Err((None, format!("\"{}\" has the rate {}", row.workload, row.rate)));
    }
    let figures = run.results.iter().map(OwnRunRow::figure);
    Ok(Document::of(vec![ImportedResults {
        format: RUN.into(),
        label: None,
        figures: figures.collect(),
    }]))
}
