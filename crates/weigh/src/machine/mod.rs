//! What this machine is: the facts that a result means nothing without.
//!
//! Everything is read from `/proc`, `/sys` and a few files of the distribution. Reading never
//! fails: what is absent stays empty.

pub mod check;
pub mod counter;
pub mod cpu_time;
pub mod described;
pub mod disk_speed;
mod facts;
pub mod file_system;
pub mod fix;
pub mod held;
pub mod memory;
pub mod pressure;
pub mod probes;
pub mod process;
mod source;
mod surroundings;
pub mod sysctl;

use std::path::Path;

pub use facts::{Facts, unreclaimable_slab_bytes};
pub use pressure::Pressure;
pub use probes::Probes;

/// Changes with every boot, for telling whether a process of an earlier one can still live. Empty
/// when not known.
pub fn boot_id() -> String {
    let root = source::Source::new(Path::new("/"));
    root.text("/proc/sys/kernel/random/boot_id").unwrap_or_default()
}
