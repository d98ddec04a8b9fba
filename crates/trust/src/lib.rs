//! Whose files root may trust, and as whom it works in those of others. Four rules: a path is walked once, by
//! descriptors ([`walk`]); root executes and opens as a database only what is root's or of who called `sudo`
//! ([`allowed`]); in another user's directory it reads and writes as that user ([`owner`], [`user_file`]);
//! and who called `sudo` is believed of `sudo` alone ([`caller`]).
//!
//! Root follows names that its environment gives it: `TMPDIR`, `HOME`, `XDG_STATE_HOME`, `PATH`. After `sudo
//! -E` or `su` these are another user's, who can replace whatever lies below them, also between two looks.

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
