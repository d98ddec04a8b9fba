//! Weighbridge: what a change to a Linux system costs the programs that run on it.

#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

pub mod cli;
