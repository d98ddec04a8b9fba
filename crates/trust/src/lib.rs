//! Decides which files root may use, and as which user root works in directories of others.
//!
//! Root follows names from its environment: `TMPDIR`, `HOME`, `XDG_STATE_HOME`, `PATH`. After `sudo -E` or
//! `su`, these names belong to another user. That user can replace everything below them at any moment.
//!
//! - [`path`]: whether only root and we can change where a path leads; a path is walked once, by descriptors;
//! - [`allowed`]: files that root may execute, or open as a database: only root, and the user who called
//!   `sudo`, can change them;
//! - [`owner`], [`user_file`] and [`user`] write and read in another user's directory as that user;
//! - [`caller`]: the user who called `sudo`; the crate believes only `sudo` about it;
//! - [`program`] and [`start`] find programs of the system, and say what they inherit.
//!
//! The crate does not know experiments. Start with [`allowed::executable`].

#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

pub mod allowed;
pub mod caller;
pub mod owner;
pub mod path;
pub mod program;
pub mod start;
pub mod user;
pub mod user_file;
mod walk;
