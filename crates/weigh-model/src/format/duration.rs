//! Short durations side by side: what an operation took before, and takes now.

use crate::format::NONE;

const UNITS: [(f64, &str); 4] = [(1e9, "s"), (1e6, "ms"), (1e3, "µs"), (1.0, "ns")];

/// Two durations in nanoseconds with three digits, in one unit where that shows both:
/// `112 → 930 ns`, `0.98 → 12.4 µs`, `112 ns → 4.06 ms`.
pub fn change_ns(before: f64, after: f64) -> String {
    let (unit, name) = unit(before.max(after));
    let smaller = before.min(after) / unit;
    if smaller != 0.0 && smaller < 0.1 {
        return format!("{} → {}", time_ns(before), time_ns(after));
    }
    format!("{} → {} {name}", digits(before / unit), digits(after / unit))
}

/// One duration in nanoseconds with three digits: `112 ns`, `4.06 ms`.
pub fn time_ns(ns: f64) -> String {
    let (unit, name) = unit(ns);
    format!("{} {name}", digits(ns / unit))
}

/// Formats time added to an operation or saved, with three digits: `+112 ns`, `−4.06 ms`.
pub fn added_ns(ns: f64) -> String {
    let text = time_ns(ns.abs());
    if !ns.is_finite() || !text.contains(|c: char| ('1'..='9').contains(&c)) {
        return text;
    }
    format!("{}{text}", if ns < 0.0 { "−" } else { "+" })
}

/// Formats instructions added to an operation or saved: `+1,000 instr`.
pub fn added_instructions(number: f64) -> String {
    let text = crate::format::group(&format!("{:.0}", number.abs()));
    match text.as_str() {
        _ if !number.is_finite() => NONE.to_owned(),
        "0" => "0 instr".to_owned(),
        _ => format!("{}{text} instr", if number < 0.0 { "−" } else { "+" }),
    }
}

/// How many times as long something takes, with three digits: `×2.04`, `×262`.
pub fn factor(factor: f64) -> String {
    match factor {
        f if !f.is_finite() || f < 0.0 => NONE.to_owned(),
        f if f < 0.00995 => format!("×{f:.1e}"),
        f if f < 999.5 => format!("×{}", digits(f)),
        f => format!("×{}", crate::format::group(&format!("{f:.0}"))),
    }
}

/// The largest of which there is at least one, after rounding to three digits.
fn unit(ns: f64) -> (f64, &'static str) {
    UNITS.into_iter().find(|(unit, _)| ns >= unit * 0.9995).unwrap_or((1.0, "ns"))
}

fn digits(value: f64) -> String {
    match value {
        v if !v.is_finite() || v < 0.0 => NONE.to_owned(),
        v if v < 9.995 => format!("{v:.2}"),
        v if v < 99.95 => format!("{v:.1}"),
        v => format!("{v:.0}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_added_has_a_sign_and_factors_have_three_digits() {
        let added = [(112.0, "+112 ns"), (-4_063_232.0, "−4.06 ms"), (0.001, "0.00 ns")];
        for (ns, expected) in added {
            assert_eq!(added_ns(ns), expected);
        }
        let factors = [(1.0, "×1.00"), (45.92, "×45.9"), (261.5, "×262"), (12_345.0, "×12,345")];
        for (value, expected) in factors {
            assert_eq!(factor(value), expected);
        }
        assert_eq!((added_ns(f64::NAN), factor(f64::NAN)), ("– ns".into(), NONE.into()));
    }

    #[test]
    fn both_are_in_one_unit_where_that_shows_both() {
        let cases = [
            (112.2, 930.4, "112 → 930 ns"),
            (980.0, 12_400.0, "0.98 → 12.4 µs"),
            (3_210.0, 90.0, "3.21 µs → 90.0 ns"),
            (112.0, 4_063_232.0, "112 ns → 4.06 ms"),
            (999.7, 1_000.0, "1.00 → 1.00 µs"),
            (2.5e9, 61.2e9, "2.50 → 61.2 s"),
            (0.0, 25.0, "0.00 → 25.0 ns"),
            (f64::NAN, 25.0, "– → 25.0 ns"),
            (f64::INFINITY, f64::NAN, "– → – s"),
        ];
        for (before, after, expected) in cases {
            assert_eq!(change_ns(before, after), expected, "{before} {after}");
        }
    }
}
