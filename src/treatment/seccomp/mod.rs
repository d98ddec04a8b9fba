//! Making seccomp filters.

pub mod bpf;
pub mod oci_profile;
