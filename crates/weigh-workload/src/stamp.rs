//! The moment at which a worker executes its program, taken by the worker itself. The launcher learns of the
//! execution only when it runs again, which on a busy machine may be after the program has ended.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use rustix::time::{ClockId, clock_gettime};

/// A page that the launcher and its worker share.
pub struct Stamp {
    /// When the worker began to get ready, and the CPU time that it had used by then.
    ready_ns: AtomicU64,
    ready_cpu_ns: AtomicU64,
    /// How far the clock of CPU times may have been behind then.
    behind_ns: AtomicU64,
    executed_ns: AtomicU64,
    /// True if the worker waits to be released when it has executed its program.
    is_held: AtomicBool,
}

/// The time of `CLOCK_MONOTONIC`.
pub fn monotonic_ns() -> u64 {
    ns(ClockId::Monotonic)
}

fn ns(clock: ClockId) -> u64 {
    let time = clock_gettime(clock);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Memory of zeros that a process shares with those that it forks, for as long as it lives.
pub fn map_shared(length: usize) -> io::Result<*mut u8> {
    let protection = libc::PROT_READ | libc::PROT_WRITE;
    let flags = libc::MAP_SHARED | libc::MAP_ANONYMOUS;
    // SAFETY: a new mapping at an address of the kernel's choice touches nothing that is there.
    let page = unsafe { libc::mmap(std::ptr::null_mut(), length, protection, flags, -1, 0) };
    match page == libc::MAP_FAILED {
        true => Err(io::Error::last_os_error()),
        false => Ok(page.cast()),
    }
}

impl Stamp {
    /// Maps a page for as long as this process lives.
    pub fn map() -> io::Result<&'static Stamp> {
        let page = map_shared(size_of::<Stamp>())?;
        // SAFETY: the mapping is aligned, holds zeros, which atomic numbers may be, and is never unmapped.
        Ok(unsafe { &*page.cast::<Stamp>() })
    }

    /// For the worker, before it gets ready. What it does from here on is the launcher's work, not the
    /// program's.
    ///
    /// Where a kernel does not rely on its counter, as the TSC of an emulator, its scheduler's clock waits
    /// for the timer's next tick (`kernel/sched/clock.c`), and makes up there for all that it fell behind:
    /// whoever runs then is given that time. The coarse clock is of the last tick. It is read first, and the
    /// CPU time last: where a hypervisor takes the CPU away in between, the program's share is not too large.
    pub fn get_ready(&self) {
        let tick_ns = ns(ClockId::MonotonicCoarse);
        let now_ns = monotonic_ns();
        let cpu_ns = ns(ClockId::ProcessCPUTime);
        self.ready_cpu_ns.store(cpu_ns, Ordering::Relaxed);
        self.behind_ns.store(now_ns.saturating_sub(tick_ns), Ordering::Relaxed);
        self.ready_ns.store(now_ns, Ordering::Relaxed);
        self.executed_ns.store(now_ns, Ordering::Relaxed);
        self.is_held.store(false, Ordering::Relaxed);
    }

    /// For the worker, where it will wait to be let go.
    pub fn hold(&self) {
        self.is_held.store(true, Ordering::Relaxed);
    }

    /// Returns true if the worker waits to be released.
    pub fn is_held(&self) -> bool {
        self.is_held.load(Ordering::Relaxed)
    }

    /// For the worker, just before `execve(2)`, or for whoever lets it go later. Reading this clock is no
    /// system call where the machine's clock can be read in user mode; elsewhere a filter may refuse it, and
    /// the moment of getting ready stays.
    pub fn execute(&self) {
        let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        // SAFETY: the pointer is to a live variable. Not by `rustix`, which takes a refusal for impossible.
        if unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut time) } == 0 {
            let now_ns = time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64;
            self.executed_ns.store(now_ns, Ordering::Relaxed);
        }
    }

    /// When the program was executed, on the clock of [`monotonic_ns`].
    pub fn executed_ns(&self) -> u64 {
        self.executed_ns.load(Ordering::Relaxed)
    }

    /// Returns how much of a worker's CPU time may date from before it got ready.
    pub fn behind_ns(&self) -> u64 {
        self.behind_ns.load(Ordering::Relaxed)
    }

    /// Returns the least CPU time that the worker's program itself used.
    ///
    /// The worker has one thread until it executes, so getting ready took no more CPU time than
    /// time.
    pub fn least_cpu_ns(&self, all_cpu_ns: u64) -> u64 {
        let ready_ns = self.executed_ns() - self.ready_ns.load(Ordering::Relaxed);
        all_cpu_ns.saturating_sub(self.ready_cpu_ns.load(Ordering::Relaxed) + ready_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_another_process_stamps_is_seen_here() {
        let stamp = Stamp::map().unwrap();
        let before_ns = monotonic_ns();
        // SAFETY: the child writes to the page, and ends without any of Rust's or libc's cleaning up.
        let child = unsafe { libc::fork() };
        if child == 0 {
            stamp.get_ready();
            stamp.execute();
            unsafe { libc::_exit(0) };
        }
        // SAFETY: a status is not asked for.
        unsafe { libc::waitpid(child, std::ptr::null_mut(), 0) };
        assert!((before_ns..=monotonic_ns()).contains(&stamp.executed_ns()));
    }

    #[test]
    fn what_getting_ready_took_is_not_the_programs() {
        let number = AtomicU64::new;
        let stamp = Stamp {
            ready_ns: number(100),
            ready_cpu_ns: number(7),
            behind_ns: number(0),
            executed_ns: number(130),
            is_held: AtomicBool::new(false),
        };
        assert_eq!(stamp.least_cpu_ns(1037), 1000);
        assert_eq!(stamp.least_cpu_ns(20), 0);
    }
}
