//! Changes of an experiment, and how they are undone: also after `kill -9`, and by another process.

pub mod claim;
pub mod guard;
pub mod journal;
pub mod left_behind;
pub mod no_daemons;
pub mod program_keeper;
pub mod queue;
pub mod running;
pub mod scratch;
pub mod settings;
pub mod started;
pub mod state_dir;
pub mod undo_command;
