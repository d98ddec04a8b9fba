//! Our way: the engine itself, with its coins, its stopping and its judgement, on a machine that is
//! not there.

use std::time::Duration;

use paired::betting::DEFAULT_SCALE;
use paired::design::margin_from_percent;
use paired::{Design, Verdict};
use weigh_engine::engine::{fresh_rows, run_set};
use weigh_engine::order::Coins;
use weigh_engine::platform::{Observer, Platform, Readings, SampleError, SampleSlot, Stop};
use weigh_engine::row::{RowKey, RowState};
use weigh_model::ids::{ArmId, SetId, WorkId};

use crate::machine::Machine;

/// The margin of who looks for an effect within the usual one: `--margin 0.1%`.
pub const NARROW_PCT: f64 = 0.1;

/// Outcome of one row.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Outcome {
    pub verdict: Verdict,
    /// True if a difference was claimed at the end of any round, also one that was taken back.
    pub ever_differed: bool,
    /// Seconds of the experiment until the row had the verdict that it kept.
    pub seconds: f64,
}

/// Weighs a treatment that changes the rate by `effect` (a share: −0.01) on all `machines`, as one experiment
/// of at most `budget_s`. Who looks for an effect within the usual margin asks for a narrower one; so does
/// who looks for none, as that experiment is the longest, with the most looks.
pub fn weigh(
    machines: Vec<Box<dyn Machine + '_>>,
    effect: f64,
    seed: u64,
    budget_s: f64,
) -> Vec<Outcome> {
    let units: Vec<RowKey> = (0..machines.len())
        .map(WorkId)
        .map(|work| RowKey { work, treated_arm: ArmId(1), start_scale: DEFAULT_SCALE.into() })
        .collect();
    let usual = Design::default();
    let margin = match effect.abs() < 1.0 - (-usual.margin).exp() {
        true => margin_from_percent(NARROW_PCT),
        false => usual.margin,
    };
    let design = Design { margin, ..usual };
    let budget = Duration::from_secs_f64(budget_s);
    let mut watch = Watch {
        last: vec![(Verdict::Inconclusive, 0.0); units.len()],
        differed: vec![false; units.len()],
    };
    let mut bench = Bench { machines, effect: effect.ln_1p(), elapsed_s: 0.0 };
    let (rows, _) = run_set(
        fresh_rows(&units, &design),
        &design,
        Coins::new(seed, SetId(0), 0),
        SetId(0),
        &|_| budget,
        &mut bench,
        &mut watch,
    );
    rows.iter()
        .enumerate()
        .map(|(number, row)| Outcome {
            verdict: row.judgement.verdict,
            ever_differed: watch.differed[number],
            seconds: watch.last[number].1,
        })
        .collect()
}

/// One machine per workload, and a clock that samples move.
struct Bench<'a> {
    machines: Vec<Box<dyn Machine + 'a>>,
    /// Added to ln(rate).
    effect: f64,
    elapsed_s: f64,
}

impl Platform for Bench<'_> {
    fn time_left(&self) -> Duration {
        Duration::MAX
    }

    fn elapsed(&self) -> Duration {
        Duration::from_secs_f64(self.elapsed_s)
    }

    fn sample(&mut self, slot: &SampleSlot) -> Result<Readings, SampleError> {
        let machine = &mut self.machines[slot.unit.work];
        self.elapsed_s += machine.sample_s();
        let factor = if slot.arm.is_baseline() { 1.0 } else { self.effect.exp() };
        Ok(Readings::of_rate(factor * machine.rate()))
    }

    fn failed(&mut self, _: &SampleSlot, _: &str) -> Result<(), Stop> {
        Ok(())
    }
}

/// Notes since when each row has its verdict.
struct Watch {
    last: Vec<(Verdict, f64)>,
    differed: Vec<bool>,
}

impl Observer for Watch {
    fn pair(&mut self, _: usize, _: &RowState, _: Duration) {}

    fn round(&mut self, rows: &[RowState], elapsed: Duration, _: Option<Duration>) {
        for (number, row) in rows.iter().enumerate() {
            let verdict = row.judgement.verdict;
            self.differed[number] |= matches!(verdict, Verdict::Slower | Verdict::Faster);
            // Holm's method judges a row anew when others change: it may lose its verdict again.
            if verdict != self.last[number].0 {
                self.last[number] = (verdict, elapsed.as_secs_f64());
            }
        }
    }
}
