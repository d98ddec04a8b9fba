//! Shell commands of the user's that change something and undo it: run with a limit of time, and journalled.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::guard::Guard;
use super::journal::{EntryOwner, Undoing};
use crate::orphans::{self, wait_until};

/// The journal's entry for what undoes.
const UNDO_COMMAND: &str = "undo command";
/// A command gets so long, and is killed.
const LIMIT: Duration = Duration::from_secs(60);
/// So much of what it says is told.
const TOLD_BYTES: u64 = 400;
/// What a shell answers where it cannot run a command.
const CANNOT_RUN: [i32; 2] = [126, 127];

/// A line for the shell, and where it is run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UserCommand {
    pub line: String,
    pub directory: PathBuf,
}

impl UserCommand {
    /// Runs it to its end; `Ok(Err)` says how it failed.
    ///
    /// # Errors
    /// A sentence, where it cannot be run, is killed or takes too long: that is no answer.
    pub fn run(&self) -> Result<Result<(), String>, String> {
        let cannot = |problem: String| format!("`{}`: {problem}", self.line);
        let output = tempfile::tempfile().map_err(|error| cannot(error.to_string()))?;
        let copy = || output.try_clone().map_err(|error| cannot(error.to_string()));
        let mut command = Command::new("/bin/sh");
        command.args(["-c", &self.line]).current_dir(&self.directory).process_group(0);
        command.stdin(Stdio::null()).stdout(copy()?).stderr(copy()?);
        let mut child = command.spawn().map_err(|error| cannot(error.to_string()))?;
        orphans::keep(child.id());
        let mut ended = None;
        wait_until(Instant::now() + LIMIT, || {
            ended = child.try_wait().ok().flatten();
            ended.is_some()
        });
        let is_late = ended.is_none();
        if is_late {
            let _ = kill_process_group(Pid::from_child(&child), Signal::KILL);
        }
        let status = child.wait().map_err(|error| cannot(error.to_string()))?;
        orphans::forget(child.id());
        let said = tail(output);
        match (status.code(), status.signal()) {
            _ if is_late => Err(cannot(format!("it took more than {} s", LIMIT.as_secs()))),
            (Some(0), _) => Ok(Ok(())),
            (Some(code), _) if CANNOT_RUN.contains(&code) => {
                Err(cannot(format!("the shell cannot run it (status {code}){said}")))
            }
            (Some(code), _) => Ok(Err(cannot(format!("it ended with status {code}{said}")))),
            (None, signal) => {
                Err(cannot(format!("it was killed by signal {}{said}", signal.unwrap_or(0))))
            }
        }
    }

    /// Runs it, and takes any failure for one.
    ///
    /// # Errors
    /// A sentence that says how it failed.
    pub fn succeed(&self) -> Result<(), String> {
        self.run()?
    }
}

fn tail(mut output: File) -> String {
    let mut bytes = Vec::new();
    let length = output.seek(SeekFrom::End(0)).unwrap_or(0);
    let _ = output.seek(SeekFrom::Start(length.saturating_sub(TOLD_BYTES)));
    let _ = output.read_to_end(&mut bytes);
    match String::from_utf8_lossy(&bytes).trim() {
        "" => String::new(),
        said => format!("; it said: {said}"),
    }
}

/// Has the guard run it when we are gone.
///
/// # Errors
/// A sentence, where the journal cannot be written.
pub fn write_down(undo: &UserCommand, guard: &mut Guard) -> Result<(), String> {
    let state = serde_json::to_value(undo).map_err(|error| error.to_string())?;
    let written = guard.write_down(UNDO_COMMAND, &undo.line, state);
    written.map_err(|error| format!("the journal: {error}"))
}

/// Strikes it out of the journal, once it is known that nothing is left to undo.
///
/// # Errors
/// A sentence, where the journal cannot be written.
pub fn strike_out(undo: &UserCommand, guard: &mut Guard) -> Result<(), String> {
    guard.strike_out(UNDO_COMMAND, &undo.line)
}

/// What it undoes may have outlived a boot: a file that was changed.
pub fn undoing() -> Undoing {
    let undo = Box::new(|state: &Value, _: &EntryOwner| {
        let command: UserCommand = serde_json::from_value(state.clone())
            .map_err(|error| format!("the journal's command is damaged: {error}"))?;
        let failed =
            |problem| format!("cannot undo what `cmd:` changed: {problem}; run it by hand");
        command.succeed().map_err(failed)
    });
    Undoing { kind: UNDO_COMMAND, ends_with_boot: false, undo }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_fails_is_told_from_what_cannot_be_run() {
        let run = |line: &str| {
            let directory = std::env::temp_dir();
            UserCommand { line: line.into(), directory }.run()
        };
        assert_eq!(run("true"), Ok(Ok(())));
        let failed = run("echo so it is; exit 3").unwrap().unwrap_err();
        assert!(failed.ends_with("it ended with status 3; it said: so it is"), "{failed}");
        assert!(run("no-such-command").unwrap_err().contains("cannot run it (status 127)"));
        assert!(run("kill -9 $$").unwrap_err().contains("killed by signal 9"));
        let absent = UserCommand { line: "true".into(), directory: "/absent".into() };
        assert!(absent.succeed().unwrap_err().contains("No such file"));
    }
}
