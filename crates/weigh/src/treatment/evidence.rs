//! What a treatment produced during a launch, and whether all of it was counted.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// What a treatment produced during one launch.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Evidence {
    /// Audit records of the worker and its descendants.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub records: Option<u64>,
    /// Bytes that these take in the log.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub log_bytes: Option<u64>,
    /// Records that the kernel dropped, of anybody.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lost: Option<u64>,
    /// Records that came out of the kernel's queue meanwhile, of anybody.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub received: Option<u64>,
    /// Time that processes waited for room in the audit backlog.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub backlog_wait_s: Option<f64>,
    /// CPU time of the processes that receive the records, until all of this launch were written.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sink_cpu_s: Option<f64>,
    /// CPU time of the kernel's thread that sends them the records, as long.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kauditd_cpu_s: Option<f64>,
    #[serde(flatten)]
    pub other: BTreeMap<String, String>,
}

impl Evidence {
    /// The key in `other` of what [`Evidence::why_not_counted`] gives.
    pub const NOT_COUNTED: &str = "not_counted";

    /// Why its records could not be counted; `None` where they were, or a treatment makes none.
    pub fn why_not_counted(&self) -> Option<&str> {
        self.other.get(Evidence::NOT_COUNTED).map(String::as_str)
    }

    /// Takes what was counted for incomplete.
    pub fn not_counted(&mut self, why: &str) {
        (self.records, self.log_bytes, self.received) = (None, None, None);
        self.other.insert(Evidence::NOT_COUNTED.into(), why.into());
    }

    /// Adds that of another launch. What one of the two does not tell is not known of both.
    pub fn add(&mut self, other: Evidence) {
        let both = |one: Option<u64>, other: Option<u64>| Some(one? + other?);
        let both_s = |one: Option<f64>, other: Option<f64>| Some(one? + other?);
        self.records = both(self.records, other.records);
        self.log_bytes = both(self.log_bytes, other.log_bytes);
        self.lost = both(self.lost, other.lost);
        self.received = both(self.received, other.received);
        self.backlog_wait_s = both_s(self.backlog_wait_s, other.backlog_wait_s);
        self.sink_cpu_s = both_s(self.sink_cpu_s, other.sink_cpu_s);
        self.kauditd_cpu_s = both_s(self.kauditd_cpu_s, other.kauditd_cpu_s);
        self.other.extend(other.other);
    }
}
