//! Measures network transfers: grids of cells, and the hosts and links for them. `docs/net.md` describes it.
//!
//! Cells run in the testbed (`weigh-testbed`), on this machine alone or with other machines by ssh. The crate
//! does not choose the next cell, and stores nothing: the engine does both.
//!
//! - [`grid::Grid`] is all that is measured; [`cell::Cell`] is one transfer in it, over a [`link::GridLink`];
//! - [`activity`]: the load on the host beside a transfer; [`arguments`]: the command line of a cell;
//! - [`site::NetSite`]: the testbed, a peer on each black box, and the links as each cell needs them;
//! - [`far_host::FarHosts`]: black boxes that are other machines; [`peer`] and [`ftp`]: the other end;
//! - [`spec::Spec`]: a testbed as a document, so that others can replicate it.
//!
//! Start with [`site::NetSite`].

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
