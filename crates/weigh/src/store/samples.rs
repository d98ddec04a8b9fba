//! What is kept in memory of an experiment's samples: the numbers that reports compare, sample by sample,
//! and the sums of all else. An experiment may have a million of them.

use std::collections::BTreeMap;

use super::column::ReadColumn;
use crate::machine::pressure::Disturbance;
use crate::treatment::Evidence;
use crate::workload::metric::{Metric, MetricValue};
use crate::workload::sample::{
    Outside, OwnReading, all_time, cpu_ns_per_op, further_value, rate_in_turns,
};
use crate::workload::times::Times;
use paired::histogram::Histogram;

/// The samples of an experiment, by which of `record::Header::works` and which treatment's arm
/// they belong to.
pub type Samples = BTreeMap<(usize, usize), OfRow>;

/// The samples of a workload under a treatment, or in a run without one.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct OfRow {
    /// In the order measured.
    pub points: Vec<Point>,
    /// Where copies ran at the same time, their rates, in the same order.
    pub copy_rates: Vec<Vec<f64>>,
    /// What each has of the metrics that are judged besides the rate and CPU time, in the same order; empty
    /// where nothing else is judged.
    pub further: Vec<Vec<(Metric, MetricValue)>>,
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
    /// Whether the sample before it, of whatever row, was a treated one; not for the first of a set.
    pub after_treated: bool,
    pub set: usize,
    /// Counted from 0 within work and treatment.
    pub pair: usize,
    /// From the start of the experiment.
    pub started_s: f64,
    /// In the timed part.
    pub operations: f64,
    /// Length of the timed part.
    pub elapsed_s: f64,
    /// Operations per second, in the unit of the workload; of processes that took turns, by their slices.
    pub rate: f64,
    /// CPU time per operation, where it is known and not nothing.
    pub cpu_ns_per_op: Option<f64>,
    /// Share of the launch's time in which some task waited for a CPU, where that is known.
    pub waiting_share: Option<f32>,
    /// The same of the time before it, when no launch ran.
    pub waiting_share_before: Option<f32>,
    /// Share of it, of one CPU, that was surely stolen, where that is known.
    pub stolen_share: Option<f32>,
    /// Whether a core was throttled meanwhile.
    pub was_throttled: bool,
    /// Operations per second over all of the timed part, in the unit of the workload.
    pub rate_over_all: f64,
    /// Of processes that took turns, what each used in the other's.
    pub outside: Option<Outside>,
}

/// What launches amount to together. What one of them does not tell is not known of all.
#[derive(Clone, Debug, Default, PartialEq)]
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
    pub waits: Waits,
    /// What parts of the operations took, by name.
    pub times: BTreeMap<String, PooledTimes>,
    /// What programs told besides, by name.
    pub told: BTreeMap<String, Told>,
    pub evidence: Evidence,
}

/// Values of one name in all launches that told one.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Told {
    pub unit: String,
    pub sum: f64,
    pub launches: usize,
}

/// For how much of their time some task of the machine waited while launches ran, and what the hypervisor
/// took.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Waits {
    pub during_s: f64,
    pub cpu_s: f64,
    pub disk_s: f64,
    /// Of all CPUs together.
    pub stolen_s: f64,
}

/// Times of one kind in all launches.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PooledTimes {
    pub histogram: Histogram,
    pub longest_ns: u64,
    /// When it had ended, in ms since 1970.
    pub longest_at_ms: i64,
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
    /// Whole pairs in the order measured, each with the number of its first sample, and both. They are next
    /// to each other, the one with the treatment and the other without.
    pub fn pairs(&self) -> impl Iterator<Item = (usize, [&Point; 2])> {
        self.points.windows(2).enumerate().filter_map(|(index, both)| {
            let [first, second] = both else { return None };
            let is_pair = (first.set, first.pair) == (second.set, second.pair)
                && first.is_first
                && first.is_treated != second.is_treated;
            is_pair.then_some((index, [first, second]))
        })
    }

    /// Adds the next sample.
    pub(crate) fn add(&mut self, kept: Kept) {
        self.points.push(kept.point);
        if !kept.copy_rates.is_empty() {
            self.copy_rates.push(kept.copy_rates);
        }
        if let Some(further) = kept.further {
            self.further.push(further);
        }
        let of_arm = if kept.point.is_treated { &mut self.treated } else { &mut self.baseline };
        match of_arm {
            Some(totals) => totals.add(kept.totals),
            None => *of_arm = Some(kept.totals),
        }
    }
}

/// Puts samples in their rows, in the order measured.
#[derive(Default)]
pub(crate) struct Gatherer {
    pub samples: Samples,
    /// Of the sample before: its set, and whether it was treated.
    before: Option<(usize, bool)>,
}

impl Gatherer {
    /// Adds the next sample, of whatever row.
    pub fn add(&mut self, mut kept: Kept) {
        let Point { set, is_treated, .. } = kept.point;
        kept.point.after_treated = self.before == Some((set, true));
        self.before = Some((set, is_treated));
        self.samples.entry(kept.row).or_default().add(kept);
    }
}

/// What is kept of one sample.
pub(crate) struct Kept {
    /// Its key in [`Samples`].
    pub(super) row: (usize, usize),
    point: Point,
    copy_rates: Vec<f64>,
    /// `None` where nothing else is judged.
    further: Option<Vec<(Metric, MetricValue)>>,
    /// Those of this one launch.
    totals: Totals,
}

/// The columns of a sample that are not JSON, as `record::Measured` has them.
pub(super) struct SampleKey {
    pub work: usize,
    pub arm: usize,
    pub treated_arm: usize,
    pub set: usize,
    pub pair: usize,
    pub position: usize,
    pub started_s: f64,
}

impl Kept {
    /// Of what is `judged` the rate and CPU time are kept anyway. Unit and evidence may be without what is
    /// known from earlier samples of the same row and arm.
    pub(super) fn new(
        place: &SampleKey,
        sample: ReadColumn<'_>,
        unit: Option<String>,
        evidence: Evidence,
        judged: &[Metric],
    ) -> Kept {
        let disturbance = sample.disturbance;
        // Of a million samples each byte is a megabyte, and shares are held against round limits.
        let share = |of: fn(Disturbance) -> Option<f64>| Some(of(disturbance?)? as f32);
        let elapsed_ns = sample.elapsed_ns as f64;
        let rate_over_all = sample.rate.unwrap_or(sample.operations * 1e9 / elapsed_ns);
        let point = Point {
            is_treated: place.arm != 0,
            is_first: place.position == 0,
            after_treated: false,
            set: place.set,
            pair: place.pair,
            started_s: place.started_s,
            operations: sample.operations,
            elapsed_s: elapsed_ns / 1e9,
            rate: rate_in_turns(&sample.readings).unwrap_or(rate_over_all),
            cpu_ns_per_op: cpu_ns_per_op(sample.user_ns, sample.system_ns, sample.operations),
            waiting_share: share(Disturbance::waiting_share),
            waiting_share_before: share(Disturbance::waiting_share_before),
            stolen_share: share(Disturbance::stolen_share),
            was_throttled: disturbance
                .and_then(|disturbance| disturbance.throttle_events)
                .is_some_and(|events| events > 0),
            rate_over_all,
            outside: sample.outside,
        };
        let totals = Totals {
            launches: 1,
            unit,
            operations: point.operations,
            total_operations: sample.total_operations.unwrap_or(point.operations),
            elapsed_s: point.elapsed_s,
            usage: Usage::from(&sample),
            waits: disturbance.map(Waits::from).unwrap_or_default(),
            times: sample.times.into_iter().map(PooledTimes::named).collect(),
            told: sample.readings.iter().map(Told::named).collect(),
            evidence,
        };
        let row = (place.work, place.treated_arm);
        let wanted: Vec<&Metric> = judged
            .iter()
            .filter(|metric| !matches!(metric, Metric::Rate | Metric::CpuTime))
            .collect();
        let operations = sample.total_operations.unwrap_or(sample.operations);
        let bytes = [sample.peak_memory_bytes, sample.block_input_bytes, sample.block_output_bytes];
        let has = |metric: &Metric| {
            let amount = match metric {
                Metric::AllTime => all_time(&sample.readings, rate_over_all),
                other => further_value(other, operations, bytes, &sample.readings),
            };
            Some((metric.clone(), amount?))
        };
        let further = (!wanted.is_empty()).then(|| wanted.into_iter().filter_map(has).collect());
        Kept { row, point, further, copy_rates: sample.copy_rates, totals }
    }

    /// When it ended, from the start of the experiment.
    pub(super) fn end_s(&self) -> f64 {
        self.point.started_s + self.point.elapsed_s
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
        self.waits.add(other.waits);
        for (name, times) in other.times {
            self.times.entry(name).or_default().add(&times);
        }
        for (name, told) in other.told {
            let all = self.told.entry(name).or_default();
            *all = Told {
                unit: told.unit,
                sum: all.sum + told.sum,
                launches: all.launches + told.launches,
            };
        }
        self.evidence.add(other.evidence);
    }
}

impl Told {
    pub fn mean(&self) -> f64 {
        self.sum / self.launches as f64
    }

    fn named(reading: &OwnReading) -> (String, Told) {
        let told = Told { unit: reading.unit.clone(), sum: reading.value, launches: 1 };
        (reading.name.clone(), told)
    }
}

impl Waits {
    fn add(&mut self, other: Waits) {
        self.during_s += other.during_s;
        self.cpu_s += other.cpu_s;
        self.disk_s += other.disk_s;
        self.stolen_s += other.stolen_s;
    }
}

impl From<Disturbance> for Waits {
    fn from(disturbance: Disturbance) -> Waits {
        let seconds = |us: Option<u64>| us.unwrap_or_default() as f64 / 1e6;
        Waits {
            during_s: disturbance.during_ns as f64 / 1e9,
            cpu_s: seconds(disturbance.psi_cpu_us),
            disk_s: seconds(disturbance.psi_io_us),
            stolen_s: disturbance.steal_ticks.unwrap_or_default() as f64 / 100.0,
        }
    }
}

impl PooledTimes {
    fn named(times: Times) -> (String, PooledTimes) {
        let Times { name, longest_ns, longest_at_ms, buckets } = times;
        (name, PooledTimes { histogram: Histogram::new(buckets), longest_ns, longest_at_ms })
    }

    fn add(&mut self, other: &PooledTimes) {
        self.histogram.merge(&other.histogram);
        if other.longest_ns > self.longest_ns {
            (self.longest_ns, self.longest_at_ms) = (other.longest_ns, other.longest_at_ms);
        }
    }
}

impl From<&ReadColumn<'_>> for Usage {
    fn from(sample: &ReadColumn<'_>) -> Usage {
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
