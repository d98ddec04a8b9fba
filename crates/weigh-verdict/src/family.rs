//! The family of claims that share the promise of an experiment, and what each counts in it.
//!
//! Each row counts 1, and so do each metric that was asked for and each effect of a factorial design. Of a
//! row's 1, CPU time and the rate over all time, which nobody asked for, have a tenth each, and its rate the
//! rest. The weight of a metric that a row turns out not to have goes back to its rate.
//!
//! The first pairs decide once and for all which metrics a row has. This does not depend on the evidence: a
//! pair has a metric if both samples do, so swapping the arms changes nothing, and the coins stay fair.

use super::pairs::Measurements;
use paired::betting::Betting;
use paired::judge::{MIN_PAIRS, WeightedClaim};
use weigh_model::record::{Header, Stored};
use weigh_model::workload::metric::Metric;

/// Weight of a metric that is judged by default.
const SECONDARY: f64 = 0.1;

/// Weights of a row's claims.
#[derive(Clone, Debug, PartialEq)]
pub struct ClaimWeights {
    pub rate: f64,
    /// Weights of the other metrics, in their order.
    pub further: Vec<f64>,
}

impl ClaimWeights {
    /// From the metrics besides the rate, each with whether the row has it.
    pub fn of<'a>(
        further: impl Iterator<Item = (&'a Metric, bool)>,
        is_fixed: bool,
    ) -> ClaimWeights {
        let mut weights = ClaimWeights { rate: 1.0, further: Vec::new() };
        for (metric, has_it) in further {
            let planned = planned(metric, is_fixed);
            let counted = if has_it { planned } else { 0.0 };
            weights.rate += match is_secondary(metric, is_fixed) {
                true => -counted,
                false => planned - counted,
            };
            weights.further.push(counted);
        }
        weights
    }

    /// Returns the weights of a row that was measured.
    pub fn of_measured(row: &Measurements, metrics: &[Metric], is_fixed: bool) -> ClaimWeights {
        let further = metrics.iter().filter(|metric| **metric != Metric::Rate);
        ClaimWeights::of(further.map(|metric| (metric, has(row, metric))), is_fixed)
    }
}

/// Returns the weights of a stored row's claims.
pub fn weights(stored: &Stored, row: &Measurements) -> ClaimWeights {
    let Header { metrics, fixed_pairs, .. } = &stored.header;
    ClaimWeights::of_measured(row, metrics, fixed_pairs.is_some())
}

/// All claims: the rates, then each further metric of all rows, then the effects.
pub fn claims<'a>(
    stored: &Stored,
    measurements: &[Measurements],
    rates: &'a [Betting],
    further: &'a [Vec<Betting>],
    effects: impl Iterator<Item = &'a Betting>,
) -> Vec<WeightedClaim<'a>> {
    let weights: Vec<ClaimWeights> = measurements.iter().map(|row| weights(stored, row)).collect();
    let rates =
        rates.iter().zip(&weights).map(|(row, of_row)| WeightedClaim { row, weight: of_row.rate });
    let further = further.iter().enumerate().flat_map(|(which, of_metric)| {
        let rows = of_metric.iter().zip(&weights);
        rows.map(move |(row, of_row)| WeightedClaim { row, weight: of_row.further[which] })
    });
    let effects = effects.map(|row| WeightedClaim { row, weight: 1.0 });
    rates.chain(further).chain(effects).collect()
}

/// Returns the total weight of all claims: the claims of so many rows with these metrics, and of so
/// many effects.
pub fn weight(rows: usize, metrics: &[Metric], is_fixed: bool, effects: usize) -> usize {
    let is_counted = |metric: &&Metric| **metric == Metric::Rate || !is_secondary(metric, is_fixed);
    rows * metrics.iter().filter(is_counted).count() + effects
}

fn planned(metric: &Metric, is_fixed: bool) -> f64 {
    if is_secondary(metric, is_fixed) { SECONDARY } else { 1.0 }
}

/// With a fixed number of pairs nothing is judged unasked.
fn is_secondary(metric: &Metric, is_fixed: bool) -> bool {
    metric.is_implicit() && !is_fixed
}

/// Returns true if any of a row's first pairs has a metric. With fewer pairs the metric may still
/// appear, so the answer is true.
pub fn has(row: &Measurements, metric: &Metric) -> bool {
    let counted = row.series.iter().filter(|pair| pair.log_ratio().is_finite());
    let first: Vec<bool> =
        counted.take(MIN_PAIRS).map(|pair| pair.log_ratio_of(metric).is_some()).collect();
    first.len() < MIN_PAIRS || first.contains(&true)
}

#[cfg(test)]
mod tests {
    use super::*;
    use weigh_model::workload::metric::Percentile;

    #[test]
    fn what_a_row_does_not_have_goes_back_to_its_rate() {
        let asked = Metric::Latency(Percentile::P99);
        let metrics = [Metric::CpuTime, Metric::OverallRate, asked];
        let weights = |has: [bool; 3]| {
            let ClaimWeights { rate, further } = ClaimWeights::of(metrics.iter().zip(has), false);
            let all = [&[rate][..], &further].concat();
            assert!((all.iter().sum::<f64>() - 2.0).abs() < 1e-12, "{all:?}");
            all.iter().map(|weight| (10.0 * weight).round() as i32).collect::<Vec<_>>()
        };
        assert_eq!(weights([true; 3]), [8, 1, 1, 10]);
        assert_eq!(weights([true, false, true]), [9, 1, 0, 10]);
        assert_eq!(weights([false, false, false]), [20, 0, 0, 0]);
    }

    #[test]
    fn only_what_was_asked_for_counts_like_a_row() {
        let metrics = [Metric::Rate, Metric::CpuTime, Metric::OverallRate];
        assert_eq!(weight(20, &metrics, false, 0), 20);
        assert_eq!(weight(20, &metrics[..2], true, 6), 46);
        let asked = [&metrics[..], &[Metric::Named("jobs".into())]].concat();
        assert_eq!(weight(20, &asked, false, 0), 40);
    }
}
