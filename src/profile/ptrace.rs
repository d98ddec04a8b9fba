//! Counting the system calls of a program and of all that it starts, by stopping it at each
//! (ptrace(2)). Exact and slow: for learning what a program does, not for timing it.

use std::collections::BTreeMap;
use std::io;
use std::mem::MaybeUninit;
use std::os::unix::process::CommandExt;
use std::process::Command;

use libc::{c_int, c_long, c_void, pid_t};

/// What a program did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Counts {
    /// How often each system call was entered, by its number.
    pub calls: BTreeMap<u64, u64>,
    /// The wait status of the program itself, as waitpid(2) gives it.
    pub status: c_int,
}

impl Counts {
    /// All system calls together.
    pub fn total(&self) -> u64 {
        self.calls.values().sum()
    }
}

/// Runs `command` to its end and counts its system calls, from just after its execution, with those
/// of all processes and threads that it starts, for as long as they live.
///
/// # Errors
/// Where it cannot be executed, or this process may not trace it.
pub fn count(command: &mut Command) -> io::Result<Counts> {
    let trace_me = || check(unsafe { libc::ptrace(libc::PTRACE_TRACEME, 0, 0, 0) });
    // SAFETY: between fork and exec it makes one system call and touches no memory.
    let child = unsafe { command.pre_exec(trace_me) }.spawn()?;
    let root = child.id().cast_signed();
    // Whatever happens here, the child shall not stay behind, stopped for ever.
    let options = libc::PTRACE_O_TRACESYSGOOD
        | libc::PTRACE_O_TRACEFORK
        | libc::PTRACE_O_TRACEVFORK
        | libc::PTRACE_O_TRACECLONE
        | libc::PTRACE_O_TRACEEXEC
        | libc::PTRACE_O_EXITKILL;
    wait_for(root)?;
    request(libc::PTRACE_SETOPTIONS, root, options as c_long)?;
    request(libc::PTRACE_SYSCALL, root, 0)?;
    let mut counts = Counts { calls: BTreeMap::new(), status: 0 };
    loop {
        let (process, status) = match wait_for(-1) {
            Err(error) if error.raw_os_error() == Some(libc::ECHILD) => return Ok(counts),
            waited => waited?,
        };
        if !libc::WIFSTOPPED(status) {
            if process == root {
                counts.status = status;
            }
            continue;
        }
        if let Some(number) = entered(process, status) {
            *counts.calls.entry(number).or_default() += 1;
        }
        // One that was killed meanwhile is reported as ended by the next wait.
        let _ = request(libc::PTRACE_SYSCALL, process, signal_to_pass_on(status));
    }
}

/// Waits for a child or tracee of this thread; those of others are none of its business.
fn wait_for(process: pid_t) -> io::Result<(pid_t, c_int)> {
    let mut status = 0;
    loop {
        let flags = libc::__WALL | libc::__WNOTHREAD;
        // SAFETY: `status` outlives the call.
        let waited = unsafe { libc::waitpid(process, &mut status, flags) };
        match check(waited.into()) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
            Ok(()) => return Ok((waited, status)),
        }
    }
}

/// The system call that a tracee stopped before; `None` at any other stop.
fn entered(process: pid_t, status: c_int) -> Option<u64> {
    if libc::WSTOPSIG(status) != libc::SIGTRAP | 0x80 {
        return None;
    }
    let mut info = MaybeUninit::<libc::ptrace_syscall_info>::zeroed();
    let size = size_of::<libc::ptrace_syscall_info>();
    // SAFETY: the kernel writes at most `size` bytes, and all bit patterns are valid.
    let info = unsafe {
        let at = info.as_mut_ptr().cast::<c_void>();
        check(libc::ptrace(libc::PTRACE_GET_SYSCALL_INFO, process, size, at)).ok()?;
        info.assume_init()
    };
    // SAFETY: `op` says which of the union's variants was written.
    match info.op {
        libc::PTRACE_SYSCALL_INFO_ENTRY => Some(unsafe { info.u.entry.nr }),
        _ => None,
    }
}

/// A signal that the program was sent, and not one that tracing made.
fn signal_to_pass_on(status: c_int) -> c_long {
    let signal = libc::WSTOPSIG(status);
    let is_event = status >> 16 != 0;
    match signal {
        // A new process of the program starts with a stop that is ours.
        libc::SIGSTOP | libc::SIGTRAP => 0,
        _ if is_event || signal == libc::SIGTRAP | 0x80 => 0,
        _ => signal.into(),
    }
}

fn request(what: libc::c_uint, process: pid_t, data: c_long) -> io::Result<()> {
    // SAFETY: these requests take a number, and no memory of ours.
    check(unsafe { libc::ptrace(what, process, 0, data) })
}

/// The error of a call that gave −1.
fn check(result: c_long) -> io::Result<()> {
    if result == -1 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Counts {
        count(Command::new("/bin/sh").args(["-c", script])).unwrap()
    }

    #[test]
    fn every_process_of_the_program_is_counted() {
        let kills = |counts: &Counts| counts.calls.get(&(libc::SYS_kill as u64)).copied();
        let counts = shell("kill -0 $$; (kill -0 $$; kill -0 $$; :); exit 3");
        assert_eq!(kills(&counts), Some(3));
        assert!(libc::WIFEXITED(counts.status) && libc::WEXITSTATUS(counts.status) == 3);
        assert!(counts.total() > 10);
    }

    #[test]
    fn signals_arrive_as_without_a_tracer() {
        let counts = shell("trap 'exit 7' USR1; kill -USR1 $$; exit 0");
        assert_eq!(libc::WEXITSTATUS(counts.status), 7);
        assert_eq!(libc::WTERMSIG(shell("kill -KILL $$").status), libc::SIGKILL);
    }

    #[test]
    fn what_cannot_be_executed_is_an_error() {
        let error = count(&mut Command::new("/nonexistent")).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
    }
}
