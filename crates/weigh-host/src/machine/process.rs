//! Checks that a process, known by its number and its start, still lives.

use std::fmt::Display;
use std::fs;
use std::io::{self, Read};

use rustix::process::{Pid, test_kill_process};

use super::stat::Stat;

const MOST_BYTES: u64 = 8 << 20;

/// A living process, as `/proc/PID/stat` has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProcessLife {
    pub parent: u32,
    pub group: u32,
    /// In clock ticks since boot.
    pub start: i64,
}

/// A process that lives; `None` for one that has ended, also where nobody has reaped it.
///
/// # Errors
/// Where it cannot be seen whether it lives, as without `/proc`: that is no end.
pub fn process_life(pid: u32) -> io::Result<Option<ProcessLife>> {
    let cannot =
        |error: io::Error| io::Error::new(error.kind(), format!("/proc/{pid}/stat: {error}"));
    let stat = match Stat::of(pid) {
        Ok(stat) => stat,
        Err(_) if has_no_process(pid) => return Ok(None),
        Err(error) => return Err(cannot(error)),
    };
    match life(&stat) {
        Some(("Z" | "X", _)) => Ok(None),
        Some((_, life)) => Ok(Some(life)),
        None => Err(cannot(io::ErrorKind::InvalidData.into())),
    }
}

/// The kernel itself is asked, which needs no file.
fn has_no_process(pid: u32) -> bool {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
    pid.is_none_or(|pid| test_kill_process(pid) == Err(rustix::io::Errno::SRCH))
}

/// The state, and the life if it is one.
fn life(stat: &Stat) -> Option<(&str, ProcessLife)> {
    let (state, parent) = (stat.field(3)?, stat.parent()?);
    let (group, start): (i64, i64) = (stat.number(5)?, stat.number(22)?);
    // One that is being taken down has no group any more (do_task_stat() in fs/proc/array.c).
    let state = if group < 0 { "X" } else { state };
    let group = u32::try_from(group.max(0)).ok()?;
    Some((state, ProcessLife { parent, group, start }))
}

/// When a living process was started, in clock ticks since boot; `None` for one that has ended.
pub fn process_start(pid: u32) -> io::Result<Option<i64>> {
    Ok(process_life(pid)?.map(|life| life.start))
}

/// Result of reading a file of a process or thread below `/proc`; `None` if it has ended.
///
/// # Errors
/// Any other error: the process may still be running.
pub fn unless_gone<T>(read: io::Result<T>) -> io::Result<Option<T>> {
    match read {
        Ok(value) => Ok(Some(value)),
        // The file is there no more, or it was open when its process ended.
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) if error.raw_os_error() == Some(libc::ESRCH) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Reads `/proc/PID/NAME` of a process that may belong to anybody: its owner chooses how long `environ` and
/// `cmdline` are, so only the first 8 MiB count. `execve` allows 6 MiB.
pub fn read_proc(pid: impl Display, name: &str) -> io::Result<Vec<u8>> {
    first_bytes(fs::File::open(format!("/proc/{pid}/{name}"))?)
}

fn first_bytes(from: impl Read) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    from.take(MOST_BYTES).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// All processes that live now.
pub fn processes() -> io::Result<Vec<(u32, ProcessLife)>> {
    let mut found = Vec::new();
    let mut has_self = false;
    for entry in fs::read_dir("/proc")? {
        let Some(pid) = entry?.file_name().to_str().and_then(|name| name.parse().ok()) else {
            continue;
        };
        has_self |= pid == std::process::id();
        match process_life(pid) {
            // Of another user, whose processes this system hides.
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {}
            life => found.extend(life?.map(|life| (pid, life))),
        }
    }
    match has_self {
        true => Ok(found),
        false => Err(io::Error::other("/proc does not show the processes of this system")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_lives_and_one_that_ended_does_not() {
        assert!(process_start(std::process::id()).unwrap().is_some_and(|ticks| ticks > 0));
        let mut child = std::process::Command::new("true").spawn().unwrap();
        let pid = child.id();
        rustix::process::waitid(
            rustix::process::WaitId::Pid(Pid::from_child(&child)),
            rustix::process::WaitIdOptions::EXITED | rustix::process::WaitIdOptions::NOWAIT,
        )
        .unwrap();
        assert_eq!(process_start(pid).unwrap(), None, "it has ended, but is not reaped");
        child.wait().unwrap();
        assert_eq!(process_start(pid).unwrap(), None);
        assert_eq!(process_start(0).unwrap(), None);
    }

    #[test]
    fn what_has_no_end_is_read_to_its_limit() {
        assert_eq!(first_bytes(io::repeat(b'x')).unwrap().len() as u64, MOST_BYTES);
        assert!(!read_proc("self", "cmdline").unwrap().is_empty());
    }

    #[test]
    fn what_is_being_taken_down_or_cut_is_no_life() {
        let rest = "S 4 7 7 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 1 0 8154 9 9";
        let whole = ProcessLife { parent: 4, group: 7, start: 8154 };
        assert_eq!(life(&Stat::parse(&format!("12 (a) Z b) {rest}"))), Some(("S", whole)));
        let taken_down = Stat::parse(&format!("12 (a) {}", rest.replacen(" 7 7 ", " -1 -1 ", 1)));
        assert_eq!(life(&taken_down).map(|(state, _)| state), Some("X"));
        assert_eq!(life(&Stat::parse("12 (a) S 4 7")), None);
    }

    #[test]
    fn all_processes_are_those_with_this_one() {
        let own = process_life(std::process::id()).unwrap().unwrap();
        assert!(processes().unwrap().contains(&(std::process::id(), own)));
    }
}
