//! CPU time that other processes used, to the nanosecond: what a change costs outside of the workload.

use std::fs;
use std::path::Path;

/// User and system time of a process since its start, in nanoseconds: that of the threads that it has
/// now. `None` where there is no such process.
pub fn of_process_ns(pid: u32) -> Option<u64> {
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).ok()?;
    // A thread may end between the listing and the reading.
    let times: Vec<u64> = tasks.filter_map(|task| of_task_ns(&task.ok()?.path())).collect();
    (!times.is_empty()).then(|| times.iter().sum())
}

fn of_task_ns(task: &Path) -> Option<u64> {
    let scheduled = fs::read_to_string(task.join("schedstat"));
    // proc(5): the first number is the time on a CPU; without CONFIG_SCHED_INFO there is no such file.
    match scheduled.ok().and_then(|text| text.split_whitespace().next()?.parse().ok()) {
        Some(ran_ns) => Some(ran_ns),
        None => ticks_of(&fs::read_to_string(task.join("stat")).ok()?).map(ticks_to_ns),
    }
}

/// `utime` and `stime` of a `stat` file: the twelfth and thirteenth field behind the name.
fn ticks_of(stat: &str) -> Option<u64> {
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace().skip(11);
    let mut next = || fields.next()?.parse::<u64>().ok();
    Some(next()? + next()?)
}

fn ticks_to_ns(ticks: u64) -> u64 {
    ticks * 1_000_000_000 / rustix::param::clock_ticks_per_second()
}

/// Returns true if no thread of the process runs or waits for a disk: it has done all its work.
pub fn is_at_rest(pid: u32) -> bool {
    let Ok(tasks) = fs::read_dir(format!("/proc/{pid}/task")) else { return true };
    tasks.flatten().all(|task| {
        let stat = fs::read_to_string(task.path().join("stat")).unwrap_or_default();
        let state = stat.rsplit_once(')').and_then(|(_, rest)| rest.split_whitespace().next());
        !matches!(state, Some("R" | "D"))
    })
}

/// The process and all that descend from it.
pub fn family(pid: u32) -> Vec<u32> {
    let parents: Vec<(u32, u32)> =
        processes().filter_map(|pid| Some((pid, parent(pid)?))).collect();
    let mut family = vec![pid];
    let mut next = 0;
    while let Some(&of) = family.get(next) {
        family.extend(parents.iter().filter(|(_, parent)| *parent == of).map(|(child, _)| child));
        next += 1;
    }
    family
}

pub fn kernel_thread(name: &str) -> Option<u32> {
    const KTHREADD: u32 = 2;
    processes().find(|&pid| {
        let is_named =
            fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|c| c.trim() == name);
        is_named && parent(pid) == Some(KTHREADD)
    })
}

fn processes() -> impl Iterator<Item = u32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

fn parent(pid: u32) -> Option<u32> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_is_computed_counts_and_what_ended_does_not_exist() {
        let pid = std::process::id();
        let before = of_process_ns(pid).unwrap();
        let mut sum = 0u64;
        while of_process_ns(pid).unwrap() < before + 20_000_000 {
            sum = (0..100_000).fold(sum, |sum, n| std::hint::black_box(sum ^ n));
        }
        let mut child = std::process::Command::new("true").spawn().unwrap();
        assert!(family(pid).contains(&child.id()));
        child.wait().unwrap();
        assert_eq!(of_process_ns(child.id()), None);
        assert!(is_at_rest(child.id()));
    }

    #[test]
    fn ticks_are_found_behind_any_name() {
        let stat = "7 (a) b 1 (c) S 2 7 7 0 -1 4194560 5 6 2 62 100 3 46 18 20 0 1 0 208988";
        assert_eq!(ticks_of(stat), Some(103));
        assert_eq!(ticks_of("7 (a) S"), None);
    }

    proptest! {
        #[test]
        fn any_stat_is_read_or_refused(stat in "\\PC{0,80}") {
            let _ = ticks_of(&stat);
        }
    }
}
