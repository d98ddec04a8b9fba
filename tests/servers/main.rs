//! Servers, web pages, and many users.

#[path = "../support/mod.rs"]
mod support;

mod load;
mod load_mixes;
mod server_arms;
mod servers;
mod web;
