//! System calls of a program, counted.

mod alarm;
mod cpu_time;
pub mod file;
pub mod keeper;
pub mod ptrace;
pub mod run;
mod seize;
pub mod watch;
