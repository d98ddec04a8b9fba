//! What no file tells: it is found out by trying.

use std::io;
use std::path::PathBuf;

/// The outcome of the tries; what is `None` or empty was not tried.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Probes {
    /// Whether instructions can be counted, or why not.
    pub counters: Option<Result<(), String>>,
    /// The kernel's audit status; `None` also where it may not be read. The caller fills it in, since
    /// this room does not know the audit protocol.
    pub audit: Option<AuditProbe>,
    /// What the kernel's clock is corrected by.
    pub clock_correction: Option<ClockCorrection>,
    /// The room in each directory that was asked about and exists.
    pub space: Vec<Space>,
}

/// What concerns a measurement of the kernel's audit status.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AuditProbe {
    /// 0 off, 1 on, 2 on and locked until the next boot.
    pub enabled: u32,
    /// Process id of the audit daemon, 0 for none.
    pub daemon_pid: u32,
}

/// How an NTP daemon has the kernel correct its clock.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ClockCorrection {
    /// What is left to correct, in microseconds.
    pub offset_us: i64,
    /// What the clock is known to be slow by, and is made faster by, in parts per million.
    pub rate_ppm: f64,
}

/// The room in a directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Space {
    pub place: PathBuf,
    /// What an unprivileged user may still write.
    pub free_bytes: u64,
}

impl Probes {
    /// Tries on this machine; changes nothing and never fails.
    pub fn read(places: &[PathBuf]) -> Probes {
        let space = |place: &PathBuf| {
            let found = rustix::fs::statvfs(place).ok()?;
            let free_bytes = found.f_bavail.saturating_mul(found.f_frsize);
            Some(Space { place: place.clone(), free_bytes })
        };
        Probes {
            counters: Some(count_instructions().map_err(|error| error.to_string())),
            audit: None,
            clock_correction: clock_correction(),
            space: places.iter().filter_map(space).collect(),
        }
    }
}

/// Asks, and sets nothing: adjtimex(2).
fn clock_correction() -> Option<ClockCorrection> {
    // SAFETY: every field is a number, for which zero bits are a value; without modes, nothing is set.
    let mut clock: libc::timex = unsafe { std::mem::zeroed() };
    // SAFETY: the kernel fills in the structure, which lives until it is read.
    if unsafe { libc::adjtimex(&raw mut clock) } < 0 {
        return None;
    }
    let per_us = if clock.status & libc::STA_NANO == 0 { 1 } else { 1000 };
    Some(ClockCorrection {
        offset_us: clock.offset / per_us,
        // In 65 536ths.
        rate_ppm: clock.freq as f64 / 65_536.0,
    })
}

/// Opens a counter of this process's own instructions, and closes it again: perf_event_open(2).
fn count_instructions() -> io::Result<()> {
    use std::os::fd::{FromRawFd, OwnedFd};
    const ATTRIBUTE_BYTES: u64 = 64;
    const TYPE_HARDWARE: u64 = 0;
    const INSTRUCTIONS: u64 = 1;
    const CLOSE_ON_EXEC: libc::c_ulong = 8;
    const DISABLED_AND_USER_SPACE_ONLY: u64 = 1 | 1 << 5 | 1 << 6;
    // struct perf_event_attr in its first version: type and size, config, …, flags as the sixth word.
    let mut attribute = [0_u64; 8];
    (attribute[0], attribute[1]) = (TYPE_HARDWARE | ATTRIBUTE_BYTES << 32, INSTRUCTIONS);
    attribute[5] = DISABLED_AND_USER_SPACE_ONLY;
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
    let fd = i32::try_from(counter).map_err(io::Error::other)?;
    // SAFETY: the kernel has just made this descriptor, and nobody else knows it.
    drop(unsafe { OwnedFd::from_raw_fd(fd) });
    Ok(())
}
