//! Another machine, reached by ssh: the one program is copied there, and its launcher is talked to as that of
//! here is.

pub mod arrival;
pub mod connection;
pub mod lease;
mod ssh;
mod visit;

pub use ssh::{PARAMETERS, Ssh};
pub use visit::Visit;
