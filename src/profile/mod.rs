//! What a program asks of the kernel: its system calls, counted.

pub mod ptrace;
