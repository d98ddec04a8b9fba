//! A strace that traces each worker from the start of its program to its end, and writes a line per call.
//!
//! The worker executes strace, which starts its tracer as a process of its own and then executes the program
//! in the same process. So the worker keeps its process number, and can have a seccomp filter of strace.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use crate::setup::{Act, look};
use weigh_host::orphans::wait_until;

/// How long strace may take to write the end of a worker that has ended.
const LIMIT: Duration = Duration::from_secs(2);
/// More than strace writes between two looks at its file, where other processes go on after the worker.
const TAIL: u64 = 256 << 10;

/// The tracer of each worker; none if the command is empty.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StraceTracer {
    /// strace with its options, to put before a command line; empty where nothing is traced.
    pub command: Vec<String>,
    /// Where strace writes its lines.
    pub lines: PathBuf,
}

impl StraceTracer {
    /// Name of the observation: the process that traced the worker just after its release, or 0.
    pub const TRACER: &str = "tracer";
    /// Name of the observation: the number of calls that strace wrote. Missing if strace did not write how
    /// the worker ended: it then did not trace the worker until its end.
    pub const CALLS: &str = "calls of strace";

    fn traces(&self) -> bool {
        !self.command.is_empty()
    }
}

impl Act for StraceTracer {
    fn command_line(&self, argv: Vec<String>) -> Vec<String> {
        self.command.iter().cloned().chain(argv).collect()
    }

    /// It comes last, so that strace starts the program with all words that other steps fill in.
    fn forbids(&self) -> bool {
        true
    }

    fn look_on(&self, worker: u32, seen: &mut BTreeMap<String, String>) -> io::Result<()> {
        let tracer = look::status_line(&worker.to_string(), "TracerPid")?;
        seen.insert(StraceTracer::TRACER.into(), tracer);
        Ok(())
    }

    /// strace is ended with everything else that the worker left, but writes the end of the worker first.
    fn before_orphans_end(&self, worker: u32) {
        if self.traces() {
            wait_until(Instant::now() + LIMIT, || {
                tail(&self.lines).is_ok_and(|tail| tail.lines().any(|line| is_end(line, worker)))
            });
        }
    }

    fn look_back(&self, worker: u32, seen: &mut BTreeMap<String, String>) -> io::Result<()> {
        if !self.traces() {
            return Ok(());
        }
        let file = match File::open(&self.lines) {
            // strace did not begin.
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            opened => opened?,
        };
        let (mut calls, mut has_end) = (0_u64, false);
        for line in BufReader::new(file).split(b'\n') {
            let line = line?;
            let line = String::from_utf8_lossy(&line);
            calls += u64::from(is_call(&line));
            has_end |= is_end(&line, worker);
        }
        fs::remove_file(&self.lines)?;
        if has_end {
            seen.insert(StraceTracer::CALLS.into(), calls.to_string());
        }
        Ok(())
    }
}

fn tail(file: &Path) -> io::Result<String> {
    let mut file = File::open(file)?;
    let length = file.metadata()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(TAIL)))?;
    let mut tail = Vec::new();
    file.read_to_end(&mut tail)?;
    Ok(String::from_utf8_lossy(&tail).into_owned())
}

/// Splits a line into its process number and what happened.
fn event(line: &str) -> Option<(&str, &str)> {
    let (process, event) = line.split_once(' ')?;
    Some((process, event.trim_start()))
}

/// A call is on one line, or on two if another thread's call came between: the second begins with `<...`.
fn is_call(line: &str) -> bool {
    let is_other = |event: &str| ["+++ ", "--- ", "<... "].iter().any(|it| event.starts_with(it));
    event(line).is_some_and(|(_, event)| !is_other(event))
}

fn is_end(line: &str, worker: u32) -> bool {
    let is_end = |event: &str| event.starts_with("+++ exited") || event.starts_with("+++ killed");
    event(line).is_some_and(|(process, event)| process == worker.to_string() && is_end(event))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As strace 6.1 writes it.
    const LINES: &str = "\
7     execve(\"/bin/sh\", [\"sh\"], 0x7ffe /* 9 vars */) = 0
7     wait4(-1,  <unfinished ...>
12    getppid()                         = 7
12    +++ exited with 0 +++
7     <... wait4 resumed>[{WIFEXITED(s) && WEXITSTATUS(s) == 0}], 0, NULL) = 12
7     --- SIGCHLD {si_signo=SIGCHLD, si_code=CLD_EXITED} ---
";

    fn seen(lines: &str) -> BTreeMap<String, String> {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("lines");
        fs::write(&file, lines).unwrap();
        let step = StraceTracer { command: vec!["strace".into()], lines: file.clone() };
        let mut seen = BTreeMap::new();
        step.look_back(7, &mut seen).unwrap();
        assert!(!file.exists());
        seen
    }

    #[test]
    fn calls_count_once_and_only_of_a_worker_that_was_traced_to_its_end() {
        assert_eq!(seen(LINES).get(StraceTracer::CALLS), None, "the tracer was killed");
        for end in ["7     +++ exited with 3 +++\n", "7     +++ killed by SIGKILL +++\n"] {
            let seen = seen(&format!("{LINES}{end}"));
            assert_eq!(seen[StraceTracer::CALLS], "3");
        }
    }

    #[test]
    fn strace_comes_before_the_command_and_nothing_does_where_nothing_is_traced() {
        let step = |command: &[&str]| StraceTracer {
            command: command.iter().copied().map(Into::into).collect(),
            lines: PathBuf::new(),
        };
        let of = |command: &[&str]| step(command).command_line(vec!["true".into()]);
        assert_eq!(of(&["strace", "-f"]), ["strace", "-f", "true"]);
        assert_eq!(of(&[]), ["true"]);
    }
}
