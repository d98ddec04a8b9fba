//! Samples of an experiment as kept in memory: the numbers that reports compare, sample by sample,
//! and the sums of all else. An experiment may have a million samples.

use std::collections::BTreeMap;

use crate::disturbance::Disturbance;
use crate::evidence::Evidence;
use crate::ids::{PairId, RowId, SetId};
use crate::result::scheme::Scheme;
use crate::role::SampleRole;
use crate::workload::metric::{Metric, MetricValue};
use crate::workload::sample::{Outside, OwnReading, Sample};
use crate::workload::times::Times;
use paired::histogram::Histogram;

/// The samples of an experiment, by their rows.
pub type Samples = BTreeMap<RowId, RowSamples>;

/// The samples of a workload under a treatment, or in a run without one.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RowSamples {
    /// In the order measured.
    pub points: Vec<Point>,
    /// Where copies ran at the same time, their rates, in the same order.
    pub copy_rates: Vec<Vec<f64>>,
    /// Values of each sample for the metrics judged besides the rate and CPU time, in the same
    /// order; empty where no other metric is judged.
    pub further: Vec<Vec<(Metric, MetricValue)>>,
    /// All launches of the baseline arm together, and those of the treatment's; `None` of no launch.
    pub baseline: Option<Totals>,
    pub treated: Option<Totals>,
    /// The launches of a ramp's rounds together; they are in the two above, too.
    pub in_rounds: Option<Totals>,
}

/// A sample, without what only its arm's totals need.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    pub is_treated: bool,
    pub role: SampleRole,
    pub scheme: Scheme,
    /// True for the first sample of its pair.
    pub is_first: bool,
    /// True if the sample before it, of whatever row, was a treated one; false for the first of a
    /// set.
    pub after_treated: bool,
    pub set: SetId,
    pub pair: PairId,
    /// From the start of the experiment.
    pub started_s: f64,
    /// In the timed part.
    pub operations: f64,
    /// Length of the timed part.
    pub elapsed_s: f64,
    /// Operations per second, in the unit of the workload; for interleaved processes, in their slices.
    pub rate: f64,
    /// CPU time per operation, where it is known and not nothing.
    pub cpu_ns_per_op: Option<f64>,
    /// Share of the launch's time in which some task waited for a CPU, where that is known.
    pub waiting_share: Option<f32>,
    /// Share of the time before the launch, when no launch ran, in which some task waited for a
    /// CPU.
    pub waiting_share_before: Option<f32>,
    /// Share of it, of one CPU, that was surely stolen, where that is known.
    pub stolen_share: Option<f32>,
    /// True if a core was throttled meanwhile.
    pub was_throttled: bool,
    /// Exit status of its process; 0 unless another one was allowed.
    pub exit_code: u8,
    /// Operations per second over all of the timed part, in the unit of the workload.
    pub rate_over_all: f64,
    /// Resources that each interleaved process used in the other's slices; only for interleaved
    /// processes.
    pub outside: Option<Outside>,
}

/// Totals of several launches. If one launch does not report a value, its total is unknown.
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
    /// CPU time of the launches that report it.
    pub known_cpu: KnownCpu,
    pub waits: Waits,
    /// Times of parts of the operations, by name.
    pub times: BTreeMap<String, PooledTimes>,
    /// Other values that programs reported, by name.
    pub told: BTreeMap<String, CustomReadingMean>,
    pub evidence: Evidence,
}

/// Sums of CPU times that launches reported.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct KnownCpu {
    pub launches: usize,
    pub user_ns: f64,
    pub system_ns: f64,
}

/// Values of one name in all launches that told one.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CustomReadingMean {
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
    /// Time stolen by the hypervisor, of all CPUs together.
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

/// Resources that the timed operations used.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Usage {
    pub user_ns: Option<f64>,
    pub system_ns: Option<f64>,
    pub voluntary_switches: Option<f64>,
    pub involuntary_switches: Option<f64>,
    pub minor_faults: Option<f64>,
    pub major_faults: Option<f64>,
}

impl Point {
    /// Returns true if it was taken in a round of a ramp.
    pub fn is_in_round(&self) -> bool {
        self.role == SampleRole::Remeasured
    }
}

impl RowSamples {
    /// Whole pairs in the order measured, each with the number of its first sample, and both. They are next
    /// to each other, the one with the treatment and the other without.
    pub fn pairs(&self) -> impl Iterator<Item = (usize, [&Point; 2])> {
        self.points.windows(2).enumerate().filter_map(|(index, both)| {
            let [first, second] = both else { return None };
            let place = |point: &Point| (point.role, point.set, point.pair);
            let is_pair = place(first) == place(second)
                && first.is_first
                && first.is_treated != second.is_treated;
            is_pair.then_some((index, [first, second]))
        })
    }

    /// Returns the value that a sample has for a metric besides the rate.
    pub fn further_of(&self, sample: usize, name: &str) -> Option<f64> {
        let mut further = self.further.get(sample)?.iter();
        further.find(|(metric, _)| metric.name() == name).map(|(_, found)| found.value)
    }

    /// Returns true if some of its samples were taken in the rounds of a ramp.
    pub fn has_rounds(&self) -> bool {
        self.points.iter().any(Point::is_in_round)
    }

    /// Returns which samples the figures of a run are of: with rounds, those alone. The samples before them
    /// chose the load points, and the highest of several noisy rates is too high.
    pub fn counted(&self) -> impl Fn(&Point) -> bool + use<> {
        let has_rounds = self.has_rounds();
        move |point| !has_rounds || point.is_in_round()
    }

    /// Returns the totals of these samples of a run.
    pub fn counted_totals(&self) -> Option<&Totals> {
        self.in_rounds.as_ref().or(self.baseline.as_ref())
    }

    pub fn add(&mut self, kept: Kept) {
        match &mut self.in_rounds {
            Some(totals) if kept.point.is_in_round() => totals.add(kept.totals.clone()),
            None if kept.point.is_in_round() => self.in_rounds = Some(kept.totals.clone()),
            _ => {}
        }
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
pub struct Gatherer {
    pub samples: Samples,
    /// Previous sample: its set, its role (`None` in the rounds), and true if it was treated.
    before: Option<(SetId, Option<SampleRole>, bool)>,
}

impl Gatherer {
    pub fn add(&mut self, mut kept: Kept) {
        let Point { set, role, is_treated, .. } = kept.point;
        // These alternate in the rounds, so any of them follows any other.
        let is_of_pair =
            matches!(role, SampleRole::Pilot | SampleRole::Compared | SampleRole::Aged);
        let apart = (!is_of_pair).then_some(role);
        kept.point.after_treated = self.before == Some((set, apart, true));
        self.before = Some((set, apart, is_treated));
        self.samples.entry(kept.row).or_default().add(kept);
    }
}

/// Data kept of one sample.
pub struct Kept {
    /// Its key in [`Samples`].
    pub row: RowId,
    pub point: Point,
    pub copy_rates: Vec<f64>,
    /// `None` where nothing else is judged.
    pub further: Option<Vec<(Metric, MetricValue)>>,
    pub totals: Totals,
}

impl Kept {
    /// When it ended, from the start of the experiment.
    pub fn end_s(&self) -> f64 {
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
        self.known_cpu = self.known_cpu.with(other.known_cpu);
        self.waits.add(other.waits);
        for (name, times) in other.times {
            self.times.entry(name).or_default().add(&times);
        }
        for (name, told) in other.told {
            let all = self.told.entry(name).or_default();
            *all = CustomReadingMean {
                unit: told.unit,
                sum: all.sum + told.sum,
                launches: all.launches + told.launches,
            };
        }
        self.evidence.add(other.evidence);
    }
}

impl KnownCpu {
    #[must_use]
    pub fn with(self, other: KnownCpu) -> KnownCpu {
        KnownCpu {
            launches: self.launches + other.launches,
            user_ns: self.user_ns + other.user_ns,
            system_ns: self.system_ns + other.system_ns,
        }
    }
}

impl From<Usage> for KnownCpu {
    fn from(usage: Usage) -> KnownCpu {
        let known = usage.user_ns.zip(usage.system_ns);
        known.map_or(KnownCpu::default(), |(user_ns, system_ns)| KnownCpu {
            launches: 1,
            user_ns,
            system_ns,
        })
    }
}

impl CustomReadingMean {
    pub fn mean(&self) -> f64 {
        self.sum / self.launches as f64
    }

    /// As it is read back.
    pub fn named(reading: &OwnReading) -> (String, CustomReadingMean) {
        let told =
            CustomReadingMean { unit: reading.unit.clone(), sum: reading.value, launches: 1 };
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
    /// As it is read back.
    pub fn named(times: Times) -> (String, PooledTimes) {
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
