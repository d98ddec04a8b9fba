//! A row of a run: the rate of one workload, in one number of copies, with its spread.

use serde::Serialize;

use super::work::name_of_copies;
use crate::report::curve::{COPIES, OnCurve, Point, Quantity};
use crate::stats::estimate::{geometric_mean, mad, median};
use crate::store::record::Stored;
use crate::store::samples::OfRow;

/// One workload.
#[derive(Debug, PartialEq, Serialize)]
pub struct RunRow {
    pub workload: String,
    /// Where the workload is a point of a curve.
    #[serde(flatten)]
    pub on_curve: Option<OnCurve>,
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
    /// Over copies: the rate of one of them over that of one of the fewest, in per cent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub efficiency_pct: Option<f64>,
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

/// Judges the samples of a work; `None` where it has no result.
pub fn row(stored: &Stored, work: usize, is_classic: bool) -> Option<RunRow> {
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
        on_curve: stored.header.works[work].on_curve.clone(),
        unit: unit.unwrap_or(&stored.header.works[work].unit).clone(),
        rate,
        spread_pct: 1.4826 * mad(&rates)? / middle * 100.0,
        lowest: rates.iter().copied().fold(f64::INFINITY, f64::min),
        highest: rates.iter().copied().fold(0.0, f64::max),
        samples: rates.len(),
        index: None,
        efficiency_pct: None,
        copies: Copies::new(copy_rates),
    })
}

impl RunRow {
    /// What an operation takes, where the rate is one of operations done one after the other.
    pub fn time_ns(&self) -> Option<f64> {
        (self.unit == "lps" && self.copies.is_none()).then(|| 1e9 / self.rate)
    }

    /// Sweeps of latencies are read as times; how a workload scales shows in its rate.
    pub fn quantity(&self) -> Quantity {
        match self.time_ns() {
            Some(_) if self.copies_on_curve().is_none() => Quantity::Time,
            _ => Quantity::Rate(self.unit.clone()),
        }
    }

    pub fn point(&self, x: f64) -> Point {
        let spread = self.spread_pct / 100.0;
        let slowest = (spread < 1.0).then_some(self.rate * (1.0 - spread));
        let fastest = self.rate * (1.0 + spread);
        let workload = self.workload.clone();
        match self.quantity() {
            Quantity::Time => {
                let [y, low] = [self.rate, fastest].map(|rate| 1e9 / rate);
                Point { workload, x, y, low: Some(low), high: slowest.map(|rate| 1e9 / rate) }
            }
            _ => Point {
                workload,
                x,
                y: self.rate,
                low: Some(slowest.unwrap_or(0.0)),
                high: Some(fastest),
            },
        }
    }

    fn copies_on_curve(&self) -> Option<(&str, f64)> {
        let on_curve = self.on_curve.as_ref().filter(|on| on.x_unit == COPIES);
        on_curve.map(|on| (on.series.as_str(), on.x))
    }

    /// How many ran at the same time.
    pub fn count(&self) -> usize {
        self.copies.as_ref().map_or(1, |copies| copies.count)
    }

    /// Whether this is the row of so many copies of a workload.
    pub fn is_of(&self, workload: &str, count: usize) -> bool {
        self.count() == count
            && match count {
                1 => self.workload == workload,
                _ => self.workload == name_of_copies(workload, count),
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

/// A workload that scales perfectly has 100 % with any number of copies.
pub fn add_efficiency(rows: &mut [RunRow]) {
    let of_one: Vec<Option<f64>> = rows
        .iter()
        .map(|row| {
            let (series, x) = row.copies_on_curve()?;
            let of_series = rows.iter().filter_map(|other| {
                let (other_series, x) = other.copies_on_curve()?;
                (other_series == series).then_some((x, other.rate))
            });
            let (fewest, rate) = of_series.min_by(|a, b| a.0.total_cmp(&b.0))?;
            Some(100.0 * (row.rate / x) / (rate / fewest))
        })
        .collect();
    for (row, efficiency_pct) in rows.iter_mut().zip(of_one) {
        row.efficiency_pct = efficiency_pct;
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
