//! A row of a run: the rate of one workload, in one number of copies, with its spread.

use paired::estimate::{MAD_TO_SD, geometric_mean, mad, median};
use weigh_model::ids::WorkId;
use weigh_model::record::Stored;
use weigh_model::result::load::DISK_READINGS;
use weigh_model::result::run::{CopiesSpread, RunReading, RunRow};
use weigh_model::samples::{CustomReadingMean, Point, RowSamples, Totals, Usage};

const FILES: &str = DISK_READINGS[0];
const DEVICE: &str = DISK_READINGS[1];

/// Judges the samples of a work; `None` where it has no result.
pub fn row(stored: &Stored, work: WorkId, is_classic: bool) -> Option<RunRow> {
    let of_row = stored.result_of_run(work)?;
    let (counts, totals) = (of_row.counted(), of_row.counted_totals());
    let points: Vec<&Point> = of_row.points.iter().filter(|point| counts(point)).collect();
    let unit = totals.and_then(|totals| totals.unit.as_ref());
    let rates: Vec<f64> = points.iter().map(|point| point.rate).collect();
    let middle = median(&rates)?;
    let rate = if is_classic {
        classic_score(&points.iter().map(|p| (p.operations, p.rate)).collect::<Vec<_>>())?
    } else {
        middle
    };
    let moved = moved(of_row, &counts);
    let mean = |sum: f64, launches: usize| sum / launches as f64;
    let cpu_s = |ns: fn(&Usage) -> Option<f64>| {
        totals.and_then(|totals| Some(mean(ns(&totals.usage)?, totals.launches) / 1e9))
    };
    Some(RunRow {
        workload: stored.header.works[work].name.clone(),
        on_curve: stored.header.on_curve(work),
        unit: unit.unwrap_or(&stored.header.works[work].unit).clone(),
        rate,
        spread_pct: MAD_TO_SD * mad(&rates)? / middle * 100.0,
        lowest: rates.iter().copied().fold(f64::INFINITY, f64::min),
        highest: rates.iter().copied().fold(0.0, f64::max),
        samples: rates.len(),
        elapsed_s: mean(points.iter().map(|point| point.elapsed_s).sum(), points.len()),
        user_s: cpu_s(|usage| usage.user_ns),
        system_s: cpu_s(|usage| usage.system_ns),
        index: None,
        is_cached: moved.is_cached(),
        file_bytes_per_op: moved.of_files,
        device_bytes_per_op: moved.on_device,
        efficiency_pct: None,
        copies: copies(&of_row.copy_rates),
        readings: totals.map_or(Vec::new(), readings),
    })
}

fn readings(totals: &Totals) -> Vec<RunReading> {
    let reading = |(name, told): (&String, &CustomReadingMean)| RunReading {
        name: name.clone(),
        unit: told.unit.clone(),
        mean: told.mean(),
        samples: told.launches,
    };
    totals.told.iter().map(reading).collect()
}

/// Bytes that an operation reads and writes.
struct Moved {
    of_files: Option<f64>,
    on_device: Option<f64>,
}

/// A row whose device moved less of its bytes is one of the page cache.
const LEAST_ON_DEVICE: f64 = 0.5;

impl Moved {
    /// True if most bytes came from the page cache or stayed in it.
    fn is_cached(&self) -> bool {
        let both = self.of_files.zip(self.on_device);
        both.is_some_and(|(of_files, on_device)| on_device < LEAST_ON_DEVICE * of_files)
    }
}

fn moved(row: &RowSamples, counts: &dyn Fn(&Point) -> bool) -> Moved {
    let middle = |of_point: &dyn Fn(usize) -> Option<f64>| {
        let counted = (0..row.points.len()).filter(|point| counts(&row.points[*point]));
        median(&counted.filter_map(of_point).collect::<Vec<_>>())
    };
    Moved {
        of_files: middle(&|point| row.further_of(point, FILES)),
        on_device: middle(&|point| row.further_of(point, DEVICE)),
    }
}

/// From the rates of every sample.
fn copies(samples: &[Vec<f64>]) -> Option<CopiesSpread> {
    let count = samples.first()?.len();
    let rate = |copy: usize| {
        let rates: Vec<f64> = samples.iter().filter_map(|rates| rates.get(copy)).copied().collect();
        median(&rates)
    };
    let rates: Vec<f64> = (0..count).map(rate).collect::<Option<_>>()?;
    let mean = rates.iter().sum::<f64>() / count as f64;
    let squares: f64 = rates.iter().map(|rate| (rate - mean).powi(2)).sum();
    // Each got wrong answers alone in most samples.
    if mean == 0.0 {
        return None;
    }
    Some(CopiesSpread {
        count,
        lowest: rates.iter().copied().fold(f64::INFINITY, f64::min),
        highest: rates.iter().copied().fold(0.0, f64::max),
        variation_pct: (squares / (count as f64 - 1.0).max(1.0)).sqrt() / mean * 100.0,
    })
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
    fn a_row_is_of_the_cache_if_the_device_moved_less_than_half() {
        let is_cached = |on_device| Moved { of_files: Some(10_240.0), on_device }.is_cached();
        assert!(is_cached(Some(0.0)) && is_cached(Some(5_119.0)));
        assert!(!is_cached(Some(5_120.0)) && !is_cached(Some(20_480.0)));
        assert!(!is_cached(None), "the kernel counts no traffic of the device");
    }

    #[test]
    fn copies_are_compared_by_their_medians() {
        let samples = [[9.0, 1.0, 11.0], [1.0, 10.0, 90.0], [10.0, 20.0, 11.0]];
        let copies = copies(&samples.map(Vec::from)).unwrap();
        let found = (copies.count, copies.lowest, copies.highest);
        assert_eq!(found, (3, 9.0, 11.0), "of 9, 10 and 11");
        assert!((copies.variation_pct - 10.0).abs() < 1e-12, "{copies:?}");
    }
}
