//! The detail pass: a few pairs of short launches in which each operation is timed by itself, or the
//! PMU counts. It comes after the pairs that are judged, so that its cost is in no rate.

use std::collections::BTreeSet;
use std::time::Duration;

use super::length::LONG_START_MS;
use super::order::Coins;
use super::platform::{Observer, Platform, SampleError, SampleSlot, Stop};
use super::row::{RowKey, RowState};
use paired::judge::MIN_PAIRS;
use weigh_model::ids::{ArmId, PairId, SetId};

/// The fewest of which Wilcoxon's exact interval exists at 95 %.
pub const PAIRS: usize = 6;
/// Length of the timed part of such a launch: as long as a sample, so that what sets in late, as waiting
/// for room in the audit backlog does, is seen in the latencies as in the rates.
pub const TARGET_MS: u64 = LONG_START_MS;
/// The set of its coins; those before it are sets of samples.
pub const COINS: SetId = SetId(u32::MAX as usize);

/// The pass takes at most this part of the budget; and before every row has the pairs that a verdict needs,
/// that: verdicts come first.
const MOST: u32 = 5;
const MOST_BEFORE_VERDICTS: u32 = 20;

/// Measurement that a launch of the detail pass takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Look {
    /// How long each operation takes.
    Latencies,
    /// Instructions in the kernel, and cycles.
    Counters,
}

pub trait DetailPlatform: Platform {
    /// Launches a workload once, proves that its arm's treatment was in force, and keeps what it tells.
    /// Says whether there was anything: without a PMU there are no counts.
    fn detail(&mut self, slot: &SampleSlot, look: Look) -> Result<bool, SampleError>;
    /// Keeps that a workload was given up; its row stands without latencies.
    fn no_detail(&mut self, slot: &SampleSlot, reason: &str) -> Result<(), Stop>;
}

/// Returns the part of a budget to keep for the pass. It is the time of all pairs of all rows, as
/// far as their samples show it.
pub fn reserve(
    rows: &[RowState],
    had: impl Fn(&RowKey) -> DetailProgress,
    budget: Duration,
) -> Duration {
    let measured = || rows.iter().filter(|row| row.failure.is_none());
    let of_row = |row: &RowState| match row.betting.pairs() {
        0 => Duration::ZERO,
        _ => expected(row) * PAIRS.saturating_sub(had(&row.unit).pairs) as u32,
    };
    let could_decide = measured().all(|row| row.betting.pairs() >= MIN_PAIRS);
    let most = budget / if could_decide { MOST } else { MOST_BEFORE_VERDICTS };
    measured().map(of_row).sum::<Duration>().min(most)
}

/// Returns the expected time of a pair of the pass before the first one. Its launches are at least
/// as long as a sample.
fn expected(row: &RowState) -> Duration {
    row.pair_cost() + Duration::from_millis(2 * TARGET_MS)
}

/// Pairs of a row's detail pass in earlier sessions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DetailProgress {
    /// Whole pairs.
    pub pairs: usize,
    /// The number of the next, which no half pair has.
    pub next: PairId,
}

impl DetailProgress {
    /// Value for a row that needs no more pairs.
    pub const ALL: DetailProgress = DetailProgress { pairs: PAIRS, next: PairId(PAIRS) };
}

/// A row in the pass.
struct Looked {
    unit: RowKey,
    /// Number of pairs in this session.
    pairs: usize,
    had: DetailProgress,
    spent: Duration,
    /// Expected time of a pair before the first one.
    expected: Duration,
    is_given_up: bool,
    is_uncounted: bool,
}

impl Looked {
    fn is_open(&self) -> bool {
        !self.is_given_up && self.had.pairs + self.pairs < PAIRS
    }

    /// Returns the time of the row's pairs to come.
    fn rest(&self) -> Duration {
        let pairs = if self.is_open() { PAIRS - self.had.pairs - self.pairs } else { 0 };
        self.cost() * pairs as u32
    }

    fn cost(&self) -> Duration {
        if self.pairs == 0 { self.expected } else { self.spent / self.pairs as u32 }
    }
}

/// Gives every row that has a result its pairs, in rounds like those of the samples, as far as they end
/// before the deadline. Where there is no time, there is no pass.
pub fn run_detail(
    rows: &[RowState],
    had: impl Fn(&RowKey) -> DetailProgress,
    mut coins: Coins,
    deadline: Duration,
    platform: &mut impl DetailPlatform,
    observer: &mut dyn Observer,
) -> Result<(), Stop> {
    let mut looked: Vec<Looked> = rows
        .iter()
        .filter(|row| row.failure.is_none())
        .map(|row| Looked {
            unit: row.unit,
            pairs: 0,
            had: had(&row.unit),
            spent: Duration::ZERO,
            expected: expected(row),
            is_given_up: false,
            is_uncounted: false,
        })
        .collect();
    // Arms in which nothing is counted: all without a PMU, or those whose filter forbids to ask it.
    let mut uncounted = BTreeSet::new();
    // Fewer than all pairs have no interval: so as many rows as possible have all of theirs, and the others
    // what is left.
    let until = deadline.saturating_sub(platform.elapsed());
    let whole = affordable(&looked, until);
    let rest: Vec<usize> = (0..looked.len()).filter(|row| !whole.contains(row)).collect();
    for group in [whole, rest] {
        for _ in 0..PAIRS {
            let mut order = group.clone();
            coins.shuffle(&mut order, |row| looked[row].unit.treated_arm);
            for row in order {
                let baseline_first = coins.baseline_first();
                let state = &mut looked[row];
                if state.is_open() && platform.elapsed() + state.cost() <= deadline {
                    look_at_pair(state, baseline_first, &mut uncounted, platform)?;
                }
            }
            let left: Duration = looked.iter().map(Looked::rest).sum();
            let until = deadline.saturating_sub(platform.elapsed());
            observer.round(rows, platform.elapsed(), Some(left.min(until)));
        }
    }
    Ok(())
}

/// The rows whose pairs all fit into `time`, the cheapest first, in their own order.
fn affordable(looked: &[Looked], time: Duration) -> Vec<usize> {
    let mut rows: Vec<usize> = (0..looked.len()).collect();
    rows.sort_by_key(|&row| looked[row].rest());
    let mut planned = Duration::ZERO;
    let fits = |row: &usize| {
        planned += looked[*row].rest();
        planned <= time
    };
    let mut whole: Vec<usize> = rows.into_iter().take_while(fits).collect();
    whole.sort_unstable();
    whole
}

fn look_at_pair(
    state: &mut Looked,
    baseline_first: bool,
    uncounted: &mut BTreeSet<ArmId>,
    platform: &mut impl DetailPlatform,
) -> Result<(), Stop> {
    let started = platform.elapsed();
    let arms = state.unit.arms(baseline_first);
    for look in [Look::Latencies, Look::Counters] {
        for (position, arm) in arms.into_iter().enumerate() {
            let is_uncounted = state.is_uncounted || arms.iter().any(|arm| uncounted.contains(arm));
            if look == Look::Counters && is_uncounted {
                continue;
            }
            let pair = PairId(state.had.next.0 + state.pairs);
            let slot = SampleSlot { arm, position, ..SampleSlot::alone(state.unit, pair) };
            match platform.detail(&slot, look) {
                Ok(true) => {}
                Ok(false) if look == Look::Counters => {
                    uncounted.insert(arm);
                }
                Ok(false) => {}
                Err(SampleError::Stop(stop)) => return Err(stop),
                // A filter may kill who asks for the PMU; the row does without.
                Err(SampleError::Workload(_)) if look == Look::Counters => {
                    state.is_uncounted = true;
                    break;
                }
                Err(SampleError::Workload(reason) | SampleError::Lost(reason)) => {
                    state.is_given_up = true;
                    return platform.no_detail(&slot, &reason);
                }
            }
        }
    }
    state.pairs += 1;
    state.spent += platform.elapsed() - started;
    Ok(())
}

#[cfg(test)]
mod tests;
