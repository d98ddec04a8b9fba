//! Cost over dose: arms that differ in one number, such as `landlock:layers=1` to `layers=16`.

use serde::{Deserialize, Serialize};

use crate::format;
use crate::result::work_name::WorkName;

/// The unit of a cost per operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum DoseUnit {
    #[serde(rename = "ns")]
    Nanoseconds,
    #[serde(rename = "instructions")]
    Instructions,
    /// Per cent of the baseline's time, where an operation has no time of its own.
    #[serde(rename = "%")]
    Percent,
}

/// The costs of a workload under the arms that differ in one number, and the line through them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DoseCurve {
    #[serde(flatten)]
    pub workload: WorkName,
    /// Label of the arms, with `N` in place of the number: `landlock:layers=N`.
    pub treatment: String,
    /// Name of the number: `layers`.
    pub parameter: String,
    /// Unit of all costs.
    pub unit: DoseUnit,
    /// Cost of an operation in the baseline; 100 in per cent.
    pub baseline: f64,
    /// Cost that each further 1 of the number adds.
    pub per_unit: DoseCost,
    /// Cost that the line adds at 0: what the first unit costs beyond the slope.
    pub at_zero: DoseCost,
    /// Costs of the arms, in ascending order.
    pub points: Vec<DosePoint>,
    /// Slopes up to the middle arm and from there on, where they are shown to differ.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bend: Option<[f64; 2]>,
}

/// A cost, and its interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct DoseCost {
    pub added: f64,
    pub low: f64,
    pub high: f64,
}

/// An arm.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct DosePoint {
    pub dose: f64,
    pub pairs: usize,
    #[serde(flatten)]
    pub cost: DoseCost,
}

impl DoseUnit {
    /// Formats an added cost, with its sign.
    pub fn text(self, added: f64) -> String {
        match self {
            DoseUnit::Nanoseconds => format::added_ns(added),
            DoseUnit::Instructions => format::added_instructions(added),
            DoseUnit::Percent => format::percent(added),
        }
    }
}

impl DoseCurve {
    /// Formats a cost and its interval: `+3.10 ns`, `[+2.90 ns, +3.30 ns]`.
    pub fn texts(&self, cost: DoseCost) -> [String; 2] {
        let text = |added| self.unit.text(added);
        [text(cost.added), format!("[{}, {}]", text(cost.low), text(cost.high))]
    }

    /// The first dose, the dose at which a bend is looked for, and the last dose.
    pub fn ends(&self) -> [f64; 3] {
        let dose = |at: usize| self.points.get(at).map_or(f64::NAN, |point| point.dose);
        [0, self.points.len() / 2, self.points.len().saturating_sub(1)].map(dose)
    }
}
