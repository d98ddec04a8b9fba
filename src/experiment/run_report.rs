//! This machine alone: the rate of every workload with its spread, and the indices of the suites
//! that were measured.

use serde::Serialize;

use super::suite_index::{SuiteIndex, items};
use super::work::name_of_copies;
use crate::machine::Facts;
use crate::report::summary::{Failure, State};
use crate::stats::estimate::{geometric_mean, mad, median};
use crate::store::record::Stored;
use crate::store::samples::OfRow;
use crate::workload::suite;

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
    /// Of every suite whose workloads were all measured: compatible with the formulas of the
    /// originals, computed from workloads of our own.
    pub indices: Vec<SuiteIndex>,
    pub failures: Vec<Failure>,
    pub warnings: Vec<String>,
}

/// One workload.
#[derive(Debug, PartialEq, Serialize)]
pub struct RunRow {
    pub workload: String,
    pub unit: String,
    /// Median of the samples' rates; for a classic run, UnixBench's score: the geometric mean of
    /// all but the lowest third of the passes.
    pub rate: f64,
    /// 1.4826 · MAD over the median: the standard deviation of an undisturbed sample, in per cent.
    pub spread_pct: f64,
    pub lowest: f64,
    pub highest: f64,
    pub samples: usize,
    /// What it is in the index of the suite that was asked for, or of `unixbench`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub index: Option<f64>,
    /// Where several copies ran at the same time; `rate` is their sum.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub copies: Option<Copies>,
}

/// How the copies of a workload compare. Each one's rate is the median of its samples.
#[derive(Debug, PartialEq, Serialize)]
pub struct Copies {
    pub count: usize,
    pub lowest: f64,
    pub highest: f64,
    /// Their standard deviation over their mean, in per cent.
    pub variation_pct: f64,
}

impl RunReport {
    /// Judges a stored run.
    pub fn new(stored: &Stored) -> RunReport {
        let suites = suite::embedded().unwrap_or_default();
        let is_classic = has_word(stored, "--classic");
        let mut results: Vec<RunRow> = (0..stored.header.works.len())
            .filter_map(|work| row(stored, work, is_classic))
            .collect();
        let rate = |name: &str| results.iter().find(|row| row.is_of(name)).map(|row| row.rate);
        let indices = suites.iter().filter_map(|suite| SuiteIndex::new(suite, rate)).collect();
        let shown = suites
            .iter()
            .find(|suite| suite.index.is_some() && has_word(stored, &suite.name))
            .or_else(|| suites.iter().find(|suite| suite.name == "unixbench"));
        for item in shown.map(|suite| items(suite, rate)).unwrap_or_default() {
            let row = results.iter_mut().find(|row| row.is_of(&item.workload));
            row.expect("an item is made from a row").index = Some(item.index);
        }
        RunReport {
            schema: SCHEMA,
            id: stored.id.clone(),
            started: stored.started.clone(),
            state: stored.state,
            failure: stored.failure.clone(),
            command: stored.header.command.clone(),
            machine: stored.header.machine.clone(),
            indices,
            results,
            failures: stored.failures.clone(),
            warnings: stored.warnings.clone(),
        }
    }

    pub fn json(&self) -> String {
        serde_json::to_string_pretty(self).expect("plain data with text keys") + "\n"
    }
}

fn has_word(stored: &Stored, wanted: &str) -> bool {
    stored.header.command.split(' ').any(|word| word == wanted)
}

fn row(stored: &Stored, work: usize, is_classic: bool) -> Option<RunRow> {
    let name = &stored.header.works[work].name;
    if stored.failures.iter().any(|failure| failure.workload == *name) {
        return None;
    }
    // A run has one arm, which is held against none.
    let OfRow { points, baseline, copy_rates, .. } = stored.samples.get(&(work, 0))?;
    let unit = baseline.as_ref().and_then(|totals| totals.unit.as_ref());
    let rates: Vec<f64> = points.iter().map(|point| point.rate).collect();
    let middle = median(&rates)?;
    let rate = if is_classic {
        classic_score(&points.iter().map(|p| (p.operations, p.rate)).collect::<Vec<_>>())?
    } else {
        middle
    };
    Some(RunRow {
        workload: name.clone(),
        unit: unit.unwrap_or(&stored.header.works[work].unit).clone(),
        rate,
        spread_pct: 1.4826 * mad(&rates)? / middle * 100.0,
        lowest: rates.iter().copied().fold(f64::INFINITY, f64::min),
        highest: rates.iter().copied().fold(0.0, f64::max),
        samples: rates.len(),
        index: None,
        copies: Copies::new(copy_rates),
    })
}

impl RunRow {
    /// Whether this is the row of a workload, alone or in copies.
    fn is_of(&self, workload: &str) -> bool {
        match &self.copies {
            None => self.workload == workload,
            Some(copies) => self.workload == name_of_copies(workload, copies.count),
        }
    }
}

impl Copies {
    /// From the rates of every sample.
    fn new(samples: &[Vec<f64>]) -> Option<Copies> {
        let count = samples.first()?.len();
        let rate = |copy: usize| {
            let rates: Vec<f64> =
                samples.iter().filter_map(|rates| rates.get(copy)).copied().collect();
            median(&rates)
        };
        let rates: Vec<f64> = (0..count).map(rate).collect::<Option<_>>()?;
        let mean = rates.iter().sum::<f64>() / count as f64;
        let squares: f64 = rates.iter().map(|rate| (rate - mean).powi(2)).sum();
        Some(Copies {
            count,
            lowest: rates.iter().copied().fold(f64::INFINITY, f64::min),
            highest: rates.iter().copied().fold(0.0, f64::max),
            variation_pct: (squares / (count as f64 - 1.0).max(1.0)).sqrt() / mean * 100.0,
        })
    }
}

/// UnixBench's `combinePassResults`: passes sorted by count, the lowest third dropped, the rates of
/// the rest averaged geometrically. Biased upwards, which is why only a classic run does so.
fn classic_score(passes: &[(f64, f64)]) -> Option<f64> {
    let mut passes = passes.to_vec();
    passes.sort_by(|a, b| a.0.total_cmp(&b.0));
    let kept: Vec<f64> = passes[passes.len() / 3..].iter().map(|(_, rate)| *rate).collect();
    geometric_mean(&kept)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_score_drops_the_lowest_third_and_averages_geometrically() {
        let score = |passes| classic_score(passes).unwrap();
        assert!((score(&[(1.0, 1.0), (4.0, 4.0), (9.0, 9.0)]) - 6.0).abs() < 1e-12);
        assert!((score(&[(5.0, 5.0)]) - 5.0).abs() < 1e-12);
    }

    #[test]
    fn copies_are_compared_by_their_medians() {
        let samples = [[9.0, 1.0, 11.0], [1.0, 10.0, 90.0], [10.0, 20.0, 11.0]];
        let copies = Copies::new(&samples.map(Vec::from)).unwrap();
        let found = (copies.count, copies.lowest, copies.highest);
        assert_eq!(found, (3, 9.0, 11.0), "of 9, 10 and 11");
        assert!((copies.variation_pct - 10.0).abs() < 1e-12, "{copies:?}");
    }
}
