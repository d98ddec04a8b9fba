//! The hardware's watchdog (the kernel's Documentation/watchdog): it is set before the machine goes down into
//! a boot, and the drivers of that take it over. What hangs before, it resets, and the normal entry comes up.
//!
//! Most drivers stop it as the machine goes down, and whether they do is settled when they are loaded. Where
//! they do in the normal boot, another boot of its kernel comes first, whose drivers leave it on.

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::os::fd::AsRawFd;
use std::time::{Duration, Instant};

use rustix::fs::{FlockOperation, flock};

use crate::orphans::wait_until;

const DEVICE: &str = "/dev/watchdog";
const IDENTITY: &str = "/sys/class/watchdog/watchdog0/identity";
/// 1 of one that nobody can stop.
const NO_WAY_OUT: &str = "/sys/class/watchdog/watchdog0/nowayout";
/// `WDIOC_SETTIMEOUT`, of linux/watchdog.h.
const SET_TIMEOUT: libc::c_ulong = 0xc004_5706;
/// Setting for stopping all watchdogs as the kernel goes down; 0 if it leaves them running.
///
/// It is read when a driver is loaded.
const STOPS: &str = "/sys/module/watchdog/parameters/stop_on_reboot";
/// No kernel takes as long to its drivers; most can be set to it.
const TIMEOUT_S: i32 = 120;
/// The most that some take (iTCO_wdt: 613).
const LESS_S: i32 = 600;
/// No machine takes as long from its early start until all is up.
const START_TIMEOUT_S: i32 = 300;
/// From the early start until its driver is there.
const APPEARS_WITHIN: Duration = Duration::from_secs(30);
/// Closed after this letter, a device stands down.
const STANDS_DOWN: &[u8] = b"V";

/// Describes in sentences the outcome of a boot that hangs.
///
/// `before` is set if the watchdog is set before the kernel begins. It is the longest time that
/// services take to stop before that. `is_early` is true if an early start sets the watchdog again.
pub fn sentences(before: Option<Duration>, is_early: bool) -> String {
    let Some(name) = name() else {
        return "This machine has no usable hardware watchdog (/dev/watchdog): if a boot hangs, somebody \
                must reset the machine."
            .into();
    };
    let mut told = match before {
        Some(stopping) => format!(
            "The watchdog ({name}) resets a boot that hangs before its drivers are up, within {} s.",
            before_s(stopping)
        ),
        None => format!(
            "If a boot hangs before weigh's early start, somebody must reset the machine, as a reset \
             stops the watchdog ({name})."
        ),
    };
    if is_early {
        told += &format!(" A boot that hangs later is reset after {START_TIMEOUT_S} s.");
    }
    if before.is_some() && stops_with_the_kernel() {
        told += " The normal kernel boots once before the first boot, as the running kernel would stop \
                 the watchdog when it goes down.";
    }
    told
}

/// Returns true if a watchdog can be used.
pub fn is_here() -> bool {
    name().is_some()
}

/// Returns true if a watchdog can be used that would be off when the next kernel begins.
pub fn stops_with_the_kernel() -> bool {
    is_here() && !fs::read_to_string(STOPS).is_ok_and(|text| text.trim() == "0")
}

/// One that outlives the kernel, and that the boot which came up can stop.
fn name() -> Option<String> {
    let name = fs::read_to_string(IDENTITY).ok()?.trim().to_owned();
    let stays_on = fs::read_to_string(NO_WAY_OUT).is_ok_and(|text| text.trim() == "1");
    (name != "Software Watchdog" && !stays_on).then_some(name)
}

/// Sets it before the machine goes down, where there is one that nobody else holds; `stopping` is how long
/// the services take at most. It runs until it is stood
/// down, or the machine is reset.
pub fn set(stopping: Duration) -> Option<File> {
    let timeout_s = before_s(stopping);
    [timeout_s, LESS_S.min(timeout_s)].into_iter().find_map(start)
}

/// It runs while services are stopped too, which nobody is to cut short.
fn before_s(stopping: Duration) -> i32 {
    stopping.as_secs() as i32 + TIMEOUT_S
}

/// Sets the watchdog when a boot has only just begun and its driver may not be loaded yet.
pub fn set_early() {
    let _turn = turn();
    wait_until(Instant::now() + APPEARS_WITHIN, is_here);
    let _ = start(START_TIMEOUT_S);
}

fn start(timeout_s: i32) -> Option<File> {
    name()?;
    let mut device = OpenOptions::new().write(true).open(DEVICE).ok()?;
    // SAFETY: an open device, and a number that lives.
    let is_set =
        unsafe { libc::ioctl(device.as_raw_fd(), SET_TIMEOUT as _, &raw const timeout_s) } == 0;
    // What it is set to otherwise may be too short.
    device.write_all(if is_set { b"\0" } else { STANDS_DOWN }).ok()?;
    is_set.then_some(device)
}

/// Stands it down in a boot that came up.
pub fn take_over() {
    // What was started early may still wait for the driver.
    let _turn = turn();
    if let Err(error) = stand_down() {
        eprintln!(
            "error: cannot stop the watchdog {DEVICE}, which may reset this machine: {error}"
        );
    }
}

/// Held by one process of this program at a time.
fn turn() -> Option<File> {
    let own = File::open("/proc/self/exe").ok()?;
    flock(&own, FlockOperation::LockExclusive).ok()?;
    Some(own)
}

/// Stands it down, where it is ours.
///
/// # Errors
/// As `open(2)` and `write(2)`; after an error the watchdog may still reset this machine.
pub fn stand_down() -> io::Result<()> {
    let write = |mut device: File| -> io::Result<()> { device.write_all(STANDS_DOWN) };
    match OpenOptions::new().write(true).open(DEVICE).and_then(write) {
        // No watchdog, or another daemon holds it.
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        Err(error) if error.raw_os_error() == Some(libc::EBUSY) => Ok(()),
        other => other,
    }
}
