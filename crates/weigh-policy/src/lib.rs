//! Reads seccomp profiles and Landlock policies from files that anybody may have written, and compiles them.
//!
//! - [`landlock_policy`] reads a policy of Landlock;
//! - [`oci_profile`] reads the profile of an OCI runtime, of Docker, Kubernetes or minijail;
//! - it returns a [`Compiled`](oci_profile::Compiled) program, and says what it read in the report.
//!
//! The crate installs nothing and knows no treatment. Start with [`oci_profile::read`].

#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

mod abi;
mod host;
pub mod landlock_policy;
mod minijail;
pub mod oci_profile;
mod profile_text;
