//! Kernel's view of a worker whose program was just executed, or that has just ended.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::Path;
use std::time::{Duration, Instant};

use weigh_host::machine::stat::Stat;
use weigh_host::orphans::wait_until;

/// The kernel is done with an execution within moments of what the launcher waits for.
const LIMIT: Duration = Duration::from_secs(2);

/// The command line of the program as it was executed, as in `/proc/PID/cmdline`, is seen under this name;
/// absent where it ended before anybody could look.
pub const COMMAND_LINE: &str = "command line";

/// Fields of `/proc/PID/stat` from the state on (proc_pid_stat(5)), as they are numbered there.
const STATE: usize = 3;
const NICE: usize = 19;
const ENV_END: usize = 51;

/// A file of `/proc/PID` that is about what was executed, such as `environ`; `None` where the worker has
/// ended before anybody could look.
pub fn of_program(worker: u32, file: &str) -> io::Result<Option<Vec<u8>>> {
    let path = format!("/proc/{worker}/{file}");
    // The launcher goes on when the kernel closes a pipe, which is before it puts the strings in place.
    let is_executed = || has_ended(worker) || stat(worker, ENV_END).is_ok_and(|end| end != "0");
    wait_until(Instant::now() + LIMIT, is_executed);
    match fs::read(&path) {
        _ if has_ended(worker) => Ok(None),
        // Its memory is gone already (proc_mem_open() in fs/proc/base.c).
        Err(error) if error.raw_os_error() == Some(libc::ESRCH) => Ok(None),
        Err(error) => Err(io::Error::other(format!("{path}: {error}"))),
        Ok(content) => Ok(Some(content)),
    }
}

/// Adds the command line of a worker to what is seen of it.
pub fn command_line(worker: u32, seen: &mut BTreeMap<String, String>) -> io::Result<()> {
    if let Some(found) = of_program(worker, "cmdline")? {
        seen.insert(COMMAND_LINE.into(), String::from_utf8_lossy(&found).into_owned());
    }
    Ok(())
}

/// Returns true if a command line that was seen has the words that were executed.
///
/// For a script, the kernel shows the interpreter's words first, and the script's path in place of
/// its name.
pub fn is_command_line(seen: &str, executed: &[String]) -> bool {
    let seen: Vec<&str> = seen.strip_suffix('\0').unwrap_or(seen).split('\0').collect();
    let Some((program, arguments)) = executed.split_first() else { return false };
    let Some(at) = seen.len().checked_sub(executed.len()) else { return false };
    let name = |path: &str| Path::new(path).file_name().map(ToOwned::to_owned);
    let is_program = if at == 0 { seen[0] == program } else { name(seen[at]) == name(program) };
    is_program && seen[at + 1..] == *arguments
}

/// A line of `/proc/PID/status`, also of one that has ended and was not reaped.
pub fn status_line(process: &str, name: &str) -> io::Result<String> {
    let path = format!("/proc/{process}/status");
    let status = fs::read_to_string(&path)?;
    let value = |line: &str| Some(line.strip_prefix(name)?.strip_prefix(':')?.trim().to_owned());
    status.lines().find_map(value).ok_or_else(|| io::Error::other(format!("{path}: no `{name}`")))
}

/// How nice a process is, also one that has ended and was not reaped.
pub fn niceness(process: u32) -> io::Result<String> {
    stat(process, NICE)
}

pub fn has_ended(process: u32) -> bool {
    match stat(process, STATE) {
        Ok(state) => matches!(state.as_str(), "Z" | "X"),
        // One that cannot be seen has not ended.
        Err(error) => matches!(error.raw_os_error(), Some(libc::ENOENT | libc::ESRCH)),
    }
}

fn stat(process: u32, field: usize) -> io::Result<String> {
    let found = Stat::of(process)?.field(field).map(str::to_owned);
    found.ok_or_else(|| io::Error::other("a line of `stat` is too short"))
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn the_words_of_a_script_are_those_behind_its_interpreter() {
        let executed = ["run.sh", "-j", "x8"].map(String::from);
        assert!(is_command_line("run.sh\0-j\0x8\0", &executed));
        assert!(is_command_line("/bin/sh\0-e\0/opt/run.sh\0-j\0x8\0", &executed));
        assert!(!is_command_line("/bin/sh\0/opt/run.sh\0-j\0x9\0", &executed));
        assert!(!is_command_line("other\0-j\0x8\0", &executed) && !is_command_line("", &executed));
        assert!(is_command_line("cat\0\0", &["cat".into(), String::new()]));
    }

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
