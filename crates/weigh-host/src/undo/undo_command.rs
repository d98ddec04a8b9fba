//! Shell commands of the user's that change something and undo it: run with a limit of time, and journalled.

use std::fs::File;
use std::io;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::orphans;
use crate::orphans::wait_until;
use crate::said;
use crate::undo::guard::Guard;
use crate::undo::journal::{EntryOwner, Undoing};
use crate::undo::running::CurrentCommand;
use trust::start::{self, Inherited};

/// The journal's entry for what undoes.
const UNDO_COMMAND: &str = "undo command";
/// A command gets so long, and is killed.
const LIMIT: Duration = Duration::from_secs(60);
/// Exit codes of a shell that cannot run a command.
const CANNOT_RUN: [i32; 2] = [126, 127];

/// A line for the shell, and where it is run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UserCommand {
    pub line: String,
    pub directory: PathBuf,
}

#[derive(Clone, Copy)]
enum CommandEffect<'a> {
    /// It only looks.
    None,
    /// It is ended before others undo what it does.
    Changes(&'a CurrentCommand),
    /// Undoes changes, and is ended before others undo. It is run even where it cannot be kept: not
    /// undoing is worse.
    Undoes(&'a CurrentCommand),
}

impl UserCommand {
    /// Runs one that changes nothing to its end; `Ok(Err)` says how it failed.
    ///
    /// # Errors
    /// A sentence, where it cannot be run, is killed or takes too long: that is no answer.
    pub fn ask(&self) -> Result<Result<(), String>, String> {
        self.run(CommandEffect::None)
    }

    /// Runs one that changes something, and takes any failure for one.
    pub fn change(&self, running: &CurrentCommand) -> Result<(), String> {
        self.run(CommandEffect::Changes(running))?
    }

    /// Runs one that undoes, and takes any failure for one.
    pub fn undo(&self, running: &CurrentCommand) -> Result<(), String> {
        self.run(CommandEffect::Undoes(running))?
    }

    fn shell(&self, output: &File) -> io::Result<Command> {
        let mut command = start::command("/bin/sh", Inherited::Callers);
        command.args(["-c", &self.line]).current_dir(&self.directory).process_group(0);
        command.stdin(Stdio::null()).stdout(output.try_clone()?).stderr(output.try_clone()?);
        Ok(command)
    }

    fn start(&self, output: &File, effect: CommandEffect) -> io::Result<Child> {
        let command = self.shell(output)?;
        match effect {
            CommandEffect::None => {}
            CommandEffect::Changes(running) => return running.start(command),
            CommandEffect::Undoes(running) => {
                if let Ok(child) = running.start(command) {
                    return Ok(child);
                }
            }
        }
        let child = self.shell(output)?.spawn()?;
        orphans::keep(child.id());
        Ok(child)
    }

    fn run(&self, effect: CommandEffect) -> Result<Result<(), String>, String> {
        let cannot = |problem: String| format!("`{}`: {problem}", self.line);
        let said = |error: io::Error| cannot(error.to_string());
        // No pipe: what it starts may go on, and print after nobody reads any more.
        let output = tempfile::tempfile().map_err(said)?;
        let mut child = self.start(&output, effect).map_err(said)?;
        let mut ended = None;
        wait_until(Instant::now() + LIMIT, || {
            ended = child.try_wait().ok().flatten();
            ended.is_some()
        });
        let is_late = ended.is_none();
        if is_late {
            // Also what left its group: it would go on while this is undone.
            if let CommandEffect::Changes(running) | CommandEffect::Undoes(running) = effect {
                running.stop().map_err(&cannot)?;
            }
            let _ = kill_process_group(Pid::from_child(&child), Signal::KILL);
            // It may have left the group that it led.
            let _ = child.kill();
            if !orphans::wait_for(&mut child, Instant::now() + orphans::LIMIT) {
                return Err(cannot(format!(
                    "it took too long, and process {} does not end",
                    child.id()
                )));
            }
        }
        let status = child.wait().map_err(said)?;
        orphans::forget(child.id());
        if let CommandEffect::Changes(running) | CommandEffect::Undoes(running) = effect {
            running.forget();
        }
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
}

fn tail(output: File) -> String {
    match said::words(&said::end_of(Ok(output))) {
        words if words.is_empty() => words,
        words => format!("; it printed: {words}"),
    }
}

/// Has the guard run it when we are gone. Owners with the same command have an entry each.
pub fn write_down(owner: &str, undo: &UserCommand, guard: &mut Guard) -> Result<(), String> {
    let state = serde_json::to_value(undo).map_err(|error| error.to_string())?;
    let written = guard.write_down(UNDO_COMMAND, &instance(owner, undo), state);
    written.map_err(|error| error.to_string())
}

/// Strikes it out of the journal, once it is known that nothing of this owner is left to undo.
pub fn strike_out(owner: &str, undo: &UserCommand, guard: &mut Guard) -> Result<(), String> {
    guard.strike_out(UNDO_COMMAND, &instance(owner, undo))
}

fn instance(owner: &str, undo: &UserCommand) -> String {
    format!("{} ({owner})", undo.line)
}

/// Returns how to undo with a command. It may undo a change that outlived a boot: a file that was
/// changed.
pub fn undoing() -> Undoing {
    let undo = Box::new(|state: &Value, owner: &EntryOwner| {
        let command: UserCommand = serde_json::from_value(state.clone())
            .map_err(|error| format!("the journal's command is damaged: {error}"))?;
        let failed = |problem| {
            format!("cannot undo what `cmd:` changed: {problem}; run the command by hand")
        };
        command.undo(owner.running).map_err(failed)
    });
    Undoing { kind: UNDO_COMMAND, ends_with_boot: false, by_command: true, undo }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_fails_is_told_from_what_cannot_be_run() {
        let run = |line: &str| {
            let directory = std::env::temp_dir();
            UserCommand { line: line.into(), directory }.ask()
        };
        assert_eq!(run("true"), Ok(Ok(())));
        let failed = run("echo so it is; exit 3").unwrap().unwrap_err();
        assert!(failed.ends_with("it ended with status 3; it printed: so it is"), "{failed}");
        assert!(run("exit 3").unwrap().unwrap_err().ends_with("it ended with status 3"));
        assert!(run("no-such-command").unwrap_err().contains("cannot run it (status 127)"));
        assert!(run("kill -9 $$").unwrap_err().contains("killed by signal 9"));
        let absent = UserCommand { line: "true".into(), directory: "/absent".into() };
        assert!(absent.ask().unwrap_err().contains("No such file"));
    }
}
