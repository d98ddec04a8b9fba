//! This machine alone: the rate of every workload with its spread, and UnixBench's index where the
//! suite has baselines.

use serde::Serialize;

use crate::machine::Facts;
use crate::report::summary::{Failure, State};
use crate::stats::estimate::{geometric_mean, mad, median};
use crate::store::record::Stored;
use crate::store::samples::OfRow;
use crate::workload::suite::{self, Suite};

/// The version of the JSON document.
const SCHEMA: &str = "weighbridge/run/1";
/// The index points of the baseline machine: "George", a SPARCstation 20-61, counts as 10.
const GEORGE: f64 = 10.0;

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
    /// Geometric mean over UnixBench's twelve, where all of them were measured: compatible with its
    /// formula, computed from workloads of our own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unixbench_index: Option<f64>,
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
    /// Rate over George's, times 10.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub index: Option<f64>,
}

impl RunReport {
    /// Judges a stored run.
    pub fn new(stored: &Stored) -> RunReport {
        let suites = suite::embedded().unwrap_or_default();
        let unixbench = suites.iter().find(|suite| suite.name == "unixbench");
        let is_classic = is_classic(stored);
        let results: Vec<RunRow> = (0..stored.header.works.len())
            .filter_map(|work| row(stored, work, is_classic, unixbench))
            .collect();
        RunReport {
            schema: SCHEMA,
            id: stored.id.clone(),
            started: stored.started.clone(),
            state: stored.state,
            failure: stored.failure.clone(),
            command: stored.header.command.clone(),
            machine: stored.header.machine.clone(),
            unixbench_index: unixbench.and_then(|suite| index(&results, suite)),
            results,
            failures: stored.failures.clone(),
            warnings: stored.warnings.clone(),
        }
    }

    /// Whether UnixBench's own durations, passes and trimming were used.
    pub fn json(&self) -> String {
        serde_json::to_string_pretty(self).expect("plain data with text keys") + "\n"
    }
}

fn is_classic(stored: &Stored) -> bool {
    stored.header.command.split(' ').any(|word| word == "--classic")
}

fn row(
    stored: &Stored,
    work: usize,
    is_classic: bool,
    unixbench: Option<&Suite>,
) -> Option<RunRow> {
    let name = &stored.header.works[work].name;
    if stored.failures.iter().any(|failure| failure.workload == *name) {
        return None;
    }
    // A run has one arm, which is held against none.
    let OfRow { points, baseline, .. } = stored.samples.get(&(work, 0))?;
    let unit = baseline.as_ref().and_then(|totals| totals.unit.as_ref());
    let rates: Vec<f64> = points.iter().map(|point| point.rate).collect();
    let middle = median(&rates)?;
    let rate = if is_classic {
        classic_score(&points.iter().map(|p| (p.operations, p.rate)).collect::<Vec<_>>())?
    } else {
        middle
    };
    let baseline = unixbench
        .and_then(|suite| suite.members.iter().find(|member| member.name == *name))
        .and_then(|member| member.baseline);
    Some(RunRow {
        workload: name.clone(),
        unit: unit.unwrap_or(&stored.header.works[work].unit).clone(),
        rate,
        spread_pct: 1.4826 * mad(&rates)? / middle * 100.0,
        lowest: rates.iter().copied().fold(f64::INFINITY, f64::min),
        highest: rates.iter().copied().fold(0.0, f64::max),
        samples: rates.len(),
        index: baseline.map(|baseline| rate / baseline * GEORGE),
    })
}

/// UnixBench's `combinePassResults`: passes sorted by count, the lowest third dropped, the rates of
/// the rest averaged geometrically. Biased upwards, which is why only a classic run does so.
fn classic_score(passes: &[(f64, f64)]) -> Option<f64> {
    let mut passes = passes.to_vec();
    passes.sort_by(|a, b| a.0.total_cmp(&b.0));
    let kept: Vec<f64> = passes[passes.len() / 3..].iter().map(|(_, rate)| *rate).collect();
    geometric_mean(&kept)
}

fn index(results: &[RunRow], suite: &Suite) -> Option<f64> {
    let indices: Vec<f64> = suite
        .members
        .iter()
        .map(|member| results.iter().find(|row| row.workload == member.name)?.index)
        .collect::<Option<_>>()?;
    geometric_mean(&indices)
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

    /// A report of UnixBench 6.0.0 itself, of one copy: rates, indices, and the score.
    #[test]
    fn the_index_agrees_with_a_report_of_unixbench_itself() {
        let published = [
            ("dhry2reg", 35_433_786.2, 3036.3),
            ("whetstone-double", 6564.1, 1193.5),
            ("execl", 1485.5, 345.5),
            ("fstime", 376_612.0, 951.0),
            ("fsbuffer", 97_914.0, 591.6),
            ("fsdisk", 1_162_815.0, 2004.9),
            ("pipe", 748_958.0, 602.1),
            ("context1@same-cpu", 63_064.0, 157.7),
            ("spawn", 3209.7, 254.7),
            ("shell1", 4686.3, 1105.3),
            ("shell8", 1143.6, 1906.0),
            ("syscall", 500_028.0, 333.4),
        ];
        let suites = suite::embedded().unwrap();
        let suite = suites.iter().find(|suite| suite.name == "unixbench").unwrap();
        let rows: Vec<RunRow> = published
            .iter()
            .map(|&(name, rate, printed)| {
                let member = suite.members.iter().find(|member| member.name == name).unwrap();
                let index = rate / member.baseline.unwrap() * GEORGE;
                assert!((index - printed).abs() < 0.06, "{name}: {index} is not {printed}");
                RunRow {
                    workload: name.into(),
                    unit: String::new(),
                    rate,
                    spread_pct: 0.0,
                    lowest: rate,
                    highest: rate,
                    samples: 1,
                    index: Some(index),
                }
            })
            .collect();
        let score = index(&rows, suite).unwrap();
        assert!((score - 732.8).abs() < 0.06, "{score}");
        assert_eq!(index(&rows[1..], suite), None, "an index of eleven is none");
    }
}
