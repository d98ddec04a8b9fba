//! Interfaces of the engine to its machine and its watcher: a host or a simulated machine, a
//! terminal or nobody.

use std::time::Duration;

pub use super::readings::Readings;
use super::row::{RowKey, RowState};
use weigh_model::ids::{ArmId, PairId, SetId};
use weigh_model::result::scheme::Scheme;
use weigh_model::result::warning::Warning;
use weigh_model::role::SampleRole;

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SampleSlot {
    pub unit: RowKey,
    pub arm: ArmId,
    pub role: SampleRole,
    pub scheme: Scheme,
    pub set: SetId,
    pub pair: PairId,
    /// 0 for the first of its pair.
    pub position: usize,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PairSlot {
    pub unit: RowKey,
    pub set: SetId,
    pub pair: PairId,
    /// True if the coin put the baseline first.
    pub baseline_first: bool,
    pub role: SampleRole,
    pub scheme: Scheme,
    /// When it is ended at the latest, since the experiment began, so that other rows have time too.
    pub until: Option<Duration>,
}

impl SampleSlot {
    /// A sample that has no partner: the sample of this number in a run, or one beside the pairs.
    pub fn alone(unit: RowKey, pair: PairId) -> SampleSlot {
        SampleSlot {
            unit,
            arm: ArmId::BASELINE,
            role: SampleRole::Compared,
            scheme: Scheme::Sequential,
            set: SetId(0),
            pair,
            position: 0,
        }
    }
}

impl PairSlot {
    /// Its samples, one after the other.
    pub fn slots(&self) -> [SampleSlot; 2] {
        let PairSlot { unit, set, pair, baseline_first, role, scheme, .. } = *self;
        let arms = unit.arms(baseline_first);
        let slot = |position: usize| {
            let arm = arms[position];
            SampleSlot { unit, arm, role, scheme, set, pair, position }
        };
        [slot(0), slot(1)]
    }
}

#[derive(Debug, PartialEq, Eq)]
pub enum PairError {
    /// The workload failed in this sample of it; the others go on.
    Workload {
        position: usize,
        reason: String,
    },
    /// The connection to an arm's machine ended: the pair is dropped.
    Lost {
        position: usize,
        reason: String,
    },
    /// It was not over at [`PairSlot::until`], or when the budget was spent; nothing is to blame.
    OutOfTime {
        position: usize,
    },
    Stop(Stop),
}

#[derive(Debug, PartialEq, Eq)]
pub enum SampleError {
    /// This workload failed; the others go on.
    Workload(String),
    /// The connection to the arm's machine ended.
    Lost(String),
    /// Nothing that follows could be believed or kept.
    Stop(Stop),
}

/// Where nothing can go on without the sample.
impl From<SampleError> for Stop {
    fn from(error: SampleError) -> Stop {
        match error {
            SampleError::Stop(stop) => stop,
            SampleError::Workload(reason) | SampleError::Lost(reason) => Stop::Failed(reason),
        }
    }
}

impl SampleError {
    /// Why there is no sample.
    pub fn reason(self) -> Result<String, Stop> {
        match self {
            SampleError::Stop(stop) => Err(stop),
            SampleError::Workload(reason) | SampleError::Lost(reason) => Ok(reason),
        }
    }

    /// Converts the error to the error of a pair that lacks this sample.
    pub fn of_pair(self, position: usize) -> PairError {
        match self {
            SampleError::Stop(Stop::OutOfTime) => PairError::OutOfTime { position },
            SampleError::Stop(stop) => PairError::Stop(stop),
            SampleError::Lost(reason) => PairError::Lost { position, reason },
            SampleError::Workload(reason) => PairError::Workload { position, reason },
        }
    }
}

/// Separates why there is no sample, the inner error, from what ends the experiment.
pub fn settled<T>(taken: Result<T, SampleError>) -> Result<Result<T, String>, Stop> {
    taken.map_or_else(|error| error.reason().map(Err), |found| Ok(Ok(found)))
}

/// Why an experiment ends before its time.
#[derive(Debug, PartialEq, Eq)]
pub enum Stop {
    /// It goes on when the machine was booted again.
    NextBoot,
    Interrupted,
    /// The budget is spent: nothing more is begun, and what ran too long after it was killed.
    OutOfTime,
    Failed(String),
    /// Nothing more can be kept, as on a full disk; what was kept before stands.
    NotKept(String),
}

/// A sample that runs when the budget is spent may last so much longer. Then it is killed and does not
/// count.
pub const AFTER_BUDGET: Duration = Duration::from_secs(2);

/// Machine that takes the engine's samples, real or simulated.
pub trait Platform {
    /// Time since the experiment began.
    fn elapsed(&self) -> Duration;
    /// How long a sample that begins now may last: until [`AFTER_BUDGET`], or [`Duration::MAX`] where no
    /// budget limits it.
    fn time_left(&self) -> Duration {
        Duration::MAX
    }
    /// Measures a workload once, proves that its arm's treatment was in force, and keeps the sample.
    fn sample(&mut self, slot: &SampleSlot) -> Result<Readings, SampleError>;
    /// Measures a workload in both arms of a pair. Gives the readings of the baseline and of the treated arm.
    fn pair(&mut self, slot: &PairSlot) -> Result<[Readings; 2], PairError> {
        one_after_the_other(slot, |slot| self.sample(slot))
    }
    /// Why the pairs of a row cannot be interleaved, where that is known by now.
    fn why_not_interleaved(&self, _unit: &RowKey) -> Option<String> {
        None
    }
    /// Keeps why a row goes on with sequential pairs.
    fn left_interleaving(&mut self, _unit: &RowKey, _reason: &str) -> Result<(), Stop> {
        Ok(())
    }
    /// Told once of each row, after the least number of pairs for a verdict, how their log-ratios
    /// spread (a standard deviation): the samples to come may be of another length.
    fn choose_length(&mut self, _unit: &RowKey, _deviation: f64) -> Result<(), Stop> {
        Ok(())
    }
    /// Keeps how many pairs a row will probably have, which was known after its pilot alone.
    fn planned(&mut self, _unit: &RowKey, _pairs: f64) -> Result<(), Stop> {
        Ok(())
    }
    /// Keeps that a workload gave no result in this arm.
    fn failed(&mut self, slot: &SampleSlot, reason: &str) -> Result<(), Stop>;
    /// Keeps a warning for the report.
    fn warn(&mut self, _warning: &Warning) -> Result<(), Stop> {
        Ok(())
    }
}

pub trait Observer {
    fn begins(&mut self, _row: usize) {}
    /// A pair was measured; `judgement` is of this row by itself, or `None` after a failure.
    fn pair(&mut self, row: usize, state: &RowState, elapsed: Duration);
    /// A round ended, and all rows were judged together.
    fn round(&mut self, rows: &[RowState], elapsed: Duration, left: Option<Duration>);
    /// A sentence for the person who waits.
    fn announce(&mut self, _sentence: &str) {}
}

/// A pair as two launches, one after the other, in the order of the coin.
pub fn one_after_the_other(
    slot: &PairSlot,
    mut sample: impl FnMut(&SampleSlot) -> Result<Readings, SampleError>,
) -> Result<[Readings; 2], PairError> {
    let mut of_arms = [Readings::default(), Readings::default()];
    for slot in slot.slots() {
        of_arms[slot.arm.side()] = sample(&slot).map_err(|error| error.of_pair(slot.position))?;
    }
    Ok(of_arms)
}
