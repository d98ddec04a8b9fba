//! Pairs that the machine spoilt: others took the CPU while one of the two samples ran. They are
//! marked, and kept: whoever drops what looks disturbed chooses his result.

use crate::report::format::plural;
use crate::stats::estimate::median;
use crate::store::samples::Point;

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
    pub fn new(points: &[Point]) -> Judge {
        let usual = |is_treated: bool| {
            let of_arm = points.iter().filter(|point| point.is_treated == is_treated);
            let shares: Vec<f64> = of_arm.filter_map(|point| point.waiting_share).collect();
            median(&shares).unwrap_or(0.0)
        };
        Judge { usual_waiting: [usual(false), usual(true)] }
    }

    /// Whether the machine disturbed this sample more than the thresholds allow.
    pub fn is_spoilt(&self, sample: &Point) -> bool {
        let usual = self.usual_waiting[usize::from(sample.is_treated)];
        sample.stolen_share.is_some_and(|share| share >= STOLEN)
            || sample.waiting_share.is_some_and(|share| share >= usual + WAITED_MORE)
    }
}

/// What a reader of the row should know; nothing where no pair was spoilt.
pub fn note(spoilt_pairs: usize) -> Option<String> {
    let pairs = plural(spoilt_pairs, "pair");
    (spoilt_pairs > 0).then(|| {
        format!("others took the CPU during {pairs}, which the CSV marks; they are kept, and count")
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::pressure::Disturbance;

    fn sample(is_treated: bool, psi_cpu_us: u64, steal_ticks: u64) -> Point {
        let disturbance = Disturbance {
            during_ns: 100_000_000,
            psi_cpu_us: Some(psi_cpu_us),
            steal_ticks: Some(steal_ticks),
        };
        Point {
            is_treated,
            is_first: !is_treated,
            set: 0,
            pair: 0,
            started_s: 0.0,
            operations: 50.0,
            rate: 5e7,
            waiting_share: disturbance.waiting_share(),
            stolen_share: disturbance.stolen_share(),
        }
    }

    #[test]
    fn a_sample_that_waited_more_than_its_arm_usually_does_is_spoilt() {
        // The treated arm waits for itself half of the time.
        let baseline = [0, 1000, 30_000].map(|waited_us| sample(false, waited_us, 0));
        let treated = [50_000, 55_000].map(|waited_us| sample(true, waited_us, 0));
        let samples = [&baseline[..], &treated].concat();
        let judge = Judge::new(&samples);
        let spoilt: Vec<bool> = samples.iter().map(|sample| judge.is_spoilt(sample)).collect();
        assert_eq!(spoilt, [false, false, true, false, false]);
    }

    #[test]
    fn stolen_time_spoils_where_it_is_more_than_the_rounding_of_the_counter() {
        let judge = Judge::new(&[]);
        assert!(!judge.is_spoilt(&sample(false, 0, 1)));
        assert!(judge.is_spoilt(&sample(false, 0, 2)));
        let unknown = Point { stolen_share: None, ..sample(false, 0, 9) };
        assert!(!judge.is_spoilt(&unknown));
    }
}
