//! Facts and processes of the machine, and undoing what an experiment changed. This code may run as root
//! after a crash. It draws no charts, asks no database and knows no workload.
//!
//! - [`machine`]: facts, and the checks of `weigh doctor`; processes, control groups, settings;
//! - [`undo`]: the journal of what has to be undone, the guard process that undoes it when `weigh` is gone,
//!   and claims on what exists once per kernel;
//! - [`said`], [`lines`], [`own_program`]: running programs, with limits, and talking to our own roles;
//! - [`orphans`]: ends leftover processes; [`interruption`]: signals that end an experiment;
//! - [`chance`]: random numbers of the kernel; [`user_namespace`]: working without root.
//!
//! Start with [`undo::guard::Guard`] and [`undo::journal`].

#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

pub mod chance;
pub mod interruption;
pub mod lines;
pub mod machine;
pub mod orphans;
pub mod own_program;
pub mod said;
pub mod undo;
pub mod user_namespace;
