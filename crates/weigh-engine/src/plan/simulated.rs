//! A simulated machine for tests: a function gives the rate of each sample.

use std::time::Duration;

use rand::RngExt;
use rand_chacha::ChaCha8Rng;

use super::MixPoint;
use crate::engine::{fresh_rows, run_set};
use crate::order::Coins;
use crate::platform::{
    Observer, PairError, PairSlot, Platform, Readings, SampleError, SampleSlot, Stop,
};
use crate::request::{Printout, ProgressSink, Taken};
use crate::row::{RowKey, RowState};
use paired::Verdict;
use paired::betting::DEFAULT_SCALE;
use paired::design::Design;
use paired::judge::Judgement;
use weigh_model::ids::{ArmId, SetId, WorkId};
use weigh_model::result::warning::Warning;
use weigh_verdict::schedule::{Schedule, SchemePilot};

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

    pub fn slots(&self) -> Vec<SampleSlot> {
        self.taken.iter().map(|(slot, _)| *slot).collect()
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

/// A simulated machine whose pairs a function takes: it may find that an arm cannot be interleaved.
pub struct Pairwise<F, P> {
    pub machine: Simulated<F>,
    take: P,
    /// Treated arms that are known not to be interleaved, and those whose rows have left.
    pub alone: Vec<ArmId>,
    pub left: Vec<ArmId>,
    /// The pairs that were asked for.
    pub pairs: Vec<PairSlot>,
}

impl<F, P> Pairwise<F, P>
where
    P: FnMut(&mut Simulated<F>, &PairSlot, &mut Vec<ArmId>) -> Result<[Readings; 2], PairError>,
{
    pub fn new(machine: Simulated<F>, take: P) -> Pairwise<F, P> {
        Pairwise { machine, take, alone: Vec::new(), left: Vec::new(), pairs: Vec::new() }
    }
}

impl<F, P> Platform for Pairwise<F, P>
where
    F: FnMut(&SampleSlot) -> Result<f64, SampleError>,
    P: FnMut(&mut Simulated<F>, &PairSlot, &mut Vec<ArmId>) -> Result<[Readings; 2], PairError>,
{
    fn elapsed(&self) -> Duration {
        self.machine.elapsed()
    }

    fn time_left(&self) -> Duration {
        self.machine.time_left()
    }

    fn sample(&mut self, slot: &SampleSlot) -> Result<Readings, SampleError> {
        self.machine.sample(slot)
    }

    fn pair(&mut self, slot: &PairSlot) -> Result<[Readings; 2], PairError> {
        self.pairs.push(*slot);
        (self.take)(&mut self.machine, slot, &mut self.alone)
    }

    fn why_not_interleaved(&self, unit: &RowKey) -> Option<String> {
        self.alone.contains(&unit.treated_arm).then(|| "it cannot be interleaved".into())
    }

    fn left_interleaving(&mut self, unit: &RowKey, _: &str) -> Result<(), Stop> {
        self.left.push(unit.treated_arm);
        Ok(())
    }

    fn failed(&mut self, slot: &SampleSlot, reason: &str) -> Result<(), Stop> {
        self.machine.failed(slot, reason)
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

/// Rows without pairs, whose first ones choose the scheme.
pub fn open_rows(units: &[RowKey], design: &Design) -> Vec<RowState> {
    let open = || Schedule::Open(SchemePilot::default());
    fresh_rows(units, design).into_iter().map(|row| row.on(open(), design)).collect()
}

/// Measures the first set of rows by the coins of this seed and session, until so much time is over.
pub fn run_rows(
    rows: Vec<RowState>,
    design: &Design,
    (seed, session): (u64, usize),
    budget: Duration,
    platform: &mut impl Platform,
    observer: &mut dyn Observer,
) -> (Vec<RowState>, Result<(), Stop>) {
    let coins = Coins::new(seed, SetId(0), session);
    run_set(rows, design, coins, SetId(0), &|_| budget, platform, observer)
}

/// Wrong claims about a true effect.
#[derive(Default)]
pub struct Witness {
    pub truth: f64,
    /// Called slower or faster, in the wrong direction or without any.
    pub alarmed: bool,
    /// The interval left the truth out.
    pub missed: bool,
}

impl Witness {
    pub fn of(truth: f64) -> Witness {
        Witness { truth, ..Witness::default() }
    }

    pub fn hear(&mut self, judgement: &Judgement) {
        let interval = judgement.interval;
        self.missed |= self.truth < interval.low || self.truth > interval.high;
        self.alarmed |= match judgement.verdict {
            Verdict::Slower => self.truth >= 0.0,
            Verdict::Faster => self.truth <= 0.0,
            Verdict::Equivalent | Verdict::Inconclusive => false,
        };
    }
}

/// At the end of any round.
impl Observer for Witness {
    fn pair(&mut self, _: usize, _: &RowState, _: Duration) {}

    fn round(&mut self, rows: &[RowState], _: Duration, _: Option<Duration>) {
        rows.iter().for_each(|row| self.hear(&row.judgement));
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
