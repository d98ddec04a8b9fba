//! What audit rules and system calls cost, besides a comparison of arms.
//!
//! - [`attribution`]: `weigh rules`, from files of rules to the cost of each;
//! - [`budget`]: `weigh budget`, how much the rules write and what that needs;
//! - [`profile`]: `weigh profile`, the system calls of a program, counted by ptrace.
//!
//! Start with [`attribution`].

#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

pub mod attribution;
pub mod budget;
pub mod profile;
