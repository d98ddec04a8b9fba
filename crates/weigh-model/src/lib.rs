//! Describes an experiment as data.
//!
//! The other crates of `weigh` make, store and show these types. The crate does not
//! read the machine and lays out no report.
//!
//! - [`label`]: how treatments and workloads are named on a command line;
//! - [`kind`]: what treatments and fixtures have in common: parameters, and whether they work here;
//! - [`workload`]: metrics, suites, mixes, and a [`workload::sample::Sample`];
//! - [`evidence`], [`facts`], [`disturbance`]: proof of a treatment, the machine, and other load on it;
//! - [`role`]: why a sample was taken; [`ids`]: which experiment, arm, work, set or pair;
//! - [`atlas_list`]: the treatments of `weigh atlas`;
//! - [`record`] and [`samples`]: a stored experiment, and the part of its samples that memory keeps;
//! - [`result`]: results of all commands; [`profile`]: the system calls of a program;
//! - [`format`](mod@format), [`printable`], [`shell`]: how numbers, foreign text and commands are written.
//!
//! Start with [`result::summary::Summary`], which every report of a comparison shows.

#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

pub mod atlas_list;
pub mod cpu_share;
pub mod described;
pub mod disk_speed;
pub mod disturbance;
pub mod evidence;
#[cfg(any(test, feature = "example"))]
pub mod example;
pub mod facts;
pub mod finding;
pub mod format;
pub mod hardware_speed;
pub mod ids;
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
