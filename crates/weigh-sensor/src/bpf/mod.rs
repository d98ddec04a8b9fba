//! BPF programs as sensors have them, and the process that holds them.
//!
//! The programs are lists of instructions ([`programs`]), so that neither a build nor a user needs a compiler
//! for BPF, and no library stands between a program and bpf(2).

mod assembler;
mod btf;
mod event;
mod hook;
mod kernel;
mod programs;
mod ring;
pub mod sensor;
