//! A simulated machine for the tests of plans: a function gives the rate of each sample.

use std::time::Duration;

use rand::RngExt;
use rand_chacha::ChaCha8Rng;

use super::MixPoint;
use crate::platform::{Observer, Platform, Readings, SampleError, SampleSlot, Stop};
use crate::request::{Printout, ProgressSink, Taken};
use crate::row::{RowKey, RowState};
use paired::betting::DEFAULT_SCALE;
use weigh_model::ids::{ArmId, SetId, WorkId};
use weigh_model::result::warning::Warning;

/// A machine whose samples have this rate, or fail.
pub struct Simulated<F> {
    pub now: Duration,
    pub lasts: Duration,
    /// When nothing more is begun.
    pub limit: Duration,
    pub rate: F,
    /// The samples that were asked for, with their rates.
    pub taken: Vec<(SampleSlot, f64)>,
    pub failures: Vec<(SampleSlot, String)>,
    pub warnings: Vec<Warning>,
}

impl<F: FnMut(&SampleSlot) -> Result<f64, SampleError>> Simulated<F> {
    /// Creates a machine on which a sample takes a second.
    pub fn new(rate: F) -> Simulated<F> {
        let (now, lasts) = (Duration::ZERO, Duration::from_secs(1));
        let (taken, failures, warnings) = (Vec::new(), Vec::new(), Vec::new());
        let limit = Duration::MAX;
        Simulated { now, lasts, limit, rate, taken, failures, warnings }
    }
}

impl<F: FnMut(&SampleSlot) -> Result<f64, SampleError>> Platform for Simulated<F> {
    fn elapsed(&self) -> Duration {
        self.now
    }

    fn time_left(&self) -> Duration {
        self.limit.saturating_sub(self.now)
    }

    fn sample(&mut self, slot: &SampleSlot) -> Result<Readings, SampleError> {
        self.now += self.lasts;
        let rate = (self.rate)(slot)?;
        self.taken.push((*slot, rate));
        Ok(Readings::of_rate(rate))
    }

    fn failed(&mut self, slot: &SampleSlot, reason: &str) -> Result<(), Stop> {
        self.failures.push((*slot, reason.to_owned()));
        Ok(())
    }

    fn warn(&mut self, warning: &Warning) -> Result<(), Stop> {
        self.warnings.push(warning.clone());
        Ok(())
    }
}

/// Watcher that keeps what it was shown.
#[derive(Default)]
pub struct Watcher {
    pub notes: Vec<String>,
    pub steps: Vec<String>,
    pub taken: Vec<Taken>,
}

impl ProgressSink for Watcher {
    fn announce(&mut self, sentence: &str) {
        self.notes.push(sentence.to_owned());
    }

    fn begins(&mut self, step: &str) {
        self.steps.push(step.to_owned());
    }

    fn ends(&mut self) {}

    fn set_begins(
        &mut self,
        _: SetId,
        _: Duration,
        _: &[(String, String, String)],
    ) -> Box<dyn Observer + '_> {
        unreachable!("these plans have no sets");
    }

    fn shows(&mut self, _: &Printout) {}

    fn took(&mut self, taken: &Taken) {
        self.taken.push(taken.clone());
    }
}

/// Observer of pairs that shows nothing.
pub struct Nobody;

impl Observer for Nobody {
    fn pair(&mut self, _: usize, _: &RowState, _: Duration) {}
    fn round(&mut self, _: &[RowState], _: Duration, _: Option<Duration>) {}
}

/// Draws a number of the normal distribution.
pub fn normal(chance: &mut ChaCha8Rng) -> f64 {
    let radius = (-2.0 * (1.0 - chance.random::<f64>()).ln()).sqrt();
    radius * (std::f64::consts::TAU * chance.random::<f64>()).cos()
}

/// The row of the work and the treated arm with these numbers.
pub fn unit(work: usize, arm: usize) -> RowKey {
    RowKey { work: WorkId(work), treated_arm: ArmId(arm), start_scale: DEFAULT_SCALE.into() }
}

/// Load points with these users, of which the work of each is its index.
pub fn points(users: &[usize], arm: usize) -> Vec<MixPoint> {
    let point = |(work, users): (usize, &usize)| MixPoint {
        unit: unit(work, arm),
        name: format!("{users} users").as_str().into(),
        users: *users,
    };
    users.iter().enumerate().map(point).collect()
}
