//! From stored samples to the pairs of each row.

use super::disturbed;
use super::late::Late;
use super::outside::OutsideUse;
use super::pair_roles::{MeasuredPair, PairsByRole, sort};
use super::schedule::{Schedule, plan};
use paired::betting::{Betting, DEFAULT_SCALE, Start};
use paired::carry_over::Turn;
use paired::estimate::median;
use weigh_model::ids::{ArmId, SetId, WorkId};
use weigh_model::record::{Stored, StoredWork};
use weigh_model::result::gate::NamedRow;
use weigh_model::result::scheme::Scheme;
use weigh_model::result::summary::Pair;
use weigh_model::samples::{Point, RowSamples, Samples, Totals};
use weigh_model::workload::metric::{Metric, MetricValue};

/// A workload under a treatment, with all that was measured of it.
pub struct Measurements<'a> {
    pub work: WorkId,
    pub arm: ArmId,
    /// Totals of the treated samples.
    pub totals: &'a Totals,
    /// Pairs that the row is judged by.
    pub series: Vec<Pair>,
    pub schedule: Schedule,
    /// CPU use of the interleaved pairs' processes outside their slices.
    pub outside: OutsideUse,
    pub late: Late,
    /// As it was fixed before the first pair.
    pub start: Start,
}

impl Measurements<'_> {
    /// Returns the time that a further pair takes of an experiment, in seconds. It is a median, as a
    /// pair lasts long if a session or a detail pass came between it and the next one.
    pub fn pair_s(&self) -> Option<f64> {
        median(&self.series.iter().map(|pair| pair.lasted_s).collect::<Vec<_>>())
    }

    /// Returns the log-ratios of all whole pairs that can be evidence.
    pub fn log_ratios(&self) -> Vec<f64> {
        self.series.iter().map(Pair::log_ratio).filter(|d| d.is_finite()).collect()
    }

    /// The evidence that these pairs hold.
    pub fn betting(&self) -> Betting {
        betting(self.series.iter(), self.start)
    }

    /// Returns the betting on another metric than the rate.
    pub fn betting_of(&self, metric: &Metric) -> Betting {
        self.betting_of_some(self.series.iter(), metric)
    }

    /// Returns the betting of some of the row's pairs on a metric.
    pub fn betting_of_some<'a>(
        &self,
        pairs: impl Iterator<Item = &'a Pair>,
        metric: &Metric,
    ) -> Betting {
        let start = match metric {
            Metric::Rate => self.start,
            _ => Start { scale: DEFAULT_SCALE, ..self.start },
        };
        betting_of(pairs, metric, start)
    }
}

/// Only whole pairs, of workloads that did not fail: a failed one has no result.
pub fn gather(stored: &Stored) -> Vec<Measurements<'_>> {
    let (arms, starts) = (&stored.header.arms, Starts::of(&stored.samples));
    let mut all = Vec::new();
    let of_treatments = stored.samples.iter().filter(|((_, arm), _)| !arm.is_baseline());
    for (&(work, arm), of_row) in of_treatments {
        let (Some(StoredWork { name, start_scale, sample_ms, .. }), Some(label), Some(totals)) =
            (stored.header.works.get(work.0), arms.get(arm.0), &of_row.treated)
        else {
            continue;
        };
        let has_failed = stored
            .failures
            .iter()
            .any(|failure| failure.workload == *name && [&arms[0], label].contains(&&failure.arm));
        let PairsByRole { counted, schedule, outside, old } =
            sort(of_row, stored.header.pilot_chooses_scheme);
        let [series, old] = [counted, old].map(|taken| pairs(of_row, &taken, &starts));
        let late = Late {
            is_wanted: stored.header.takes_old_pairs && sample_ms.is_some(),
            log_ratios: old.iter().map(Pair::log_ratio).filter(|d| d.is_finite()).collect(),
            ..Late::default()
        };
        if !has_failed && !series.is_empty() {
            let after_pilot = stored.planned_after_pilot(work, arm);
            let start = Start {
                scale: schedule.scale(*start_scale),
                plan: plan(stored.header.planned_pairs, after_pilot),
                capital: schedule.capital(),
                interleaved: schedule.main() == Scheme::Interleaved,
            };
            all.push(Measurements { work, arm, totals, series, schedule, outside, late, start });
        }
    }
    all
}

/// Rows that were asked for and have no whole pair, although their workload did not fail. A point of a ramp
/// is not asked for, only the peak.
pub fn unmeasured(stored: &Stored, rows: &[Measurements]) -> Vec<NamedRow> {
    let header = &stored.header;
    let works =
        header.work_ids().filter(|work| !header.is_of_search(*work) || header.is_peak(*work));
    let asked = works.flat_map(|work| (1..header.arms.len()).map(move |arm| (work, ArmId(arm))));
    let has_result = |(work, arm): &(WorkId, ArmId)| {
        rows.iter().any(|row| (row.work, row.arm) == (*work, *arm))
            || stored.has_no_result_in(&header.works[*work].name, *arm)
    };
    let missing = asked.filter(|row| !has_result(row));
    let named = |(work, arm): (WorkId, ArmId)| NamedRow {
        workload: header.works[work].name.clone(),
        treatment: header.arms[arm].clone(),
    };
    missing.map(named).collect()
}

fn pairs(of_row: &RowSamples, taken: &[MeasuredPair], starts: &Starts) -> Vec<Pair> {
    let judge = disturbed::Judge::new(&of_row.points);
    taken
        .iter()
        .map(|taken| {
            let MeasuredPair { first, both } = *taken;
            let baseline_first = !both[0].is_treated;
            let (baseline, treated) =
                if baseline_first { (both[0], both[1]) } else { (both[1], both[0]) };
            Pair {
                started_s: both[0].started_s,
                lasted_s: starts.lasted_s(both),
                baseline_rate: baseline.rate,
                treated_rate: treated.rate,
                rates_over_all: [baseline.rate_over_all, treated.rate_over_all],
                cpu_ns_per_op: baseline
                    .cpu_ns_per_op
                    .zip(treated.cpu_ns_per_op)
                    .map(|(baseline, treated)| [baseline, treated]),
                further: further(of_row, first, baseline_first),
                baseline_first,
                after_treated: both[0].after_treated,
                set: both[0].set,
                number: both[0].pair,
                is_disturbed: both.iter().any(|point| judge.is_disturbed(point)),
            }
        })
        .collect()
}

/// When each sample of an experiment began, and in which set, in the order of time.
struct Starts(Vec<(f64, SetId)>);

impl Starts {
    fn of(samples: &Samples) -> Starts {
        let points = samples.values().flat_map(|of_row| &of_row.points);
        let mut starts: Vec<(f64, SetId)> =
            points.map(|point| (point.started_s, point.set)).collect();
        starts.sort_by(|one, other| one.0.total_cmp(&other.0));
        Starts(starts)
    }

    /// How long a pair kept other samples from being measured. Both processes of an interleaved pair begin
    /// at the same time.
    fn lasted_s(&self, [first, second]: [&Point; 2]) -> f64 {
        let next = self.0.partition_point(|(start_s, _)| *start_s <= second.started_s);
        let next = self.0.get(next).filter(|(_, set)| *set == second.set);
        let end_s = next.map_or(second.started_s + second.elapsed_s, |(start_s, _)| *start_s);
        end_s - first.started_s
    }
}

/// Returns the other metrics that both samples of the pair that begins with `first` have.
fn further(
    of_row: &RowSamples,
    first: usize,
    baseline_first: bool,
) -> Vec<(Metric, [MetricValue; 2])> {
    let of_sample = |sample: usize| of_row.further.get(sample).map_or(&[][..], Vec::as_slice);
    let [baseline, treated] = if baseline_first { [first, first + 1] } else { [first + 1, first] };
    let both = of_sample(baseline).iter().filter_map(|(metric, of_baseline)| {
        let (_, of_treated) = of_sample(treated).iter().find(|(other, _)| other == metric)?;
        let is_alike = |one: &MetricValue| (one.unit.clone(), one.better);
        if is_alike(of_baseline) != is_alike(of_treated) {
            return None;
        }
        Some((metric.clone(), [of_baseline.clone(), of_treated.clone()]))
    });
    both.collect()
}

/// The evidence that `pairs` hold. Rates are checked to be positive and finite when they are measured; a
/// database that someone changed can hold others, and they are not evidence.
pub fn betting<'a>(pairs: impl Iterator<Item = &'a Pair>, start: Start) -> Betting {
    betting_of(pairs, &Metric::Rate, start)
}

fn betting_of<'a>(pairs: impl Iterator<Item = &'a Pair>, metric: &Metric, start: Start) -> Betting {
    let turn = |pair: &Pair| Turn {
        baseline_first: pair.baseline_first,
        after_treated: pair.after_treated,
    };
    let usable = pairs.filter_map(|pair| Some((pair.log_ratio_of(metric)?, turn(pair))));
    let (log_ratios, turns): (Vec<f64>, Vec<Turn>) = usable.unzip();
    let betting = Betting::from_log_ratios(&log_ratios, start);
    betting.expect("only finite values are left").with_turns(turns)
}
