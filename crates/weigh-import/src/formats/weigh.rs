//! Weigh's own JSON: an experiment, with its verdicts, or a run, which may be one of `weigh load`.

use serde::Deserialize;

use crate::{Content, Document, ForeignFormat, ImportedResults, Problem, figure};
use weigh_model::result::imported::{Figure, ImportedLoad};
use weigh_model::result::load::LoadPoint;
use weigh_model::result::run::SCHEMA as RUN;
use weigh_model::result::summary::{SCHEMA, Summary};
use weigh_model::result::work_name::WorkName;

pub static IMPORT: ForeignFormat = ForeignFormat {
    name: "weigh",
    what: "--json of weigh compare, weigh run or weigh load",
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
    #[serde(default)]
    loads: Vec<OwnLoad>,
}

#[derive(Deserialize)]
struct OwnRunRow {
    #[serde(flatten)]
    workload: WorkName,
    unit: String,
    rate: f64,
}

#[derive(Deserialize)]
struct OwnLoad {
    mix: String,
    points: Vec<LoadPoint>,
    peak: Option<OwnPeak>,
    no_peak: Option<OwnPeak>,
}

/// The best point, whether or not it can be told apart from the others.
#[derive(Deserialize)]
struct OwnPeak {
    users: usize,
}

impl OwnRunRow {
    /// The figure of one row. Each load point has a name of its own, and its interval.
    fn figure(&self, loads: &[OwnLoad]) -> Figure {
        let figure = figure(&self.workload.name, self.rate, &self.unit);
        let count = |count: usize| u32::try_from(count).ok();
        let Some(users) = self.workload.users() else {
            let copies = count(self.workload.copies()).filter(|copies| *copies > 1);
            return Figure { copies, ..figure };
        };
        let load = loads.iter().find(|load| load.mix == self.workload.name);
        let mut points = load.into_iter().flat_map(|load| &load.points);
        let point = points.find(|point| point.users == users.get());
        let interval = point.and_then(LoadPoint::throughput).map(|found| [found.low, found.high]);
        Figure { users: count(users.get()), interval, ..figure }
    }
}

impl OwnLoad {
    /// Checks the numbers that intervals and tables are computed from.
    fn check(&self) -> Result<(), String> {
        for point in &self.points {
            let is_wrong = point.users == 0
                || !(point.jobs_per_min > 0.0 && point.elapsed_s > 0.0)
                || point.jobs_per_min_low.is_some() != point.jobs_per_min_high.is_some()
                || point.throughput().is_some_and(|found| {
                    !(found.low > 0.0
                        && found.low <= point.jobs_per_min
                        && point.jobs_per_min <= found.high)
                });
            if is_wrong {
                return Err(format!(
                    "{:?} with {} users: jobs per minute, their interval or the time is not valid",
                    self.mix, point.users
                ));
            }
        }
        Ok(())
    }

    fn imported(self) -> ImportedLoad {
        let best = self.peak.or(self.no_peak);
        let best_users = best.map(|best| best.users);
        ImportedLoad { mix: self.mix, points: self.points, best_users }
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
    run.loads.iter().try_for_each(OwnLoad::check).map_err(|problem| (None, problem))?;
    let figures = run.results.iter().map(|row| row.figure(&run.loads)).collect();
    Ok(Document::of(vec![ImportedResults {
        format: RUN.into(),
        label: None,
        figures,
        loads: run.loads.into_iter().map(OwnLoad::imported).collect(),
    }]))
}
