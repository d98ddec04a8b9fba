//! Making seccomp filters.

pub mod denied;
mod host;
pub mod oci_profile;
mod profile_text;
