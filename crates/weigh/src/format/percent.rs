//! Effects and what bounds them, as percentages that people read.

use super::{NONE, group};

/// A signed percentage with its unit: `−85.2 %`, `+0.31 %`, `0.00 %`.
pub fn percent(pct: f64) -> String {
    if pct.is_finite() { format!("{} %", signed(pct)) } else { NONE.to_owned() }
}

/// A signed percentage without its unit.
pub fn signed(pct: f64) -> String {
    let digits = unsigned(pct);
    if !pct.is_finite() || !digits.contains(|c: char| ('1'..='9').contains(&c)) {
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
    match size {
        s if s < 9.995 => format!("{s:.2}"),
        s if s < 99.95 => format!("{s:.1}"),
        s => group(&format!("{s:.0}")),
    }
}

/// An interval of an effect: `[−85.6, −84.9]`; an end without a bound is infinite.
pub fn interval(low: Option<f64>, high: Option<f64>) -> String {
    let end = |end: Option<f64>, unbounded: &str| match end {
        Some(pct) if pct.is_finite() => signed(pct),
        _ => unbounded.to_owned(),
    };
    format!("[{}, {}]", end(low, "−∞"), end(high, "+∞"))
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
        assert_eq!(interval(Some(-85.6), Some(0.4)), "[−85.6, +0.40]");
        assert_eq!(confidence(0.05), "95 %");
        assert_eq!(interval(None, Some(f64::INFINITY)), "[−∞, +∞]");
    }
}
