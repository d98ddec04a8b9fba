//! Lists, launches and reads workloads: programs that repeat one kind of work and report how much they did.
//!
//! The build script compiles `workloads/` and embeds the executable. The crate does not know treatments or
//! fixtures: these pass set-up steps and members to it, as data.
//!
//! - [`catalogue::Workload`], [`executable::Executable`], [`interpreted::Interpreted`]: what can be launched;
//! - [`launcher::Launcher`] sends a [`launcher::Job`] and gets a [`launcher::Launched`];
//!   [`launcher_process`] is the process at the other end, and [`place::LaunchPlace`] says where it runs;
//! - [`setup::Setup`]: steps that a launcher takes in its processes, one file per kind in `setup/kind/`;
//! - [`instance::Instance`] and [`member`]: what is made afresh around a sample; [`keeper`] holds one member.
//!
//! Start with [`launcher::Launcher`].

#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

mod call_tracer;
pub mod catalogue;
pub mod cpu_use;
mod deaths;
pub mod executable;
pub mod gate;
mod hold;
pub mod inside_root;
pub mod instance;
pub mod interpreted;
pub mod keeper;
pub mod kills;
pub mod landlock;
pub mod launch_queue;
pub mod launcher;
pub mod launcher_process;
pub mod listening;
pub mod member;
pub mod paced;
pub mod pipes;
pub mod place;
pub mod seccomp_instructions;
pub mod seccomp_program;
pub mod setup;
pub mod sources;
pub mod stamp;
pub mod start_cpu;
pub mod stdout_use;
pub mod task_looks;
