//! What is kept in memory of an experiment's samples: the numbers that reports compare, sample by sample,
//! and the sums of all else. An experiment may have a million of them.

use std::collections::BTreeMap;

use super::record::Measured;
use crate::treatment::Evidence;
use crate::workload::sample::Sample;

/// The samples of an experiment, by which of [`super::record::Header::works`] and which treatment's arm
/// they belong to.
pub type Samples = BTreeMap<(usize, usize), OfRow>;

/// The samples of a workload under a treatment, or in a run without one.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct OfRow {
    /// In the order measured.
    pub points: Vec<Point>,
    /// Where copies ran at the same time, their rates, in the same order.
    pub copy_rates: Vec<Vec<f64>>,
    /// All launches of the baseline arm together, and those of the treatment's; `None` of no launch.
    pub baseline: Option<Totals>,
    pub treated: Option<Totals>,
}

/// A sample, without what only its arm's totals need.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    pub is_treated: bool,
    /// Whether it is the first of its pair.
    pub is_first: bool,
    pub set: usize,
    /// Counted from 0 within work and treatment.
    pub pair: usize,
    /// From the start of the experiment.
    pub started_s: f64,
    /// In the timed part.
    pub operations: f64,
    /// Length of the timed part.
    pub elapsed_s: f64,
    /// Operations per second, in the unit of the workload.
    pub rate: f64,
    /// Share of the launch's time in which some task waited for a CPU, where that is known.
    pub waiting_share: Option<f64>,
    /// Share of it, of one CPU, that was surely stolen, where that is known.
    pub stolen_share: Option<f64>,
    /// Whether a core was throttled meanwhile.
    pub was_throttled: bool,
}

/// What launches amount to together. What one of them does not tell is not known of all.
#[derive(Clone, Debug, PartialEq)]
pub struct Totals {
    pub launches: usize,
    /// As the first that has a unit gives it.
    pub unit: Option<String>,
    /// Operations in the timed parts.
    pub operations: f64,
    /// Operations of the whole processes, as far as they tell.
    pub total_operations: f64,
    /// Length of the timed parts.
    pub elapsed_s: f64,
    pub usage: Usage,
    pub evidence: Evidence,
}

/// What the timed operations used.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Usage {
    pub user_ns: Option<f64>,
    pub system_ns: Option<f64>,
    pub voluntary_switches: Option<f64>,
    pub involuntary_switches: Option<f64>,
    pub minor_faults: Option<f64>,
    pub major_faults: Option<f64>,
}

impl OfRow {
    /// Whole pairs in the order measured, each with its two samples in that order. They are next to each
    /// other, the one with the treatment and the other without.
    pub fn pairs(&self) -> impl Iterator<Item = [&Point; 2]> {
        self.points.windows(2).filter_map(|both| {
            let [first, second] = both else { return None };
            let is_pair = (first.set, first.pair) == (second.set, second.pair)
                && first.is_first
                && first.is_treated != second.is_treated;
            is_pair.then_some([first, second])
        })
    }

    /// Adds the next sample.
    pub fn add(&mut self, mut measured: Measured) {
        self.points.push(Point::from(&measured));
        if !measured.sample.copy_rates.is_empty() {
            self.copy_rates.push(std::mem::take(&mut measured.sample.copy_rates));
        }
        let of_arm = if measured.arm == 0 { &mut self.baseline } else { &mut self.treated };
        let one = Totals::from(measured);
        match of_arm {
            Some(totals) => totals.add(one),
            None => *of_arm = Some(one),
        }
    }
}

impl From<&Measured> for Point {
    fn from(measured: &Measured) -> Point {
        let disturbance = measured.disturbance;
        Point {
            is_treated: measured.arm != 0,
            is_first: measured.position == 0,
            set: measured.set,
            pair: measured.pair,
            started_s: measured.started_s,
            operations: measured.sample.operations,
            elapsed_s: measured.sample.elapsed_ns as f64 / 1e9,
            rate: measured.sample.rate(),
            waiting_share: disturbance.and_then(|disturbance| disturbance.waiting_share()),
            stolen_share: disturbance.and_then(|disturbance| disturbance.stolen_share()),
            was_throttled: disturbance
                .and_then(|disturbance| disturbance.throttle_events)
                .is_some_and(|events| events > 0),
        }
    }
}

impl From<Measured> for Totals {
    /// Those of one launch.
    fn from(Measured { sample, evidence, .. }: Measured) -> Totals {
        Totals {
            launches: 1,
            operations: sample.operations,
            total_operations: sample.total_operations.unwrap_or(sample.operations),
            elapsed_s: sample.elapsed_ns as f64 / 1e9,
            usage: Usage::from(&sample),
            unit: sample.unit,
            evidence,
        }
    }
}

impl Totals {
    fn add(&mut self, other: Totals) {
        self.launches += other.launches;
        self.operations += other.operations;
        self.total_operations += other.total_operations;
        self.elapsed_s += other.elapsed_s;
        if self.unit.is_none() {
            self.unit = other.unit;
        }
        self.usage.add(other.usage);
        self.evidence.add(other.evidence);
    }
}

impl From<&Sample> for Usage {
    fn from(sample: &Sample) -> Usage {
        let number = |value: Option<u64>| value.map(|value| value as f64);
        Usage {
            user_ns: number(sample.user_ns),
            system_ns: number(sample.system_ns),
            voluntary_switches: number(sample.voluntary_switches),
            involuntary_switches: number(sample.involuntary_switches),
            minor_faults: number(sample.minor_faults),
            major_faults: number(sample.major_faults),
        }
    }
}

impl Usage {
    fn add(&mut self, other: Usage) {
        let sum = |one: Option<f64>, two: Option<f64>| Some(one? + two?);
        *self = Usage {
            user_ns: sum(self.user_ns, other.user_ns),
            system_ns: sum(self.system_ns, other.system_ns),
            voluntary_switches: sum(self.voluntary_switches, other.voluntary_switches),
            involuntary_switches: sum(self.involuntary_switches, other.involuntary_switches),
            minor_faults: sum(self.minor_faults, other.minor_faults),
            major_faults: sum(self.major_faults, other.major_faults),
        };
    }
}
