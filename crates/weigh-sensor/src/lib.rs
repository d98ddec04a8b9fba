//! Receives events of the kernel, as security sensors do: two hidden roles of `weigh`, which end with it.
//!
//! - [`events::listener`] is the process that listens to files ([`events::files`], fanotify), directories
//!   ([`events::directories`], inotify) or processes ([`events::processes`], the process connector); each
//!   is an [`events::source::Source`];
//! - [`bpf::sensor`] is the process that holds BPF programs and receives their events; the programs are
//!   lists of instructions (`bpf/programs.rs`).
//!
//! [`accounting`] reads the kernel's records of ended processes (acct(2)).
//!
//! Both processes take orders as lines of JSON and answer each ([`orders`]). All that they switch on is in
//! descriptors, so nothing is left when they die. The crate does not know treatments: these start the
//! processes, and judge what was counted (`weigh-treatment/event_receiver.rs`). Start with
//! [`events::listener`].

#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

pub mod accounting;
pub mod bpf;
pub mod events;
pub mod orders;
pub mod short_process;
