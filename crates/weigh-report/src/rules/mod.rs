//! What audit rules cost, in every format.

pub mod html;
pub mod json;
mod rule_table;
#[cfg(test)]
mod sample;
mod tables;
pub mod terminal;
mod words;
