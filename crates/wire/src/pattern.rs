//! `k@n%m`: which packets of a direction are meant, by their numbers.
//!
//! Packets are counted from 1, as they enter the link. `k@n%m` means runs of `k` packets that begin at
//! packets `n`, `n + m`, `n + 2m`, …: `1@200%400` is the 200th, the 600th, the 1000th packet; `3@400%400`
//! begins at the 400th and takes the two behind it, and `3@398%400` ends with the 400th.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// Why a text is no pattern.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum PatternError {
    /// It is not written so.
    #[error(
        "`{0}` is not a pattern of packets; write K@N%M: K packets from the Nth of every M, joined by `+`"
    )]
    Form(String),
    /// It is, but makes no sense.
    #[error("`{0}`: K and N must be from 1 to M (K@N%M: K packets from the Nth of every M)")]
    Range(String),
    /// Some packet would be meant twice.
    #[error("`{0}` and `{1}` choose the same packet: choose each packet only once")]
    Overlap(Pattern, Pattern),
}

/// Runs of packets, one in every period.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pattern {
    run: u64,
    first: u64,
    period: u64,
}

impl Pattern {
    /// `run` packets from the `first` of every `period` on.
    ///
    /// # Errors
    /// Where one of the first two is not from 1 to `period`.
    pub fn new(run: u64, first: u64, period: u64) -> Result<Pattern, PatternError> {
        let pattern = Pattern { run, first, period };
        let is_possible = period <= u64::from(u32::MAX);
        match is_possible && (1..=period).contains(&run) && (1..=period).contains(&first) {
            true => Ok(pattern),
            false => Err(PatternError::Range(pattern.to_string())),
        }
    }

    /// Returns true if the pattern includes the packet of this number, counted from 1.
    pub fn means(&self, number: u64) -> bool {
        number >= self.first && (number - self.first) % self.period < self.run
    }

    /// Returns true if at least one packet is in both patterns.
    fn overlaps(&self, other: &Pattern) -> bool {
        // Runs of both begin at all distances that leave the same remainder.
        let step = gcd(self.period, other.period);
        let apart = (other.first % step + step - self.first % step) % step;
        apart < self.run || step - apart < other.run
    }
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}@{}%{}", self.run, self.first, self.period)
    }
}

impl FromStr for Pattern {
    type Err = PatternError;

    fn from_str(text: &str) -> Result<Pattern, PatternError> {
        let form = || PatternError::Form(text.to_owned());
        let (run, rest) = text.trim().split_once('@').ok_or_else(form)?;
        let (first, period) = rest.split_once('%').ok_or_else(form)?;
        let number = |text: &str| {
            let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
            is_number.then(|| text.parse().ok()).flatten().ok_or_else(form)
        };
        Pattern::new(number(run)?, number(first)?, number(period)?)
    }
}

/// Several patterns, of which no two mean the same packet. Written with `+` between them.
///
/// ```
/// use wire::Patterns;
///
/// // The thesis of 1996: one packet at 200, three before the 400th, of every 400.
/// let drops: Patterns = "1@200%400 + 3@397%400".parse()?;
/// let dropped: Vec<u64> = (1..=800).filter(|&number| drops.mean(number)).collect();
/// assert_eq!(dropped, [200, 397, 398, 399, 600, 797, 798, 799]);
/// assert_eq!(drops.share(), 0.01);
/// assert_eq!(drops.to_string(), "1@200%400+3@397%400");
/// # Ok::<(), wire::PatternError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Patterns(Vec<Pattern>);

impl Patterns {
    /// All of these.
    ///
    /// # Errors
    /// Where two of them mean the same packet.
    pub fn new(patterns: Vec<Pattern>) -> Result<Patterns, PatternError> {
        for (at, one) in patterns.iter().enumerate() {
            if let Some(other) = patterns[at + 1..].iter().find(|other| one.overlaps(other)) {
                return Err(PatternError::Overlap(*one, *other));
            }
        }
        Ok(Patterns(patterns))
    }

    /// Returns true if one of the patterns includes the packet of this number.
    pub fn mean(&self, number: u64) -> bool {
        self.0.iter().any(|pattern| pattern.means(number))
    }

    /// Which part of all packets they mean in the long run.
    pub fn share(&self) -> f64 {
        self.0.iter().map(|pattern| pattern.run as f64 / pattern.period as f64).sum()
    }

    /// After how many packets each of them has had its turn.
    pub fn period(&self) -> u64 {
        self.0.iter().map(|pattern| pattern.period).max().unwrap_or(1)
    }
}

impl fmt::Display for Patterns {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let all: Vec<String> = self.0.iter().map(Pattern::to_string).collect();
        f.write_str(&all.join("+"))
    }
}

impl FromStr for Patterns {
    type Err = PatternError;

    fn from_str(text: &str) -> Result<Patterns, PatternError> {
        Patterns::new(text.split('+').map(str::parse).collect::<Result<_, _>>()?)
    }
}

impl TryFrom<String> for Patterns {
    type Error = PatternError;

    fn try_from(text: String) -> Result<Patterns, PatternError> {
        text.parse()
    }
}

impl From<Patterns> for String {
    fn from(patterns: Patterns) -> String {
        patterns.to_string()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn meant(text: &str, upto: u64) -> Vec<u64> {
        let patterns: Patterns = text.parse().unwrap();
        (1..=upto).filter(|&number| patterns.mean(number)).collect()
    }

    #[test]
    fn packets_are_counted_from_one_and_runs_begin_at_the_nth() {
        assert_eq!(meant("1@1%4", 9), [1, 5, 9]);
        assert_eq!(meant("1@4%4", 9), [4, 8]);
        assert_eq!(meant("3@4%4", 9), [4, 5, 6, 8, 9]);
        assert_eq!(meant("4@2%4", 5), [2, 3, 4, 5]);
        assert_eq!(meant("1@2%4+1@3%6", 12), [2, 3, 6, 9, 10]);
    }

    #[test]
    fn what_is_no_pattern_is_refused_with_what_to_write() {
        for text in
            ["", "1", "1@2", "@2%3", "1@2%", "+1@2%3", "1@2%3+", "1@-2%3", "1x200", "1@+2%3"]
        {
            let error = text.parse::<Patterns>().unwrap_err();
            assert!(matches!(error, PatternError::Form(_)), "{text}: {error}");
        }
        for text in ["0@1%2", "1@0%2", "3@1%2", "1@3%2", "1@1%0", "1@1%4294967296"] {
            let error = text.parse::<Patterns>().unwrap_err();
            assert!(matches!(error, PatternError::Range(_)), "{text}: {error}");
        }
        let error = "3@4%4+1@1%8".parse::<Patterns>().unwrap_err();
        assert!(error.to_string().starts_with("`3@4%4` and `1@1%8` choose"), "{error}");
    }

    proptest! {
        #[test]
        fn patterns_overlap_where_a_packet_is_meant_twice(
            (m1, m2) in (1_u64..24, 1_u64..24),
            (k1, n1, k2, n2) in (0_u64..24, 0_u64..24, 0_u64..24, 0_u64..24),
        ) {
            let one = Pattern::new(k1 % m1 + 1, n1 % m1 + 1, m1).unwrap();
            let other = Pattern::new(k2 % m2 + 1, n2 % m2 + 1, m2).unwrap();
            let both = (1..=4 * m1 * m2).any(|number| one.means(number) && other.means(number));
            prop_assert_eq!(Patterns::new(vec![one, other]).is_err(), both);
        }

        #[test]
        fn the_share_is_what_is_meant_of_a_whole_number_of_periods(
            m in 1_u64..60, k in 0_u64..60, n in 0_u64..60,
        ) {
            let patterns = Patterns::new(vec![Pattern::new(k % m + 1, n % m + 1, m).unwrap()]).unwrap();
            let meant = (m + 1..=101 * m).filter(|&number| patterns.mean(number)).count();
            prop_assert_eq!(meant as f64, (patterns.share() * (100 * m) as f64).round());
        }

        #[test]
        fn any_text_is_read_or_refused(text in ".{0,40}") {
            if let Ok(patterns) = text.parse::<Patterns>() {
                prop_assert_eq!(patterns.to_string().parse(), Ok(patterns));
            }
        }
    }
}
