//! Counting the system calls of processes that already run: they are seized (ptrace(2)), and go on unharmed
//! when counting ends, also when this process is killed meanwhile.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::time::{Duration, Instant};

use libc::{c_int, c_long, pid_t};

use super::alarm::Alarm;
use super::cpu_time::tree;
use super::ptrace::{SYSCALL_STOP, check, note, request, wait_once};
use weigh_model::profile::runs::Counts;

/// How long a task may take to stop so that it can be let go. One that waits for a disk may not stop at
/// all; the kernel lets it go when this process ends.
const PATIENCE: Duration = Duration::from_secs(2);

/// The stop of a seized task by itself or on request: see ptrace(2).
const EVENT_STOP: c_int = 128;

/// Counts until the alarm is due, or all processes have ended.
pub fn count(root: pid_t, alarm: &Alarm) -> io::Result<Counts> {
    let mut seized = Seized { root, tasks: BTreeSet::new(), counts: Counts::default() };
    let done = seized.attach().and_then(|()| seized.run(alarm));
    seized.release();
    done.map(|()| seized.counts)
}

struct Seized {
    root: pid_t,
    /// Threads of all processes that are traced.
    tasks: BTreeSet<pid_t>,
    counts: Counts,
}

impl Seized {
    /// Seizes all threads of the tree, until there is none that was started meanwhile.
    fn attach(&mut self) -> io::Result<()> {
        loop {
            let mut is_complete = true;
            for task in tree(self.root).into_iter().flat_map(threads) {
                if !self.tasks.contains(&task) && seize(task)? {
                    self.tasks.insert(task);
                    is_complete = false;
                }
            }
            if is_complete {
                break;
            }
        }
        if self.tasks.is_empty() {
            return Err(io::Error::from_raw_os_error(libc::ESRCH));
        }
        self.interrupt();
        Ok(())
    }

    /// Asks all to stop; those that are gone need no longer be waited for.
    fn interrupt(&mut self) {
        self.tasks.retain(|&task| request(libc::PTRACE_INTERRUPT, task, 0).is_ok());
    }

    fn run(&mut self, alarm: &Alarm) -> io::Result<()> {
        while !alarm.is_due() {
            let (task, status) = match wait_once(-1, 0) {
                Ok(waited) => waited,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) if error.raw_os_error() == Some(libc::ECHILD) => break,
                Err(error) => return Err(error),
            };
            if self.is_stopped(task, status)? {
                // One that was killed meanwhile is reported as ended by the next wait.
                let _ = match is_group_stop(status) {
                    true => request(libc::PTRACE_LISTEN, task, 0),
                    false => request(libc::PTRACE_SYSCALL, task, signal_to_pass_on(status)),
                };
            }
        }
        Ok(())
    }

    /// Counts what a task stopped for; `false` where it ended.
    fn is_stopped(&mut self, task: pid_t, status: c_int) -> io::Result<bool> {
        if !libc::WIFSTOPPED(status) {
            self.tasks.remove(&task);
            return Ok(false);
        }
        self.tasks.insert(task);
        if let Some(new) = started(task, status) {
            self.tasks.insert(new);
        }
        note(&mut self.counts, task, status)?;
        Ok(true)
    }

    /// Lets all go, each when it stops.
    fn release(&mut self) {
        self.interrupt();
        let deadline = Instant::now() + PATIENCE;
        while !self.tasks.is_empty() && Instant::now() < deadline {
            match wait_once(-1, 0) {
                Ok((task, status)) => {
                    // The call that it stops before is made, and so counts.
                    if self.is_stopped(task, status).unwrap_or(true) {
                        let _ = request(libc::PTRACE_DETACH, task, signal_to_pass_on(status));
                        self.tasks.remove(&task);
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => break,
            }
        }
    }
}

/// The threads of a process; empty where it is gone.
fn threads(process: pid_t) -> Vec<pid_t> {
    let entries = fs::read_dir(format!("/proc/{process}/task")).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}

/// Begins to trace a task; `false` where it is gone. It neither stops by that, nor dies with this process.
fn seize(task: pid_t) -> io::Result<bool> {
    let options = libc::PTRACE_O_TRACESYSGOOD
        | libc::PTRACE_O_TRACEFORK
        | libc::PTRACE_O_TRACEVFORK
        | libc::PTRACE_O_TRACECLONE
        | libc::PTRACE_O_TRACEEXEC;
    let error = match request(libc::PTRACE_SEIZE, task, c_long::from(options)) {
        Ok(()) => return Ok(true),
        Err(error) => error,
    };
    // One that a seized task started is traced from its beginning; one that ended cannot be.
    let status = fs::read_to_string(format!("/proc/{task}/status")).unwrap_or_default();
    let field = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name));
        line.and_then(|rest| rest.split_whitespace().next())
    };
    if field("TracerPid:") == Some(std::process::id().to_string().as_str()) {
        return Ok(true);
    }
    let is_gone = matches!(field("State:"), None | Some("Z" | "X"));
    if is_gone { Ok(false) } else { Err(error) }
}

fn started(task: pid_t, status: c_int) -> Option<pid_t> {
    let starts = [libc::PTRACE_EVENT_FORK, libc::PTRACE_EVENT_VFORK, libc::PTRACE_EVENT_CLONE];
    if !starts.contains(&(status >> 16)) {
        return None;
    }
    let mut new: libc::c_ulong = 0;
    // SAFETY: the kernel writes one `unsigned long`, which outlives the call.
    let asked = unsafe { libc::ptrace(libc::PTRACE_GETEVENTMSG, task, 0, &raw mut new) };
    check(asked).ok().and_then(|()| new.try_into().ok())
}

/// Returns true if a signal stopped the process (Ctrl-Z, SIGSTOP), and it has to stay stopped.
fn is_group_stop(status: c_int) -> bool {
    let stops = [libc::SIGSTOP, libc::SIGTSTP, libc::SIGTTIN, libc::SIGTTOU];
    status >> 16 == EVENT_STOP && stops.contains(&libc::WSTOPSIG(status))
}

/// A signal that the task was sent, and not one that tracing made.
fn signal_to_pass_on(status: c_int) -> c_long {
    let signal = libc::WSTOPSIG(status);
    if status >> 16 != 0 || signal == SYSCALL_STOP { 0 } else { signal.into() }
}
