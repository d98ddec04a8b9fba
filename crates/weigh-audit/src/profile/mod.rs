//! What a program asks of the kernel: its system calls, counted.

mod alarm;
mod cpu_time;
pub mod file;
pub mod keeper;
pub mod ptrace;
pub mod run;
mod seize;
pub mod watch;
