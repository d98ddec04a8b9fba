//! Numbers without units.

use crate::format::{NONE, integer};

/// A number without a unit, with three digits: `1,024`, `35.2`, `1.83`, `−0.31`.
pub fn number(value: f64) -> String {
    match value.abs() {
        size if !size.is_finite() => NONE.to_owned(),
        size if size < 9.995 => number_with(value, 2),
        size if size < 99.95 => number_with(value, 1),
        _ => number_with(value, 0),
    }
}

/// Formats a number without a unit, with `decimals` digits behind the point.
pub fn number_with(value: f64, decimals: usize) -> String {
    // Nobody reads more digits.
    if value.abs() >= 1e15 {
        return format!("{value:.2e}");
    }
    let digits = format!("{:.decimals$}", value.abs());
    let (whole, fraction) = digits.split_once('.').unwrap_or((&digits, ""));
    let whole = whole.parse().map_or_else(|_| whole.to_owned(), integer);
    let point = if fraction.is_empty() { "" } else { "." };
    let is_zero = !digits.contains(|c: char| ('1'..='9').contains(&c));
    format!("{}{whole}{point}{fraction}", if value < 0.0 && !is_zero { "−" } else { "" })
}
