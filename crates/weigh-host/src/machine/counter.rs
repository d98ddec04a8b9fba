//! Instructions that are executed for this process, where a PMU counts them.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsRawFd, FromRawFd};

/// A counter of this process and of the children that it forks later.
pub struct Counter {
    file: File,
    /// Value of the counter when it was started.
    base: u64,
}

const ATTRIBUTE_BYTES: u64 = 64;
const TYPE_HARDWARE: u64 = 0;
const INSTRUCTIONS: u64 = 1;
const DISABLED: u64 = 1;
const INHERIT: u64 = 1 << 1;
const EXCLUDE_USER: u64 = 1 << 4;
const EXCLUDE_KERNEL: u64 = 1 << 5;
const EXCLUDE_HYPERVISOR: u64 = 1 << 6;
const CLOSE_ON_EXEC: libc::c_ulong = 8;
const ENABLE: libc::c_ulong = 0x2400;
const DISABLE: libc::c_ulong = 0x2401;

impl Counter {
    /// One of what the kernel executes.
    ///
    /// # Errors
    /// `ENOENT` without a PMU, `EACCES` where `perf_event_paranoid` forbids it.
    pub fn of_kernel() -> io::Result<Counter> {
        Counter::open(EXCLUDE_USER)
    }

    /// One of what the program itself executes, which more users may count.
    pub fn of_user() -> io::Result<Counter> {
        Counter::open(EXCLUDE_KERNEL)
    }

    /// perf_event_open(2)
    fn open(excluded: u64) -> io::Result<Counter> {
        // struct perf_event_attr in its first version: type and size, config, …, flags as the sixth word.
        let mut attribute = [0_u64; 8];
        (attribute[0], attribute[1]) = (TYPE_HARDWARE | ATTRIBUTE_BYTES << 32, INSTRUCTIONS);
        attribute[5] = DISABLED | INHERIT | excluded | EXCLUDE_HYPERVISOR;
        if cfg!(target_endian = "big") {
            return Err(io::ErrorKind::Unsupported.into());
        }
        // SAFETY: the kernel reads the 64 bytes that the structure says it has.
        let counter = unsafe {
            libc::syscall(libc::SYS_perf_event_open, attribute.as_ptr(), 0, -1, -1, CLOSE_ON_EXEC)
        };
        if counter < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the kernel has just made this descriptor, and nobody else knows it.
        Ok(Counter { file: unsafe { File::from_raw_fd(counter as i32) }, base: 0 })
    }

    /// Returns true if a PMU counts: some virtual machines have a PMU that counts nothing.
    pub fn works() -> bool {
        let count = || {
            let mut counter = Counter::of_kernel()?;
            counter.start()?;
            // SAFETY: takes nothing, and cannot fail.
            unsafe { libc::syscall(libc::SYS_getppid) };
            counter.stop()
        };
        count().is_ok_and(|instructions| instructions > 0)
    }

    /// There is a request to reset it, but that leaves what children that have ended counted
    /// (`kernel/events/core.c`, `_perf_event_reset` and `child_count`).
    pub fn start(&mut self) -> io::Result<()> {
        self.base = self.read()?;
        self.control(ENABLE)
    }

    /// Stops it; the instructions since [`Counter::start`].
    pub fn stop(&self) -> io::Result<u64> {
        self.control(DISABLE)?;
        Ok(self.read()? - self.base)
    }

    fn read(&self) -> io::Result<u64> {
        let mut count = [0; 8];
        (&self.file).read_exact(&mut count)?;
        Ok(u64::from_ne_bytes(count))
    }

    fn control(&self, request: libc::c_ulong) -> io::Result<()> {
        // SAFETY: these requests take a number, and no memory of ours.
        match unsafe { libc::ioctl(self.file.as_raw_fd(), request, 0) } {
            -1 => Err(io::Error::last_os_error()),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn children_that_have_ended_are_not_counted_twice() {
        if !Counter::works() {
            needs::skip("pmu", "no PMU that counts");
            return;
        }
        let mut counter = Counter::of_kernel().unwrap();
        let mut counted = |what: &dyn Fn()| {
            counter.start().unwrap();
            what();
            counter.stop().unwrap()
        };
        let start = || assert!(std::process::Command::new("true").status().unwrap().success());
        let with_child = counted(&start);
        let without = counted(&|| {
            // SAFETY: takes nothing, and cannot fail.
            unsafe { libc::syscall(libc::SYS_getppid) };
        });
        assert!(without < with_child / 10, "{without} {with_child}");
    }
}
