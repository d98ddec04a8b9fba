//! Weigh's own JSON: an experiment, with its verdicts, or a run.

use serde::Deserialize;

use crate::import::{Content, Document, ForeignFormat, ImportedResults, Problem, figure};
use weigh_model::result::imported::Figure;
use weigh_model::result::older::SCHEMA_1;
use weigh_model::result::run::SCHEMA as RUN;
use weigh_model::result::summary::{SCHEMA, Summary};
use weigh_model::result::work_name::{WorkName, split_times};

pub static IMPORT: ForeignFormat = ForeignFormat {
    name: "weigh",
    what: "weigh compare --json or weigh run --json",
    rank: 8,
    is_json: true,
    is_it: |text| is_own(text).is_ok(),
    read,
};

/// Schema of runs whose row names included the number of copies.
const RUN_1: &str = "weighbridge/run/1";

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
    copies: Option<OwnCopies>,
}

#[derive(Deserialize)]
struct OwnCopies {
    count: usize,
}

impl OwnRunRow {
    fn figure(&self) -> Figure {
        let (workload, count) = (&self.workload, self.copies.as_ref().map(|copies| copies.count));
        let of_before = split_times(&workload.name).filter(|(_, copies)| Some(*copies) == count);
        let (name, copies) = of_before.unwrap_or((&workload.name, workload.copies()));
        let copies = u32::try_from(copies).ok().filter(|copies| *copies > 1);
        Figure { copies, ..figure(name, self.rate, &self.unit) }
    }
}

/// Checks that a JSON document is ours, or returns the reason why not.
pub fn is_own(text: &str) -> Result<(), String> {
    let head: Head = serde_json::from_str(text)
        .map_err(|error| format!("this looks like JSON, but is truncated or malformed: {error}"))?;
    match head.schema.as_deref() {
        Some(SCHEMA | SCHEMA_1 | RUN | RUN_1) => Ok(()),
        Some(other) => {
            Err(format!("this is JSON with the schema {other:?}, which cannot be imported"))
        }
        None => Err("this is JSON of another program".into()),
    }
}

/// Reads it.
fn read(text: &str) -> Result<Document, Problem> {
    is_own(text).map_err(|problem| (None, problem))?;
    let broken = |error: serde_json::Error| {
        (Some(error.line()), format!("this does not match docs/json.md: {error}"))
    };
    let head: Head = serde_json::from_str(text).map_err(broken)?;
    if matches!(head.schema.as_deref(), Some(SCHEMA | SCHEMA_1)) {
        let summary = Summary::read(text).map_err(broken)?;
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
