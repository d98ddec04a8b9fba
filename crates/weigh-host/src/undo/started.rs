//! A process of another program that an experiment starts, and that must not outlive it: auditd.

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::machine::process::{process_start, read_proc};
use crate::undo::guard::Guard;
use crate::undo::journal::{EntryOwner, Undoing};
use crate::undo::scratch;

/// The journal's entry for it.
pub const STARTED: &str = "started process";

/// Where every auditd writes its number.
const AUDITD_PID_FILE: &str = "/run/auditd.pid";

pub fn undoing() -> Undoing {
    let undo = Box::new(|state: &Value, owner: &EntryOwner| undo(state, owner.pid));
    Undoing { kind: STARTED, ends_with_boot: true, by_command: false, undo }
}

/// Known by its number and its start, as numbers come again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Started {
    pid: u32,
    /// In clock ticks since boot.
    start: i64,
}

/// Has the guard end this process when we are gone.
pub fn write_down(guard: &mut Guard, pid: u32) -> Result<(), String> {
    let start = process_start(pid).map_err(|error| error.to_string())?;
    let start = start.ok_or_else(|| format!("process {pid} has ended already"))?;
    let state = serde_json::to_value(Started { pid, start }).map_err(|error| error.to_string())?;
    let written = guard.write_down(STARTED, &pid.to_string(), state);
    written.map_err(|error| error.to_string())
}

/// Strikes a process that was ended out of the journal.
pub fn forget(guard: &mut Guard, pid: u32) -> Result<(), String> {
    guard.undo(STARTED, &pid.to_string())
}

/// Ends the process of the journal's entry, where it still lives. Only one that was started with a
/// configuration in the directory of that experiment is ended.
///
/// # Errors
/// A sentence that says how to end it.
pub fn undo(state: &Value, owner_pid: u32) -> Result<(), String> {
    let started: Started = serde_json::from_value(state.clone())
        .map_err(|error| format!("the journal's process is damaged: {error}"))?;
    if started.is_alive()? {
        let command_line = command_line(started.pid).map_err(|error| started.unseen(&error))?;
        started.end(StartedBy::of(&command_line, owner_pid))?;
    }
    remove_pid_file(Path::new(AUDITD_PID_FILE), started.pid)
}

/// Whoever started a process, by its command line.
#[derive(Clone, Copy, Debug, PartialEq)]
enum StartedBy {
    /// The experiment: with a configuration in its private directory.
    Us,
    Others,
    /// Unknown: a process that is ending has no command line any more, as its memory goes first. It may take
    /// its time until it has ended, and ours begins to when we are gone (`PR_SET_PDEATHSIG`).
    Unknown,
}

impl StartedBy {
    fn of(command_line: &[u8], owner_pid: u32) -> StartedBy {
        let words: Vec<&[u8]> = command_line.split(|&byte| byte == 0).collect();
        let is_ours = words.windows(2).any(|pair| {
            let path = Path::new(OsStr::from_bytes(pair[1]));
            pair[0] == b"-c" && scratch::is_below(path, owner_pid)
        });
        match is_ours {
            true => StartedBy::Us,
            false if command_line.is_empty() => StartedBy::Unknown,
            false => StartedBy::Others,
        }
    }
}

impl Started {
    fn is_alive(self) -> Result<bool, String> {
        let start = process_start(self.pid).map_err(|error| self.unseen(&error))?;
        Ok(start == Some(self.start))
    }

    /// One that cannot be seen has not ended.
    fn unseen(self, error: &io::Error) -> String {
        format!("cannot see whether process {} has ended: {error}", self.pid)
    }

    /// Waits until it has ended. One of ours gets SIGTERM, and SIGKILL if that does not help.
    fn end(self, started_by: StartedBy) -> Result<(), String> {
        const LIMITS: [(Signal, Duration); 2] =
            [(Signal::TERM, Duration::from_secs(10)), (Signal::KILL, Duration::from_secs(2))];
        let pid = self.pid;
        if started_by == StartedBy::Others && self.is_alive()? {
            return Err(format!("process {pid} was not started by weigh, so it is left running"));
        }
        let process = i32::try_from(pid).ok().and_then(Pid::from_raw);
        for (signal, limit) in LIMITS {
            let deadline = Instant::now() + limit;
            if let Some(process) = process
                && started_by == StartedBy::Us
                && self.is_alive()?
            {
                let _ = kill_process(process, signal);
                // It may have been stopped.
                let _ = kill_process(process, Signal::CONT);
            }
            while self.is_alive()? && Instant::now() < deadline {
                std::thread::sleep(Duration::from_millis(5));
            }
        }
        match self.is_alive()? {
            true => Err(format!("process {pid} does not end; run `kill -9 {pid}`")),
            false => Ok(()),
        }
    }
}

/// An auditd that was killed leaves its file, by which others would believe that it runs.
fn remove_pid_file(file: &Path, pid: u32) -> Result<(), String> {
    let cannot = |error: io::Error| format!("cannot remove {}: {error}", file.display());
    match fs::read_to_string(file) {
        Ok(text) if text.trim() == pid.to_string() => fs::remove_file(file).map_err(cannot),
        Ok(_) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(cannot(error)),
    }
}

/// The words of a process, each with a zero behind it; none of one that is ending.
fn command_line(pid: u32) -> io::Result<Vec<u8>> {
    match read_proc(pid, "cmdline") {
        Err(_) if process_start(pid)?.is_none() => Ok(Vec::new()),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Child, Command, Stdio};

    /// It waits for the end of its input; to it, what follows is only arguments.
    fn start(arguments: &[&str]) -> (Child, Value) {
        let mut command = Command::new("sh");
        command.args(["-c", "read line; exit 7"]).args(arguments).stdin(Stdio::piped());
        let child = command.spawn().unwrap();
        // It is itself once it has executed.
        while !std::fs::read(format!("/proc/{}/cmdline", child.id())).unwrap().starts_with(b"sh") {
            std::thread::yield_now();
        }
        let start = process_start(child.id()).unwrap().unwrap();
        let entry = serde_json::to_value(Started { pid: child.id(), start }).unwrap();
        (child, entry)
    }

    #[test]
    fn just_the_process_that_was_started_is_ended() {
        let (mut child, own) = start(&["-c", "/tmp/weigh-7-0123456789abcdef/auditd-x"]);
        let mut other = own.clone();
        other["start"] = (own["start"].as_i64().unwrap() - 1).into();
        undo(&other, 7).unwrap();
        assert!(child.try_wait().unwrap().is_none(), "another process of that number was ended");
        assert!(undo(&own, 8).unwrap_err().contains("not started by weigh"));
        assert!(child.try_wait().unwrap().is_none(), "a process of another weigh was ended");
        undo(&own, 7).unwrap();
        assert!(!child.wait().unwrap().success());
        undo(&own, 7).unwrap();
        assert!(undo(&Value::Null, 7).unwrap_err().contains("damaged"));
    }

    /// Its guard and auditd learn at the same time that `weigh` was killed.
    #[test]
    fn one_that_is_ending_by_itself_is_waited_for() {
        let own = b"auditd\0-n\0-c\0/tmp/weigh-7-0123456789abcdef/auditd-x\0";
        assert_eq!(StartedBy::of(own, 7), StartedBy::Us);
        assert_eq!(StartedBy::of(own, 8), StartedBy::Others);
        assert_eq!(StartedBy::of(b"", 7), StartedBy::Unknown);
        // Greater than every number of a process.
        assert_eq!(command_line(5_000_000).unwrap(), b"", "it has ended");
        let mut child = Command::new("sh").args(["-c", "sleep 0.3; exit 7"]).spawn().unwrap();
        let start = process_start(child.id()).unwrap().unwrap();
        let started = Started { pid: child.id(), start };
        assert!(started.end(StartedBy::Others).unwrap_err().contains("not started by weigh"));
        started.end(StartedBy::Unknown).unwrap();
        assert_eq!(child.wait().unwrap().code(), Some(7), "it gets no signal");
    }

    #[test]
    fn a_killed_auditd_leaves_no_file_with_its_number() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("auditd.pid");
        fs::write(&file, "123\n").unwrap();
        remove_pid_file(&file, 12).unwrap();
        assert!(file.exists(), "of another auditd");
        remove_pid_file(&file, 123).unwrap();
        assert!(!file.exists() && remove_pid_file(&file, 123).is_ok());
        let unreadable = remove_pid_file(directory.path(), 123).unwrap_err();
        assert!(unreadable.starts_with("cannot remove "), "{unreadable}");
    }

    #[test]
    fn a_process_that_weigh_cannot_have_started_goes_on() {
        let (mut child, entry) = start(&["-c", "/etc/audit"]);
        assert!(undo(&entry, 7).is_err() && child.try_wait().unwrap().is_none());
        drop(child.stdin.take());
        assert_eq!(child.wait().unwrap().code(), Some(7));
    }

    /// auditd may have the log to write out first.
    #[test]
    fn what_ends_when_it_is_asked_is_not_killed() {
        let mut command = Command::new("sh");
        let own = ["-c", "/tmp/weigh-7-0123456789abcdef/auditd-x"];
        let line = "trap 'sleep 0.3; exit 7' TERM; echo; for i in $(seq 1000); do sleep 0.02; done";
        let mut child =
            command.args(["-c", line]).args(own).stdout(Stdio::piped()).spawn().unwrap();
        let mut ready = [0];
        std::io::Read::read_exact(child.stdout.as_mut().unwrap(), &mut ready).unwrap();
        let start = process_start(child.id()).unwrap().unwrap();
        let entry = serde_json::to_value(Started { pid: child.id(), start }).unwrap();
        undo(&entry, 7).unwrap();
        assert_eq!(child.wait().unwrap().code(), Some(7));
    }
}
