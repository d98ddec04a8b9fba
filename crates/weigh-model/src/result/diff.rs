//! Two experiments side by side (`docs/diff.md`).

use serde::Serialize;

use crate::described::FactChange;
use crate::format;
use crate::result::work_name::WorkName;
use paired::estimate::median;

/// The version of the JSON document; it changes when a field changes its meaning or goes.
pub const SCHEMA: &str = "weighbridge/diff/2";

/// How a later experiment differs from an earlier one.
#[derive(Clone, Debug, Serialize)]
pub struct Diff {
    /// Always [`SCHEMA`].
    pub schema: &'static str,
    pub before: Side,
    pub after: Side,
    /// Error rate of each interval by itself, e.g. 0.05.
    pub alpha: f64,
    /// Caveat about everything that pairs did not decide, and how much wider it makes the answer;
    /// one sentence.
    pub caveat: String,
    /// Facts of the machine that are not the same.
    pub machine: Vec<FactChange>,
    pub results: Vec<DiffRow>,
    /// Workloads with their treatments that only one of the two has.
    pub only_in_one: Vec<String>,
    /// Rows that both have, with the reason why they cannot be compared.
    pub not_compared: Vec<String>,
    /// Rows of `results` whose effect (of a run: rate) has no interval, and why.
    pub not_judged: Vec<String>,
    /// Rows of `only_in_one` that the later experiment lacks, with the reason where it is known.
    #[serde(skip)]
    pub missing_later: Vec<String>,
}

impl Diff {
    /// Returns true if runs are compared, whose rows have one arm and no effect.
    pub fn is_of_runs(&self) -> bool {
        self.results.iter().all(|row| row.effect.is_none())
    }

    /// Rows of the earlier experiment that the later one has no comparable number of, or none with an
    /// interval: whether they got worse is not known.
    pub fn open_rows(&self) -> impl Iterator<Item = &String> {
        self.missing_later.iter().chain(&self.not_compared).chain(&self.not_judged)
    }
}

/// One of the two experiments.
#[derive(Clone, Debug, Serialize)]
pub struct Side {
    pub id: String,
    pub started: String,
    pub command: String,
}

/// A workload, under a treatment, in both.
#[derive(Clone, Debug, Serialize)]
pub struct DiffRow {
    #[serde(flatten)]
    pub workload: WorkName,
    /// The treatment, or that of the only arm of a run.
    pub treatment: String,
    pub unit: String,
    /// Change of the rate of the baseline, or of the only arm.
    pub rate: Change,
    /// Change of the ratio of the treated rate to the baseline's; absent for runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub effect: Option<Change>,
}

impl DiffRow {
    /// Returns the change that a limit applies to: the effect, or the rate of a run.
    pub fn decisive(&self) -> Change {
        self.effect.unwrap_or(self.rate)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Change {
    /// A rate in the row's unit, or an effect in per cent.
    pub before: f64,
    pub after: f64,
    /// The later ratio or rate over the earlier, less 1, in per cent.
    pub change_pct: f64,
    /// Interval of the change from the noise within both experiments; `None` where a side is not
    /// bounded.
    pub low_pct: Option<f64>,
    pub high_pct: Option<f64>,
    /// True if the interval excludes 0.
    pub is_beyond_noise: bool,
}

impl Change {
    /// Half the width of the interval, in per cent.
    fn half_width_pct(&self) -> Option<f64> {
        Some((self.high_pct? - self.low_pct?) / 2.0)
    }

    /// Returns true if it is shown to have got worse by more than `limit_pct`. Then the whole
    /// interval, which includes the noise within the experiments, lies beyond the limit.
    pub fn is_worse_by(&self, limit_pct: f64) -> bool {
        self.high_pct.is_some_and(|high| high < -limit_pct)
    }
}

/// The one sentence that no reader of such a comparison may miss.
pub fn caveat(rows: &[DiffRow]) -> String {
    let middle = |changes: Vec<Option<f64>>| -> String {
        let known: Vec<f64> = changes.into_iter().flatten().collect();
        match median(&known) {
            Some(pct) => format!("±{} %", format::unsigned(pct)),
            None => "any size".to_owned(),
        }
    };
    let rates = middle(rows.iter().map(|row| row.rate.half_width_pct()).collect());
    let effects: Vec<&Change> = rows.iter().filter_map(|row| row.effect.as_ref()).collect();
    let effects = match effects.is_empty() {
        true => String::new(),
        false => {
            let width = middle(effects.iter().map(|effect| effect.half_width_pct()).collect());
            format!(" and {width} in an effect")
        }
    };
    format!(
        "The experiments were not paired: their noise hides changes of {rates} in a rate{effects} (medians \
         over the rows). Differences between experiments (boot, memory layout, heat, neighbours) add to that \
         noise; two experiments cannot show how much."
    )
}
