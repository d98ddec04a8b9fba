//! Reads facts of the machine, runs programs, and undoes the changes of an experiment.
//!
//! This code may run as root after a crash. So the crate does not know charts, databases or
//! workloads.
//!
//! - [`machine`]: facts, and the checks of `weigh doctor`; processes, control groups, settings;
//! - [`undo`]: the journal of changes, the guard process that undoes them when `weigh` is gone, and claims on
//!   what exists once per kernel;
//! - [`said`], [`lines`], [`own_program`]: run programs within limits, and talk to our own roles;
//! - [`orphans`] ends leftover processes; [`interruption`] handles signals that end an experiment;
//! - [`address_space`]: check of `ulimit -v`; [`chance`]: random numbers of the kernel;
//!   [`user_namespace`]: work without root.
//!
//! Start with [`undo::guard::Guard`] and [`undo::journal`].

#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

pub mod address_space;
pub mod chance;
pub mod interruption;
pub mod lines;
pub mod machine;
pub mod orphans;
pub mod own_program;
pub mod said;
pub mod undo;
pub mod user_namespace;
