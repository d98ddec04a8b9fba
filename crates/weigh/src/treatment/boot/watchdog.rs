//! The hardware's watchdog (the kernel's Documentation/watchdog): it is set before the machine goes down into
//! a boot, and the drivers of that take it over. What hangs before, it resets, and the normal entry comes up.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::fd::AsRawFd;

const DEVICE: &str = "/dev/watchdog";
const IDENTITY: &str = "/sys/class/watchdog/watchdog0/identity";
/// `WDIOC_SETTIMEOUT`, of linux/watchdog.h.
const SET_TIMEOUT: libc::c_ulong = 0xc004_5706;
/// Whether the kernel stops all of them as it goes down: 0, if it does not. Otherwise most drivers do.
const STOPS: &str = "/sys/module/watchdog/parameters/stop_on_reboot";
/// No kernel takes as long to its drivers; most can be set to it.
const TIMEOUT_S: i32 = 120;
/// Closed after this letter, a device stands down.
const STANDS_DOWN: &[u8] = b"V";

/// What becomes of a boot that hangs, in a sentence.
pub fn sentence() -> String {
    let keeps_on = fs::read_to_string(STOPS).is_ok_and(|text| text.trim() == "0");
    match name() {
        Some(name) if keeps_on => format!(
            "A boot that hangs before its drivers are up is reset by the watchdog ({name}), after \
             {TIMEOUT_S} s."
        ),
        Some(name) => format!(
            "A boot that hangs takes somebody who resets the machine: the kernel stops the watchdog ({name}) \
             as it goes down, without watchdog.stop_on_reboot=0 on the command line of the normal entry."
        ),
        None => "There is no hardware watchdog here (/dev/watchdog): a boot that hangs takes somebody who \
                 resets the machine."
            .into(),
    }
}

/// One that outlives the kernel.
fn name() -> Option<String> {
    let name = fs::read_to_string(IDENTITY).ok()?.trim().to_owned();
    (name != "Software Watchdog").then_some(name)
}

/// Sets it, where there is one that nobody else holds. It runs until it is stood down, or the machine is
/// reset.
pub fn set() -> Option<File> {
    name()?;
    let mut device = OpenOptions::new().write(true).open(DEVICE).ok()?;
    let timeout_s = TIMEOUT_S;
    // SAFETY: an open device, and a number that lives.
    unsafe { libc::ioctl(device.as_raw_fd(), SET_TIMEOUT as _, &raw const timeout_s) };
    device.write_all(b"\0").ok()?;
    Some(device)
}

/// Stands it down, where it is ours.
pub fn stand_down() {
    if name().is_some() {
        let write = |mut device: File| -> io::Result<()> { device.write_all(STANDS_DOWN) };
        let _ = OpenOptions::new().write(true).open(DEVICE).and_then(write);
    }
}
