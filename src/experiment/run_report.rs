//! This machine alone: the rate of every workload with its spread, and the indices of the suites
//! that were measured.

use std::collections::BTreeSet;

use serde::Serialize;

use super::run_row::{RunRow, add_efficiency, row};
use super::suite_index::{self, SuiteIndex, items};
use crate::machine::Facts;
use crate::report::anonymise::Scrubber;
use crate::report::curve::{self, Chart};
use crate::report::summary::{Failure, State};
use crate::store::record::Stored;
use crate::workload::suite::{self, FromFile, Suite};

/// The version of the JSON document.
const SCHEMA: &str = "weighbridge/run/1";

/// What a run found.
#[derive(Debug, Serialize)]
pub struct RunReport {
    pub schema: &'static str,
    pub id: String,
    pub started: String,
    pub state: State,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
    pub command: String,
    pub machine: Facts,
    pub results: Vec<RunRow>,
    /// Of every suite whose workloads were all measured, in each number of copies: compatible with the
    /// formulas of the originals, computed from workloads of our own.
    pub indices: Vec<SuiteIndex>,
    /// Whether it was measured as UnixBench does, which has a table for each number of copies.
    #[serde(skip)]
    pub is_scored: bool,
    pub failures: Vec<Failure>,
    pub warnings: Vec<String>,
}

impl RunReport {
    /// Judges a stored run.
    pub fn new(stored: &Stored) -> RunReport {
        let suites = suite::embedded().unwrap_or_default();
        let is_classic = has_word(stored, "--classic");
        let mut results: Vec<RunRow> = (0..stored.header.works.len())
            .filter_map(|work| row(stored, work, is_classic))
            .collect();
        add_efficiency(&mut results);
        let own = &stored.header.suites;
        let named = suites.iter().filter(|suite| has_word(stored, &suite.name));
        let asked_for: Vec<&Suite> = own.iter().map(|own| &own.suite).chain(named).collect();
        let shown = asked_for.iter().copied().find(|suite| suite.index.is_some());
        let shown = shown.or_else(|| suites.iter().find(|suite| suite.name == "unixbench"));
        let mut indices = Vec::new();
        for count in counts(&results) {
            indices.extend(indices_of(own, &suites, &results, count));
            if let Some(suite) = shown {
                add_index(&mut results, suite, count);
            }
        }
        suite_index::add_efficiency(&mut indices);
        let gives_index = |suite: &&Suite| suite::gives_index(&suites, suite);
        RunReport {
            schema: SCHEMA,
            id: stored.id.clone(),
            started: stored.started.clone(),
            state: stored.state,
            failure: stored.failure.clone(),
            command: stored.header.command.clone(),
            machine: stored.header.machine.clone(),
            indices,
            is_scored: is_classic || asked_for.iter().any(gives_index),
            results,
            failures: stored.failures.clone(),
            warnings: stored.warnings.clone(),
        }
    }

    /// The numbers of copies, ascending.
    pub fn counts(&self) -> Vec<usize> {
        counts(&self.results)
    }

    /// The rows that are points of curves.
    pub fn charts(&self) -> Vec<Chart> {
        curve::charts(self.results.iter().filter_map(|row| {
            let on_curve = row.on_curve.as_ref()?;
            Some((on_curve, row.quantity(), row.point(on_curve.x)))
        }))
    }

    pub fn json(&self) -> String {
        serde_json::to_string_pretty(self).expect("plain data with text keys") + "\n"
    }
}

/// Takes out of a stored run what names the machine, its boot or its people.
///
/// # Errors
/// Where a fact of the machine is no JSON, which is our fault.
pub fn anonymise(stored: &mut Stored) -> Result<(), serde_json::Error> {
    let scrubber = Scrubber::new(&stored.header.machine);
    stored.header.machine = scrubber.machine(&stored.header.machine)?;
    let failures = stored.failures.iter_mut().map(|failure| &mut failure.reason);
    let files = stored.header.suites.iter_mut().map(|suite| &mut suite.file);
    let warnings = stored.warnings.iter_mut();
    let texts = warnings.chain(&mut stored.failure).chain(failures).chain(files);
    for text in texts.chain([&mut stored.header.command]) {
        *text = scrubber.text(text);
    }
    Ok(())
}

fn counts(rows: &[RunRow]) -> Vec<usize> {
    let counts: BTreeSet<usize> = rows.iter().map(RunRow::count).collect();
    counts.into_iter().collect()
}

fn rate(rows: &[RunRow], workload: &str, count: usize) -> Option<f64> {
    rows.iter().find(|row| row.is_of(workload, count)).map(|row| row.rate)
}

fn indices_of(
    own: &[FromFile],
    suites: &[Suite],
    rows: &[RunRow],
    count: usize,
) -> Vec<SuiteIndex> {
    let rate = |name: &str| rate(rows, name, count);
    let of_own = own.iter().filter_map(|own| {
        let file = Some(own.file.clone());
        Some(SuiteIndex { file, ..SuiteIndex::new(&own.suite, count, rate)? })
    });
    of_own.chain(suites.iter().filter_map(|suite| SuiteIndex::new(suite, count, rate))).collect()
}

/// What each row is in the index of a suite.
fn add_index(rows: &mut [RunRow], suite: &Suite, count: usize) {
    for item in items(suite, |name| rate(rows, name, count)) {
        let row = rows.iter_mut().find(|row| row.is_of(&item.workload, count));
        row.expect("an item is made from a row").index = Some(item.index);
    }
}

fn has_word(stored: &Stored, wanted: &str) -> bool {
    stored.header.command.split(' ').any(|word| word == wanted)
}
