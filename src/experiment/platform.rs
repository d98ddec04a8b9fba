//! What the engine measures with, and who watches: a host or a simulated machine, a terminal or nobody.

use std::time::Duration;

use super::row::{Row, Unit};

/// Which sample is wanted.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Slot {
    pub unit: Unit,
    pub arm: usize,
    pub set: usize,
    pub pair: usize,
    /// 0 for the first of its pair.
    pub position: usize,
}

/// Why there is no sample.
#[derive(Debug, PartialEq, Eq)]
pub enum SampleError {
    /// This workload failed; the others go on.
    Workload(String),
    /// Nothing that follows could be believed or kept.
    Stop(Stop),
}

/// Why an experiment ends before its time.
#[derive(Debug, PartialEq, Eq)]
pub enum Stop {
    Interrupted,
    Failed(String),
    /// Nothing more can be kept, as on a full disk; what was kept before stands.
    NotKept(String),
}

/// What measures.
pub trait Platform {
    /// Time since the experiment began.
    fn elapsed(&self) -> Duration;
    /// Launches a workload once, proves that its arm's treatment was in force, keeps the sample,
    /// and gives its rate.
    ///
    /// # Errors
    /// [`SampleError`]
    fn sample(&mut self, slot: &Slot) -> Result<f64, SampleError>;
    /// Told once of each row, after the least number of pairs for a verdict, how their log-ratios
    /// spread (a standard deviation): the samples to come may be of another length.
    ///
    /// # Errors
    /// Where that cannot be stored.
    fn choose_length(&mut self, _unit: &Unit, _deviation: f64) -> Result<(), Stop> {
        Ok(())
    }
    /// Keeps that a workload gave no result in this arm.
    ///
    /// # Errors
    /// Where that cannot be stored.
    fn failed(&mut self, slot: &Slot, reason: &str) -> Result<(), Stop>;
}

/// What watches.
pub trait Observer {
    /// A pair of this row begins.
    fn begins(&mut self, _row: usize) {}
    /// A pair was measured; `judgement` is of this row by itself, or `None` after a failure.
    fn pair(&mut self, row: usize, state: &Row, elapsed: Duration);
    /// A round ended, and all rows were judged together.
    fn round(&mut self, rows: &[Row], elapsed: Duration, left: Option<Duration>);
}
