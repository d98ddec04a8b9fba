//! A tracer whose tracees stop only at the calls that their seccomp filter names (`SECCOMP_RET_TRACE`), and
//! which lets each go on.

use std::io;
use std::sync::atomic::{AtomicI32, AtomicU64, Ordering};

use rustix::process::Pid;

/// Mark that the filter gives the stop of the probe, in place of 0.
pub const PROBE_MARK: u32 = 1;

/// Processes that a tracee starts have its filter, so they need the tracer as well.
const OPTIONS: libc::c_int = libc::PTRACE_O_TRACESECCOMP
    | libc::PTRACE_O_TRACEFORK
    | libc::PTRACE_O_TRACEVFORK
    | libc::PTRACE_O_TRACECLONE;

/// Signs that a tracer gives in shared memory: a positive number is yes.
#[derive(Clone, Copy)]
pub struct Signs<'a> {
    pub is_listening: &'a AtomicI32,
    /// It saw the stop of the probe.
    pub is_probed: &'a AtomicI32,
    /// It traced until the end.
    pub is_served: &'a AtomicI32,
    /// Number of stops without the probe's.
    pub stops: &'a AtomicU64,
}

/// Traces the worker and all that it starts until none of them is left.
///
/// # Errors
/// As `ptrace(2)`, if the worker cannot be traced.
pub fn trace(signs: Signs, worker: Pid) -> io::Result<()> {
    ask(libc::PTRACE_SEIZE, worker.as_raw_nonzero().get(), OPTIONS as usize)?;
    signs.is_listening.store(1, Ordering::Release);
    loop {
        let mut status = 0;
        // SAFETY: it writes a status, which lives across the call.
        let tracee = unsafe { libc::waitpid(-1, &raw mut status, libc::__WALL) };
        match tracee {
            -1 => match io::Error::last_os_error() {
                error if error.raw_os_error() == Some(libc::EINTR) => continue,
                error if error.raw_os_error() == Some(libc::ECHILD) => break,
                error => return Err(error),
            },
            _ if libc::WIFSTOPPED(status) => go_on(signs, tracee, status)?,
            _ => {}
        }
    }
    signs.is_served.store(1, Ordering::Release);
    Ok(())
}

fn go_on(signs: Signs, tracee: i32, status: i32) -> io::Result<()> {
    let signal = libc::WSTOPSIG(status);
    let done = match status >> 16 {
        libc::PTRACE_EVENT_SECCOMP => {
            let mut mark: libc::c_ulong = 0;
            ask(libc::PTRACE_GETEVENTMSG, tracee, (&raw mut mark) as usize).and_then(|()| {
                match mark == libc::c_ulong::from(PROBE_MARK) {
                    true => signs.is_probed.store(1, Ordering::Release),
                    false => drop(signs.stops.fetch_add(1, Ordering::Release)),
                }
                ask(libc::PTRACE_CONT, tracee, 0)
            })
        }
        // Of a whole group, by a signal such as SIGSTOP: it lasts until SIGCONT.
        libc::PTRACE_EVENT_STOP if signal != libc::SIGTRAP => ask(libc::PTRACE_LISTEN, tracee, 0),
        0 => ask(libc::PTRACE_CONT, tracee, signal as usize),
        _ => ask(libc::PTRACE_CONT, tracee, 0),
    };
    match done {
        // It was killed meanwhile.
        Err(error) if error.raw_os_error() == Some(libc::ESRCH) => Ok(()),
        done => done,
    }
}

fn ask(request: libc::c_uint, tracee: i32, data: usize) -> io::Result<()> {
    let nothing = std::ptr::null_mut::<libc::c_void>();
    let data = data as *mut libc::c_void;
    // SAFETY: the data is a number, or the address of a number that lives across the call.
    match unsafe { libc::ptrace(request, tracee, nothing, data) } {
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stamp::map_shared;
    use rustix::process::{Signal, geteuid, kill_process};

    /// Signs of the tracer for the test.
    struct Page {
        numbers: [AtomicI32; 3],
        stops: AtomicU64,
    }

    /// Returns true if a process may trace one that it did not start. Without Yama it may.
    fn may_trace_others() -> bool {
        let scope = std::fs::read_to_string("/proc/sys/kernel/yama/ptrace_scope");
        geteuid().is_root() || scope.unwrap_or_else(|_| "0".into()).trim() == "0"
    }

    /// A shell with a child: both end, and both are waited for by the tracer.
    #[test]
    fn a_tracee_and_its_child_are_followed_to_their_end() {
        if !may_trace_others() {
            return;
        }
        let page = map_shared(size_of::<Page>()).unwrap();
        // SAFETY: the mapping is aligned, holds zeros, which atomic numbers may be, and is never unmapped.
        let Page { numbers, stops } = unsafe { &*page.cast::<Page>() };
        let [is_listening, is_probed, is_served] = numbers;
        let signs = Signs { is_listening, is_probed, is_served, stops };
        let mut shell = std::process::Command::new("/bin/sh")
            .args(["-c", "kill -STOP $$; sh -c true"])
            .spawn()
            .unwrap();
        let worker = Pid::from_child(&shell);
        // Only the thread that traces waits: another child of this process is none of its business, so the
        // tracer is a process of its own.
        // SAFETY: the child makes system calls only.
        match unsafe { libc::fork() } {
            0 => {
                let traced = trace(signs, worker);
                // The shell is to end as well where it cannot be traced.
                is_listening.store(1, Ordering::Release);
                let is_done = traced.is_ok() && is_served.load(Ordering::Acquire) == 1;
                // SAFETY: it ends this process without running what others left to do at its end.
                unsafe { libc::_exit(if is_done { 7 } else { 1 }) }
            }
            tracer => {
                let mut status = 0;
                while shell.try_wait().unwrap().is_none() {
                    // Before it is traced it must not end.
                    if is_listening.load(Ordering::Acquire) > 0 {
                        let _ = kill_process(worker, Signal::CONT);
                    }
                    std::thread::sleep(std::time::Duration::from_millis(5));
                }
                // SAFETY: it writes a status, which lives across the call.
                assert_eq!(unsafe { libc::waitpid(tracer, &raw mut status, 0) }, tracer);
                assert_eq!(libc::WEXITSTATUS(status), 7);
            }
        }
    }
}
