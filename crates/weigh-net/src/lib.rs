//! `weigh net`: grids of network cells, and what they are measured in. docs/net.md describes it.

#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

pub mod activity;
pub mod arguments;
pub mod cell;
pub mod cpus;
pub mod far_host;
pub mod ftp;
pub mod grid;
pub mod link;
pub mod peer;
pub mod site;
pub mod site_error;
pub mod spec;
