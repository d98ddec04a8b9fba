//! CPU time of processes that are ours, and of those that are not.

use std::collections::BTreeSet;
use std::fs;
use std::mem::MaybeUninit;
use std::time::Duration;

use weigh_model::profile::runs::CpuTime;

/// Returns the CPU time of this process's children that were waited for, and of all children that
/// these waited for.
pub fn of_children() -> CpuTime {
    let mut usage = MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: the kernel writes one `rusage`; all zeros are a valid one, should it fail.
    let usage = unsafe {
        libc::getrusage(libc::RUSAGE_CHILDREN, usage.as_mut_ptr());
        usage.assume_init()
    };
    let duration = |time: libc::timeval| {
        let seconds = Duration::from_secs(time.tv_sec.try_into().unwrap_or(0));
        seconds + Duration::from_micros(time.tv_usec.try_into().unwrap_or(0))
    };
    CpuTime { user: duration(usage.ru_utime), system: duration(usage.ru_stime) }
}

struct Stat {
    parent: i32,
    /// CPU time of all its threads, ended ones included, and of the children that it waited for.
    cpu: CpuTime,
}

fn stat(process: i32) -> Option<Stat> {
    parse(&fs::read_to_string(format!("/proc/{process}/stat")).ok()?)
}

/// Fields are counted from behind the name, which may hold anything: proc(5).
fn parse(text: &str) -> Option<Stat> {
    let (_, fields) = text.rsplit_once(')')?;
    let fields: Vec<&str> = fields.split_whitespace().collect();
    let ticks = |field: usize| fields.get(field - 3)?.parse::<u64>().ok();
    let time = |own: usize, children: usize| {
        let ticks = ticks(own)?.saturating_add(ticks(children).unwrap_or(0));
        // SAFETY: it takes a number.
        let per_second = unsafe { libc::sysconf(libc::_SC_CLK_TCK) }.max(1);
        Some(Duration::from_secs_f64(ticks as f64 / per_second as f64))
    };
    let parent = fields.get(1)?.parse().ok()?;
    Some(Stat { parent, cpu: CpuTime { user: time(14, 16)?, system: time(15, 17)? } })
}

/// A process with all its descendants, itself first, but never this one below another; empty where it
/// does not exist.
pub fn tree(root: i32) -> Vec<i32> {
    if stat(root).is_none() {
        return Vec::new();
    }
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let processes = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    let parents: Vec<(i32, i32)> =
        processes.filter_map(|process| Some((process, stat(process)?.parent))).collect();
    let mut found = vec![root];
    let mut known = BTreeSet::from([root, std::process::id().cast_signed()]);
    let mut next = 0;
    while let Some(&parent) = found.get(next) {
        next += 1;
        let children = parents.iter().filter(|(child, of)| *of == parent && known.insert(*child));
        found.extend(children.map(|(child, _)| *child).collect::<Vec<i32>>());
    }
    found
}

/// Returns the CPU time of a process and its descendants, with the children that they waited for.
/// Each time is exact to a hundredth of a second.
pub fn of_tree(root: i32) -> CpuTime {
    let mut sum = CpuTime::default();
    for stat in tree(root).into_iter().filter_map(stat) {
        sum.user += stat.cpu.user;
        sum.system += stat.cpu.system;
    }
    sum
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_name_may_hold_anything() {
        let text = "7 (a) b (c)) S 5 7 7 0 -1 0 0 0 0 0 250 100 50 25 20 0 1 0";
        let stat = parse(text).unwrap();
        assert_eq!(stat.parent, 5);
        let ratio = stat.cpu.user.as_secs_f64() / stat.cpu.system.as_secs_f64();
        assert!((ratio - 300.0 / 125.0).abs() < 1e-9, "{ratio}");
    }

    #[test]
    fn a_tree_has_its_children_and_nobody_else() {
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let ours = std::process::id().cast_signed();
        let found = tree(ours);
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(found[0], ours);
        assert!(found.contains(&child.id().cast_signed()) && !found.contains(&1));
        assert!(tree(i32::MAX).is_empty());
    }

    proptest! {
        #[test]
        fn nothing_in_proc_makes_it_panic(text in ".{0,200}") {
            let _ = parse(&text);
        }
    }
}
