//! The CPU use of a command from the moment when its launcher lets it go: whether it waits for anything but a
//! CPU, and how much CPU time it takes.

use std::fs;

use serde::{Deserialize, Serialize};

use super::task_looks::Looks;

/// CPU use of a held command from the moment when it was let go.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CpuUse {
    /// CPU time of all its processes that somebody waited for, also of those that outlived it and were ended.
    pub cpu_ns: u64,
    /// The part of its first thread.
    pub first_thread_ns: u64,
    /// Time in which its first thread waited for a CPU.
    pub queued_ns: u64,
    /// How often it gave up a CPU to wait for something. Its end counts as one, too.
    pub waits: u64,
    /// Looks at all of its processes while it ran, if its launcher was to look.
    #[serde(default)]
    pub looks: Looks,
}

/// Counters of the kernel's scheduler for the first thread of a process: the first two numbers of `schedstat`
/// (Documentation/scheduler/sched-stats.rst).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scheduled {
    ran_ns: u64,
    queued_ns: u64,
}

impl Scheduled {
    /// Reads the counters of a process that runs, or has ended and was not waited for; `None` where the
    /// kernel does not count.
    pub fn of(process: u32) -> Option<Scheduled> {
        Scheduled::parse(&fs::read_to_string(format!("/proc/{process}/schedstat")).ok()?)
    }

    fn parse(schedstat: &str) -> Option<Scheduled> {
        let mut numbers = schedstat.split_whitespace().map_while(|number| number.parse().ok());
        let (ran_ns, queued_ns) = (numbers.next()?, numbers.next()?);
        // A process that was forked has run. A kernel that does not count writes zeros.
        (ran_ns > 0).then_some(Scheduled { ran_ns, queued_ns })
    }
}

/// The counters of a held command, before it is let go.
pub struct HeldCounters {
    thread: Scheduled,
    waits: u64,
    descendants_ns: u64,
}

impl HeldCounters {
    /// Reads the counters of a held worker that is off its CPU, and has waited so often; `None` where the
    /// kernel does not count.
    pub fn read(worker: u32, waits: u64) -> Option<HeldCounters> {
        let thread = Scheduled::of(worker)?;
        Some(HeldCounters { thread, waits, descendants_ns: ended_descendants_ns() })
    }

    /// Returns what it used until its end. Called when it was waited for, with all that it left.
    pub fn until(&self, end: Scheduled, voluntary_switches: u64, looks: Looks) -> CpuUse {
        let descendants_ns = ended_descendants_ns().saturating_sub(self.descendants_ns);
        CpuUse {
            // It was none of the ended ones, so its time before is among theirs now.
            cpu_ns: descendants_ns.saturating_sub(self.thread.ran_ns),
            first_thread_ns: end.ran_ns.saturating_sub(self.thread.ran_ns),
            queued_ns: end.queued_ns.saturating_sub(self.thread.queued_ns),
            waits: voluntary_switches.saturating_sub(self.waits),
            looks,
        }
    }
}

/// CPU time of all descendants that have ended and were waited for.
fn ended_descendants_ns() -> u64 {
    // SAFETY: `rusage` is plain data, for which zeroes are valid.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: the pointer is to a live variable. With these arguments it cannot fail.
    unsafe { libc::getrusage(libc::RUSAGE_CHILDREN, &raw mut usage) };
    let ns = |time: libc::timeval| time.tv_sec as u64 * 1_000_000_000 + time.tv_usec as u64 * 1000;
    ns(usage.ru_utime) + ns(usage.ru_stime)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kernel_that_does_not_count_is_told_from_one_that_does() {
        assert_eq!(Scheduled::parse("70 30 2\n"), Some(Scheduled { ran_ns: 70, queued_ns: 30 }));
        for nothing in ["0 0 0\n", "", "x y z"] {
            assert_eq!(Scheduled::parse(nothing), None, "{nothing}");
        }
    }

    #[test]
    fn what_was_used_before_is_not_the_commands() {
        let thread = Scheduled { ran_ns: 1000, queued_ns: 500 };
        let held = HeldCounters { thread, waits: 4, descendants_ns: ended_descendants_ns() };
        let used = held.until(Scheduled { ran_ns: 9000, queued_ns: 2500 }, 5, Looks::default());
        assert_eq!((used.first_thread_ns, used.queued_ns, used.waits), (8000, 2000, 1));
    }
}
