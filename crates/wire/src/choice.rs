//! Which packets something happens to: by their number, or by chance from a seed.

use std::fmt;
use std::str::FromStr;

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};

use crate::pattern::{PatternError, Patterns};

/// Why a text chooses no packets.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum ChoiceError {
    /// It looks like patterns.
    #[error(transparent)]
    Pattern(#[from] PatternError),
    /// It looks like nothing.
    #[error(
        "`{0}` is not a choice of packets; write K@N%M (by number), 1% (at random), or 1%x4 (in bursts of 4)"
    )]
    Form(String),
    /// A part of all packets that cannot be.
    #[error(
        "`{0}`: give 0% to 100% at random; or bursts of 1 to 1000000 packets, which are not all packets"
    )]
    Range(String),
}

/// Which packets.
///
/// ```
/// use wire::Choice;
///
/// assert!(matches!("3@397%400".parse()?, Choice::Numbered(_)));
/// assert_eq!("1%".parse(), Ok(Choice::Random { share: 0.01 }));
/// assert_eq!("1%x4".parse(), Ok(Choice::Bursts { share: 0.01, length: 4.0 }));
/// # Ok::<(), wire::ChoiceError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Choice {
    /// Exactly those of these numbers.
    Numbered(Patterns),
    /// Each with this probability, whatever happened to others.
    Random {
        /// From 0 to 1.
        share: f64,
    },
    /// As Gilbert has it: the link is good or bad, and in the bad state all are meant. That is for `length`
    /// packets at a time on average, so that this share of all is.
    Bursts {
        /// From 0, and below 1.
        share: f64,
        /// Packets; from 1.
        length: f64,
    },
}

impl FromStr for Choice {
    type Err = ChoiceError;

    fn from_str(text: &str) -> Result<Choice, ChoiceError> {
        let text = text.trim();
        if text.contains('@') {
            return Ok(Choice::Numbered(text.parse()?));
        }
        let form = || ChoiceError::Form(text.to_owned());
        let number = |text: &str| text.parse::<f64>().ok().filter(|number| number.is_finite());
        let (percent, behind) = text.split_once('%').ok_or_else(form)?;
        let share = number(percent).ok_or_else(form)? / 100.0;
        let choice = match behind.strip_prefix('x') {
            None if behind.is_empty() => Choice::Random { share },
            None => return Err(form()),
            Some(length) => Choice::Bursts { share, length: number(length).ok_or_else(form)? },
        };
        let is_possible = match choice {
            Choice::Bursts { share, length } => {
                (0.0..1.0).contains(&share)
                    && (1.0..=1e6).contains(&length)
                    && share <= length * (1.0 - share)
            }
            _ => (0.0..=1.0).contains(&share),
        };
        if is_possible { Ok(choice) } else { Err(ChoiceError::Range(text.to_owned())) }
    }
}

impl fmt::Display for Choice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Choice::Numbered(patterns) => patterns.fmt(f),
            Choice::Random { share } => write!(f, "{}%", percent(*share)),
            Choice::Bursts { share, length } => write!(f, "{}%x{length}", percent(*share)),
        }
    }
}

/// As a person wrote it: 7 % are 0.07, which are 7.000000000000001 %.
fn percent(share: f64) -> f64 {
    (share * 1e14).round() / 1e12
}

impl TryFrom<String> for Choice {
    type Error = ChoiceError;

    fn try_from(text: String) -> Result<Choice, ChoiceError> {
        text.parse()
    }
}

impl From<Choice> for String {
    fn from(choice: Choice) -> String {
        choice.to_string()
    }
}

/// A choice at work: asked for each packet, in order.
#[derive(Debug)]
pub(crate) struct Chooser {
    choice: Choice,
    chance: ChaCha8Rng,
    is_bad: bool,
}

impl Chooser {
    /// From the same seed it chooses the same packets; `stream` keeps choices of one link apart.
    pub(crate) fn new(choice: &Choice, seed: u64, stream: u64) -> Chooser {
        let mut chance = ChaCha8Rng::seed_from_u64(seed);
        chance.set_stream(stream);
        Chooser { choice: choice.clone(), chance, is_bad: false }
    }

    pub(crate) fn choice(&self) -> &Choice {
        &self.choice
    }

    /// Returns true if the choice includes the packet of this number.
    pub(crate) fn takes(&mut self, number: u64) -> bool {
        match &self.choice {
            Choice::Numbered(patterns) => patterns.mean(number),
            Choice::Random { share } => self.chance.random::<f64>() < *share,
            Choice::Bursts { share, length } => {
                let leaving = 1.0 / length;
                let entering = leaving * share / (1.0 - share);
                let changes = if self.is_bad { leaving } else { entering };
                self.is_bad ^= self.chance.random::<f64>() < changes;
                self.is_bad
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn taken(choice: &str, seed: u64, packets: u64) -> Vec<u64> {
        let mut chooser = Chooser::new(&choice.parse().unwrap(), seed, 0);
        (1..=packets).filter(|&number| chooser.takes(number)).collect()
    }

    #[test]
    fn the_same_seed_takes_the_same_packets_and_another_takes_others() {
        for choice in ["2%", "2%x5"] {
            assert_eq!(taken(choice, 7, 10_000), taken(choice, 7, 10_000));
            assert_ne!(taken(choice, 7, 10_000), taken(choice, 8, 10_000));
        }
        assert_eq!(taken("0%", 1, 1000).len(), 0);
        assert_eq!(taken("100%", 1, 1000).len(), 1000);
    }

    #[test]
    fn bursts_have_the_share_and_the_length_that_was_asked_for() {
        let packets = 2_000_000;
        let taken = taken("2%x5", 1, packets);
        let share = taken.len() as f64 / packets as f64;
        let bursts = 1 + taken.windows(2).filter(|pair| pair[1] != pair[0] + 1).count();
        let length = taken.len() as f64 / bursts as f64;
        assert!((share - 0.02).abs() < 0.002, "{share}");
        assert!((length - 5.0).abs() < 0.3, "{length}");
    }

    #[test]
    fn what_chooses_nothing_is_refused_with_what_to_write() {
        for text in ["", "1", "%", "x%", "1%x", "1%4", "1%x4x", "nan%", "inf%"] {
            let error = text.parse::<Choice>().unwrap_err();
            assert!(matches!(error, ChoiceError::Form(_)), "{text}: {error}");
        }
        for text in ["-1%", "101%", "100%x4", "1%x0", "90%x1", "1%x1e7"] {
            let error = text.parse::<Choice>().unwrap_err();
            assert!(matches!(error, ChoiceError::Range(_)), "{text}: {error}");
        }
        assert!(matches!("1@2".parse::<Choice>(), Err(ChoiceError::Pattern(_))));
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in "[0-9.%x@+e-]{0,12}|.{0,20}") {
            if let Ok(choice) = text.parse::<Choice>() {
                prop_assert!(choice.to_string().parse::<Choice>().is_ok(), "{}", choice);
            }
        }
    }
}
