//! Reads seccomp profiles from files that anybody may have written, and compiles them.
//!
//! - [`oci_profile`] reads the profile of an OCI runtime, of Docker, Kubernetes or minijail;
//! - it returns a [`Compiled`](oci_profile::Compiled) program, and says what it read in the report.
//!
//! The crate installs no filter and knows no treatment. Start with [`oci_profile::read`].

#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

mod host;
mod minijail;
pub mod oci_profile;
mod profile_text;
