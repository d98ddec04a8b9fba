//! Network grids, agents, other machines.

#[path = "../support/mod.rs"]
mod support;

mod agent;
mod comm;
mod host;
mod host_safety;
mod net;
mod net_agents;
mod testbed;
