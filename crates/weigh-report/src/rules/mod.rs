//! Report of the costs of audit rules, in every format.

pub mod html;
#[cfg(test)]
mod json;
mod outline;
mod rule_table;
#[cfg(test)]
pub(crate) mod sample;
mod tables;
pub mod terminal;
pub(crate) mod words;

pub use outline::outline;
