//! The rules by which tools call two systems different: one file per rule, its source named.
//!
//! All of these measure A…A and then B…B, and look once. Rates are in any one unit; more is faster.

use std::cmp::Ordering;

pub mod benchstat;
pub mod hyperfine;
pub mod student;
pub mod unixbench;
pub mod welch;

/// Rule of a tool: the conclusion of its reader about B. `Less` is slower, `Greater` faster, `None`
/// no difference. Each slice has at least three rates.
pub type Rule = fn(a: &[f64], b: &[f64]) -> Option<Ordering>;

/// Mean of the values.
pub fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// Unbiased variance of the values, of which there are at least two.
pub fn variance(values: &[f64]) -> f64 {
    let centre = mean(values);
    let squares: f64 = values.iter().map(|value| (value - centre).powi(2)).sum();
    squares / (values.len() - 1) as f64
}
