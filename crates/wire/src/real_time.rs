//! Settings that keep a thread on time next to busy threads.

use std::io;

use rustix::mm::{MlockAllFlags, mlockall};
use rustix::process::{Resource, getrlimit};
use rustix::thread::{CpuSet, sched_setaffinity};

/// Has the calling thread run before all ordinary ones (`SCHED_FIFO`), and its timers fire on time.
///
/// # Errors
/// `EPERM` without `CAP_SYS_NICE` or a limit that allows it (`ulimit -r`); its timers are exact even then.
pub fn be_real_time(priority: i32) -> io::Result<()> {
    // SAFETY: it takes numbers, and changes this thread alone.
    unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1_u64, 0_u64, 0_u64, 0_u64) };
    make_real_time(0, priority)
}

/// Has the main thread of another process run before all ordinary threads (`SCHED_FIFO`); 0 is the caller.
///
/// # Errors
/// As [`be_real_time`], and `ESRCH` where there is no such process.
pub fn make_real_time(pid: u32, priority: i32) -> io::Result<()> {
    // SAFETY: all zeros are a valid `sched_param`.
    let mut parameter: libc::sched_param = unsafe { std::mem::zeroed() };
    parameter.sched_priority = priority;
    // SAFETY: the parameter lives as long as the call. The system call, as musl refuses its function.
    let done = unsafe {
        libc::syscall(libc::SYS_sched_setscheduler, pid, libc::SCHED_FIFO, &raw const parameter)
    };
    if done < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Keeps the memory of this process from being swapped out, now and later. With a limit to it, later
/// allocations would fail, and so nothing is locked then.
///
/// # Errors
/// Where it is not allowed.
pub fn lock_memory() -> io::Result<()> {
    let limit = getrlimit(Resource::Memlock).current;
    if limit.is_some() && !is_root_of_machine() {
        return Err(io::Error::other("the limit of locked memory is not infinite (`ulimit -l`)"));
    }
    Ok(mlockall(MlockAllFlags::CURRENT | MlockAllFlags::FUTURE)?)
}

/// Returns true if limits do not bind us: we are root, and not only of a user namespace.
fn is_root_of_machine() -> bool {
    let map = std::fs::read_to_string("/proc/self/uid_map").unwrap_or_default();
    let is_whole = map.split_whitespace().eq(["0", "0", "4294967295"]);
    rustix::process::geteuid().is_root() && is_whole
}

/// Keeps the calling thread on these CPUs.
///
/// # Errors
/// Where none of them may be used.
pub fn stay_on(cpus: &[usize]) -> io::Result<()> {
    let mut set = CpuSet::new();
    cpus.iter().filter(|&&cpu| cpu < CpuSet::MAX_CPU).for_each(|&cpu| set.set(cpu));
    Ok(sched_setaffinity(None, &set)?)
}
