//! What is measured next: the contract of plans, and the one loop that drives them.
//!
//! A plan gets the time and the readings, and returns values: the next sample, or an event. It knows
//! neither the machine nor the store nor the terminal, so a simulated machine can drive each in tests.

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
    /// Returns the next step. `now` is the time since the experiment began.
    fn next(&mut self, now: Duration) -> Step;
    /// Takes the result of a sample that `next` asked for, or why there is none, and the time it took.
    fn took(
        &mut self,
        slot: &SampleSlot,
        found: Result<Readings, String>,
        cost: Duration,
    ) -> Vec<Event>;
}

/// Next step of a plan.
pub enum Step {
    Sample(SampleSlot),
    /// Nothing is measured, and the plan is asked again.
    Report(Event),
    Done,
}

/// What a plan reports besides its samples.
pub enum Event {
    /// A sentence for the person at the terminal.
    Note(String),
    /// A sentence for the person at the terminal and for the report.
    Warning(String),
    /// The workload of this sample has no result in its arm.
    Failure(SampleSlot, String),
    /// What is shown after a sample.
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
    loop {
        let events = match plan.next(platform.elapsed()) {
            Step::Done => return Ok(()),
            Step::Report(event) => vec![event],
            Step::Sample(slot) => {
                let began = platform.elapsed();
                let found = match platform.sample(&slot) {
                    Ok(readings) => Ok(readings),
                    Err(error) => Err(error.reason()?),
                };
                let cost = platform.elapsed().saturating_sub(began);
                plan.took(&slot, found, cost)
            }
        };
        for event in events {
            deliver(event, platform, progress_sink)?;
        }
    }
}

fn deliver(
    event: Event,
    platform: &mut impl Platform,
    progress_sink: &mut dyn ProgressSink,
) -> Result<(), Stop> {
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
    Ok(())
}
