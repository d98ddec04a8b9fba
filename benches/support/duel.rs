//! Two programs for the same work, in turns: pairs in random order until each contest is decided, by
//! the engine and the statistics that an experiment uses.

use std::time::{Duration, Instant};

use paired::betting::DEFAULT_SCALE;
use paired::design::margin_from_percent;
use paired::{Design, Verdict};
use weigh_engine::engine::{fresh_rows, run_set};
use weigh_engine::order::Coins;
use weigh_engine::platform::{Observer, Platform, Readings, SampleError, SampleSlot, Stop};
use weigh_engine::row::{RowKey, RowState};
use weigh_model::ids::{ArmId, SetId, WorkId};

/// Runs a program once and gives its rate.
pub type Contestant<'a> = Box<dyn FnMut() -> Result<f64, String> + 'a>;

/// Contest of two programs; both give their rates in the same unit.
pub struct Contest<'a> {
    pub name: String,
    pub theirs: Contestant<'a>,
    pub ours: Contestant<'a>,
}

/// Outcome of a contest.
pub struct Outcome {
    /// Our rate over theirs, and the ends of its interval; or why there is none.
    ratio: Result<[f64; 3], String>,
    verdict: Verdict,
    /// Equivalent, or different and yet within the margin.
    is_within_margin: bool,
    pub pairs: usize,
}

impl Outcome {
    /// Ours over theirs, and the interval.
    pub fn cells(&self) -> [String; 2] {
        match self.ratio {
            Ok([ratio, low, high]) if high.is_finite() && low > 0.0 => {
                [format!("{ratio:.3}"), format!("{low:.3} … {high:.3}")]
            }
            Ok([ratio, ..]) => [format!("{ratio:.3}"), "too few pairs".into()],
            Err(_) => ["–".into(), "–".into()],
        }
    }

    /// The verdict in words; `by_design` says why the two need not agree.
    pub fn said(&self, margin_pct: f64, by_design: Option<&str>) -> String {
        match (&self.ratio, by_design, self.verdict) {
            (Err(reason), ..) => format!("no result: {}", reason.replace(['\n', '|'], " ")),
            (_, Some(why), _) => format!("differs by design: {why}"),
            _ if self.is_within_margin => format!("within {margin_pct} %"),
            (_, _, Verdict::Slower) => "ours has the lower rate".into(),
            (_, _, Verdict::Faster) => "ours has the higher rate".into(),
            _ => format!("undecided: more noise than {margin_pct} %"),
        }
    }
}

/// Compares until all are decided and precise to `margin_pct`, or `budget` is spent.
pub fn fight(
    contests: &mut [Contest],
    margin_pct: f64,
    budget: Duration,
    seed: u64,
) -> Vec<Outcome> {
    let units: Vec<RowKey> = (0..contests.len())
        .map(WorkId)
        .map(|work| RowKey { work, treated_arm: ArmId(1), start_scale: DEFAULT_SCALE.into() })
        .collect();
    let design = Design { margin: margin_from_percent(margin_pct), ..Design::default() };
    let mut bench = Bench { contests, started: Instant::now() };
    let (rows, _) = run_set(
        fresh_rows(&units, &design),
        &design,
        Coins::new(seed, SetId(0), 0),
        SetId(0),
        &|_| budget,
        &mut bench,
        &mut Nobody,
    );
    rows.into_iter().map(outcome).collect()
}

fn outcome(row: RowState) -> Outcome {
    let judgement = row.judgement;
    let ratio = match row.failure {
        Some(reason) => Err(reason),
        None => {
            Ok([judgement.estimate, judgement.interval.low, judgement.interval.high].map(f64::exp))
        }
    };
    Outcome {
        ratio,
        verdict: judgement.verdict,
        is_within_margin: judgement.verdict == Verdict::Equivalent || judgement.within_margin,
        pairs: row.betting.pairs(),
    }
}

struct Bench<'a, 'b> {
    contests: &'a mut [Contest<'b>],
    started: Instant,
}

impl Platform for Bench<'_, '_> {
    fn time_left(&self) -> Duration {
        Duration::MAX
    }

    fn elapsed(&self) -> Duration {
        self.started.elapsed()
    }

    fn sample(&mut self, slot: &SampleSlot) -> Result<Readings, SampleError> {
        let contest = &mut self.contests[slot.unit.work];
        let run = if slot.arm.is_baseline() { &mut contest.theirs } else { &mut contest.ours };
        run().map(Readings::of_rate).map_err(SampleError::Workload)
    }

    fn failed(&mut self, slot: &SampleSlot, reason: &str) -> Result<(), Stop> {
        eprintln!("{}: {reason}", self.contests[slot.unit.work].name);
        Ok(())
    }
}

struct Nobody;

impl Observer for Nobody {
    fn pair(&mut self, _: usize, _: &RowState, _: Duration) {}
    fn round(&mut self, _: &[RowState], _: Duration, _: Option<Duration>) {}
}
