//! Values of options: durations, percentages, and numbers of copies.

use std::time::Duration;

use weigh_model::result::work_name::MOST_COPIES;

const SHORTEST: Duration = Duration::from_secs(1);
const LONGEST: Duration = Duration::from_secs(30 * 24 * 3600);
/// A shorter sample is mostly its launch.
const SAMPLE_LENGTHS: std::ops::RangeInclusive<Duration> =
    Duration::from_millis(10)..=Duration::from_secs(60);
const PAUSES: std::ops::RangeInclusive<Duration> =
    Duration::from_micros(1)..=Duration::from_secs(3600);

/// `90s`, `5m`, `1h 30m`.
pub fn duration(text: &str) -> Result<Duration, String> {
    let parsed: Option<jiff::SignedDuration> = text.parse().ok();
    parsed
        .and_then(|duration| Duration::try_from(duration).ok())
        .filter(|duration| (SHORTEST..=LONGEST).contains(duration))
        .ok_or_else(|| "takes a time from a second to 30 days, such as 90s, 5m or 1h30m".into())
}

/// `100ms`, `1s`.
pub fn sample_length(text: &str) -> Result<Duration, String> {
    let parsed: Option<jiff::SignedDuration> = text.parse().ok();
    parsed
        .and_then(|duration| Duration::try_from(duration).ok())
        .filter(|duration| SAMPLE_LENGTHS.contains(duration))
        .ok_or_else(|| "takes a time from 10ms to 60s, such as 100ms".into())
}

/// `10ms`, `1s`.
pub fn pause(text: &str) -> Result<Duration, String> {
    let parsed: Option<jiff::SignedDuration> = text.parse().ok();
    parsed
        .and_then(|duration| Duration::try_from(duration).ok())
        .filter(|duration| PAUSES.contains(duration))
        .ok_or_else(|| "takes a time from 1us to 1h, such as 10ms".into())
}

/// `500ms`, `10s`.
pub fn period(text: &str) -> Result<Duration, String> {
    pause(text)
        .ok()
        .filter(|period| *period >= Duration::from_millis(1))
        .ok_or_else(|| "takes a time from 1ms to 1h, such as 10s".into())
}

/// The whole milliseconds of a time that was read here.
pub fn whole_ms(duration: Duration) -> u64 {
    duration.as_millis().try_into().unwrap_or(u64::MAX)
}

/// `1%` or `1`, as a fraction.
pub fn percentage(text: &str) -> Result<f64, String> {
    let number: Option<f64> = text.strip_suffix('%').unwrap_or(text).trim().parse().ok();
    number
        .filter(|percent| *percent > 0.0 && *percent < 100.0)
        .map(|percent| percent / 100.0)
        .ok_or_else(|| "takes a percentage above 0 and below 100, such as 1% or 0.5%".into())
}

/// A whole number that is not less than this.
pub fn at_least(
    least: u32,
) -> impl Fn(&str) -> Result<u32, String> + Clone + Send + Sync + 'static {
    move |text| {
        let number = text.parse().ok().filter(|number| *number >= least);
        number.ok_or_else(|| format!("takes a whole number, {least} or more"))
    }
}

/// How many CPUs we may use; 1 where the system does not say.
pub fn cpus() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// `4`, or `all` for as many as there are CPUs that we may use.
pub fn copies(text: &str) -> Result<usize, String> {
    let number = match text {
        "all" => Some(cpus()),
        _ => text.parse().ok(),
    };
    number.filter(|number| (1..=MOST_COPIES).contains(number)).ok_or_else(|| {
        match text.contains('@') {
            true => format!("takes how many there are; where they are is --client {text}"),
            false => format!("takes a number from 1 to {MOST_COPIES}, or `all`"),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_written_as_people_do() {
        assert_eq!(duration("90s"), Ok(Duration::from_secs(90)));
        assert_eq!(duration("5m"), Ok(Duration::from_secs(300)));
        assert_eq!(duration("1h30m"), Ok(Duration::from_secs(5400)));
        for bad in ["", "5", "-5m", "0s", "soon", "9223372036854775807s"] {
            assert!(duration(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn too_few_are_refused_without_naming_the_most() {
        assert_eq!(at_least(3)("3"), Ok(3));
        for bad in ["2", "-3", "", "three", "99999999999"] {
            assert_eq!(at_least(3)(bad).unwrap_err(), "takes a whole number, 3 or more", "{bad}");
        }
    }

    #[test]
    fn samples_last_from_milliseconds_to_a_minute() {
        assert_eq!(sample_length("100ms").map(whole_ms), Ok(100));
        assert_eq!(sample_length("1.5s").map(whole_ms), Ok(1500));
        for bad in ["", "100", "9ms", "-1s", "61s"] {
            assert!(sample_length(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn copies_are_counted_or_all() {
        assert_eq!(copies("4"), Ok(4));
        assert!(copies("all").unwrap() >= 1);
        for bad in ["", "0", "-1", "1025", "some"] {
            assert!(copies(bad).is_err(), "{bad}");
        }
        assert!(copies("me@host").unwrap_err().ends_with("--client me@host"));
    }

    #[test]
    fn percentages_have_a_sign_or_not() {
        assert_eq!(percentage("1%"), Ok(0.01));
        assert_eq!(percentage("0.5"), Ok(0.005));
        for bad in ["", "0", "-1%", "100%", "NaN", "inf"] {
            assert!(percentage(bad).is_err(), "{bad}");
        }
    }
}
