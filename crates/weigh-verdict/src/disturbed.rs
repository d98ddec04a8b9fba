//! Pairs that were disturbed: others took the CPU, or heat slowed it, while a sample ran. They are
//! marked, and kept: whoever drops what looks disturbed chooses his result.

use paired::estimate::median;
use weigh_model::facts::Facts;
use weigh_model::result::summary::Row;
use weigh_model::result::versus;
use weigh_model::result::warning::Warning;
use weigh_model::samples::Point;

/// Share of a launch's time that the host surely stole, of one CPU.
const STOLEN: f64 = 0.05;

/// Share of a launch's time in which some task waited for a CPU, above the median of the same arm and
/// row. A workload of several processes waits for itself; that is in the median.
const WAITED_MORE: f64 = 0.10;

/// Share of the time before a launch in which some task waited for a CPU, though no workload ran: a steady
/// load is in every median, and here.
const WAITED_BEFORE: f64 = 0.5;

/// Tells disturbed samples of one row from the others.
pub struct Judge {
    /// Median share of waiting, of the baseline's samples and of the treated ones.
    usual_waiting: [f64; 2],
}

impl Judge {
    /// Learns what is usual from all samples of a row.
    pub fn new(points: &[Point]) -> Judge {
        let usual = |is_treated: bool| {
            let of_arm = points.iter().filter(|point| point.is_treated == is_treated);
            let shares: Vec<f64> =
                of_arm.filter_map(|point| point.waiting_share.map(f64::from)).collect();
            median(&shares).unwrap_or(0.0)
        };
        Judge { usual_waiting: [usual(false), usual(true)] }
    }

    /// Returns true if the machine disturbed this sample more than the thresholds allow.
    pub fn is_disturbed(&self, sample: &Point) -> bool {
        let usual = self.usual_waiting[usize::from(sample.is_treated)];
        let is_at_least =
            |share: Option<f32>, limit| share.is_some_and(|share| f64::from(share) >= limit);
        sample.was_throttled
            || is_at_least(sample.stolen_share, STOLEN)
            || is_at_least(sample.waiting_share, usual + WAITED_MORE)
            || is_at_least(sample.waiting_share_before, WAITED_BEFORE)
    }
}

/// Returns a warning about disturbed pairs on this machine; `None` if no pair was disturbed.
pub fn warning(rows: &[Row], machine: &Facts) -> Option<Warning> {
    let worst =
        rows.iter().max_by_key(|row| row.disturbed_pairs).filter(|row| row.disturbed_pairs > 0)?;
    let disturbed: usize = rows.iter().map(|row| row.disturbed_pairs).sum();
    let pairs: usize = rows.iter().map(|row| row.pairs).sum();
    let of_worst = [worst.disturbed_pairs, worst.pairs];
    let worst = versus::name(&worst.workload, &worst.treatment);
    let has_quota = machine.cpu_share.limiting_quota().is_some();
    Some(Warning::Disturbed { disturbed, pairs, worst, of_worst, has_quota })
}

#[cfg(test)]
mod tests {
    use super::*;
    use weigh_model::disturbance::Disturbance;
    use weigh_model::ids::{PairId, SetId};
    use weigh_model::result::scheme::Scheme;
    use weigh_model::role::SampleRole;

    fn sample(is_treated: bool, psi_cpu_us: u64, steal_ticks: u64) -> Point {
        let disturbance = Disturbance {
            during_ns: 100_000_000,
            psi_cpu_us: Some(psi_cpu_us),
            steal_ticks: Some(steal_ticks),
            ..Disturbance::default()
        };
        Point {
            cpu_ns_per_op: None,
            is_treated,
            is_first: !is_treated,
            role: SampleRole::Compared,
            scheme: Scheme::Sequential,
            after_treated: false,
            set: SetId(0),
            pair: PairId(0),
            started_s: 0.0,
            operations: 50.0,
            elapsed_s: 1e-6,
            rate: 5e7,
            waiting_share: disturbance.waiting_share().map(|share| share as f32),
            waiting_share_before: disturbance.waiting_share_before().map(|share| share as f32),
            stolen_share: disturbance.stolen_share().map(|share| share as f32),
            was_throttled: false,
            exit_code: 0,
            rate_over_all: 1.0,
            outside: None,
        }
    }

    #[test]
    fn a_sample_that_waited_more_than_its_arm_usually_does_is_disturbed() {
        // The treated arm waits for itself half of the time.
        let baseline = [0, 1000, 30_000].map(|waited_us| sample(false, waited_us, 0));
        let treated = [50_000, 55_000].map(|waited_us| sample(true, waited_us, 0));
        let samples = [&baseline[..], &treated].concat();
        let judge = Judge::new(&samples);
        let disturbed: Vec<bool> =
            samples.iter().map(|sample| judge.is_disturbed(sample)).collect();
        assert_eq!(disturbed, [false, false, true, false, false]);
    }

    /// A load of 90 % at all times is in every sample's median.
    #[test]
    fn a_steady_load_shows_while_nothing_is_measured() {
        let loaded =
            |before| Point { waiting_share_before: Some(before), ..sample(false, 90_000, 0) };
        let samples = [loaded(0.9), loaded(0.95), loaded(0.1)];
        let judge = Judge::new(&samples);
        let disturbed = samples.map(|sample| judge.is_disturbed(&sample));
        assert_eq!(disturbed, [true, true, false]);
    }

    #[test]
    fn stolen_time_disturbs_where_it_is_more_than_the_rounding_of_the_counter() {
        let judge = Judge::new(&[]);
        assert!(!judge.is_disturbed(&sample(false, 0, 1)));
        assert!(judge.is_disturbed(&sample(false, 0, 2)));
        let unknown = Point { stolen_share: None, ..sample(false, 0, 9) };
        assert!(!judge.is_disturbed(&unknown));
        assert!(judge.is_disturbed(&Point { was_throttled: true, ..sample(false, 0, 0) }));
    }
}
