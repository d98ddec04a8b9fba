//! Quantities that treatments produce, as each treatment declares them: a name, a unit, and how it
//! is accounted for. They are stored with an experiment, so every format can show quantities that
//! it does not know.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// The name of the text that says why an amount could not be counted.
pub const NOT_COUNTED: &str = "not_counted";

/// A number that a treatment gives of each launch. The names are those of its columns and fields too, so one
/// name means one thing, whoever declares it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EvidenceQuantity {
    /// Its field, such as `log_bytes`; of a time it ends in `_s`.
    pub name: Cow<'static, str>,
    /// Noun for a reader: `records`, `log`, `receiver`.
    pub noun: Cow<'static, str>,
    pub unit: QuantityUnit,
    pub kind: QuantityKind,
    /// Name of another count that this quantity depends on. For a quantity that operations make or
    /// spend, that count shows if they make any at all; absent if this quantity shows it itself.
    /// For losses, it is the count of arrivals.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub of: Option<Cow<'static, str>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum QuantityUnit {
    Count,
    Bytes,
    Seconds,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum QuantityKind {
    /// Operations make it: told per operation, less what a launch makes besides, and of all timed operations.
    Made,
    /// Others than the workload spend it because of operations: likewise, and the total of all launches.
    Spent,
    /// Processes wait so long meanwhile: the total of all launches, and its share per operation.
    Waited,
    /// Missing items that should have arrived: a total, which makes a cost too low.
    Lost,
    /// Known only for what others are `of`.
    Arrived,
}

impl EvidenceQuantity {
    /// One that is declared by code.
    pub const fn new(
        name: &'static str,
        noun: &'static str,
        unit: QuantityUnit,
        kind: QuantityKind,
        of: Option<&'static str>,
    ) -> EvidenceQuantity {
        let (name, noun) = (Cow::Borrowed(name), Cow::Borrowed(noun));
        let of = match of {
            Some(other) => Some(Cow::Borrowed(other)),
            None => None,
        };
        EvidenceQuantity { name, noun, unit, kind, of }
    }

    /// The field with what one operation has of it: of a time in nanoseconds.
    pub fn per_op(&self) -> String {
        match self.unit {
            QuantityUnit::Seconds => {
                format!("{}_ns_per_op", self.name.strip_suffix("_s").unwrap_or(&self.name))
            }
            QuantityUnit::Count | QuantityUnit::Bytes => format!("{}_per_op", self.name),
        }
    }

    /// The field with its share in per cent.
    pub fn pct(&self) -> String {
        format!("{}_pct", self.name)
    }
}

/// Quantities of every treatment in documents from before treatments declared them.
pub fn of_before() -> Vec<EvidenceQuantity> {
    serde_json::from_str(OF_BEFORE).expect("a test reads it")
}

/// JSON of [`of_before`], without an apostrophe.
pub const OF_BEFORE: &str = include_str!("quantities_of_before.json");

/// A number, or what is said in words. Counts stay whole, as they are larger than a fraction holds exactly.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Amount {
    Whole(u64),
    Real(f64),
    Text(String),
    /// Amount that could not be computed, written as `null`.
    Unknown(()),
}

impl From<u64> for Amount {
    fn from(number: u64) -> Amount {
        Amount::Whole(number)
    }
}

impl From<f64> for Amount {
    fn from(number: f64) -> Amount {
        Amount::Real(number)
    }
}

impl From<&str> for Amount {
    fn from(text: &str) -> Amount {
        Amount::Text(text.to_owned())
    }
}

impl Amount {
    pub fn number(&self) -> Option<f64> {
        match self {
            Amount::Whole(number) => Some(*number as f64),
            Amount::Real(number) => Some(*number),
            Amount::Text(_) | Amount::Unknown(()) => None,
        }
    }

    /// Adds two amounts; returns `None` unless both are numbers.
    pub fn plus(&self, other: &Amount) -> Option<Amount> {
        match (self, other) {
            (Amount::Whole(one), Amount::Whole(other)) => Some(one.saturating_add(*other).into()),
            _ => Some((self.number()? + other.number()?).into()),
        }
    }
}

/// Amounts by name, as a document has them among its fields.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Amounts(BTreeMap<String, Amount>);

impl Amounts {
    /// Replaces what was there of this name.
    pub fn set(&mut self, name: impl Into<String>, amount: impl Into<Amount>) {
        self.0.insert(name.into(), amount.into());
    }

    pub fn remove(&mut self, name: &str) {
        self.0.remove(name);
    }

    pub fn get(&self, name: &str) -> Option<&Amount> {
        self.0.get(name)
    }

    pub fn number(&self, name: &str) -> Option<f64> {
        self.get(name)?.number()
    }

    pub fn whole(&self, name: &str) -> Option<u64> {
        match self.get(name)? {
            Amount::Whole(number) => Some(*number),
            _ => None,
        }
    }

    pub fn text(&self, name: &str) -> Option<&str> {
        match self.get(name)? {
            Amount::Text(text) => Some(text),
            _ => None,
        }
    }

    /// Lists the amounts that are texts, by name.
    pub fn texts(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.keys().filter_map(|name| Some((name.as_str(), self.text(name)?)))
    }

    pub fn numbers(&self) -> impl Iterator<Item = f64> {
        self.0.values().filter_map(Amount::number)
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Takes in those of others, whose names are others.
    pub fn join(&mut self, other: Amounts) {
        self.0.extend(other.0);
    }

    /// Adds those of another launch. A number that one of the two does not tell is not known of both.
    pub fn add(&mut self, mut other: Amounts) {
        self.0.retain(|name, amount| match (&*amount, other.0.remove(name)) {
            (Amount::Text(_), Some(Amount::Text(text))) => {
                *amount = Amount::Text(text);
                true
            }
            (Amount::Text(_), _) => true,
            (_, Some(more)) => match amount.plus(&more) {
                Some(sum) => {
                    *amount = sum;
                    true
                }
                None => false,
            },
            (_, None) => false,
        });
        self.0.extend(other.0.into_iter().filter(|(_, more)| matches!(more, Amount::Text(_))));
    }
}

impl FromIterator<(String, Amount)> for Amounts {
    fn from_iter<T: IntoIterator<Item = (String, Amount)>>(amounts: T) -> Amounts {
        Amounts(amounts.into_iter().collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn amounts(json: &str) -> Amounts {
        serde_json::from_str(json).unwrap()
    }

    #[test]
    fn what_one_of_two_launches_does_not_tell_is_not_known_of_both() {
        let mut sum = amounts(r#"{"records":1,"lost":2,"wait_s":0.5,"why":"a","mode":"2"}"#);
        sum.add(amounts(r#"{"records":3,"wait_s":1,"received":9,"why":"b","also":"c"}"#));
        let expected = r#"{"records":4,"wait_s":1.5,"why":"b","mode":"2","also":"c"}"#;
        assert_eq!(sum, amounts(expected));
        sum.add(amounts(r#"{"records":18446744073709551615,"wait_s":null}"#));
        assert_eq!(sum.whole("records"), Some(u64::MAX));
        assert_eq!(sum.get("wait_s"), None);
    }

    #[test]
    fn a_count_stays_whole_and_what_is_no_number_is_null() {
        let text = r#"{"a":7,"b":7.0,"c":null,"d":"7"}"#;
        let read = amounts(text);
        assert_eq!(
            (read.whole("a"), read.whole("b"), read.number("b")),
            (Some(7), None, Some(7.0))
        );
        assert_eq!((read.number("c"), read.number("d"), read.text("d")), (None, None, Some("7")));
        assert_eq!(serde_json::to_string(&read).unwrap(), text);
        assert!(serde_json::from_str::<Amounts>(r#"{"a":{}}"#).is_err());
    }

    #[test]
    fn fields_are_named_after_their_unit() {
        let of = |name, unit| EvidenceQuantity::new(name, "x", unit, QuantityKind::Made, None);
        assert_eq!(of("log_bytes", QuantityUnit::Bytes).per_op(), "log_bytes_per_op");
        assert_eq!(of("sink_cpu_s", QuantityUnit::Seconds).per_op(), "sink_cpu_ns_per_op");
        assert_eq!(of("lost", QuantityUnit::Count).pct(), "lost_pct");
        assert_eq!(of_before().len(), 7);
        assert!(!OF_BEFORE.contains('\''), "it is part of a statement of SQL");
    }
}
