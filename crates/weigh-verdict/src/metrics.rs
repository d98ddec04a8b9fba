//! Results of a row besides its rate, from the stored samples and the detail pass.

mod latency;
mod tally;

use super::log_ratio::{bound, percent};
use paired::Interval;
use paired::judge::Judgement;
use tally::Tally;
use weigh_model::format;
use weigh_model::ids::{ArmId, WorkId};
use weigh_model::record::Stored;
use weigh_model::result::metrics::Metrics;
use weigh_model::result::summary::State;

/// Returns the metrics of a work under the treatment of an arm.
pub fn of_row(stored: &Stored, work: WorkId, arm: ArmId, alpha: f64) -> Metrics {
    // Nothing is concluded from an experiment that failed.
    let Some(of_row) = stored.samples.get(&(work, arm)).filter(|_| stored.state != State::Failed)
    else {
        return Metrics::default();
    };
    let tally = Tally::new(of_row, stored.header.pilot_chooses_scheme);
    let mean = tally.mean_ratio(alpha);
    let launches: Vec<_> = (stored.details.iter())
        .filter(|detailed| (detailed.work, detailed.treated_arm) == (work, arm))
        .collect();
    let is_command = stored.header.works[work].syscalls_per_op.is_none();
    Metrics {
        mean_effect_pct: mean.map(|(estimate, _)| percent(estimate)),
        mean_low_pct: mean.and_then(|(_, interval)| bound(interval.low)),
        mean_high_pct: mean.and_then(|(_, interval)| bound(interval.high)),
        resources: tally.resources(),
        latency: match is_command {
            true => latency::of_runs(&tally),
            false => latency::of_operations(&launches, alpha),
        },
        counters: latency::counters(&launches, alpha),
    }
}

/// Where the mean and the typical pair surely disagree, rare and long delays are the reason: a
/// median does not see them.
pub fn note_on_stalls(metrics: &Metrics, judgement: &Judgement) -> Option<String> {
    let mean = Interval {
        low: (metrics.mean_low_pct? / 100.0).ln_1p(),
        high: (metrics.mean_high_pct? / 100.0).ln_1p(),
    };
    let arm = stalling_arm(mean, judgement.interval)?;
    Some(format!(
        "stalls: the mean rate changed by {} {}, the typical pair by {}: rare long delays {arm}",
        format::percent(metrics.mean_effect_pct?),
        format::interval(metrics.mean_low_pct, metrics.mean_high_pct),
        format::percent(percent(judgement.estimate)),
    ))
}

/// Which arm has the delays, where the two intervals have no value in common.
fn stalling_arm(mean: Interval, typical: Interval) -> Option<&'static str> {
    if mean.high < typical.low {
        Some("under the treatment")
    } else if mean.low > typical.high {
        Some("in the baseline")
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use paired::Betting;
    use paired::betting::DEFAULT_SCALE;
    use paired::design::Design;
    use paired::judge::judge_rows;
    use paired::mean_rate::{Exposure, mean_ratio};
    use paired::simulated::{Machine, Noise};

    /// Which arm stalls, it is said, where one treated sample in `every` takes three times as long.
    fn said(noise: Noise, seed: u64, pairs: usize, every: usize) -> Option<&'static str> {
        let mut machine = Machine::new(noise, seed);
        let sample = |log_rate: f64| Exposure { work: 1.0, time: 0.07 * (-log_rate).exp() };
        let pairs: Vec<[Exposure; 2]> = (0..pairs)
            .map(|pair| {
                let mut treated = sample(machine.sample());
                treated.time *= if pair % every == every - 1 { 3.0 } else { 1.0 };
                [sample(machine.sample()), treated]
            })
            .collect();
        let log_ratios: Vec<f64> =
            pairs.iter().map(|[base, treated]| (base.time / treated.time).ln()).collect();
        let betting = Betting::from_log_ratios(&log_ratios, DEFAULT_SCALE).unwrap();
        let typical = judge_rows([&betting], &Design::default()).remove(0).interval;
        stalling_arm(mean_ratio(&pairs, 0.05).unwrap().1, typical)
    }

    #[test]
    fn rare_stalls_are_seen_in_the_mean_and_told() {
        let told = (0..50)
            .filter(|seed| said(Noise::White, *seed, 300, 20) == Some("under the treatment"));
        assert!(told.count() >= 45);
    }

    #[test]
    fn of_noise_without_an_effect_nothing_is_told() {
        for noise in Noise::ALL {
            let told = (0..100).filter(|seed| said(noise, *seed, 100, usize::MAX).is_some());
            let count = told.count();
            assert!(count <= 5, "{noise:?}: {count} of 100");
        }
    }

    #[test]
    fn two_stalls_may_be_chance() {
        let told = (0..50).filter(|seed| said(Noise::White, *seed, 40, 20).is_some());
        assert_eq!(told.count(), 0);
    }
}
