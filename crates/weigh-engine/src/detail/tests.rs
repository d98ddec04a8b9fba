//! The detail pass on a machine whose launches take known times.

use super::*;
use crate::engine::fresh_rows;
use crate::order::Coins;
use crate::plan::simulated::{Nobody, run_rows, unit};
use crate::platform::Readings;
use paired::design::Design;
use weigh_model::ids::{PairId, WorkId};
use weigh_verdict::prior_row::PriorRow;

/// A machine on which a sample takes 100 ms and a launch of the pass `launch_ms`.
struct Fake {
    now: Duration,
    launch_ms: u64,
    /// True for each of the arms 0, 1 and 2 that can count.
    has_pmu: [bool; 3],
    looks: Vec<(SampleSlot, Look)>,
    fails: Option<WorkId>,
    stops_at: Option<usize>,
    given_up: Vec<WorkId>,
}

impl Fake {
    fn new(launch_ms: u64, pmu: bool) -> Fake {
        let (looks, given_up, has_pmu) = (Vec::new(), Vec::new(), [pmu; 3]);
        let now = Duration::ZERO;
        Fake { now, launch_ms, has_pmu, looks, fails: None, stops_at: None, given_up }
    }
}

impl Platform for Fake {
    fn elapsed(&self) -> Duration {
        self.now
    }

    fn sample(&mut self, slot: &SampleSlot) -> Result<Readings, SampleError> {
        self.now += Duration::from_millis(100);
        Ok(Readings::of_rate(100.0 + (slot.pair.0 * 7919 % 13) as f64))
    }

    fn failed(&mut self, _: &SampleSlot, reason: &str) -> Result<(), Stop> {
        panic!("{reason}");
    }
}

impl DetailPlatform for Fake {
    fn detail(&mut self, slot: &SampleSlot, look: Look) -> Result<bool, SampleError> {
        if self.stops_at == Some(self.looks.len()) {
            return Err(SampleError::Stop(Stop::Interrupted));
        }
        self.looks.push((*slot, look));
        self.now += Duration::from_millis(self.launch_ms);
        if self.fails == Some(slot.unit.work) {
            return Err(SampleError::Workload("it broke".into()));
        }
        Ok(look == Look::Latencies || self.has_pmu[slot.arm])
    }

    fn no_detail(&mut self, slot: &SampleSlot, _: &str) -> Result<(), Stop> {
        self.given_up.push(slot.unit.work);
        Ok(())
    }
}

/// Eight pairs of samples for each of `works` under each of `treatments`, and then the pass.
fn run(
    fake: &mut Fake,
    works: usize,
    treatments: usize,
    seed: u64,
    deadline: Duration,
) -> Result<(), Stop> {
    let units: Vec<RowKey> =
        (1..=treatments).flat_map(|arm| (0..works).map(move |work| unit(work, arm))).collect();
    let design = Design { fixed_pairs: Some(8), ..Design::default() };
    let rows = fresh_rows(&units, &design);
    let (rows, result) = run_rows(rows, &design, (seed, 0), LONG, fake, &mut Nobody);
    result.unwrap();
    let (coins, had) = (Coins::new(seed, COINS, 0), |_: &RowKey| DetailProgress::default());
    run_detail(&rows, had, coins, deadline, fake, &mut Nobody)
}

const LONG: Duration = Duration::from_secs(600);

fn count(fake: &Fake, is_wanted: impl Fn(&(SampleSlot, Look)) -> bool) -> usize {
    fake.looks.iter().filter(|look| is_wanted(look)).count()
}

#[test]
fn every_row_gets_its_pairs_with_both_arms_next_to_each_other() {
    let mut fake = Fake::new(30, true);
    run(&mut fake, 3, 2, 42, LONG).unwrap();
    assert_eq!(fake.looks.len(), 3 * 2 * PAIRS * 2 * 2);
    for both in fake.looks.chunks(2) {
        assert_eq!((both[0].0.unit, both[0].0.pair), (both[1].0.unit, both[1].0.pair));
        assert_eq!(both[0].1, both[1].1);
        assert_ne!(both[0].0.arm, both[1].0.arm);
        assert_eq!((both[0].0.position, both[1].0.position), (0, 1));
    }
    let baseline_first = count(&fake, |(slot, _)| slot.position == 0 && slot.arm.is_baseline());
    assert!(baseline_first > 10 && baseline_first < 62, "{baseline_first} of 72");
}

#[test]
fn without_a_pmu_it_is_asked_for_once() {
    let mut fake = Fake::new(30, false);
    run(&mut fake, 3, 1, 42, LONG).unwrap();
    assert_eq!(count(&fake, |(_, look)| *look == Look::Counters), 1);
    assert_eq!(count(&fake, |(_, look)| *look == Look::Latencies), 3 * PAIRS * 2);
}

#[test]
fn a_filter_that_forbids_counting_takes_it_from_its_own_arm_alone() {
    let mut fake = Fake::new(30, true);
    fake.has_pmu[2] = false;
    run(&mut fake, 3, 2, 42, LONG).unwrap();
    let counted = |arm| {
        count(&fake, |(slot, look)| *look == Look::Counters && slot.unit.treated_arm.0 == arm)
    };
    assert_eq!(counted(1), 3 * PAIRS * 2);
    assert!(counted(2) <= 2);
}

#[test]
fn the_budget_is_never_exceeded_by_more_than_a_pair() {
    // 8 pairs of 3 rows have taken 4.8 s; a pair of the pass is expected to take 340 ms at first.
    for (launch_ms, deadline_ms) in
        [(30, 4800), (30, 4950), (30, 5150), (30, 5600), (90, 5500), (500, 5150), (500, 7000)]
    {
        let mut fake = Fake::new(launch_ms, false);
        let deadline = Duration::from_millis(deadline_ms);
        run(&mut fake, 3, 1, 42, deadline).unwrap();
        // The first pair also asks for the PMU.
        let most = deadline + Duration::from_millis(3 * launch_ms);
        assert!(fake.now <= most, "{launch_ms} {deadline_ms}: {:?}", fake.now);
        assert_eq!(fake.looks.is_empty(), deadline_ms < 5140, "{launch_ms} {deadline_ms}");
    }
}

#[test]
fn a_workload_that_fails_is_left_out_of_the_rest() {
    let mut fake = Fake::new(30, false);
    fake.fails = Some(WorkId(1));
    run(&mut fake, 3, 1, 42, LONG).unwrap();
    assert_eq!(fake.given_up, [WorkId(1)]);
    assert_eq!(count(&fake, |(slot, _)| slot.unit.work.0 == 1), 1);
    assert_eq!(count(&fake, |(slot, _)| slot.unit.work.0 == 2 && slot.position == 0), PAIRS);
}

#[test]
fn an_interrupt_ends_it_and_the_seed_gives_the_order_again() {
    let [mut first, mut second] = [Fake::new(30, false), Fake::new(30, false)];
    run(&mut first, 4, 1, 7, LONG).unwrap();
    second.stops_at = Some(20);
    assert_eq!(run(&mut second, 4, 1, 7, LONG), Err(Stop::Interrupted));
    assert_eq!(first.looks[..20], second.looks);
}

/// Rows of so many pairs, each of which took 100 ms.
fn rows_of(count: usize, pairs: usize) -> Vec<RowState> {
    let design = Design::default();
    let log_ratios = vec![0.001; pairs];
    let spent = Duration::from_millis(100) * pairs as u32;
    let past = PriorRow { log_ratios, spent, ..PriorRow::new(PairId(pairs)) };
    (0..count).map(|work| RowState::resumed(unit(work, 1), &design, &past)).collect()
}

#[test]
fn what_its_pairs_take_is_kept_for_it() {
    let seconds = Duration::from_secs;
    let kept = |rows: &[RowState], had: DetailProgress, budget| reserve(rows, |_| had, budget);
    // A pair takes 100 ms as a pair of samples does, and 140 ms more.
    let three = Duration::from_millis(240) * PAIRS as u32 * 3;
    assert_eq!(kept(&rows_of(3, 8), DetailProgress::default(), seconds(120)), three);
    assert_eq!(
        kept(&rows_of(3, 8), DetailProgress { pairs: PAIRS, next: PairId(PAIRS) }, seconds(120)),
        Duration::ZERO
    );
    assert_eq!(
        kept(&rows_of(3, 8), DetailProgress::default(), seconds(10)),
        seconds(2),
        "a fifth at most"
    );
    assert_eq!(
        kept(&rows_of(3, 7), DetailProgress::default(), seconds(40)),
        seconds(2),
        "verdicts come first"
    );
}

#[test]
fn where_not_all_fits_some_rows_have_all_their_pairs() {
    // A pair takes two launches, as long as is expected: time for two rows of four, and some more.
    let mut fake = Fake::new(120, false);
    let rows = rows_of(4, 8);
    let coins = Coins::new(1, COINS, 0);
    let time = Duration::from_millis(2 * 6 * 240 + 400);
    run_detail(&rows, |_| DetailProgress::default(), coins, time, &mut fake, &mut Nobody).unwrap();
    let pairs = |work| {
        count(&fake, |(slot, look)| {
            slot.unit.work.0 == work && *look == Look::Latencies && slot.position == 1
        })
    };
    let mut each: Vec<usize> = (0..4).map(pairs).collect();
    each.sort_unstable();
    assert_eq!(each[2..], [PAIRS, PAIRS], "{each:?}");
}

#[test]
fn another_session_adds_what_lacks() {
    let mut fake = Fake::new(30, false);
    let had = |unit: &RowKey| DetailProgress { pairs: 2, next: PairId(3 + unit.work.0) };
    let coins = Coins::new(1, COINS, 1);
    run_detail(&rows_of(1, 8), had, coins, LONG, &mut fake, &mut Nobody).unwrap();
    let numbers: BTreeSet<usize> = fake.looks.iter().map(|(slot, _)| slot.pair.0).collect();
    assert_eq!(numbers, BTreeSet::from([3, 4, 5, 6]));
}
