//! How far a run is, how long the rest of it takes, and whether a sample fits into the budget: passes
//! over workloads whose samples may differ in length.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use weigh_model::ids::WorkId;

/// How long the last sample of each work took: with its launch, which may start a server or
/// make a file system.
#[derive(Debug, Default)]
pub struct SampleCosts(BTreeMap<WorkId, Duration>);

impl SampleCosts {
    pub fn took(&mut self, work: WorkId, cost: Duration) {
        self.0.insert(work, cost);
    }

    /// Returns true if another sample of this work probably ends within the time left. It takes its timed
    /// part at least.
    pub fn fits(&self, work: WorkId, timed: Duration, left: Duration) -> bool {
        self.0.get(&work).map_or(timed, |cost| timed.max(*cost)) <= left
    }
}

/// A run that is timed for longer is announced with its length.
const ANNOUNCED_MS: u64 = 10_000;

/// The samples of a run, done and to do.
#[derive(Clone, Debug)]
pub struct Progress {
    pub samples: usize,
    /// Without those of workloads that failed.
    pub of_samples: usize,
    done_ms: u64,
    left_ms: u64,
    started: Instant,
    /// How long it may last, if there is a budget.
    limit: Duration,
}

impl Progress {
    /// From the number and the length of each workload's samples.
    pub fn new(works: impl Iterator<Item = (usize, u64)>) -> Progress {
        let (mut of_samples, mut left_ms) = (0, 0);
        for (passes, length_ms) in works {
            of_samples += passes;
            left_ms += passes as u64 * length_ms;
        }
        Progress {
            samples: 0,
            of_samples,
            done_ms: 0,
            left_ms,
            started: Instant::now(),
            limit: Duration::MAX,
        }
    }

    /// With a budget, of which so much is left.
    pub fn within(self, limit: Duration) -> Progress {
        Progress { limit, ..self }
    }

    /// How long all timed parts take together, where that is long.
    pub fn announced_s(&self) -> Option<f64> {
        (self.left_ms >= ANNOUNCED_MS).then_some(self.left_ms as f64 / 1e3)
    }

    pub fn took(&mut self, length_ms: u64) {
        self.samples += 1;
        self.done_ms += length_ms;
        self.left_ms = self.left_ms.saturating_sub(length_ms);
    }

    /// A workload failed: so many of its samples will not be taken.
    pub fn dropped(&mut self, samples: usize, length_ms: u64) {
        self.of_samples -= samples;
        self.left_ms = self.left_ms.saturating_sub(samples as u64 * length_ms);
    }

    /// Until the end, if a timed millisecond goes on taking as long as so far, with its share of
    /// starting and calibrating.
    pub fn left(&self) -> Duration {
        self.left_after(self.started.elapsed())
    }

    fn left_after(&self, elapsed: Duration) -> Duration {
        let left = elapsed.mul_f64(self.left_ms as f64 / self.done_ms.max(1) as f64);
        left.min(self.limit.saturating_sub(elapsed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sample_is_not_begun_that_its_launch_would_take_beyond_the_budget() {
        let (ms, this) = (Duration::from_millis, WorkId(0));
        let mut costs = SampleCosts::default();
        assert!(costs.fits(this, ms(70), ms(70)), "nothing is known of its launch");
        costs.took(this, ms(900));
        assert!(!costs.fits(this, ms(70), ms(500)) && costs.fits(this, ms(70), ms(900)));
        assert!(costs.fits(WorkId(1), ms(70), ms(500)), "another workload has another launch");
        costs.took(this, ms(80));
        assert!(costs.fits(this, ms(70), ms(80)), "the last one counts");
        assert!(!costs.fits(this, ms(100), ms(90)), "samples may have become longer");
    }

    #[test]
    fn long_samples_weigh_more_and_failed_ones_nothing() {
        let mut progress = Progress::new([(10, 10_000), (3, 30_000)].into_iter());
        assert_eq!((progress.of_samples, progress.announced_s()), (13, Some(190.0)));
        progress.took(10_000);
        let after = |progress: &Progress| progress.left_after(Duration::from_secs(11)).as_secs();
        assert_eq!(after(&progress), 11 * 18);
        progress.dropped(3, 30_000);
        assert_eq!((progress.samples, progress.of_samples), (1, 10));
        assert_eq!(after(&progress), 11 * 9);
        assert_eq!(after(&progress.within(Duration::from_secs(60))), 60 - 11);
        assert_eq!(Progress::new([(2, 70)].into_iter()).announced_s(), None);
    }
}
