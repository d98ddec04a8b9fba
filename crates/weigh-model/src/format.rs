//! How people read numbers: the only place where a report turns a value into text.
//!
//! People get a real minus sign and units; machines (JSON, CSV) get plain numbers and do not come
//! here. A value that is not finite is shown as a dash, because a report never panics.

mod duration;
pub mod names;
mod number;
mod percent;

pub use duration::{added_instructions, added_ns, change_ns, factor, time_ns};
pub use number::{number, number_with};
pub use percent::{at_most, confidence, end, interval, margin, percent, range, signed, unsigned};

use std::fmt::Display;

use crate::printable;
use crate::result::scheme::LEAST_INTERLEAVED;
use paired::{Doubt, Verdict};

/// Shown where there is no number.
pub const NONE: &str = "–";

/// A rate with four significant digits: `35.43M`, `469.0k`, `3,210`, `0.7183`.
///
/// A unit that has a prefix already (`KBps`) takes no second one, so those are only grouped.
pub fn rate(value: f64, unit: &str) -> String {
    if !value.is_finite() {
        return NONE.to_owned();
    }
    let size = value.abs();
    let prefixed = unit.starts_with(['K', 'M', 'G', 'T', 'k']) && unit.to_uppercase().contains('B');
    if size < 9999.5 || (prefixed && size < 1e9) {
        return four_digits(value);
    }
    let steps = [(1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")];
    let (scale, suffix) =
        steps.into_iter().find(|(scale, _)| size >= scale * 0.999_95).unwrap_or((1e3, "k"));
    format!("{}{suffix}", four_digits(value / scale))
}

/// A whole number with its thousands grouped: `16,910`.
pub fn integer(value: u64) -> String {
    group(&value.to_string())
}

/// Four significant digits; digits before the point are all kept, and grouped.
fn four_digits(value: f64) -> String {
    let size = value.abs();
    if size == 0.0 {
        return "0".to_owned();
    }
    // The exponent after rounding to four digits: 9.9999 has that of 10.
    let rounded = format!("{size:.3e}");
    let exponent = rounded.split_once('e').and_then(|(_, exponent)| exponent.parse::<i32>().ok());
    let decimals = (3 - exponent.unwrap_or(3)).clamp(0, 12) as usize;
    let text = format!("{size:.decimals$}");
    let (whole, fraction) = text.split_once('.').unwrap_or((&text, ""));
    let point = if fraction.is_empty() { "" } else { "." };
    format!("{}{}{point}{fraction}", minus(value), group(whole))
}

/// A count per operation, short: `3`, `0.25`, `512.4`.
pub fn per_op(value: f64) -> String {
    if !value.is_finite() {
        return NONE.to_owned();
    }
    if (value - value.round()).abs() < 0.005 {
        return format!("{}{}", minus(value.round()), group(&format!("{:.0}", value.abs())));
    }
    let decimals = if value.abs() < 10.0 { 2 } else { 1 };
    let text = format!("{:.decimals$}", value.abs());
    let (whole, fraction) = text.split_once('.').unwrap_or((&text, "0"));
    format!("{}{}.{fraction}", minus(value), group(whole))
}

/// A count per operation that may be of something rare: `0.0014`, `2.25`.
pub fn rare(value: f64) -> String {
    let decimals = 1.0 - value.log10().floor();
    // Below one in ten million it is nothing.
    if decimals > 2.0 && decimals < 9.0 {
        format!("{value:.0$}", decimals as usize)
    } else {
        per_op(value)
    }
}

/// Bytes in binary units with three digits: `512 B`, `1.50 KiB`, `38.1 GiB`.
pub fn bytes(value: f64) -> String {
    if !value.is_finite() {
        return NONE.to_owned();
    }
    let mut size = value.max(0.0);
    if size < 999.5 {
        return format!("{size:.0} B");
    }
    let mut unit = "B";
    for next in ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"] {
        if size < 999.5 {
            break;
        }
        size /= 1024.0;
        unit = next;
    }
    let decimals = match size {
        s if s < 9.995 => 2,
        s if s < 99.95 => 1,
        _ => 0,
    };
    format!("{size:.decimals$} {unit}")
}

/// A duration: `612 ms`, `4.2 s`, `42 s`, `3 min 20 s`, `1 h 05 min`.
pub fn seconds(value: f64) -> String {
    if !value.is_finite() || value < 0.0 {
        return NONE.to_owned();
    }
    match value {
        0.0 => "0 s".to_owned(),
        s if s < 0.000_999_5 => format!("{:.0} µs", s * 1e6),
        s if s < 0.9995 => format!("{:.0} ms", s * 1e3),
        s if s < 9.95 => format!("{s:.1} s"),
        s if s < 59.5 => format!("{s:.0} s"),
        s => {
            let whole = s.round() as u64;
            if whole < 3600 {
                format!("{} min {:02} s", whole / 60, whole % 60)
            } else {
                format!("{} h {:02} min", whole / 3600, whole % 3600 / 60)
            }
        }
    }
}

/// Value for `--budget` that suffices for `seconds`, with a reserve of a fifth: `20s`, `4m`, `3h`.
pub fn budget(seconds: f64) -> String {
    let seconds = 1.2 * seconds.max(1.0);
    match seconds {
        seconds if seconds <= 90.0 => format!("{:.0}s", (seconds / 10.0).ceil() * 10.0),
        seconds if seconds <= 7200.0 => format!("{:.0}m", (seconds / 60.0).ceil()),
        seconds => format!("{:.0}h", (seconds / 3600.0).ceil()),
    }
}

/// A running clock: whole seconds, since tenths that change are only unrest.
pub fn clock(value: f64) -> String {
    if (0.0..59.5).contains(&value) { format!("{value:.0} s") } else { seconds(value) }
}

/// Why a verdict is withheld, as a clause.
pub fn doubt(doubt: Doubt) -> String {
    let reason = match doubt {
        Doubt::OrderMatters => {
            "the order within a pair matters, possibly because a treated sample affects the next sample"
        }
        Doubt::CarryOver => "a treated sample changes the next sample",
        Doubt::NotYetConfirmed => {
            "not confirmed yet by the pairs that did not follow a treated sample"
        }
        Doubt::Stalls => "treated runs stall more often than baseline runs",
        Doubt::ClaimsDisagree => {
            "rate, rate over all time and CPU time of the interleaved pairs contradict each other"
        }
        Doubt::WorksOutside => "a process may work in the slices of the other process of its pair",
        Doubt::FewPairs => {
            return format!("this verdict takes at least {LEAST_INTERLEAVED} interleaved pairs");
        }
        Doubt::CpuTime => "CPU time does not support the verdict yet",
        Doubt::OverallRate => "the rate over all slices does not support the verdict yet",
        Doubt::NotYetAged => "processes that had run for a second were not measured yet",
        Doubt::LateCost => "processes that had run for a second show a different effect",
    };
    reason.to_owned()
}

/// The verdict in a word or two; a difference that stays within the margin says so.
pub fn verdict(verdict: Verdict, within_margin: bool, margin_pct: f64) -> String {
    let word = match verdict {
        Verdict::Slower => "slower",
        Verdict::Faster => "faster",
        Verdict::Equivalent => return "equivalent".to_owned(),
        Verdict::Inconclusive => return "inconclusive".to_owned(),
    };
    if within_margin { format!("{word}, <{}", margin(margin_pct)) } else { word.to_owned() }
}

/// Word in place of the verdict of a row whose estimate has no interval yet.
pub const PRELIMINARY: &str = "preliminary";

/// A preliminary estimate: `~−17.6 %`.
pub fn preliminary(effect_pct: f64) -> String {
    format!("~{}", percent(effect_pct))
}

/// `1 workload`, `12 workloads`.
pub fn plural(count: usize, noun: &str) -> String {
    let ending = if count == 1 { "" } else { "s" };
    format!("{} {noun}{ending}", integer(count as u64))
}

/// A label as it may be shown anywhere: control characters could drive the terminal, or break a row.
pub fn label(text: &(impl Display + ?Sized)) -> String {
    printable::line(&text.to_string())
}

/// Cuts to a number of characters; an ellipsis says that something is missing.
pub fn shorten(text: &str, width: usize) -> String {
    if text.chars().count() <= width {
        return text.to_owned();
    }
    let mut short: String = text.chars().take(width.saturating_sub(1)).collect();
    if width > 0 {
        short.push('…');
    }
    short
}

/// Cuts the name of a row to a number of characters, but keeps the server or placement behind an
/// `@`.
pub fn shorten_name(name: &str, width: usize) -> String {
    const LEAST: usize = 6;
    let place = name.rfind('@').filter(|_| !name.contains(' '));
    match place.map(|at| name.split_at(at)) {
        Some((head, place)) if place.chars().count() + LEAST <= width => {
            shorten(head, width - place.chars().count()) + place
        }
        _ => shorten(name, width),
    }
}

/// Cuts a sentence to a number of characters at the end of a word, as half a word is hard to read.
pub fn shorten_sentence(text: &str, width: usize) -> String {
    let short = shorten(text, width);
    match short.rsplit_once(' ') {
        Some((words, _)) if short != text => format!("{words} …"),
        _ => short,
    }
}

fn minus(value: f64) -> &'static str {
    if value < 0.0 { "−" } else { "" }
}

fn group(digits: &str) -> String {
    let mut grouped = String::with_capacity(digits.len() + digits.len() / 3);
    for (position, digit) in digits.chars().enumerate() {
        if position > 0 && (digits.len() - position).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

/// A name between backticks; one within the name would end it early.
pub fn quoted(name: &(impl Display + ?Sized)) -> String {
    format!("`{}`", label(name).replace('`', "'"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_keep_four_digits() {
        let cases = [
            (35_433_786.0, "ops/s", "35.43M"),
            (469_012.0, "ops/s", "469.0k"),
            (3210.4, "lpm", "3,210"),
            (9999.7, "ops/s", "10.00k"),
            (999_990.0, "ops/s", "1.000M"),
            (9.99999, "ops/s", "10.00"),
            (0.71828, "runs/s", "0.7183"),
            (2_100_345.2, "KBps", "2,100,345"),
            (5140.2, "MWIPS", "5,140"),
            (0.0, "ops/s", "0"),
            (f64::NAN, "ops/s", "–"),
            (f64::INFINITY, "ops/s", "–"),
        ];
        for (value, unit, expected) in cases {
            assert_eq!(rate(value, unit), expected, "{value} {unit}");
        }
    }

    #[test]
    fn sizes_and_times_use_the_unit_that_fits() {
        let sizes = [(0.0, "0 B"), (999.4, "999 B"), (1536.0, "1.50 KiB"), (4.1e10, "38.2 GiB")];
        for (value, expected) in sizes {
            assert_eq!(bytes(value), expected);
        }
        let times = [
            (0.0, "0 s"),
            (0.612, "612 ms"),
            (4.21, "4.2 s"),
            (59.7, "1 min 00 s"),
            (200.2, "3 min 20 s"),
            (3900.0, "1 h 05 min"),
            (-1.0, "–"),
            (f64::INFINITY, "–"),
        ];
        for (value, expected) in times {
            assert_eq!(seconds(value), expected);
        }
    }

    #[test]
    fn of_a_long_name_the_place_stays() {
        let name = "app:db.random-insert@mariadb-relaxed";
        assert_eq!(shorten_name(name, 24), "app:db.…@mariadb-relaxed");
        assert_eq!(shorten_name(name, 40), name);
        assert_eq!(shorten_name(name, 12), "app:db.rand…");
        assert_eq!(shorten_name("ssh me@there ls", 8), "ssh me@…");
    }

    #[test]
    fn counts_per_operation_are_short() {
        let cases =
            [(3.0, "3"), (0.25, "0.25"), (1512.44, "1,512.4"), (-0.0, "0"), (f64::NAN, "–")];
        for (value, expected) in cases {
            assert_eq!(per_op(value), expected);
        }
        let cases =
            [(0.001_42, "0.0014"), (0.012, "0.012"), (2.25, "2.25"), (0.0, "0"), (1e-9, "0")];
        for (value, expected) in cases {
            assert_eq!(rare(value), expected);
        }
        assert_eq!((rare(f64::NAN), rare(-1.0)), ("–".into(), "−1".into()));
        assert_eq!(integer(16_910), "16,910");
        assert_eq!(plural(1, "pair"), "1 pair");
    }

    #[test]
    fn labels_cannot_drive_the_terminal() {
        assert_eq!(label("a\u{1b}[31mb\n"), "a\u{fffd}[31mb\u{fffd}".to_string());
        assert_eq!(shorten("syscall", 4), "sys…");
        assert_eq!(shorten("syscall", 0), "");
        assert_eq!(shorten_sentence("most in `dhry2reg`", 12), "most in …");
        assert_eq!(shorten_sentence("most in `dhry2reg`", 18), "most in `dhry2reg`");
    }
}
