//! Listening for events of the kernel: the process that does it, and one file for each
//! part of the kernel that sends events.

pub mod directories;
pub mod files;
pub mod listener;
pub mod processes;
pub mod source;
pub mod task_records;
