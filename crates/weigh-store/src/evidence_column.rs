//! Reading the evidence of a million samples, whose words are nearly always the same.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt::{Formatter, Result as FmtResult};

use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, MapAccess, Visitor};

use weigh_model::evidence::Evidence;

/// Text that is not copied unless it has escapes.
#[derive(Debug, Deserialize)]
pub(super) struct Text<'a>(#[serde(borrow)] pub Cow<'a, str>);

/// Reads [`Evidence`] without the words that are known, to which it adds.
pub(super) struct ReadEvidence<'a> {
    pub known: &'a mut BTreeMap<String, String>,
}

/// A number, or words that are not copied unless they have escapes.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum ReadAmount<'a> {
    Whole(u64),
    Real(f64),
    #[serde(borrow)]
    Text(Text<'a>),
    Unknown(()),
}

impl<'de> DeserializeSeed<'de> for ReadEvidence<'_> {
    type Value = Evidence;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Evidence, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for ReadEvidence<'_> {
    type Value = Evidence;

    fn expecting(&self, formatter: &mut Formatter<'_>) -> FmtResult {
        formatter.write_str("evidence")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Evidence, A::Error> {
        let mut evidence = Evidence::default();
        while let Some(Text(key)) = map.next_key()? {
            match map.next_value()? {
                ReadAmount::Whole(number) => evidence.amounts.set(key, number),
                ReadAmount::Real(number) => evidence.amounts.set(key, number),
                ReadAmount::Text(Text(value)) => {
                    if self.known.get(&*key).is_none_or(|known| *known != value) {
                        self.known.insert(key.to_string(), value.to_string());
                        evidence.amounts.set(key, &*value);
                    }
                }
                ReadAmount::Unknown(()) => {}
            }
        }
        Ok(evidence)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn evidence_is_read_as_derived_but_for_what_is_known() {
        let mut known = BTreeMap::new();
        let mut read = |text: &str| {
            let seed = ReadEvidence { known: &mut known };
            seed.deserialize(&mut serde_json::Deserializer::from_str(text))
        };
        for text in [
            "{}",
            r#"{"records":1,"lost":3,"backlog_wait_s":0.5}"#,
            r#"{"mode":"2","b\u0061ck":"\u0061","records":7}"#,
            r#"{"mode":"3"}"#,
            r#"{"mode":"2"}"#,
        ] {
            assert_eq!(read(text).unwrap(), serde_json::from_str(text).unwrap(), "{text}");
        }
        let left = read(r#"{"mode":"2","back":"b","lost":0}"#).unwrap();
        assert_eq!(left, serde_json::from_str(r#"{"back":"b","lost":0}"#).unwrap());
        assert_eq!(read(r#"{"records":null}"#).unwrap(), Evidence::default());
        assert!(read(r#"{"records":[]}"#).is_err());
    }
}
