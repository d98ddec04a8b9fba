//! Network grids, other machines.

#[path = "../support/mod.rs"]
mod support;

mod comm;
mod host;
mod host_safety;
mod net;
mod net_machines;
mod testbed;
