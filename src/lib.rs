//! Weighbridge: what a change to a Linux system costs the programs that run on it.

pub mod attribution;
pub mod audit;
pub mod budget;
pub mod cli;
pub mod experiment;
pub mod import;
pub mod machine;
pub mod orphans;
pub mod own_program;
pub mod printable;
pub mod profile;
pub mod report;
pub mod shell;
pub mod stats;
pub mod store;
pub mod treatment;
pub mod trust;
pub mod user_file;
pub mod workload;
