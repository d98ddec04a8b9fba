//! Contains the command line of Weighbridge (`weigh`): one file per command in [`cli`].
//!
//! `weigh` measures the cost of a change to a Linux system for the programs that run on it. This crate parses
//! options, makes a request of them, and passes the result to a report. It measures nothing itself, and no
//! other crate depends on it. `main.rs` also runs the hidden roles, such as the guard and the launcher.
//!
//! [`cli::main`] parses the command line and runs the command. The options are in files such as
//! `cli/compare.rs`.
//!
//! Start with [`cli::main`].

#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

pub mod cli;
