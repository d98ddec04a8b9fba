//! Whose files root may trust, and as whom it works in those of others.
//!
//! Root follows names that its environment gives it: `TMPDIR`, `HOME`, `XDG_STATE_HOME`, `PATH`. After `sudo
//! -E` or `su` these are another user's, who can replace whatever lies below them, also between two looks.

pub mod owner;
pub mod path;
pub mod program;
pub mod user_file;
