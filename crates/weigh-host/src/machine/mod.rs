//! Facts of this machine, without which a result means nothing.
//!
//! Everything is read from `/proc`, `/sys` and a few files of the distribution. Reading never
//! fails: a missing fact stays empty.

pub mod additions;
pub mod audit_contexts;
pub mod check;
pub mod counter;
pub mod cpu_share;
pub mod cpu_time;
pub mod disk_speed;
pub mod facts;
pub mod file_system;
pub mod fix;
pub mod footprint;
pub mod gone;
mod hardware_errors;
pub mod hardware_speed;
pub mod hierarchies;
pub mod memory;
pub mod mounts;
pub mod pace;
pub mod pressure;
pub mod probes;
pub mod process;
mod source;
pub mod stat;
mod surroundings;
pub mod swapping;
pub mod sysctl;
pub mod watchdog;

use std::io;

pub use pressure::Pressure;
pub use probes::Probes;

/// Changes with every boot, for telling whether a process of an earlier one can still live.
///
/// # Errors
/// Where it cannot be read: that is no other boot.
pub fn boot_id() -> io::Result<String> {
    const FILE: &str = "/proc/sys/kernel/random/boot_id";
    let cannot = |error: io::Error| io::Error::new(error.kind(), format!("{FILE}: {error}"));
    match std::fs::read_to_string(FILE).map_err(cannot)?.trim() {
        "" => Err(cannot(io::ErrorKind::UnexpectedEof.into())),
        id => Ok(id.to_owned()),
    }
}
