//! Another machine, reached by ssh: the one program is copied there, and its launcher is talked to as that of
//! here is.

pub mod connection;
pub mod handshake;
pub mod lease;
mod session;
mod ssh;

pub use session::RemoteSession;
pub use ssh::{PARAMETERS, Ssh};
