//! Input from outside: files, arguments, programs and databases that are wrong, foreign or hostile.

#[path = "../support/mod.rs"]
mod support;

mod bad_input;
mod broken_workloads;
mod foreign_text;
mod fuzz;
mod fuzz_archives;
mod import;
mod import_papers;
mod unprivileged;
