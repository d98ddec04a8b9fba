//! The JSON in the columns `sample` and `evidence`: what the workload printed, and beside it what weigh saw.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt::{Formatter, Result as FmtResult};

use serde::de::{DeserializeSeed, Deserializer, MapAccess, Visitor};
use serde::{Deserialize, Serialize};

use weigh_model::disturbance::Disturbance;
use weigh_model::evidence::Evidence;
use weigh_model::workload::sample::{Outside, OwnReading, Sample};
use weigh_model::workload::times::Times;

/// Sample as it is written to its column.
#[derive(Serialize)]
pub(super) struct SampleColumn<'a> {
    #[serde(flatten)]
    pub sample: &'a Sample,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub disturbance: Option<Disturbance>,
    pub padding_bytes: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu: Option<usize>,
}

/// Sample as it is read back. It has only the parts of [`Sample`] that memory keeps, as an
/// experiment may have a million samples.
#[derive(Debug, Deserialize)]
pub(super) struct ReadColumn<'a> {
    pub operations: f64,
    pub elapsed_ns: u64,
    pub total_operations: Option<f64>,
    pub rate: Option<f64>,
    #[serde(borrow)]
    pub unit: Option<Text<'a>>,
    pub user_ns: Option<u64>,
    pub system_ns: Option<u64>,
    pub voluntary_switches: Option<u64>,
    pub involuntary_switches: Option<u64>,
    pub minor_faults: Option<u64>,
    pub major_faults: Option<u64>,
    #[serde(default)]
    pub copy_rates: Vec<f64>,
    pub peak_memory_bytes: Option<u64>,
    pub block_input_bytes: Option<u64>,
    pub block_output_bytes: Option<u64>,
    #[serde(default)]
    pub readings: Vec<OwnReading>,
    #[serde(default)]
    pub times: Vec<Times>,
    pub outside: Option<Outside>,
    pub disturbance: Option<Disturbance>,
}

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
    fn what_is_written_is_read_wherever_the_disturbance_stands() {
        let sample = r#""operations":5.0,"elapsed_ns":7,"unit":"\u006fps/s","slices_ns":[3,4]"#;
        let beside = r#""dist\u0075rbance":{"during_ns":9,"steal_ticks":1}"#;
        for text in [format!("{{{sample},{beside}}}"), format!("{{{beside},{sample}}}")] {
            let read: ReadColumn = serde_json::from_str(&text).unwrap();
            let disturbance =
                Disturbance { during_ns: 9, steal_ticks: Some(1), ..Default::default() };
            assert_eq!(read.disturbance, Some(disturbance));
            let sample: Sample = serde_json::from_str(&text).unwrap();
            assert_eq!((read.operations, read.elapsed_ns), (5.0, 7));
            assert_eq!(read.unit.as_ref().map(|unit| &*unit.0), Some("ops/s"));
            let column = SampleColumn {
                sample: &sample,
                disturbance: read.disturbance,
                padding_bytes: 7,
                cpu: Some(1),
            };
            let written = serde_json::to_string(&column).unwrap();
            let again: ReadColumn = serde_json::from_str(&written).unwrap();
            assert_eq!(format!("{again:?}"), format!("{read:?}"));
        }
    }

    #[test]
    fn a_sample_of_an_earlier_weigh_has_no_disturbance_and_half_a_sample_is_an_error() {
        let read = |text| serde_json::from_str::<ReadColumn>(text);
        assert_eq!(read(r#"{"operations":5,"elapsed_ns":7}"#).unwrap().disturbance, None);
        assert!(read(r#"{"operations":5,"disturbance":null}"#).is_err());
        assert!(read(r#"{"operations":5,"elapsed_ns":7,"disturbance":3}"#).is_err());
    }

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
