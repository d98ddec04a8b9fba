//! Report of `weigh budget`: how much the audit rules write.

#[cfg(test)]
pub(crate) mod sample;
mod tables;
mod text;

pub use text::{outline, render};
