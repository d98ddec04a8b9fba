//! The side of `weigh` of a listener or a sensor: starts it, asks it for the length of a sample, and counts
//! its CPU time. The proofs of those that count events share a part, which is here too.

use std::fmt::Display;
use std::io;
use std::marker::PhantomData;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::TreatmentError;
use weigh_host::lines::{LinesError, PROMPTLY};
use weigh_host::machine::cpu_time;
use weigh_host::own_program::{self, Helper};
use weigh_sensor::orders::Answer;

/// A process that receives events. It ends when this is dropped.
pub struct EventReceiver<Counts> {
    helper: Helper,
    /// As in a sentence.
    name: String,
    interrupted: Arc<AtomicBool>,
    cpu_before_ns: Option<u64>,
    counts: PhantomData<Counts>,
}

impl<Counts: DeserializeOwned> EventReceiver<Counts> {
    /// Starts a hidden role, and tells it what to receive.
    pub fn start(
        subcommand: &str,
        name: String,
        wanted: &impl Serialize,
        interrupted: &Arc<AtomicBool>,
    ) -> Result<EventReceiver<Counts>, TreatmentError> {
        let unavailable = |error: io::Error| {
            TreatmentError::Unavailable(format!("cannot start the {name}: {error}"))
        };
        let mut helper = Helper::start(own_program::command(subcommand)).map_err(unavailable)?;
        helper.lines.send(wanted).map_err(unavailable)?;
        let interrupted = Arc::clone(interrupted);
        let mut receiver =
            EventReceiver { helper, name, interrupted, cpu_before_ns: None, counts: PhantomData };
        receiver.expect_ready()?;
        Ok(receiver)
    }

    pub fn pid(&self) -> u32 {
        self.helper.pid()
    }

    /// Sends an order to count from now on.
    pub fn begin(&mut self, order: &impl Serialize) -> Result<(), TreatmentError> {
        self.cpu_before_ns = cpu_time::of_process_ns(self.helper.pid()).ok();
        self.send(order)?;
        self.expect_ready()
    }

    /// Sends an order to count no longer. Returns what was counted since [`EventReceiver::begin`], and the
    /// CPU time in seconds that this took the process.
    pub fn end(&mut self, order: &impl Serialize) -> Result<(Counts, Option<f64>), TreatmentError> {
        self.send(order)?;
        let counts = match self.receive()? {
            Answer::Counts(counts) => counts,
            other => return Err(self.unexpected(other)),
        };
        let now_ns = cpu_time::of_process_ns(self.helper.pid()).ok();
        let both = now_ns.zip(self.cpu_before_ns);
        let cpu_s = both.map(|(now, before)| now.saturating_sub(before) as f64 / 1e9);
        Ok((counts, cpu_s))
    }

    fn send(&mut self, order: &impl Serialize) -> Result<(), TreatmentError> {
        self.helper.lines.send(order).map_err(|error| self.silent(&error))
    }

    fn expect_ready(&mut self) -> Result<(), TreatmentError> {
        match self.receive()? {
            Answer::Ready => Ok(()),
            other => Err(self.unexpected(other)),
        }
    }

    fn receive(&mut self) -> Result<Answer<Counts>, TreatmentError> {
        match self.helper.lines.receive(&self.interrupted, Instant::now() + PROMPTLY) {
            Ok(answer) => Ok(answer),
            Err(LinesError::Interrupted) => Err(TreatmentError::Interrupted),
            Err(other) => Err(self.silent(&other)),
        }
    }

    fn silent(&self, error: &dyn Display) -> TreatmentError {
        TreatmentError::NotInForce(format!("the {} does not answer: {error}", self.name))
    }

    fn unexpected(&self, answer: Answer<Counts>) -> TreatmentError {
        TreatmentError::NotInForce(match answer {
            Answer::Error(problem) => problem,
            Answer::Ready | Answer::Counts(_) => {
                format!("the {} answered something else than it was asked", self.name)
            }
        })
    }
}

/// Returns a receiver that was started.
pub fn started<Receiver>(receiver: &mut Option<Receiver>) -> Result<&mut Receiver, TreatmentError> {
    let missing = || TreatmentError::Unavailable("the receiver of events was not started".into());
    receiver.as_mut().ok_or_else(missing)
}

/// Proves a sample by its events: while they are on, those of the treated process were seen; else none came.
pub fn prove(
    is_on: bool,
    is_seen: bool,
    events: u64,
    unseen: impl FnOnce() -> String,
    stray: &str,
) -> Result<(), TreatmentError> {
    match is_on {
        true if !is_seen => Err(TreatmentError::NotInForce(unseen())),
        false if events > 0 => Err(TreatmentError::NotInForce(stray.to_owned())),
        _ => Ok(()),
    }
}

/// Asserts what the proof of each kind must believe, told whether its events are on in treated samples,
/// whether the sample is treated, the events of all processes, and those of the treated one.
#[cfg(test)]
pub fn assert_proof<Of: Clone>(
    is_believed: impl Fn(bool, bool, u64, Of) -> bool,
    enough: &Of,
    none: &Of,
    too_few: &[Of],
) {
    let believes =
        |is_on, is_treated, events, of: &Of| is_believed(is_on, is_treated, events, of.clone());
    assert!(believes(true, true, 9, enough));
    assert!(!believes(true, true, 9, none), "it saw others");
    for (at, few) in too_few.iter().enumerate() {
        assert!(!believes(true, true, 9, few), "too few, number {at}");
    }
    assert!(believes(true, false, 0, none));
    assert!(!believes(true, false, 1, none), "it was left on");
    assert!(believes(false, true, 0, none));
    assert!(!believes(false, true, 9, enough), "it is off");
}
