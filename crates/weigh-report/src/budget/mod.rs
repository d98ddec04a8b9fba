//! What audit rules write: the report of `weigh budget`.

#[cfg(test)]
pub(crate) mod sample;
mod tables;
mod text;

pub use text::{outline, render};
