//! Weighbridge: what a change to a Linux system costs the programs that run on it.

pub mod machine;
pub mod report;
pub mod stats;
