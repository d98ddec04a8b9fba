//! The single cells of a grid: what each did, what was measured besides the score, and what went another
//! way than usual.

use serde::Serialize;

use crate::workload::detail::WatchedConnection;

/// A cell over all sweeps.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct NetCell {
    pub cell: String,
    pub bytes: u32,
    pub unit: String,
    /// Activity of the machine meanwhile.
    pub activity: Option<String>,
    /// True if the cell is in the paper's suite, whose cells with an activity are scored.
    pub is_of_suite: bool,
    /// Rates, one for each sweep.
    pub rates: Vec<f64>,
    pub median: f64,
    /// Medians of what it told besides, by name: CPU seconds per GB at both ends, segments sent again, …
    pub readings: std::collections::BTreeMap<String, f64>,
}

impl NetCell {
    /// Returns true if the BTU includes this cell.
    pub fn is_scored(&self) -> bool {
        self.is_of_suite && self.activity.is_some()
    }
}

/// One kind of what is not scored.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct NetFurther {
    pub kind: String,
    pub unit: String,
    pub classes: Vec<FurtherClass>,
}

/// Further results of one class: alone, and beside all activities.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FurtherClass {
    pub name: String,
    pub bytes: u32,
    pub alone: FurtherFound,
    pub beside: FurtherFound,
}

/// Further result of a cell; for several cells a geometric mean of medians.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct FurtherFound {
    pub rate: Option<f64>,
    /// Requests with their answers, of which the percentiles are.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub requests: Option<u64>,
    pub p50_ns: Option<f64>,
    pub p99_ns: Option<f64>,
    pub p99_9_ns: Option<f64>,
    /// Share of datagrams that were lost, in per cent.
    pub lost_pct: Option<f64>,
    pub reordered_pct: Option<f64>,
}

/// A cell in a sweep in which its rate was far from usual, or TCP waited in vain.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Abnormal {
    pub cell: String,
    pub bytes: u32,
    /// From 1.
    pub sweep: usize,
    /// Mb/s, and the median of its sweeps.
    pub rate: f64,
    pub median: f64,
    /// More than three deviations from the median.
    pub is_far: bool,
    /// How often TCP waited in vain for an acknowledgement (RTO).
    pub timeouts: u64,
    pub retransmissions: u64,
    /// Packets that the wires dropped, as told or for want of room.
    pub dropped: u64,
    pub connections: Vec<WatchedConnection>,
}

impl Abnormal {
    /// Why it is one, in words.
    pub fn reason(&self) -> String {
        let far = self.is_far.then(|| "a rate far from usual".to_owned());
        let timeouts = (self.timeouts > 0)
            .then(|| crate::format::plural(self.timeouts as usize, "retransmission timeout"));
        far.into_iter().chain(timeouts).collect::<Vec<_>>().join(", ")
    }
}
