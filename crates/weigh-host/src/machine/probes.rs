//! Probes for facts that no file shows: they are found out by trying.

use std::path::PathBuf;

use crate::machine::audit_contexts;
use crate::machine::counter::Counter;

/// The outcome of the tries; what is `None` or empty was not tried.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Probes {
    /// Result of counting instructions: success, or the reason why they cannot be counted.
    pub counters: Option<Result<(), String>>,
    /// The kernel's audit status; `None` also where it may not be read. The caller fills it in, since
    /// this crate does not know the audit protocol.
    pub audit: Option<AuditProbe>,
    /// True if new processes carry an audit context; `None` where that cannot be seen.
    pub audit_contexts: Option<bool>,
    pub clock_correction: Option<ClockCorrection>,
    /// Packages without which no virtual machine of ours can be booted; the caller fills that in too.
    pub guests_lack: Option<Vec<&'static str>>,
    /// The room in each directory that was asked about and exists.
    pub space: Vec<Space>,
}

/// Parts of the kernel's audit status that affect a measurement.
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
    /// Correction still to be made, in microseconds.
    pub offset_us: i64,
    /// Rate by which the clock is known to be slow and is sped up, in parts per million.
    pub rate_ppm: f64,
}

/// The room in a directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Space {
    pub place: PathBuf,
    /// Bytes that an unprivileged user may still write.
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
            counters: Some(Counter::of_user().map(drop).map_err(|error| error.to_string())),
            audit: None,
            audit_contexts: audit_contexts::are_made(),
            clock_correction: clock_correction(),
            guests_lack: None,
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
