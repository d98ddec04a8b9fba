//! What a program asks of the kernel: its system calls, counted.

mod alarm;
mod cpu_time;
mod foreign;
pub mod keeper;
pub mod ptrace;
pub mod record;
pub mod run;
mod seize;
pub mod watch;
