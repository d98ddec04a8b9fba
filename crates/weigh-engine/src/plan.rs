//! The contract of plans, which choose what is measured next, and the one loop that drives them.
//!
//! A plan gets the time and the readings, and gives values: the next sample, and events for the loop to
//! deliver. It knows neither host nor store nor terminal, so a simulated machine drives it in tests.

use std::time::Duration;

use super::platform::{Platform, Readings, SampleSlot, Stop};
use super::request::{ProgressSink, Taken};
use super::row::RowKey;
use weigh_model::result::work_name::WorkName;

pub mod peak;
pub mod ramp;
pub mod run;
#[cfg(test)]
pub mod simulated;
pub mod sweep;

/// Chooses the samples of an experiment, one after the other.
pub trait Planner {
    /// Returns the next sample, or `None` where the plan is done. `now` is the time since the experiment
    /// began.
    fn next(&mut self, now: Duration, events: &mut Vec<Event>) -> Option<SampleSlot>;
    /// Takes the outcome of the sample that `next` asked for.
    fn took(&mut self, slot: &SampleSlot, outcome: Outcome, events: &mut Vec<Event>);
}

/// Outcome of a sample.
pub struct Outcome {
    /// Its readings, or why it has none.
    pub found: Result<Readings, String>,
    /// How long it took.
    pub cost: Duration,
}

/// A report of a plan besides its samples.
pub enum Event {
    /// A sentence for the person at the terminal.
    Note(String),
    /// A sentence for the person at the terminal and for the report.
    Warning(String),
    /// The workload of this sample has no result in its arm.
    Failure(SampleSlot, String),
    /// A sample, to be shown.
    Taken(Taken),
    /// The experiment cannot go on.
    Stop(String),
}

/// A load point of a mix.
pub struct MixPoint {
    pub unit: RowKey,
    pub name: WorkName,
    pub users: usize,
}

/// Takes the samples that a plan asks for, until it is done.
///
/// # Errors
/// Where the experiment cannot go on.
pub fn drive(
    plan: &mut impl Planner,
    platform: &mut impl Platform,
    progress_sink: &mut dyn ProgressSink,
) -> Result<(), Stop> {
    let mut events = Vec::new();
    loop {
        let next = plan.next(platform.elapsed(), &mut events);
        deliver(&mut events, platform, progress_sink)?;
        let Some(slot) = next else { return Ok(()) };
        let began = platform.elapsed();
        let found = match platform.sample(&slot) {
            Ok(readings) => Ok(readings),
            Err(error) => Err(error.reason()?),
        };
        let cost = platform.elapsed().saturating_sub(began);
        plan.took(&slot, Outcome { found, cost }, &mut events);
        deliver(&mut events, platform, progress_sink)?;
    }
}

fn deliver(
    events: &mut Vec<Event>,
    platform: &mut impl Platform,
    progress_sink: &mut dyn ProgressSink,
) -> Result<(), Stop> {
    for event in events.drain(..) {
        match event {
            Event::Note(sentence) => progress_sink.announce(&sentence),
            Event::Warning(sentence) => {
                progress_sink.announce(&sentence);
                platform.warn(&sentence)?;
            }
            Event::Failure(slot, reason) => platform.failed(&slot, &reason)?,
            Event::Taken(taken) => progress_sink.took(&taken),
            Event::Stop(problem) => return Err(Stop::Failed(problem)),
        }
    }
    Ok(())
}
