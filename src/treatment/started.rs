//! A process of another program that an experiment starts, and that must not outlive it.

use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::guard::Guard;
use crate::machine::process::process_start;

/// The journal's entry for it.
pub const STARTED: &str = "started process";

/// Known by its number and its start, as numbers come again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Started {
    pid: u32,
    /// In clock ticks since boot.
    start: i64,
}

/// Has the guard end this process when we are gone.
///
/// # Errors
/// A sentence, where it has ended already, or the journal cannot be written.
pub fn write_down(guard: &mut Guard, pid: u32) -> Result<(), String> {
    let start = process_start(pid).ok_or_else(|| format!("process {pid} has ended already"))?;
    let state = serde_json::to_value(Started { pid, start }).map_err(|error| error.to_string())?;
    guard.write_down(STARTED, state).map_err(|error| format!("the journal: {error}"))
}

/// Ends the process of the journal's entry, where it still lives: SIGTERM, and SIGKILL if that does not
/// help.
///
/// # Errors
/// A sentence that says how to end it.
pub fn undo(state: &Value) -> Result<(), String> {
    const LIMITS: [(Signal, Duration); 2] =
        [(Signal::TERM, Duration::from_secs(10)), (Signal::KILL, Duration::from_secs(2))];
    let Started { pid, start } = serde_json::from_value(state.clone())
        .map_err(|error| format!("the journal's process is damaged: {error}"))?;
    let is_alive = || process_start(pid) == Some(start);
    let Some(process) = i32::try_from(pid).ok().and_then(Pid::from_raw) else { return Ok(()) };
    for (signal, limit) in LIMITS {
        if is_alive() {
            let _ = kill_process(process, signal);
            // It may have been stopped.
            let _ = kill_process(process, Signal::CONT);
        }
        let deadline = Instant::now() + limit;
        while is_alive() && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(5));
        }
    }
    if is_alive() { Err(format!("process {pid} does not end: `kill -9 {pid}`")) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn just_the_process_that_was_started_is_ended() {
        let mut child = Command::new("sleep").arg("60").spawn().unwrap();
        let start = process_start(child.id()).unwrap();
        let entry = |start| serde_json::to_value(Started { pid: child.id(), start }).unwrap();
        let (other, own) = (entry(start - 1), entry(start));
        undo(&other).unwrap();
        assert!(child.try_wait().unwrap().is_none(), "another process of that number was ended");
        undo(&own).unwrap();
        assert!(!child.wait().unwrap().success());
        undo(&own).unwrap();
        assert!(undo(&Value::Null).unwrap_err().contains("damaged"));
    }
}
