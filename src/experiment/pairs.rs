//! From stored samples to the pairs of each row.

use super::spoilt;
use crate::report::summary::Pair;
use crate::stats::betting::Betting;
use crate::stats::estimate::median;
use crate::store::record::{Measured, Stored, Work};

/// A workload under a treatment, with all that was measured of it.
pub struct Measurements<'a> {
    pub work: usize,
    pub arm: usize,
    /// The treated samples.
    pub treated: Vec<&'a Measured>,
    pub series: Vec<Pair>,
    /// s₀, as it was fixed before the first pair.
    pub start_scale: f64,
}

impl Measurements<'_> {
    /// What a pair takes, in seconds: the median.
    pub fn pair_s(&self) -> Option<f64> {
        median(&self.series.iter().map(|pair| pair.elapsed_s).collect::<Vec<_>>())
    }

    /// The evidence that these pairs hold.
    pub fn betting(&self) -> Betting {
        betting(self.series.iter(), self.start_scale)
    }
}

/// Only whole pairs, of workloads that did not fail: a failed one has no result.
pub fn gather(stored: &Stored) -> Vec<Measurements<'_>> {
    let arms = stored.header.arms.len();
    // One pass over all samples, however many rows there are.
    let mut of_rows: Vec<Vec<&Measured>> = vec![Vec::new(); stored.header.works.len() * arms];
    for measured in &stored.samples {
        if measured.treated_arm < arms
            && let Some(of_row) = of_rows.get_mut(measured.work * arms + measured.treated_arm)
        {
            of_row.push(measured);
        }
    }
    let mut all = Vec::new();
    for work in 0..stored.header.works.len() {
        let Work { name, start_scale, .. } = &stored.header.works[work];
        for arm in 1..arms {
            let has_failed = stored.failures.iter().any(|failure| {
                failure.workload == *name
                    && [&stored.header.arms[0], &stored.header.arms[arm]].contains(&&failure.arm)
            });
            let of_row = std::mem::take(&mut of_rows[work * arms + arm]);
            let series = pairs(&of_row);
            if !has_failed && !series.is_empty() {
                let treated = of_row.into_iter().filter(|m| m.arm == arm).collect();
                all.push(Measurements { work, arm, treated, series, start_scale: *start_scale });
            }
        }
    }
    all
}

/// The samples of a pair are next to each other in the order measured.
fn pairs(samples: &[&Measured]) -> Vec<Pair> {
    let judge = spoilt::Judge::new(samples);
    samples
        .windows(2)
        .filter(|both| {
            (both[0].set, both[0].pair) == (both[1].set, both[1].pair) && both[0].position == 0
        })
        .map(|both| {
            let baseline_first = both[0].arm == 0;
            let (baseline, treated) =
                if baseline_first { (both[0], both[1]) } else { (both[1], both[0]) };
            Pair {
                started_s: both[0].started_s,
                elapsed_s: 2.0 * (both[1].started_s - both[0].started_s),
                baseline_rate: baseline.sample.rate(),
                treated_rate: treated.sample.rate(),
                baseline_first,
                set: both[0].set,
                is_spoilt: both.iter().any(|sample| judge.is_spoilt(sample)),
            }
        })
        .collect()
}

/// The evidence that `pairs` hold, from the spread expected before the first.
pub fn betting<'a>(pairs: impl Iterator<Item = &'a Pair>, start_scale: f64) -> Betting {
    // Rates are checked to be positive and finite when they are measured; a database that someone
    // changed can hold others, and they are not evidence.
    let usable: Vec<f64> = pairs.map(Pair::log_ratio).filter(|d| d.is_finite()).collect();
    Betting::from_log_ratios(&usable, start_scale).expect("only finite values are left")
}
