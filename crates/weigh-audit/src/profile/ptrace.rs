//! Counting the system calls of a program and of all that it starts, by stopping it at each
//! (ptrace(2)). Exact and slow: for learning what a program does, not for timing it.

use std::io;
use std::mem::MaybeUninit;
use std::os::unix::process::CommandExt;
use std::process::Command;

use libc::{c_int, c_long, c_void, pid_t};

use weigh_model::profile::runs::Counts;
use weigh_workload::seccomp_program::NATIVE_ARCHITECTURE;

/// The signal of a stop before or after a system call, by PTRACE_O_TRACESYSGOOD.
pub(super) const SYSCALL_STOP: c_int = libc::SIGTRAP | 0x80;

/// Set in the numbers of x32, which has the architecture of 64-bit programs.
const OTHER_ABI_BIT: u64 = if cfg!(target_arch = "x86_64") { 1 << 30 } else { 0 };

/// Counts the system call that a tracee stopped before; any other stop is none.
///
/// # Errors
/// Where the kernel does not tell which call it is: before Linux 5.3.
pub(super) fn note(counts: &mut Counts, process: pid_t, status: c_int) -> io::Result<()> {
    match entered(process, status) {
        Ok(Some((NATIVE_ARCHITECTURE, number))) if number & OTHER_ABI_BIT == 0 => {
            *counts.calls.entry(number).or_default() += 1;
        }
        Ok(Some(_)) => counts.other_abi_calls += 1,
        Err(error) if error.raw_os_error() == Some(libc::EIO) => {
            return Err(io::Error::other(
                "counting system calls needs Linux 5.3 or newer (PTRACE_GET_SYSCALL_INFO)",
            ));
        }
        // It was killed meanwhile.
        Ok(None) | Err(_) => {}
    }
    Ok(())
}

/// Runs `command` to its end and counts its system calls, from just after its execution, with those
/// of all processes and threads that it starts, for as long as they live.
pub fn count(command: &mut Command) -> io::Result<Counts> {
    count_and_tell(command, |_| {})
}

/// Counts as [`count`] does, and passes on the process ID as soon as the process exists.
pub(super) fn count_and_tell(
    command: &mut Command,
    tell: impl FnOnce(pid_t),
) -> io::Result<Counts> {
    let trace_me = || check(unsafe { libc::ptrace(libc::PTRACE_TRACEME, 0, 0, 0) });
    // SAFETY: between fork and exec it makes one system call and touches no memory.
    let child = unsafe { command.pre_exec(trace_me) }.spawn()?;
    let root = child.id().cast_signed();
    tell(root);
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
    let mut counts = Counts::default();
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
        note(&mut counts, process, status)?;
        // One that was killed meanwhile is reported as ended by the next wait.
        let _ = request(libc::PTRACE_SYSCALL, process, signal_to_pass_on(status));
    }
}

/// Waits for a child or tracee of this thread; those of others are none of its business.
pub(super) fn wait_for(process: pid_t) -> io::Result<(pid_t, c_int)> {
    loop {
        match wait_once(process, 0) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            waited => return waited,
        }
    }
}

/// Waits once; a signal ends the wait with the error `Interrupted`.
pub(super) fn wait_once(process: pid_t, more_flags: c_int) -> io::Result<(pid_t, c_int)> {
    let mut status = 0;
    let flags = libc::__WALL | libc::__WNOTHREAD | more_flags;
    // SAFETY: `status` outlives the call.
    let waited = unsafe { libc::waitpid(process, &mut status, flags) };
    check(waited.into()).map(|()| (waited, status))
}

/// Architecture and number of the system call that a tracee stopped before; `None` at any other stop.
fn entered(process: pid_t, status: c_int) -> io::Result<Option<(u32, u64)>> {
    if libc::WSTOPSIG(status) != SYSCALL_STOP {
        return Ok(None);
    }
    let mut info = MaybeUninit::<libc::ptrace_syscall_info>::zeroed();
    let size = size_of::<libc::ptrace_syscall_info>();
    // SAFETY: the kernel writes at most `size` bytes, and all bit patterns are valid.
    let info = unsafe {
        let at = info.as_mut_ptr().cast::<c_void>();
        check(libc::ptrace(libc::PTRACE_GET_SYSCALL_INFO, process, size, at))?;
        info.assume_init()
    };
    // SAFETY: `op` says which of the union's variants was written.
    Ok(match info.op {
        libc::PTRACE_SYSCALL_INFO_ENTRY => Some((info.arch, unsafe { info.u.entry.nr })),
        _ => None,
    })
}

/// A signal that the program was sent, and not one that tracing made.
fn signal_to_pass_on(status: c_int) -> c_long {
    let signal = libc::WSTOPSIG(status);
    let is_event = status >> 16 != 0;
    match signal {
        // A new process of the program starts with a stop that is ours.
        libc::SIGSTOP | libc::SIGTRAP => 0,
        _ if is_event || signal == SYSCALL_STOP => 0,
        _ => signal.into(),
    }
}

pub(super) fn request(what: libc::c_uint, process: pid_t, data: c_long) -> io::Result<()> {
    // SAFETY: these requests take a number, and no memory of ours.
    check(unsafe { libc::ptrace(what, process, 0, data) })
}

/// The error of a call that gave −1.
pub(super) fn check(result: c_long) -> io::Result<()> {
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
        let named = counts.by_name();
        assert_eq!(named["kill"], 3);
        assert_eq!(named.values().sum::<u64>(), counts.total());
    }

    #[test]
    fn calls_of_another_abi_are_counted_apart() {
        // getpid of 32-bit programs, by their way into a 64-bit kernel; elsewhere there is none.
        #[cfg(target_arch = "x86_64")]
        fn call() -> io::Result<()> {
            let mut result: i64 = 20;
            // SAFETY: getpid takes nothing, and writes nothing but its result.
            unsafe {
                std::arch::asm!(
                    "int 0x80",
                    inout("rax") result,
                    out("r8") _, out("r9") _, out("r10") _, out("r11") _,
                )
            };
            if result > 0 { Ok(()) } else { Err(io::Error::other("no 32-bit calls here")) }
        }
        #[cfg(target_arch = "x86_64")]
        {
            let mut plain = Command::new("/bin/true");
            let before = count(&mut plain).unwrap();
            assert_eq!(before.other_abi_calls, 0);
            let mut counts = Counts::default();
            // SAFETY: the child makes two system calls, and ends without any of Rust's or libc's cleaning up.
            let child = unsafe { libc::fork() };
            if child == 0 {
                unsafe {
                    libc::ptrace(libc::PTRACE_TRACEME, 0, 0, 0);
                    libc::raise(libc::SIGSTOP);
                    libc::_exit(i32::from(call().is_err()));
                }
            }
            wait_for(child).unwrap();
            request(libc::PTRACE_SETOPTIONS, child, libc::PTRACE_O_TRACESYSGOOD.into()).unwrap();
            loop {
                request(libc::PTRACE_SYSCALL, child, 0).unwrap();
                let (_, status) = wait_for(child).unwrap();
                if !libc::WIFSTOPPED(status) {
                    assert_eq!(libc::WEXITSTATUS(status), 0, "this kernel has no 32-bit calls");
                    break;
                }
                note(&mut counts, child, status).unwrap();
            }
            assert_eq!(counts.other_abi_calls, 1, "{counts:?}");
        }
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
