//! An experiment as data. `weigh` and `weigh-host` make, store and show these types. This crate reads no
//! machine and lays out no report.
//!
//! - [`label`]: how treatments and workloads are named on a command line;
//! - [`kind`]: what treatments and fixtures have in common: parameters, and whether they work here;
//! - [`workload`]: what a workload is made of and what it reports: metrics, a [`workload::sample::Sample`],
//!   suites, mixes;
//! - [`evidence`], [`facts`], [`disturbance`]: what was in force, on which machine, beside whom;
//! - [`role`]: why a sample was taken;
//! - [`record`] and [`samples`]: an experiment as it is stored, and what memory keeps of its samples;
//! - [`result`]: what was found; [`profile`]: the system calls of a program;
//! - [`format`], [`printable`], [`shell`]: how numbers, foreign text and commands are written.
//!
//! Start with [`result::summary::Summary`], which every report of a comparison shows.

#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

pub mod described;
pub mod disk_speed;
pub mod disturbance;
pub mod evidence;
#[cfg(any(test, feature = "example"))]
pub mod example;
pub mod facts;
pub mod finding;
pub mod format;
pub mod kind;
pub mod label;
pub mod printable;
pub mod profile;
pub mod record;
pub mod result;
pub mod role;
pub mod samples;
pub mod shell;
pub mod workload;
