//! Runs commands of a compiler, as many at a time as there are CPUs, until all have ended, one fails or takes
//! too long, or the user gives up. No shell is run.

use std::io;
use std::path::Path;
use std::process::{ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{available_parallelism, sleep};
use std::time::{Duration, Instant};

use crate::TreatmentError;
use trust::program::search_path;
use trust::start::{self, Inherited};
use weigh_host::said::{Heard, KEPT_BYTES, Keep};
use weigh_model::shell::command_line;

const PAUSE: Duration = Duration::from_millis(2);
/// Most lines of a compiler's output to report: mostly the first complaint causes the others.
const SAID_LINES: usize = 4;
/// As much of a command as tells which it is.
const SHOWN_WORDS: usize = 12;

/// Where they are run, and who may give up.
pub struct Jobs<'a> {
    pub directory: &'a Path,
    pub interrupted: &'a AtomicBool,
    /// How long each may take.
    pub limit: Duration,
}

struct Running<'a> {
    command: &'a [String],
    heard: Heard,
    deadline: Instant,
}

impl Jobs<'_> {
    /// Gives what each said.
    ///
    /// # Errors
    /// What the first said that failed; or [`TreatmentError::Interrupted`].
    pub fn run_all(&self, commands: &[Vec<String>]) -> Result<Vec<String>, TreatmentError> {
        let at_a_time = available_parallelism().map_or(1, usize::from);
        let mut waiting = commands.iter();
        let mut running: Vec<Running> = Vec::new();
        let mut said = Vec::new();
        loop {
            while running.len() < at_a_time
                && let Some(command) = waiting.next()
            {
                let started = self.start(command).map_err(|error| {
                    TreatmentError::Unavailable(format!("cannot run {}: {error}", command[0]))
                })?;
                running.push(started);
            }
            if running.is_empty() {
                return Ok(said);
            }
            if self.interrupted.load(Ordering::Relaxed) {
                return Err(TreatmentError::Interrupted);
            }
            let before = running.len();
            let mut index = 0;
            while index < running.len() {
                match running[index].ended().map_err(TreatmentError::Unavailable)? {
                    true => said.push(running.swap_remove(index).heard.stdout.text()),
                    false => index += 1,
                }
            }
            if running.len() == before {
                sleep(PAUSE);
            }
        }
    }

    fn start<'c>(&self, command: &'c [String]) -> io::Result<Running<'c>> {
        let (program, arguments) = command.split_first().ok_or(io::ErrorKind::InvalidInput)?;
        let mut process = start::command(program, Inherited::Fixed);
        process
            .args(arguments)
            .current_dir(self.directory)
            // What changes what a compiler does is what the user wrote, and nothing else: the label says it.
            .env_clear()
            .env("PATH", search_path())
            .env("TMPDIR", self.directory)
            .env("LC_ALL", "C")
            .stdin(Stdio::null());
        let heard = Heard::start_joined(process, Keep::First(KEPT_BYTES))?;
        Ok(Running { command, heard, deadline: Instant::now() + self.limit })
    }
}

impl Running<'_> {
    /// Returns true if the command has succeeded, false if it still runs.
    fn ended(&mut self) -> Result<bool, String> {
        match self.heard.ended() {
            Err(error) => Err(self.problem(&error.to_string())),
            Ok(None) if Instant::now() > self.deadline => {
                Err(self.problem("took too long and was killed"))
            }
            Ok(None) => Ok(false),
            Ok(Some(status)) if status.success() => Ok(true),
            Ok(Some(status)) => Err(self.problem(&end_of(status))),
        }
    }

    fn problem(&mut self, what: &str) -> String {
        let shown = self.command.iter().take(SHOWN_WORDS).map(String::as_str);
        let more = if self.command.len() > SHOWN_WORDS { " …" } else { "" };
        let said = complaints(&self.heard.stdout.text());
        format!("`{}{more}` {what}: {said}", command_line(shown)).trim_end_matches(": ").to_owned()
    }
}

/// The lines that say what is wrong, else the first, as one line.
fn complaints(said: &str) -> String {
    let lines = || said.lines().map(str::trim).filter(|line| !line.is_empty());
    let is_error =
        |line: &&str| ["error", "undefined reference"].iter().any(|it| line.contains(it));
    let errors: Vec<&str> = lines().filter(is_error).take(SAID_LINES).collect();
    let lines = if errors.is_empty() { lines().take(SAID_LINES).collect() } else { errors };
    lines.join("; ")
}

fn end_of(status: ExitStatus) -> String {
    match status.code() {
        Some(code) => format!("failed with status {code}"),
        None => format!("ended by {status}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(commands: &[&[&str]], interrupted: bool) -> Result<Vec<String>, String> {
        run_within(Duration::from_secs(300), commands, interrupted)
    }

    fn run_within(
        limit: Duration,
        commands: &[&[&str]],
        interrupted: bool,
    ) -> Result<Vec<String>, String> {
        let interrupted = AtomicBool::new(interrupted);
        let jobs = Jobs { directory: "/".as_ref(), interrupted: &interrupted, limit };
        let owned = |words: &&[&str]| words.iter().map(|&word| word.to_owned()).collect();
        let commands: Vec<Vec<String>> = commands.iter().map(owned).collect();
        jobs.run_all(&commands).map_err(|error| error.to_string())
    }

    #[test]
    fn all_are_run_and_the_first_that_fails_is_quoted() {
        let mut said = run(&[&["/bin/echo", "a b"][..]; 9], false).unwrap();
        said.dedup();
        assert_eq!(said, ["a b\n"]);
        let failing = "echo one >&2; echo two; exit 3";
        let began = Instant::now();
        let refused = run(&[&["/bin/sleep", "600"], &["/bin/sh", "-c", failing]], false);
        let refused = refused.unwrap_err();
        assert_eq!(refused, format!("`/bin/sh -c '{failing}'` failed with status 3: one; two"));
        assert!(began.elapsed() < Duration::from_secs(60), "the others are ended");
        assert!(run(&[&["/no/such/cc"]], false).unwrap_err().starts_with("cannot run /no/such/cc"));
    }

    #[test]
    fn what_is_wrong_is_picked_from_what_is_said() {
        let said =
            "a.c: In function 'f':\na.c:1:2: error: no\n  1 | x\n    | ^\nb.c:2: error: nor\n";
        assert_eq!(complaints(said), "a.c:1:2: error: no; b.c:2: error: nor");
        assert_eq!(complaints("one\n\n two\n"), "one; two");
    }

    #[test]
    fn what_takes_too_long_is_ended() {
        let refused = run_within(Duration::from_millis(20), &[&["/bin/sleep", "600"]], false);
        assert_eq!(refused.unwrap_err(), "`/bin/sleep 600` took too long and was killed");
    }

    #[test]
    fn who_gives_up_waits_for_none() {
        let began = Instant::now();
        assert_eq!(run(&[&["/bin/sleep", "600"]], true).unwrap_err(), "interrupted");
        assert!(began.elapsed() < Duration::from_secs(60));
    }
}
