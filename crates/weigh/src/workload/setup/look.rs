//! What the kernel tells of a worker whose program was just executed, or that has just ended.

use std::fs;
use std::io;
use std::time::{Duration, Instant};

use crate::orphans::wait_until;

/// The kernel is done with an execution within moments of what the launcher waits for.
const LIMIT: Duration = Duration::from_secs(2);

/// Fields of `/proc/PID/stat` from the state on (proc_pid_stat(5)), as they are numbered there.
const STATE: usize = 3;
const NICE: usize = 19;
const ENV_END: usize = 51;

/// A file of `/proc/PID` that is about what was executed, such as `environ`; `None` where the worker has
/// ended before anybody could look.
///
/// # Errors
/// Where it cannot be read.
pub fn of_program(worker: u32, file: &str) -> io::Result<Option<Vec<u8>>> {
    let path = format!("/proc/{worker}/{file}");
    // The launcher goes on when the kernel closes a pipe, which is before it puts the strings in place.
    let is_executed = || has_ended(worker) || stat(worker, ENV_END).is_ok_and(|end| end != "0");
    wait_until(Instant::now() + LIMIT, is_executed);
    let content = fs::read(&path).map_err(|error| io::Error::other(format!("{path}: {error}")));
    match content {
        _ if has_ended(worker) => Ok(None),
        other => other.map(Some),
    }
}

/// A line of `/proc/PID/status`, also of one that has ended and was not reaped.
///
/// # Errors
/// Where there is none.
pub fn status_line(process: &str, name: &str) -> io::Result<String> {
    let path = format!("/proc/{process}/status");
    let status = fs::read_to_string(&path)?;
    let value = |line: &str| Some(line.strip_prefix(name)?.strip_prefix(':')?.trim().to_owned());
    status.lines().find_map(value).ok_or_else(|| io::Error::other(format!("{path}: no `{name}`")))
}

/// How nice a process is, also one that has ended and was not reaped.
///
/// # Errors
/// Where there is none.
pub fn niceness(process: u32) -> io::Result<String> {
    stat(process, NICE)
}

/// Whether it has ended.
pub fn has_ended(process: u32) -> bool {
    stat(process, STATE).map_or(true, |state| matches!(state.as_str(), "Z" | "X"))
}

fn stat(process: u32, field: usize) -> io::Result<String> {
    let text = fs::read_to_string(format!("/proc/{process}/stat"))?;
    // The name is in parentheses and may hold anything.
    let behind = text.rsplit_once(')').map_or("", |(_, behind)| behind);
    let found = behind.split_whitespace().nth(field - STATE);
    found.map(str::to_owned).ok_or_else(|| io::Error::other("a line of `stat` is too short"))
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn what_was_executed_is_told_of_the_living_and_what_it_was_of_the_dead() {
        let mut command = Command::new("cat");
        command.env_clear().env("A", "b").stdin(Stdio::piped()).stdout(Stdio::null());
        let mut child = command.spawn().unwrap();
        let pid = child.id();
        assert_eq!(of_program(pid, "environ").unwrap().unwrap(), b"A=b\0");
        assert_eq!(of_program(pid, "cmdline").unwrap().unwrap(), b"cat\0");
        let own = niceness(std::process::id()).unwrap();
        assert!(!has_ended(pid) && niceness(pid).unwrap() == own);
        drop(child.stdin.take());
        assert!(wait_until(Instant::now() + LIMIT, || has_ended(pid)));
        assert_eq!(of_program(pid, "environ").unwrap(), None);
        assert_eq!(niceness(pid).unwrap(), own);
        assert!(status_line(&pid.to_string(), "Cpus_allowed_list").is_ok());
        child.wait().unwrap();
        assert!(has_ended(pid) && niceness(pid).is_err());
    }
}
