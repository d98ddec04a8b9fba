//! Forecasts on simulated machines whose pairs take a known time: what the report says an undecided row still
//! needs, and the time that it then needs. Most of a pair is launches, as on a real machine: the timed part
//! of an interleaved pair is a fifth of it.

use std::time::Duration;

use super::example;
use super::plan::simulated::run_rows;
use super::platform::{
    Observer, PairError, PairSlot, Platform, Readings, SampleError, SampleSlot, Stop,
    one_after_the_other,
};
use super::prior_sessions::PriorSessions;
use super::request::{Comparison, Plan};
use super::row::{RowKey, RowState};
use super::stored_design::design;
use super::summarise::summarise;
use needs::repetitions;
use paired::estimate::median;
use paired::simulated::{Machine, Noise};
use paired::{Doubt, Verdict};
use weigh_model::example::point;
use weigh_model::ids::{ArmId, WorkId};
use weigh_model::record::{ExperimentKind, RowPlan, Stored};
use weigh_model::result::scheme::{Scheme, StartScales};
use weigh_model::result::summary::Row;
use weigh_model::role::SampleRole;
use weigh_model::samples::{Gatherer, Kept, Point, Totals};
use weigh_model::workload::metric::{Direction, Metric, MetricValue};
use weigh_verdict::late::AGE;
use weigh_verdict::schedule::Schedule;

/// A whole pair, and the timed part of one of its samples.
const PAIR: Duration = Duration::from_millis(100);
const TIMED_S: f64 = 0.01;
/// The forecast is made after so many pairs.
const BY_THEN: u32 = 12;
/// Longer is no experiment.
const BUDGET: Duration = Duration::from_secs(3600);

/// How far forecast and truth may be apart: they are medians of many experiments.
const FACTOR: f64 = 2.0;

/// One workload on a machine that keeps its samples as the store does.
struct Timed {
    machine: Machine,
    /// As a share of the machine's noise.
    noise: f64,
    effect: f64,
    now: Duration,
    kept: Gatherer,
    plans: Vec<RowPlan>,
}

impl Timed {
    fn keep(&mut self, slot: &SampleSlot, started_s: f64, rate: f64, readings: &Readings) {
        let SampleSlot { role, scheme, set, pair, position, .. } = *slot;
        let all_time = MetricValue { value: rate, unit: "ops/s".into(), better: Direction::Higher };
        let point = Point {
            is_treated: !slot.arm.is_baseline(),
            is_first: position == 0,
            role,
            scheme,
            set,
            started_s,
            elapsed_s: TIMED_S,
            cpu_ns_per_op: Some(1.0 / rate),
            rate_over_all: rate,
            outside: readings.outside,
            ..point(pair.0, rate)
        };
        self.kept.add(Kept {
            row: slot.unit.id(),
            point,
            copy_rates: Vec::new(),
            further: Some(vec![(Metric::OverallRate, all_time)]),
            totals: Totals { launches: 1, operations: rate, ..Totals::default() },
        });
    }
}

impl Platform for Timed {
    fn elapsed(&self) -> Duration {
        self.now
    }

    fn sample(&mut self, slot: &SampleSlot) -> Result<Readings, SampleError> {
        let effect = if slot.arm.is_baseline() { 0.0 } else { self.effect };
        let log = self.noise * self.machine.sample() + effect;
        let logs = vec![(Metric::OverallRate, log), (Metric::CpuTime, log)];
        let readings = Readings { logs, ..Readings::of_rate(log.exp()) };
        let is_second = slot.scheme == Scheme::Sequential && slot.position == 1;
        let started = self.now + if is_second { PAIR / 2 } else { Duration::ZERO };
        self.keep(slot, started.as_secs_f64(), log.exp(), &readings);
        Ok(readings)
    }

    fn pair(&mut self, slot: &PairSlot) -> Result<[Readings; 2], PairError> {
        let of_arms = one_after_the_other(slot, |slot| self.sample(slot))?;
        self.now += PAIR;
        if slot.role == SampleRole::Aged {
            self.now += 2 * AGE;
        }
        Ok(of_arms)
    }

    fn planned(&mut self, unit: &RowKey, pairs: f64) -> Result<(), Stop> {
        self.plans.push(unit.plan(pairs));
        Ok(())
    }

    fn failed(&mut self, _: &SampleSlot, reason: &str) -> Result<(), Stop> {
        panic!("a simulated machine does not fail: {reason}");
    }
}

/// When the row first had a verdict.
#[derive(Default)]
struct FirstVerdict(Option<Duration>);

impl Observer for FirstVerdict {
    fn pair(&mut self, _: usize, _: &RowState, _: Duration) {}

    fn round(&mut self, rows: &[RowState], elapsed: Duration, _: Option<Duration>) {
        let has_verdict = rows[0].judgement.verdict != Verdict::Inconclusive;
        self.0 = self.0.or(has_verdict.then_some(elapsed));
    }
}

/// An experiment as it is stored, without samples.
fn stored(scheme: Scheme) -> Stored {
    let scales = StartScales { sequential: 0.01, interleaved: Some(0.002) };
    let mut work = example::work("stat", "ops/s");
    (work.start_scale, work.sample_ms) = (scales, Some(20));
    let mut stored = example::stored(Plan::Compare(Comparison::default()), [work]);
    stored.facts.push(Vec::new());
    stored.quantities.push(Vec::new());
    let header = &mut stored.header;
    header.kind = ExperimentKind::Compare;
    header.arms.push("seccomp".into());
    header.takes_old_pairs = true;
    if scheme == Scheme::Interleaved {
        header.metrics.push(Metric::OverallRate);
    }
    stored
}

/// A row, its forecast and the time that it took, in seconds.
struct Told {
    row: Row,
    /// Until it has a verdict, by the report.
    forecast_s: Option<f64>,
    needed_s: f64,
    /// Until it needs no more pairs, by the live view.
    left_s: f64,
    lasted_s: f64,
    earlier: PriorSessions,
}

/// An experiment that is told about after [`BY_THEN`] pairs; `None` where it has its verdict by then.
fn told(scheme: Scheme, noise: f64, effect: f64, seed: u64) -> Option<Told> {
    let mut stored = stored(scheme);
    let design = design(&stored);
    let unit = RowKey {
        work: WorkId(0),
        treated_arm: ArmId(1),
        start_scale: stored.header.works[0].start_scale,
    };
    let row = RowState::new(unit, &design)
        .judging(stored.header.metrics.clone(), &design)
        .with_old_pairs(true)
        .on(Schedule::Fixed(scheme), &design);
    let mut platform = Timed {
        machine: Machine::new(Noise::White, seed),
        noise,
        effect,
        now: Duration::ZERO,
        kept: Gatherer::default(),
        plans: Vec::new(),
    };
    let mut first = FirstVerdict::default();
    let (rows, result) =
        run_rows(vec![row], &design, (seed, 0), PAIR * BY_THEN, &mut platform, &mut first);
    result.expect("nothing stops a simulated machine");
    if first.0.is_some() {
        return None;
    }
    stored.samples.clone_from(&platform.kept.samples);
    stored.plans.clone_from(&platform.plans);
    let row = summarise(&stored).results.remove(0);
    let (told_at, left_s) = (platform.now, rows[0].time_left(&design).as_secs_f64());
    let (rows, result) = run_rows(rows, &design, (seed, 1), BUDGET, &mut platform, &mut first);
    result.expect("nothing stops a simulated machine");
    assert!(rows[0].is_done(&design), "within an hour");
    let since = |end: Duration| (end - told_at).as_secs_f64();
    let futures: Vec<f64> = row.futures.iter().map(|future| future.seconds).collect();
    Some(Told {
        forecast_s: median(&futures),
        earlier: PriorSessions::of(&stored),
        row,
        needed_s: since(first.0.expect("it is done")),
        left_s,
        lasted_s: since(platform.now),
    })
}

/// Returns the rows of many experiments that are undecided by then.
fn many(scheme: Scheme, noise: f64, effect: f64) -> Vec<Told> {
    let often = repetitions(20, 200);
    let all: Vec<Told> = (0..often).filter_map(|seed| told(scheme, noise, effect, seed)).collect();
    assert!(all.len() as u64 > often / 3, "{} of {often} are undecided", all.len());
    all
}

/// The middle of what was forecast over that of what came.
fn ratio(all: &[Told], forecast_s: fn(&Told) -> Option<f64>, came_s: fn(&Told) -> f64) -> f64 {
    let known = || all.iter().filter_map(|told| Some((forecast_s(told)?, came_s(told))));
    let middle = |values: Vec<f64>| median(&values).expect("most have a forecast");
    middle(known().map(|one| one.0).collect()) / middle(known().map(|one| one.1).collect())
}

fn is_about_right(ratio: f64) -> bool {
    (1.0 / FACTOR..FACTOR).contains(&ratio)
}

#[test]
fn the_time_to_a_verdict_is_forecast_to_a_factor_of_two() {
    for (scheme, noise, effect) in [
        (Scheme::Sequential, 1.0, 0.0),
        (Scheme::Sequential, 1.0, -0.008),
        (Scheme::Interleaved, 0.5, 0.0),
        (Scheme::Interleaved, 1.0, -0.008),
    ] {
        let all = many(scheme, noise, effect);
        let about = format!("{scheme:?} pairs, {noise} % of noise, an effect of {effect}");
        let of_report = ratio(&all, |told| told.forecast_s, |told| told.needed_s);
        assert!(is_about_right(of_report), "{about}: {of_report}");
        let of_json = ratio(&all, |told| told.row.seconds_needed, |told| told.needed_s);
        assert!(is_about_right(of_json), "{about}: {of_json} in the JSON");
        // Of few pairs, widths say too much rather than too little.
        let of_live = ratio(&all, |told| Some(told.left_s), |told| told.lasted_s);
        assert!((1.0 / FACTOR..3.0 * FACTOR).contains(&of_live), "{about}: {of_live} left");
    }
}

/// Twelve quiet pairs show that nothing differs, but interleaved ones have to be 24, sequential ones have to
/// be confirmed, and one of old processes has to follow.
#[test]
fn rows_whose_verdict_is_withheld_have_a_forecast_too() {
    for scheme in [Scheme::Interleaved, Scheme::Sequential] {
        let all = many(scheme, 0.05, 0.0);
        for told in &all {
            let because = told.row.withheld.expect("no verdict yet").because;
            // What these take is not known in pairs.
            let is_open = matches!(because, Doubt::CarryOver | Doubt::OrderMatters);
            assert_eq!(told.forecast_s.is_none(), is_open, "{scheme:?}: {because:?}");
            assert_eq!(told.left_s > BUDGET.as_secs_f64(), is_open, "{scheme:?}: {because:?}");
        }
        let of_report = ratio(&all, |told| told.forecast_s, |told| told.needed_s);
        let known = |told: &Told| Some(told.left_s).filter(|_| told.forecast_s.is_some());
        let of_live = ratio(&all, known, |told| told.lasted_s);
        assert!(is_about_right(of_report), "{scheme:?}: {of_report}");
        assert!((1.0 / FACTOR..3.0 * FACTOR).contains(&of_live), "{scheme:?}: {of_live} left");
    }
}

/// Another session begins with what a pair of the first took.
#[test]
fn a_stored_pair_lasts_as_long_as_it_kept_the_machine() {
    for scheme in [Scheme::Interleaved, Scheme::Sequential] {
        let told = many(scheme, 1.0, 0.0).remove(0);
        let past = &told.earlier.rows[&(WorkId(0), ArmId(1))];
        let pair_s = past.spent.as_secs_f64() / past.log_ratios.len() as f64;
        assert!((pair_s / PAIR.as_secs_f64() - 1.0).abs() < 1e-6, "{scheme:?}: {pair_s} s");
    }
}
