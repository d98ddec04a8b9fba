//! Measures the cost of audit rules and counts system calls, without comparing arms.
//!
//! The crate measures one arm alone. It uses neither the store nor the reports directly: it returns results
//! of `weigh-model`, which `weigh-report` renders.
//!
//! - [`attribution`] is `weigh rules`: from files of rules to the cost of each rule;
//! - [`budget`] is `weigh budget`: how much the rules write, and what that needs;
//! - [`profile`] is `weigh profile`: the system calls of a program, counted by ptrace.
//!
//! Start with [`attribution::measure_rules`].

#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

pub mod attribution;
pub mod budget;
pub mod profile;
