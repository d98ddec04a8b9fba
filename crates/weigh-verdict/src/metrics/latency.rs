//! Quantiles of single operations and counts of the PMU, from the launches of the detail pass.

use super::super::log_ratio::percent;
use super::tally::Tally;
use paired::estimate::{hodges_lehmann, median};
use paired::histogram::Histogram;
use paired::wilcoxon::signed_rank_interval;
use weigh_model::ids::Side;
use weigh_model::record::Detailed;
use weigh_model::result::metrics::{Contrast, Counters, Latency};
use weigh_model::workload::detail::{Detail, Latencies};

/// Values from both launches of a pair, the baseline's first.
type Both<T> = [T; 2];

/// Whole pairs of what `tell` finds in a launch. The launches of a pair that tell the same are next to
/// each other.
fn pairs<T>(launches: &[&Detailed], tell: impl Fn(&Detail) -> Option<T>) -> Vec<Both<T>> {
    let told: Vec<(&Detailed, T)> =
        launches.iter().filter_map(|detailed| Some((*detailed, tell(&detailed.detail)?))).collect();
    let mut pairs = Vec::new();
    let mut told = told.into_iter().peekable();
    while let Some((first, a)) = told.next() {
        let is_partner =
            |(second, _): &(&Detailed, T)| second.pair == first.pair && second.arm != first.arm;
        if let Some((_, b)) = told.next_if(is_partner) {
            pairs.push(if first.arm.is_baseline() { [a, b] } else { [b, a] });
        }
    }
    pairs
}

/// How long the operations of either arm took; `None` where no pair was looked at.
pub fn of_operations(launches: &[&Detailed], alpha: f64) -> Option<Latency> {
    let histogram = |latencies: &Latencies| Histogram::new(latencies.buckets.iter().copied());
    let pairs = pairs(launches, |detail| detail.latencies.as_ref().map(histogram));
    if pairs.is_empty() {
        return None;
    }
    let mut merged = [Histogram::default(), Histogram::default()];
    for pair in &pairs {
        for (all, of_launch) in merged.iter_mut().zip(pair) {
            all.merge(of_launch);
        }
    }
    let quantile = |q: f64| {
        if !merged.iter().all(|histogram| histogram.supports(q)) {
            return None;
        }
        let mut contrast = Contrast {
            baseline: merged[0].quantile(q)?,
            treated: merged[1].quantile(q)?,
            ..Contrast::default()
        };
        // A launch with nothing beyond its quantile has only its maximum there.
        if pairs.iter().flatten().all(|histogram| histogram.beyond(q) >= 1.0) {
            let ratio =
                |pair: &Both<Histogram>| Some((pair[1].quantile(q)? / pair[0].quantile(q)?).ln());
            hold(&mut contrast, pairs.iter().filter_map(ratio), alpha);
        }
        Some(contrast)
    };
    let clocks: Vec<f64> = (launches.iter())
        .filter_map(|detailed| Some(detailed.detail.latencies.as_ref()?.clock_ns as f64))
        .collect();
    Some(Latency {
        of: "operation".into(),
        clock_ns: median(&clocks),
        baseline_count: merged[0].count(),
        treated_count: merged[1].count(),
        p50_ns: quantile(0.5),
        p99_ns: quantile(0.99),
        p99_9_ns: quantile(0.999),
    })
}

/// Returns the latency of a command's runs, from its samples. The row's own effect is that of the
/// typical run.
pub fn of_runs(tally: &Tally) -> Option<Latency> {
    let mut runs = [tally.runs(Side::BASELINE)?, tally.runs(Side::TREATED)?];
    for arm in &mut runs {
        arm.sort_unstable_by(f64::total_cmp);
    }
    let [baseline, treated] = &runs;
    let quantile = |q: f64| {
        // As for histograms: ten beyond it, or it is not shown.
        let is_supported = |arm: &Vec<f64>| arm.len() as f64 * (1.0 - q) > 10.0 - 1e-6;
        // The nearest rank: the smallest value that a share q does not exceed.
        let at = |arm: &Vec<f64>| arm.get((arm.len() as f64 * q).ceil() as usize - 1).copied();
        let supported = is_supported(baseline) && is_supported(treated);
        let (baseline, treated) = (at(baseline)?, at(treated)?);
        supported.then(|| Contrast { baseline, treated, ..Contrast::default() })
    };
    Some(Latency {
        of: "run".into(),
        clock_ns: None,
        baseline_count: baseline.len() as u64,
        treated_count: treated.len() as u64,
        p50_ns: quantile(0.5),
        p99_ns: quantile(0.99),
        p99_9_ns: quantile(0.999),
    })
}

/// Returns the counts of the PMU; `None` if it counted nothing.
pub fn counters(launches: &[&Detailed], alpha: f64) -> Option<Counters> {
    let per_op = |count: fn(&Detail) -> Option<u64>| {
        let pairs = pairs(launches, |detail| {
            let count = count(detail).filter(|count| *count > 0)?;
            Some((count as f64, detail.operations))
        });
        if pairs.is_empty() {
            return None;
        }
        let [baseline, treated] = Side::BOTH.map(|arm| {
            let sum = |part: fn(&(f64, f64)) -> f64| -> f64 {
                pairs.iter().map(|pair| part(&pair[arm])).sum()
            };
            sum(|counted| counted.0) / sum(|counted| counted.1)
        });
        let mut contrast = Contrast { baseline, treated, ..Contrast::default() };
        let ratio =
            |[base, treated]: &Both<(f64, f64)>| ((treated.0 / treated.1) / (base.0 / base.1)).ln();
        hold(&mut contrast, pairs.iter().map(ratio), alpha);
        Some(contrast)
    };
    let kernel_instructions_per_op = per_op(|detail| detail.kernel_instructions);
    let cycles_per_op = per_op(|detail| detail.cycles);
    let any = kernel_instructions_per_op.is_some() || cycles_per_op.is_some();
    any.then_some(Counters { kernel_instructions_per_op, cycles_per_op })
}

/// Sets the contrast of the pairs: Hodges and Lehmann's estimate, and Wilcoxon's exact interval.
fn hold(contrast: &mut Contrast, log_ratios: impl Iterator<Item = f64>, alpha: f64) {
    let usable: Vec<f64> = log_ratios.filter(|d| d.is_finite()).collect();
    let interval = signed_rank_interval(&usable, alpha);
    contrast.effect_pct = hodges_lehmann(&usable).map(percent);
    contrast.low_pct = interval.map(|interval| percent(interval.low));
    contrast.high_pct = interval.map(|interval| percent(interval.high));
}

#[cfg(test)]
mod tests {
    use super::*;
    use weigh_model::ids::{ArmId, PairId, WorkId};

    fn launch(pair: usize, arm: usize, detail: Detail) -> Detailed {
        let position = (pair + arm) % 2;
        Detailed {
            work: WorkId(0),
            arm: ArmId(arm),
            treated_arm: ArmId(1),
            pair: PairId(pair),
            position,
            detail,
        }
    }

    /// A thousand operations of about `ns`, and of those of each thousand that are slow `slow`.
    fn timed(ns: u64, slow: u64) -> Detail {
        let buckets = vec![(ns, 1000 - slow), (1 << 20, slow)];
        let latencies = Some(Latencies { clock_ns: 20, buckets });
        let (kernel_instructions, cycles, watch) = (None, None, None);
        Detail { operations: 1000.0, latencies, kernel_instructions, cycles, watch }
    }

    fn counted(instructions: u64, operations: f64) -> Detail {
        let kernel_instructions = Some(instructions);
        Detail { operations, latencies: None, kernel_instructions, cycles: Some(0), watch: None }
    }

    /// Each pair's baseline first or last by turns, as coins might have it.
    fn launches(count: usize, of: impl Fn(usize, usize) -> Detail) -> Vec<Detailed> {
        let arms = |pair: usize| [pair % 2, 1 - pair % 2];
        (0..count).flat_map(|pair| arms(pair).map(|arm| launch(pair, arm, of(pair, arm)))).collect()
    }

    #[test]
    fn quantiles_are_those_of_all_launches_and_effects_those_of_the_pairs() {
        let all = launches(6, |pair, arm| timed([100, 120][arm], [0, 20][arm] + pair as u64 % 2));
        let latency = of_operations(&all.iter().collect::<Vec<_>>(), 0.05).unwrap();
        assert_eq!((latency.baseline_count, latency.treated_count), (6000, 6000));
        assert_eq!(latency.clock_ns, Some(20.0));
        let p50 = latency.p50_ns.unwrap();
        assert!((p50.baseline - 100.5).abs() < 0.1 && (p50.treated - 120.5).abs() < 0.1);
        assert!((p50.effect_pct.unwrap() - 19.9).abs() < 0.2);
        assert!(p50.low_pct.unwrap() > 19.0 && p50.high_pct.unwrap() < 21.0);
        let p99 = latency.p99_ns.unwrap();
        assert!(p99.baseline < 101.0 && p99.treated > 1e6, "{p99:?}");
        assert_eq!(latency.p99_9_ns, None, "6000 operations have only 6 beyond it");
    }

    #[test]
    fn five_pairs_have_no_interval_and_half_a_pair_does_not_count() {
        let mut all = launches(5, |_, arm| timed([100, 120][arm], 0));
        all.push(launch(5, 1, timed(1 << 30, 0)));
        let latency = of_operations(&all.iter().collect::<Vec<_>>(), 0.05).unwrap();
        assert_eq!(latency.treated_count, 5000);
        let p50 = latency.p50_ns.unwrap();
        assert!(p50.effect_pct.is_some() && p50.low_pct.is_none());
        assert_eq!(of_operations(&[&all[10]], 0.05), None);
    }

    #[test]
    fn what_the_pmu_counted_is_per_operation_and_apart_from_latencies() {
        let mut all = Vec::new();
        for pair in 0..6 {
            for arm in [0, 1] {
                all.push(launch(pair, arm, timed(100, 0)));
            }
            for arm in [1, 0] {
                let operations = 100.0 * (pair + 1) as f64;
                let counts = [500, 750][arm] * operations as u64;
                all.push(launch(pair, arm, counted(counts, operations)));
            }
        }
        let all: Vec<&Detailed> = all.iter().collect();
        let found = counters(&all, 0.05).unwrap();
        let instructions = found.kernel_instructions_per_op.unwrap();
        assert_eq!((instructions.baseline, instructions.treated), (500.0, 750.0));
        assert!((instructions.effect_pct.unwrap() - 50.0).abs() < 1e-9);
        assert_eq!(found.cycles_per_op, None, "a counter that counts nothing is none");
        assert_eq!(of_operations(&all, 0.05).unwrap().baseline_count, 6000);
        assert_eq!(counters(&all[..2], 0.05), None);
    }
}
