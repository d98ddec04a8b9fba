//! CPU time that other processes used, to the nanosecond: what a change costs outside of the workload.

use std::fs;
use std::io;
use std::path::Path;

use super::process::unless_gone;
use super::stat::{Stat, pids};

/// Times of a process in clock ticks, as proc_pid_stat(5) numbers them.
const USER: usize = 14;
const SYSTEM: usize = 15;

/// User and system time of a process since its start, in nanoseconds: that of the threads that it has
/// now.
///
/// # Errors
/// `NotFound` or `ESRCH` if the process has ended.
pub fn of_process_ns(pid: u32) -> io::Result<u64> {
    let (mut sum_ns, mut has_thread) = (0, false);
    for task in fs::read_dir(format!("/proc/{pid}/task"))? {
        // A thread may end between the listing and the reading.
        if let Some(ns) = unless_gone(task.and_then(|task| of_task_ns(&task.path())))? {
            sum_ns += ns;
            has_thread = true;
        }
    }
    if has_thread { Ok(sum_ns) } else { Err(io::ErrorKind::NotFound.into()) }
}

fn of_task_ns(task: &Path) -> io::Result<u64> {
    let invalid =
        || io::Error::other(format!("the kernel wrote no CPU time to {}", task.display()));
    // proc(5): the first number is the time on a CPU; without CONFIG_SCHED_INFO there is no such file.
    if let Some(text) = unless_gone(fs::read_to_string(task.join("schedstat")))? {
        let ran_ns = text.split_whitespace().next().and_then(|ns| ns.parse().ok());
        return ran_ns.ok_or_else(invalid);
    }
    let stat = Stat::read(&task.join("stat"))?;
    let ticks = stat.number::<u64>(USER).zip(stat.number::<u64>(SYSTEM));
    let (user, system) = ticks.ok_or_else(invalid)?;
    Ok((user + system) * 1_000_000_000 / rustix::param::clock_ticks_per_second())
}

/// Returns true if no thread of the process runs or waits for a disk: it has done all its work. One that
/// has ended is at rest.
pub fn is_at_rest(pid: u32) -> io::Result<bool> {
    let Some(tasks) = unless_gone(fs::read_dir(format!("/proc/{pid}/task")))? else {
        return Ok(true);
    };
    for task in tasks {
        let stat = unless_gone(task.and_then(|task| Stat::read(&task.path().join("stat"))))?;
        if stat.is_some_and(|stat| matches!(stat.state(), "R" | "D")) {
            return Ok(false);
        }
    }
    Ok(true)
}

pub fn kernel_thread(name: &str) -> Option<u32> {
    const KTHREADD: u32 = 2;
    pids().find(|&pid| {
        let is_named =
            fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|c| c.trim() == name);
        is_named && Stat::of(pid).is_ok_and(|stat| stat.parent() == Some(KTHREADD))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_computed_counts_and_what_ended_does_not_exist() {
        let pid = std::process::id();
        let before = of_process_ns(pid).unwrap();
        let mut sum = 0u64;
        while of_process_ns(pid).unwrap() < before + 20_000_000 {
            sum = (0..100_000).fold(sum, |sum, n| std::hint::black_box(sum ^ n));
        }
        let mut child = std::process::Command::new("true").spawn().unwrap();
        child.wait().unwrap();
        assert_eq!(unless_gone(of_process_ns(child.id())).unwrap(), None);
        assert!(is_at_rest(child.id()).unwrap());
    }
}
