//! The protocol of both roles, over stdin and stdout: the first line says what to receive, each further one
//! is an order, and each has an [`Answer`]. A role ends at the end of its input.

use std::io;

use rustix::process::{Signal, set_parent_process_death_signal};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use weigh_host::lines::Lines;

#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Answer<Counts> {
    Ready,
    Counts(Counts),
    /// It cannot go on; a sentence.
    Error(String),
}

/// Reads the first line and lets `serve` answer all orders, until the end of the input.
///
/// # Errors
/// If stdin or stdout fail. `weigh` learns all other problems as an [`Answer::Error`].
pub fn run<First: DeserializeOwned>(
    serve: impl FnOnce(First, &mut Lines) -> io::Result<()>,
) -> io::Result<()> {
    // Somebody may have stopped it when `weigh` is killed. Then it would not see the end of its input, and a
    // listener would block opens.
    set_parent_process_death_signal(Some(Signal::KILL))?;
    let [requests, answers] =
        [rustix::io::dup(rustix::stdio::stdin())?, rustix::io::dup(rustix::stdio::stdout())?];
    let mut lines = Lines::over(answers, requests);
    let first: First = loop {
        match lines.unread() {
            Some(first) => break first?,
            None if !lines.fill()? => return Ok(()),
            None => {}
        }
    };
    match serve(first, &mut lines) {
        Ok(()) => Ok(()),
        Err(error) => lines.send(&Answer::<()>::Error(error.to_string())),
    }
}
