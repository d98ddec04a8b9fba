//! Making seccomp filters.

pub mod bpf;
mod host;
pub mod oci_profile;
mod profile_text;
