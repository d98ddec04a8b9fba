//! Results of an experiment's earlier sessions, so that another session can go on where they
//! stopped.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::time::Duration;

use super::detail::DetailProgress;
use super::effects;
use super::request::Request;
use super::row::{RowKey, RowState};
use super::stored_design::design;
use super::work::Work;
use paired::design::Design;
use paired::judge::MIN_PAIRS;
use weigh_model::ids::{ArmId, PairId, RowId, WorkId};
use weigh_model::record::{ChosenPeak, Detailed, Stored};
use weigh_model::role::SampleRole;
use weigh_model::samples::{Point, RowSamples};
use weigh_model::workload::metric::Metric;
use weigh_verdict::family;
use weigh_verdict::pairs::gather;
use weigh_verdict::prior_row::{PastReading, PriorRow};
use weigh_verdict::schedule::Schedule;

/// Measurements before this session; empty for a new experiment.
#[derive(Debug, Default)]
pub struct PriorSessions {
    /// How many sessions there were.
    pub sessions: usize,
    /// Time that they measured.
    pub elapsed: Duration,
    /// The sets that this session measures. One that goes on has its rows in `rows`.
    pub sets: Range<usize>,
    pub rows: BTreeMap<RowId, PriorRow>,
    /// Rows that have no result, and will have none.
    pub failed: BTreeSet<RowId>,
    /// Works that failed in the baseline's arm.
    pub failed_baselines: BTreeSet<WorkId>,
    /// The unit of each work's samples.
    pub units: BTreeMap<WorkId, String>,
    /// Per work: how long its samples are, where the first pairs have chosen it.
    pub sample_ms: Vec<Option<u64>>,
    /// Per arm: what its treatment said of itself.
    pub facts: Vec<Vec<String>>,
    /// How the pairs of a row are taken, where its first ones have chosen or shown that there is no choice.
    pub schedules: BTreeMap<RowId, Schedule>,
    /// n* of rows, where it was known after their pilot alone.
    pub plans: BTreeMap<RowId, f64>,
    /// Peaks that were chosen, if any.
    pub peaks: Vec<ChosenPeak>,
    /// The samples by which they are chosen, in the order measured.
    pub searched: BTreeMap<RowId, Vec<Point>>,
    details: BTreeMap<RowId, DetailProgress>,
}

impl PriorSessions {
    /// Nothing, before so many sets.
    pub fn none(sets: usize) -> PriorSessions {
        PriorSessions { sets: 0..sets, ..PriorSessions::default() }
    }

    /// Returns the stored measurements of an experiment that compares.
    ///
    /// An experiment in one set goes on with that set's rows. An experiment in several sets goes on
    /// with the sets that it lacks, or with one more set. A set is complete in itself, with a new
    /// start of the treatments.
    pub fn of(stored: &Stored) -> PriorSessions {
        let is_one_set = stored.header.sets == 1;
        let points = || stored.samples.values().flat_map(|of_row| &of_row.points);
        let points = || {
            points().filter(|point| ![SampleRole::Search, SampleRole::Aged].contains(&point.role))
        };
        let measured = points().map(|point| point.set.0 + 1).max().unwrap_or(0);
        let sets = match is_one_set {
            true => 0..1,
            false => measured..stored.header.sets.max(measured + 1),
        };
        PriorSessions {
            sessions: stored.sessions,
            elapsed: Duration::from_secs_f64(stored.elapsed_s.max(0.0)),
            sets,
            rows: if is_one_set { rows(stored) } else { BTreeMap::new() },
            failed: failed(stored),
            failed_baselines: failed_in(stored, ArmId::BASELINE).collect(),
            units: units(stored),
            sample_ms: if is_one_set { lengths(stored) } else { Vec::new() },
            facts: stored.facts.clone(),
            schedules: schedules(stored),
            plans: stored.plans.iter().map(|plan| ((plan.work, plan.arm), plan.pairs)).collect(),
            peaks: stored.peaks.clone(),
            searched: searched(stored),
            details: details(&stored.details),
        }
    }

    /// Returns the units of these works, some of which may have no samples yet.
    pub fn units_of(&self, works: &[Work]) -> Vec<Option<String>> {
        (0..works.len()).map(|work| self.units.get(&WorkId(work)).cloned()).collect()
    }

    /// Returns the pairs of a row's detail pass in an earlier session.
    pub fn detail(&self, unit: &RowKey) -> DetailProgress {
        self.details.get(&unit.id()).copied().unwrap_or_default()
    }

    /// Returns true if there is nothing left to measure: every row has all that it needs.
    pub fn is_done(&self, stored: &Stored, request: &Request) -> bool {
        if self.rows.is_empty() {
            return false;
        }
        let planned = stored.planned_rows();
        let planned_pairs = stored.header.planned_pairs;
        let rows = design(stored).rows;
        let design = &Design { planned_pairs, rows, ..request.plan.design() };
        let comparison = request.plan.comparison();
        let limit = comparison.and_then(|comparison| comparison.fail_above).or(stored.fail_above);
        let row = |(&(work, treated_arm), past): (&RowId, &PriorRow)| {
            let start_scale = stored.header.works[work].start_scale;
            let takes_old_pairs = comparison.is_some_and(|comparison| comparison.takes_old_pairs)
                && stored.header.works[work].sample_ms.is_some();
            RowState::resumed(RowKey { work, treated_arm, start_scale }, design, past)
                .with_limit(limit)
                .with_old_pairs(takes_old_pairs)
        };
        let is_open = |row: &(&RowId, &PriorRow)| !self.failed.contains(row.0);
        let mut rows: Vec<RowState> = self.rows.iter().filter(is_open).map(row).collect();
        effects::attach(&mut rows, &request.common.arms, design);
        (0..rows.len()).for_each(|row| effects::end_pilot(&mut rows, row, design));
        effects::judge(&mut rows, design);
        rows.len() + self.failed.len() >= planned && rows.iter().all(|row| row.is_done(design))
    }
}

fn units(stored: &Stored) -> BTreeMap<WorkId, String> {
    let of_row = |(&(work, _), of_row): (&RowId, &RowSamples)| {
        let totals = of_row.baseline.as_ref().or(of_row.treated.as_ref())?;
        let usual = &stored.header.works.get(work.0)?.unit;
        Some((work, totals.unit.as_ref().unwrap_or(usual).clone()))
    };
    stored.samples.iter().filter_map(of_row).collect()
}

fn rows(stored: &Stored) -> BTreeMap<RowId, PriorRow> {
    let mut rows: BTreeMap<RowId, PriorRow> = BTreeMap::new();
    for (key, of_row) in stored.samples.iter().filter(|((_, arm), _)| !arm.is_baseline()) {
        let points = of_row.points.iter().filter(|point| point.role != SampleRole::Search);
        let next_pair = points.map(|point| point.pair.next()).max().unwrap_or_default();
        // One without a whole pair has none of these, and needs them all the same.
        let nothing = |metric: &Metric| PastReading {
            metric: metric.clone(),
            is_absent: false,
            log_ratios: Vec::new(),
            turns: Vec::new(),
        };
        let metrics = stored.header.metrics.iter().filter(|metric| **metric != Metric::Rate);
        let further = metrics.map(nothing).collect();
        let planned = stored.planned_after_pilot(key.0, key.1);
        rows.insert(*key, PriorRow { further, planned, ..PriorRow::new(next_pair) });
    }
    for of_row in gather(stored) {
        let Some(past) = rows.get_mut(&(of_row.work, of_row.arm)) else { continue };
        let betting = of_row.betting();
        past.schedule = of_row.schedule.clone();
        past.outside = of_row.outside.clone();
        past.late = of_row.late.log_ratios.clone();
        past.log_ratios = betting.values().to_vec();
        past.turns = betting.turns().unwrap_or_default().to_vec();
        past.further = (stored.header.metrics.iter())
            .filter(|metric| **metric != Metric::Rate)
            .map(|metric| {
                let betting = of_row.betting_of(metric);
                PastReading {
                    metric: metric.clone(),
                    is_absent: !family::has(&of_row, metric),
                    log_ratios: betting.values().to_vec(),
                    turns: betting.turns().unwrap_or_default().to_vec(),
                }
            })
            .collect();
        let pair = Duration::try_from_secs_f64(of_row.pair_s().unwrap_or(0.0)).unwrap_or_default();
        past.spent = pair * past.log_ratios.len() as u32;
    }
    rows
}

fn schedules(stored: &Stored) -> BTreeMap<RowId, Schedule> {
    let rows = gather(stored).into_iter();
    let settled = rows.filter(|row| row.schedule.is_settled(row.series.len()));
    settled.map(|row| ((row.work, row.arm), row.schedule)).collect()
}

fn searched(stored: &Stored) -> BTreeMap<RowId, Vec<Point>> {
    let is_of_search = |point: &&Point| point.role == SampleRole::Search;
    let of_row = |(key, of_row): (&RowId, &RowSamples)| {
        (*key, of_row.points.iter().filter(is_of_search).copied().collect())
    };
    stored.samples.iter().map(of_row).collect()
}

/// A workload that failed in the baseline's arm has no result under any treatment.
fn failed(stored: &Stored) -> BTreeSet<RowId> {
    let treated = (1..stored.header.arms.len()).map(ArmId);
    let of_arm = |arm| failed_in(stored, arm).map(move |work| (work, arm));
    treated.flat_map(of_arm).collect()
}

/// The works without a result in an arm.
fn failed_in(stored: &Stored, arm: ArmId) -> impl Iterator<Item = WorkId> {
    let name = |work: WorkId| &stored.header.works[work].name;
    stored.header.work_ids().filter(move |work| stored.has_no_result_in(name(*work), arm))
}

/// The pilot of a work is over when one of its rows has the pairs for it.
fn lengths(stored: &Stored) -> Vec<Option<u64>> {
    let measured = gather(stored);
    let has_pilot = |work: WorkId| {
        measured.iter().any(|of_row| of_row.work == work && of_row.series.len() >= MIN_PAIRS)
    };
    let works = stored.header.works.iter().enumerate();
    works.map(|(work, of_work)| of_work.sample_ms.filter(|_| has_pilot(WorkId(work)))).collect()
}

fn details(launches: &[Detailed]) -> BTreeMap<RowId, DetailProgress> {
    let mut arms: BTreeMap<(RowId, PairId), BTreeSet<ArmId>> = BTreeMap::new();
    for launch in launches.iter().filter(|launch| launch.detail.latencies.is_some()) {
        let key = (launch.work, launch.treated_arm);
        arms.entry((key, launch.pair)).or_default().insert(launch.arm);
    }
    let mut had: BTreeMap<RowId, DetailProgress> = BTreeMap::new();
    for ((key, pair), arms) in arms {
        let of_row = had.entry(key).or_default();
        of_row.pairs += usize::from(arms.len() == 2);
        of_row.next = of_row.next.max(pair.next());
    }
    had
}
