//! The parent's side of a prober: starting it, and having it weigh operations.

use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use super::prober_process::{Order, Reply, Run, Setup};
use crate::own_program::{self, Helper};
use crate::treatment::Error;
use crate::treatment::audit::system;

/// The hidden subcommand that turns `weigh` into a prober.
pub const SUBCOMMAND: &str = "__prober";
/// What is asked for at once takes milliseconds; a full backlog may hold it up for a minute.
const TIMEOUT: Duration = Duration::from_secs(120);

/// A process that does operations when asked.
pub struct Prober {
    helper: Helper,
    pub pid: u32,
}

impl Prober {
    /// Starts one, which is born under the login uid that the set-up names.
    ///
    /// # Errors
    /// Where the login uid cannot be set, or its directory not be used.
    pub fn start(setup: &Setup, interrupted: &AtomicBool) -> Result<Prober, Error> {
        let mut helper = Helper::start(SUBCOMMAND).map_err(system)?;
        helper.send(setup).map_err(system)?;
        match helper.receive(interrupted, Instant::now() + TIMEOUT) {
            Ok(Reply::Ready(pid)) => Ok(Prober { helper, pid }),
            Ok(Reply::Error(problem)) => Err(system(problem)),
            Ok(Reply::Amounts(_)) => Err(system("the prober answers before it was asked")),
            Err(error) => Err(stop(error)),
        }
    }

    /// Nanoseconds, or instructions, of each run.
    ///
    /// # Errors
    /// Where an operation fails, or the user gave up.
    pub fn weigh(&mut self, runs: &[Run], interrupted: &AtomicBool) -> Result<Vec<u64>, Error> {
        self.order(&Order::Weigh(runs.to_vec()), runs.len(), interrupted)
    }

    /// Opens the canary.
    ///
    /// # Errors
    /// As [`Prober::weigh`].
    pub fn open_canary(&mut self, interrupted: &AtomicBool) -> Result<(), Error> {
        self.order(&Order::Canary, 0, interrupted).map(drop)
    }

    fn order(
        &mut self,
        order: &Order,
        amounts: usize,
        interrupted: &AtomicBool,
    ) -> Result<Vec<u64>, Error> {
        self.helper.send(order).map_err(system)?;
        match self.helper.receive(interrupted, Instant::now() + TIMEOUT) {
            Ok(Reply::Amounts(answer)) if answer.len() == amounts => Ok(answer),
            Ok(Reply::Error(problem)) => Err(system(problem)),
            Ok(Reply::Amounts(_) | Reply::Ready(_)) => Err(system("the prober talks nonsense")),
            Err(error) => Err(stop(error)),
        }
    }
}

fn stop(error: own_program::Error) -> Error {
    match error {
        own_program::Error::Interrupted => Error::Interrupted,
        other => system(other),
    }
}
