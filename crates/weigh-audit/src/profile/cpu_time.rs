//! CPU time of processes that are ours, and of those that are not.

use std::mem::MaybeUninit;
use std::time::Duration;

use weigh_host::machine::stat::{Stat, family};
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

/// CPU time of all its threads, ended ones included, and of the children that it waited for.
fn of_stat(stat: &Stat) -> Option<CpuTime> {
    let time = |own: usize, children: usize| {
        let ticks = stat.number::<u64>(own)?.saturating_add(stat.number(children).unwrap_or(0));
        let per_second = rustix::param::clock_ticks_per_second();
        Some(Duration::from_secs_f64(ticks as f64 / per_second as f64))
    };
    Some(CpuTime { user: time(14, 16)?, system: time(15, 17)? })
}

/// A process with all its descendants, itself first, but never this one below another; empty where it
/// does not exist.
pub fn tree(root: i32) -> Vec<i32> {
    let root = root.cast_unsigned();
    match Stat::of(root) {
        Err(_) => Vec::new(),
        Ok(_) => {
            let all = family(&[root], Some(std::process::id()));
            all.into_iter().map(u32::cast_signed).collect()
        }
    }
}

/// Returns the CPU time of a process and its descendants, with the children that they waited for.
/// Each time is exact to a hundredth of a second.
pub fn of_tree(root: i32) -> CpuTime {
    let mut sum = CpuTime::default();
    for cpu in tree(root).into_iter().filter_map(|process| of_stat(&Stat::of(process).ok()?)) {
        sum.user += cpu.user;
        sum.system += cpu.system;
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn children_that_were_waited_for_count() {
        let text = "7 (a) S 5 7 7 0 -1 0 0 0 0 0 250 100 50 25 20 0 1 0";
        let cpu = of_stat(&Stat::parse(text)).unwrap();
        let ratio = cpu.user.as_secs_f64() / cpu.system.as_secs_f64();
        assert!((ratio - 300.0 / 125.0).abs() < 1e-9, "{ratio}");
        assert!(tree(i32::MAX).is_empty());
    }
}
