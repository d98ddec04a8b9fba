//! Programs that repeat one kind of work and report how much they did: which there are, how they
//! are launched, and how a sample is read. This room knows no other.

#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

pub mod catalogue;
mod deaths;
pub mod desk;
pub mod executable;
mod hold;
pub mod inside_root;
pub mod instance;
pub mod interpreted;
pub mod keeper;
pub mod kills;
pub mod launcher;
pub mod launcher_process;
pub mod listening;
pub mod member;
pub mod paced;
pub mod pipes;
pub mod place;
pub mod setup;
pub mod sources;
pub mod stamp;
pub mod start_cpu;
pub mod stdout_use;
