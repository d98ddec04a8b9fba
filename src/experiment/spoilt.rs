//! Pairs that the machine spoilt: others took the CPU, or heat slowed it, while a sample ran. They are
//! marked, and kept: whoever drops what looks disturbed chooses his result.

use crate::report::format::plural;
use crate::report::summary::Row;
use crate::stats::estimate::median;
use crate::store::record::Measured;

/// Share of a launch's time that the host surely stole, of one CPU.
const STOLEN: f64 = 0.05;

/// Share of a launch's time in which some task waited for a CPU, above the median of the same arm and
/// row. A workload of several processes waits for itself; that is in the median.
const WAITED_MORE: f64 = 0.10;

/// Tells spoilt samples of one row from the others.
pub struct Judge {
    /// Median share of waiting, of the baseline's samples and of the treated ones.
    usual_waiting: [f64; 2],
}

impl Judge {
    /// Learns what is usual from all samples of a row.
    pub fn new(samples: &[&Measured]) -> Judge {
        let usual = |is_treated: bool| {
            let of_arm = samples.iter().filter(|sample| (sample.arm != 0) == is_treated);
            let shares: Vec<f64> = of_arm.filter_map(|sample| waiting(sample)).collect();
            median(&shares).unwrap_or(0.0)
        };
        Judge { usual_waiting: [usual(false), usual(true)] }
    }

    /// Whether the machine disturbed this sample more than the thresholds allow.
    pub fn is_spoilt(&self, sample: &Measured) -> bool {
        let usual = self.usual_waiting[usize::from(sample.arm != 0)];
        let stolen = sample.disturbance.and_then(|disturbance| disturbance.stolen_share());
        let throttled = sample.disturbance.and_then(|disturbance| disturbance.throttle_events);
        stolen.is_some_and(|share| share >= STOLEN)
            || throttled.is_some_and(|events| events > 0)
            || waiting(sample).is_some_and(|share| share >= usual + WAITED_MORE)
    }
}

/// What a reader should know; nothing where no pair was spoilt.
pub fn warning(rows: &[Row]) -> Option<String> {
    let worst =
        rows.iter().max_by_key(|row| row.spoilt_pairs).filter(|row| row.spoilt_pairs > 0)?;
    let spoilt: usize = rows.iter().map(|row| row.spoilt_pairs).sum();
    let pairs: usize = rows.iter().map(|row| row.pairs).sum();
    Some(format!(
        "Spoilt pairs: others took the CPU, or heat slowed it, during {spoilt} of {} (of `{}` {} of {}). \
         They are kept, and count; the CSV marks them.",
        plural(pairs, "pair"),
        worst.workload,
        worst.spoilt_pairs,
        worst.pairs
    ))
}

fn waiting(sample: &Measured) -> Option<f64> {
    sample.disturbance.and_then(|disturbance| disturbance.waiting_share())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::pressure::Disturbance;

    fn sample(arm: usize, psi_cpu_us: u64, steal_ticks: u64) -> Measured {
        let disturbance = Disturbance {
            during_ns: 100_000_000,
            psi_cpu_us: Some(psi_cpu_us),
            steal_ticks: Some(steal_ticks),
            throttle_events: Some(0),
            cpu_khz: None,
        };
        Measured {
            work: 0,
            arm,
            treated_arm: 1,
            set: 0,
            pair: 0,
            position: arm,
            started_s: 0.0,
            sample: serde_json::from_str(r#"{"operations":50,"elapsed_ns":1000}"#).unwrap(),
            evidence: Default::default(),
            disturbance: Some(disturbance),
        }
    }

    #[test]
    fn a_sample_that_waited_more_than_its_arm_usually_does_is_spoilt() {
        // The treated arm waits for itself half of the time.
        let samples: Vec<Measured> = [(0, 0), (0, 1000), (0, 30_000), (1, 50_000), (1, 55_000)]
            .map(|(arm, waited_us)| sample(arm, waited_us, 0))
            .into();
        let of_row: Vec<&Measured> = samples.iter().collect();
        let judge = Judge::new(&of_row);
        let spoilt: Vec<bool> = samples.iter().map(|sample| judge.is_spoilt(sample)).collect();
        assert_eq!(spoilt, [false, false, true, false, false]);
    }

    #[test]
    fn stolen_time_spoils_where_it_is_more_than_the_rounding_of_the_counter() {
        let judge = Judge::new(&[]);
        assert!(!judge.is_spoilt(&sample(0, 0, 1)));
        assert!(judge.is_spoilt(&sample(0, 0, 2)));
        assert!(!judge.is_spoilt(&Measured { disturbance: None, ..sample(0, 0, 9) }));
        let hot = Disturbance { throttle_events: Some(1), ..Disturbance::default() };
        assert!(judge.is_spoilt(&Measured { disturbance: Some(hot), ..sample(0, 0, 0) }));
    }
}
