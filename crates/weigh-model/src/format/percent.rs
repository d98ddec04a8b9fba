//! Effects and what bounds them, as percentages that people read.

use crate::format::{NONE, group};

/// A signed percentage with its unit: `−85.2 %`, `+0.31 %`, `0.00 %`.
pub fn percent(pct: f64) -> String {
    if pct.is_finite() { format!("{} %", signed(pct)) } else { NONE.to_owned() }
}

/// A signed percentage without its unit.
pub fn signed(pct: f64) -> String {
    with_sign(pct, unsigned(pct))
}

fn with_sign(pct: f64, digits: String) -> String {
    if !pct.is_finite() || !is_above_0(&digits) {
        return digits;
    }
    format!("{}{digits}", if pct < 0.0 { "−" } else { "+" })
}

/// The size of a percentage, with the digits that its size deserves.
pub fn unsigned(pct: f64) -> String {
    if !pct.is_finite() {
        return NONE.to_owned();
    }
    let size = pct.abs();
    if pct < 0.0 && size > 99.9 {
        // Nothing is slower by 100 %: show as many nines as it takes not to say so.
        let exact = (1..=5).map(|decimals| format!("{size:.decimals$}"));
        return exact
            .into_iter()
            .find(|text| !text.starts_with("100"))
            .unwrap_or_else(|| "99.99999".to_owned());
    }
    match decimals(size) {
        0 => group(&format!("{size:.0}")),
        decimals => format!("{size:.decimals$}"),
    }
}

/// Formats an upper bound above 0, so it is never rounded down: `0.43 %` for 0.421.
pub fn at_most(pct: f64) -> String {
    let unit = 10f64.powi(decimals(pct) as i32);
    // What is off by less comes from the arithmetic.
    let rounded_up = (pct * unit - 1e-6).ceil() / unit;
    format!("{} %", unsigned(rounded_up.max(0.01)))
}

fn decimals(size: f64) -> usize {
    match size {
        s if s < 9.995 => 2,
        s if s < 99.95 => 1,
        _ => 0,
    }
}

/// The size of an end of an interval: one that is not 0 does not read as if it were.
pub fn end(pct: f64) -> String {
    let exact = (3..=5).map(|decimals| format!("{:.decimals$}", pct.abs()));
    let shown = std::iter::once(unsigned(pct)).chain(exact).find(|digits| is_above_0(digits));
    shown.unwrap_or_else(|| unsigned(pct))
}

fn is_above_0(digits: &str) -> bool {
    digits.contains(|c: char| ('1'..='9').contains(&c))
}

/// An interval of an effect: `[−85.6, −84.9]`; an end without a bound is infinite.
pub fn interval(low: Option<f64>, high: Option<f64>) -> String {
    let shown = |bound: Option<f64>, unbounded: &str| match bound {
        Some(pct) if pct.is_finite() => with_sign(pct, end(pct)),
        _ => unbounded.to_owned(),
    };
    format!("[{}, {}]", shown(low, "−∞"), shown(high, "+∞"))
}

/// A range of effects (not a confidence interval): `−85.6 to −84.9`.
pub fn range(low: f64, high: f64) -> String {
    format!("{} to {}", with_sign(low, end(low)), with_sign(high, end(high)))
}

/// The margin of equivalence, without needless digits: `1 %`, `0.5 %`.
pub fn margin(pct: f64) -> String {
    if pct.is_finite() { format!("{pct} %") } else { NONE.to_owned() }
}

/// How sure the intervals are: `95 %` for an error rate of 0.05.
pub fn confidence(alpha: f64) -> String {
    let pct = (1000.0 * (1.0 - alpha)).round() / 10.0;
    margin(pct)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentages_have_a_sign_and_sensible_digits() {
        let cases = [
            (-85.21, "−85.2 %"),
            (0.312, "+0.31 %"),
            (-0.001, "0.00 %"),
            (9.996, "+10.0 %"),
            (400.0, "+400 %"),
            (12_345.0, "+12,345 %"),
            (-99.9, "−99.9 %"),
            (-99.97, "−99.97 %"),
            (-99.999, "−99.999 %"),
            (-100.0, "−99.99999 %"),
            (f64::NAN, "–"),
        ];
        for (value, expected) in cases {
            assert_eq!(percent(value), expected, "{value}");
        }
        let bounds = [(0.421, "0.43 %"), (0.42, "0.42 %"), (0.57, "0.57 %"), (1e-4, "0.01 %")];
        let larger = [(9.993, "10.0 %"), (44.34, "44.4 %"), (150.2, "151 %"), (1500.0, "1,500 %")];
        for (value, expected) in bounds.into_iter().chain(larger) {
            assert_eq!(at_most(value), expected, "{value}");
        }
        assert_eq!(interval(Some(-85.6), Some(0.4)), "[−85.6, +0.40]");
        // Slower is not [−0.52, 0.00].
        assert_eq!(interval(Some(-0.52), Some(-0.003)), "[−0.52, −0.003]");
        assert_eq!(interval(Some(0.0), Some(0.000_02)), "[0.00, +0.00002]");
        assert_eq!(interval(Some(-1e-9), Some(0.3)), "[0.00, +0.30]");
        assert_eq!(confidence(0.05), "95 %");
        assert_eq!(interval(None, Some(f64::INFINITY)), "[−∞, +∞]");
    }
}
