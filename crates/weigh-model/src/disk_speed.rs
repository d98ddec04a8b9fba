//! Measured speed of the device below a directory.

use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DiskSpeed {
    /// Its number, `MAJOR:MINOR`.
    pub device: String,
    /// Blocks of 1 MiB in order.
    pub read_bytes_per_s: f64,
    pub write_bytes_per_s: f64,
    /// Blocks of 4 KiB at random.
    pub random_reads_per_s: f64,
    pub random_writes_per_s: f64,
    /// Blocks of 4 KiB at random by one thread; each is on the device before the next starts
    /// (O_DSYNC).
    pub synced_writes_per_s: f64,
}
