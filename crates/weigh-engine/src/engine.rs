//! The schedule and the stopping rule, over whatever can measure a sample: the host, or a simulated
//! machine in tests.

use std::time::Duration;

use super::effects;
use super::next_rows::{time_left, worth_measuring};
use super::order::Coins;
use super::platform::{AFTER_BUDGET, Observer, PairError, PairSlot, Platform, SampleSlot, Stop};
use super::row::{RowKey, RowState};
use paired::carry_over::Turn;
use paired::design::Design;
use paired::estimate::deviation;
use paired::judge::MIN_PAIRS;
use weigh_model::ids::{PairId, SetId, WorkId};
use weigh_model::result::scheme::Scheme;
use weigh_model::result::warning::Warning;
use weigh_model::role::SampleRole;
use weigh_verdict::schedule::Schedule;

/// Measures one set: rounds of one pair for every row that is worth it, until all are done or the
/// deadline comes, which may depend on what the rows have taken. The rows may have pairs already. Returns
/// them as they are then, also where it stopped early.
pub fn run_set(
    mut rows: Vec<RowState>,
    design: &Design,
    mut coins: Coins,
    set: SetId,
    deadline: &dyn Fn(&[RowState]) -> Duration,
    platform: &mut impl Platform,
    observer: &mut dyn Observer,
) -> (Vec<RowState>, Result<(), Stop>) {
    let mut judged_pairs = 0;
    let mut after_treated = false;
    if let Err(stop) = (0..rows.len())
        .try_for_each(|row| change_together(&mut rows, row, design, platform).map(drop))
    {
        return (rows, Err(stop));
    }
    loop {
        let end = deadline(&rows);
        let left = end.saturating_sub(platform.elapsed());
        let mut chosen = effects::in_step(&rows, worth_measuring(&rows, design, left));
        let pairs = rows.iter().map(RowState::measured).sum();
        if is_due(pairs, judged_pairs) || (chosen.is_empty() && pairs > judged_pairs) {
            judged_pairs = pairs;
            effects::judge(&mut rows, design);
            let left = (0..rows.len()).try_for_each(|row| {
                leave_where_not_believed(&mut rows[row], design, platform)?;
                change_together(&mut rows, row, design, platform).map(drop)
            });
            if let Err(stop) = left {
                return (rows, Err(stop));
            }
            let left = end.saturating_sub(platform.elapsed());
            observer.round(&rows, platform.elapsed(), time_left(&rows, design, left));
            continue;
        }
        if chosen.is_empty() {
            return (rows, Ok(()));
        }
        coins.shuffle(&mut chosen, |row| rows[row].unit.treated_arm);
        // Works of which no arm has a pair any more in this round, as another begins anew.
        let mut out_of_step: Vec<WorkId> = Vec::new();
        for row in chosen {
            let left = end.saturating_sub(platform.elapsed());
            let is_open =
                rows[row].failure.is_none() && !out_of_step.contains(&rows[row].unit.work);
            if !is_open || !rows[row].can_begin_pair(left) {
                continue;
            }
            // Only the first pair of a row is begun whatever it takes.
            if platform.time_left().is_zero() {
                effects::judge(&mut rows, design);
                return (rows, Err(Stop::OutOfTime));
            }
            observer.begins(row);
            let until = first_pair_ends(&rows, row, left, design, platform);
            let coin = (set, coins.baseline_first(), until);
            let measured = measure_pair(&mut rows[row], coin, &mut after_treated, design, platform)
                .and_then(|()| change_together(&mut rows, row, design, platform))
                .and_then(|have_changed| {
                    // The first pair of a pilot is sequential, and counts in each arm.
                    if have_changed && rows[row].next_pair > PairId(1) {
                        out_of_step.push(rows[row].unit.work);
                    }
                    plan_after_pilot(&mut rows, row, end, design, platform)
                });
            if let Err(stop) = measured {
                effects::judge(&mut rows, design);
                return (rows, Err(stop));
            }
            observer.pair(row, &rows[row], platform.elapsed());
            for other in spread_failure(&mut rows, row) {
                observer.pair(other, &rows[other], platform.elapsed());
            }
        }
    }
}

/// Rows that nothing was measured of yet.
pub fn fresh_rows(units: &[RowKey], design: &Design) -> Vec<RowState> {
    units.iter().map(|unit| RowState::new(*unit, design)).collect()
}

/// When the first pair of a row is ended at the latest: it has half of the time that is left, if another row
/// can use the other half. A pair that is longer would leave the others nothing, and its own row gets no
/// verdict from it, which takes eight.
fn first_pair_ends(
    rows: &[RowState],
    row: usize,
    left: Duration,
    design: &Design,
    platform: &impl Platform,
) -> Option<Duration> {
    let needs = |other: &RowState| !other.is_done(design) && other.can_begin_pair(left / 2);
    let is_alone = (0..rows.len()).all(|other| other == row || !needs(&rows[other]));
    let is_limited = platform.time_left() < Duration::MAX;
    if rows[row].measured() > 0 || left.is_zero() || is_alone || !is_limited {
        return None;
    }
    let left = platform.time_left().min(left + AFTER_BUDGET);
    Some(platform.elapsed() + left / 2)
}

/// Returns true if the rows are to be judged after a round. Judging takes CPU time in proportion to
/// the pairs, on a CPU that is to measure. So with many pairs, it waits until a fiftieth of them
/// are new. Fewer looks leave the promise intact.
fn is_due(pairs: usize, judged_pairs: usize) -> bool {
    pairs > judged_pairs + judged_pairs / 50
}

/// A workload that fails without a treatment has nothing that any treatment could be held against. Gives the
/// rows that have failed with it.
fn spread_failure(rows: &mut [RowState], failed: usize) -> Vec<usize> {
    let Some(reason) = rows[failed].failure.clone().filter(|_| rows[failed].failed_alone) else {
        return Vec::new();
    };
    let work = rows[failed].unit.work;
    let is_its = |row: &RowState| row.unit.work == work && row.failure.is_none();
    let others: Vec<usize> = (0..rows.len()).filter(|row| is_its(&rows[*row])).collect();
    for &other in &others {
        rows[other].failure = Some(reason.clone());
    }
    others
}

/// Plans a row whose number of pairs could not be known before its first one: as many more as the time left
/// allows each open row.
fn plan_after_pilot(
    rows: &mut [RowState],
    row: usize,
    end: Duration,
    design: &Design,
    platform: &mut impl Platform,
) -> Result<(), Stop> {
    if rows[row].failure.is_some() || !rows[row].lacks_plan(design) {
        return Ok(());
    }
    let open = rows.iter().filter(|row| !row.is_done(design));
    let round: Duration = open.map(RowState::pair_cost).sum();
    let left = end.saturating_sub(platform.elapsed());
    let more = left.as_secs_f64() / round.as_secs_f64();
    if !more.is_finite() {
        return Ok(());
    }
    let pairs = MIN_PAIRS as f64 + more;
    rows[row].plan(pairs);
    platform.planned(&rows[row].unit, pairs)
}

fn measure_pair(
    row: &mut RowState,
    (set, baseline_first, until): (SetId, bool, Option<Duration>),
    after_treated: &mut bool,
    design: &Design,
    platform: &mut impl Platform,
) -> Result<(), Stop> {
    let started = platform.elapsed();
    let (pair, is_old) = (row.next_pair, row.wants_old_pair());
    let (role, scheme) = match is_old {
        true => (SampleRole::Aged, row.schedule.main()),
        false => row.schedule.next(pair),
    };
    let slot = PairSlot { unit: row.unit, set, pair, baseline_first, role, scheme, until };
    let slots = slot.slots();
    row.next_pair = pair.next();
    let turn = Turn { baseline_first, after_treated: *after_treated };
    // Of a pair whose second sample fails the first is stored; interleaved ones are stored together.
    let mut half_pair = |failed: usize| {
        if failed == 1 && scheme == Scheme::Sequential {
            *after_treated = !slots[0].arm.is_baseline();
        }
    };
    let [baseline, treated] = match platform.pair(&slot) {
        Ok(readings) => readings,
        Err(PairError::Stop(stop)) => return Err(stop),
        Err(PairError::OutOfTime { .. }) if platform.time_left().is_zero() => {
            return Err(Stop::OutOfTime);
        }
        Err(PairError::OutOfTime { position }) => {
            half_pair(position);
            row.is_too_long = true;
            return Ok(());
        }
        Err(PairError::Lost { position, reason }) => {
            half_pair(position);
            return platform.warn(&Warning::PairLost { reason });
        }
        Err(PairError::Workload { .. })
            if scheme == Scheme::Interleaved && leave_where_impossible(row, design, platform)? =>
        {
            return Ok(());
        }
        Err(PairError::Workload { position, reason }) => {
            half_pair(position);
            return fail(row, &slots[position], &reason, platform);
        }
    };
    *after_treated = !slots[1].arm.is_baseline();
    let log_ratio = (treated.rate / baseline.rate).ln();
    let spent = platform.elapsed() - started;
    leave_where_impossible(row, design, platform)?;
    // A row that leaves at a pair of its pilot is judged by the pairs after that.
    let is_of_left_pilot =
        role == SampleRole::Pilot && matches!(row.schedule, Schedule::Chosen(Scheme::Sequential));
    let counts = row.schedule.main() == scheme && !is_old && !is_of_left_pilot;
    if counts && let Err(error) = row.count([&baseline, &treated], (log_ratio, turn)) {
        let of_treated = slots.into_iter().find(|slot| !slot.arm.is_baseline()).unwrap_or(slots[1]);
        platform.failed(&of_treated, &error)?;
        row.failure = Some(error);
    }
    let outside = [baseline.outside, treated.outside];
    if !counts && role == SampleRole::Pilot {
        row.keep_first([baseline, treated], (log_ratio, turn));
    }
    match is_old {
        true => row.add_old_pair(log_ratio),
        false => row.spend(scheme, log_ratio, spent),
    }
    if scheme == Scheme::Interleaved {
        // What a process does not tell counts as unknown, not as nothing.
        let told = outside.map(Option::unwrap_or_default);
        row.outside.add(told.map(Some));
        leave_where_not_believed(row, design, platform)?;
    }
    if counts && scheme == Scheme::Sequential && row.betting.pairs() == MIN_PAIRS {
        platform.choose_length(&row.unit, deviation(row.betting.values()))?;
    }
    Ok(())
}

/// Ends the row, whose workload gave no result in this slot.
fn fail(
    row: &mut RowState,
    slot: &SampleSlot,
    reason: &str,
    platform: &mut impl Platform,
) -> Result<(), Stop> {
    platform.failed(slot, reason)?;
    row.failed_alone = slot.arm.is_baseline();
    // A row has the name of its treated arm.
    let of_baseline = if row.failed_alone { "the baseline failed: " } else { "" };
    row.failure = Some(format!("{of_baseline}{reason}"));
    Ok(())
}

/// Makes the row turn to sequential pairs if the platform found others impossible. Returns true if
/// it turned.
fn leave_where_impossible(
    row: &mut RowState,
    design: &Design,
    platform: &mut impl Platform,
) -> Result<bool, Stop> {
    let Some(reason) = platform.why_not_interleaved(&row.unit) else { return Ok(false) };
    let has_left = row.leave_interleaving(design);
    if has_left {
        platform.left_interleaving(&row.unit, &reason)?;
    }
    Ok(has_left)
}

/// Turns to sequential pairs where the interleaved ones cannot be believed. A row that was asked to
/// interleave has no choice, and no verdict.
fn leave_where_not_believed(
    row: &mut RowState,
    design: &Design,
    platform: &mut impl Platform,
) -> Result<(), Stop> {
    if row.schedule.main() != Scheme::Interleaved {
        return Ok(());
    }
    let Some(reason) = row.objection() else { return Ok(()) };
    if row.leave_interleaving(design) {
        return platform.left_interleaving(&row.unit, &reason);
    }
    Ok(())
}

/// Why a row leaves for the sake of others.
const IN_STEP: &str =
    "another arm of the factorial design changed, and its effects need the same pairs of all arms";

/// Ends the pilot of a row where it is over. Arms that go in step choose together, and where one leaves
/// interleaved pairs, all do. Returns true if others have left with this row.
fn change_together(
    rows: &mut [RowState],
    row: usize,
    design: &Design,
    platform: &mut impl Platform,
) -> Result<bool, Stop> {
    effects::end_pilot(rows, row, design);
    if rows[row].failure.is_some() || rows[row].schedule.main() == Scheme::Interleaved {
        return Ok(false);
    }
    let mut have_left = false;
    for other in effects::partners(rows, row) {
        if rows[other].leave_interleaving(design) {
            have_left = true;
            platform.left_interleaving(&rows[other].unit, IN_STEP)?;
        }
    }
    Ok(have_left)
}

#[cfg(test)]
mod tests {
    use super::super::plan::simulated::{Nobody, unit};
    use super::super::platform::{Readings, SampleError};
    use super::*;
    use paired::Verdict;
    use weigh_model::ids::ArmId;
    use weigh_verdict::outside::OutsideUse;
    use weigh_verdict::prior_row::PriorRow;
    use weigh_verdict::schedule::SchemePilot;

    /// A machine that needs 100 ms per sample and whose treated arm runs at a given ratio.
    struct Fake {
        now: Duration,
        ratio: f64,
        slots: Vec<SampleSlot>,
        /// A work and the arm in which it fails.
        fails: Option<(WorkId, ArmId)>,
        stops_at: Option<usize>,
        failures: Vec<String>,
        /// When nothing more is begun.
        limit: Duration,
    }

    impl Fake {
        fn new(ratio: f64) -> Fake {
            let (slots, failures) = (Vec::new(), Vec::new());
            let (now, limit) = (Duration::ZERO, Duration::MAX);
            Fake { now, ratio, slots, fails: None, stops_at: None, failures, limit }
        }
    }

    impl Platform for Fake {
        fn elapsed(&self) -> Duration {
            self.now
        }

        fn time_left(&self) -> Duration {
            self.limit.saturating_sub(self.now)
        }

        fn sample(&mut self, slot: &SampleSlot) -> Result<Readings, SampleError> {
            if self.stops_at == Some(self.slots.len()) {
                return Err(SampleError::Stop(Stop::Interrupted));
            }
            self.slots.push(*slot);
            self.now += Duration::from_millis(100);
            if self.fails == Some((slot.unit.work, slot.arm)) {
                return Err(SampleError::Workload("it broke".into()));
            }
            // A little noise: identical values are a case of their own.
            let wobble = 1.0 + (self.slots.len() * 7919 % 13) as f64 * 1e-4;
            let rate = if slot.arm.is_baseline() { 100.0 } else { 100.0 * self.ratio };
            Ok(Readings::of_rate(rate * wobble))
        }

        fn failed(&mut self, slot: &SampleSlot, reason: &str) -> Result<(), Stop> {
            self.failures.push(format!("{} {reason}", slot.unit.work));
            Ok(())
        }
    }

    /// A workload whose noise no budget overcomes, beside a quiet one.
    struct Uneven(Fake);

    impl Platform for Uneven {
        fn elapsed(&self) -> Duration {
            self.0.elapsed()
        }

        fn time_left(&self) -> Duration {
            self.0.time_left()
        }

        fn sample(&mut self, slot: &SampleSlot) -> Result<Readings, SampleError> {
            let rate = self.0.sample(slot)?.rate;
            let hash = (self.0.slots.len() as u32).wrapping_mul(2_654_435_761);
            let swing = if slot.unit.work.0 == 1 { 2.0 } else { 1.01 };
            let rate = if hash >> 16 & 1 == 0 { rate * swing } else { rate / swing };
            Ok(Readings::of_rate(rate))
        }

        fn failed(&mut self, slot: &SampleSlot, reason: &str) -> Result<(), Stop> {
            self.0.failed(slot, reason)
        }
    }

    /// Fake machine that makes records, which the first interleaved pair shows.
    struct Restless {
        fake: Fake,
        is_known: bool,
        left: usize,
        /// Interleaved pairs until then.
        quiet: usize,
    }

    impl Platform for Restless {
        fn elapsed(&self) -> Duration {
            self.fake.elapsed()
        }

        fn time_left(&self) -> Duration {
            self.fake.time_left()
        }

        fn sample(&mut self, slot: &SampleSlot) -> Result<Readings, SampleError> {
            self.fake.sample(slot)
        }

        fn pair(&mut self, slot: &PairSlot) -> Result<[Readings; 2], PairError> {
            let readings = self.fake.pair(slot)?;
            if slot.scheme == Scheme::Interleaved && self.quiet == 0 {
                self.is_known = true;
                let reason = "it makes records".into();
                return Err(PairError::Workload { position: 1, reason });
            }
            self.quiet -= usize::from(slot.scheme == Scheme::Interleaved);
            Ok(readings)
        }

        fn why_not_interleaved(&self, _: &RowKey) -> Option<String> {
            self.is_known.then(|| "it makes records".into())
        }

        fn left_interleaving(&mut self, _: &RowKey, _: &str) -> Result<(), Stop> {
            self.left += 1;
            Ok(())
        }

        fn failed(&mut self, slot: &SampleSlot, reason: &str) -> Result<(), Stop> {
            self.fake.failed(slot, reason)
        }
    }

    /// A machine on which the pairs of this work last for minutes; they are ended when they are to be.
    struct Endless(Fake, WorkId);

    impl Platform for Endless {
        fn elapsed(&self) -> Duration {
            self.0.elapsed()
        }

        fn time_left(&self) -> Duration {
            self.0.time_left()
        }

        fn sample(&mut self, slot: &SampleSlot) -> Result<Readings, SampleError> {
            self.0.sample(slot)
        }

        fn pair(&mut self, slot: &PairSlot) -> Result<[Readings; 2], PairError> {
            if slot.unit.work == self.1 {
                self.0.now = slot.until.unwrap_or(self.0.limit);
                return Err(PairError::OutOfTime { position: 0 });
            }
            self.0.pair(slot)
        }

        fn failed(&mut self, slot: &SampleSlot, reason: &str) -> Result<(), Stop> {
            self.0.failed(slot, reason)
        }
    }

    fn units(works: usize) -> Vec<RowKey> {
        (0..works).map(|work| unit(work, 1)).collect()
    }

    fn run(
        fake: &mut Fake,
        works: usize,
        design: &Design,
        budget_s: u64,
    ) -> (Vec<RowState>, Result<(), Stop>) {
        let rows = fresh_rows(&units(works), design);
        let coins = Coins::new(42, SetId(0), 0);
        let budget = Duration::from_secs(budget_s);
        run_set(rows, design, coins, SetId(0), &|_| budget, fake, &mut Nobody)
    }

    #[test]
    fn the_first_pairs_end_with_the_time_and_the_rows_before_keep_theirs() {
        let mut fake = Fake::new(0.5);
        fake.limit = Duration::from_secs(1);
        let (rows, result) = run(&mut fake, 20, &Design::default(), 0);
        assert_eq!(result, Err(Stop::OutOfTime));
        assert_eq!(fake.now, fake.limit, "a pair takes 200 ms");
        assert_eq!(rows.iter().filter(|row| row.measured() == 1).count(), 5);
        assert!(rows.iter().all(|row| row.failure.is_none()));
    }

    /// Wherever the coins put it in the first round.
    #[test]
    fn a_row_that_takes_minutes_leaves_the_others_half_of_the_time() {
        let (design, budget) = (Design::default(), Duration::from_secs(60));
        for seed in 0..10 {
            let mut endless = Endless(Fake::new(0.5), WorkId(1));
            endless.0.limit = budget + AFTER_BUDGET;
            let (rows, coins) = (fresh_rows(&units(3), &design), Coins::new(seed, SetId(0), 0));
            let end = |_: &[RowState]| budget;
            let (rows, result) =
                run_set(rows, &design, coins, SetId(0), &end, &mut endless, &mut Nobody);
            assert_eq!(result, Ok(()));
            assert_eq!((rows[1].measured(), rows[1].is_too_long), (0, true));
            let verdicts = [0, 2].map(|row| rows[row].judgement.verdict);
            assert_eq!(verdicts, [Verdict::Slower; 2], "seed {seed}");
        }
        let mut alone = Endless(Fake::new(0.5), WorkId(0));
        alone.0.limit = budget + AFTER_BUDGET;
        let (rows, coins) = (fresh_rows(&units(1), &design), Coins::new(1, SetId(0), 0));
        let end = |_: &[RowState]| budget;
        let (_, result) = run_set(rows, &design, coins, SetId(0), &end, &mut alone, &mut Nobody);
        assert_eq!((result, alone.0.now), (Err(Stop::OutOfTime), alone.0.limit));
    }

    #[test]
    fn a_pair_is_both_arms_next_to_each_other_in_both_orders() {
        let mut fake = Fake::new(0.5);
        run(&mut fake, 3, &Design::default(), 600).1.unwrap();
        for pair in fake.slots.chunks(2) {
            assert_eq!((pair[0].unit, pair[0].pair), (pair[1].unit, pair[1].pair));
            assert_ne!(pair[0].arm, pair[1].arm);
            assert_eq!((pair[0].position, pair[1].position), (0, 1));
        }
        let baseline_first = fake.slots.chunks(2).filter(|pair| pair[0].arm.is_baseline()).count();
        assert!(baseline_first > 0 && baseline_first < fake.slots.len() / 2);
    }

    #[test]
    fn the_seed_gives_the_order_again() {
        let [mut first, mut second] = [Fake::new(0.9), Fake::new(0.9)];
        run(&mut first, 4, &Design::default(), 600).1.unwrap();
        run(&mut second, 4, &Design::default(), 600).1.unwrap();
        assert_eq!(first.slots, second.slots);
    }

    #[test]
    fn a_clear_cost_is_decided_early_and_identical_arms_are_equivalent() {
        let mut fake = Fake::new(0.15);
        let (rows, result) = run(&mut fake, 1, &Design::default(), 600);
        result.unwrap();
        assert_eq!(rows[0].judgement.verdict, Verdict::Slower);
        assert!(rows[0].betting.pairs() < 20, "{}", rows[0].betting.pairs());
        let (rows, _) = run(&mut Fake::new(1.0), 1, &Design::default(), 600);
        assert_eq!(rows[0].judgement.verdict, Verdict::Equivalent);
    }

    #[test]
    fn the_budget_ends_it_without_a_verdict_it_cannot_bear() {
        let mut fake = Fake::new(0.99);
        let (rows, result) = run(&mut fake, 5, &Design::default(), 3);
        assert_eq!(result, Ok(()));
        assert!(fake.now <= Duration::from_millis(3000), "{:?}", fake.now);
        assert!(rows.iter().all(|row| row.judgement.verdict == Verdict::Inconclusive));
    }

    #[test]
    fn the_budget_goes_where_a_verdict_is_in_reach() {
        let mut uneven = Uneven(Fake::new(0.998));
        let (rows, result) = run_set(
            fresh_rows(&units(2), &Design::default()),
            &Design::default(),
            Coins::new(42, SetId(0), 0),
            SetId(0),
            &|_| Duration::from_secs(90),
            &mut uneven,
            &mut Nobody,
        );
        result.unwrap();
        assert_ne!(rows[0].judgement.verdict, Verdict::Inconclusive);
        assert_eq!(rows[1].judgement.verdict, Verdict::Inconclusive);
        // While the quiet row was measured, the other had little more than what a judgement needs;
        // then it had all the rest.
        let decided = uneven.0.slots.iter().rposition(|slot| slot.unit.work.0 == 0).unwrap();
        let of_other =
            |slots: &[SampleSlot]| slots.iter().filter(|slot| slot.unit.work.0 == 1).count();
        let meanwhile = of_other(&uneven.0.slots[..decided]);
        assert!((2 * MIN_PAIRS..decided / 2).contains(&meanwhile), "{meanwhile} of {decided}");
        assert!(rows[0].betting.pairs() > 2 * MIN_PAIRS, "{}", rows[0].betting.pairs());
        assert!(of_other(&uneven.0.slots[decided..]) > 100);
    }

    #[test]
    fn a_fixed_number_of_pairs_is_kept_exactly() {
        let design = Design { fixed_pairs: Some(12), ..Design::default() };
        let (rows, _) = run(&mut Fake::new(0.2), 2, &design, 600);
        assert!(rows.iter().all(|row| row.betting.pairs() == 12));
    }

    /// A row is called after its treated arm: what fails without the treatment is said to be of the baseline.
    #[test]
    fn a_failing_workload_does_not_stop_the_others() {
        for (arm, said) in [(0, "the baseline failed: it broke"), (1, "it broke")] {
            let mut fake = Fake::new(0.5);
            fake.fails = Some((WorkId(1), ArmId(arm)));
            let (rows, result) = run(&mut fake, 3, &Design::default(), 600);
            assert_eq!(result, Ok(()));
            assert_eq!(fake.failures, ["1 it broke"]);
            assert_eq!(rows[1].failure.as_deref(), Some(said));
            assert_eq!(rows[2].judgement.verdict, Verdict::Slower);
        }
    }

    /// The state of each row as it was last told.
    struct States(Vec<Option<String>>);

    impl Observer for States {
        fn pair(&mut self, row: usize, state: &RowState, _: Duration) {
            self.0[row].clone_from(&state.failure);
        }

        fn round(&mut self, _: &[RowState], _: Duration, _: Option<Duration>) {}
    }

    #[test]
    fn rows_that_fail_with_their_baseline_are_all_told() {
        let units = [1, 2, 3].map(|arm| unit(0, arm));
        let rows = fresh_rows(&units, &Design::default());
        let mut fake = Fake { fails: Some((WorkId(0), ArmId::BASELINE)), ..Fake::new(0.5) };
        let (coins, mut told) = (Coins::new(42, SetId(0), 0), States(vec![None; 3]));
        let budget = Duration::from_secs(600);
        let (design, end) = (Design::default(), |_: &[RowState]| budget);
        let (rows, _) = run_set(rows, &design, coins, SetId(0), &end, &mut fake, &mut told);
        let reason = Some("the baseline failed: it broke".to_owned());
        assert!(rows.iter().all(|row| row.failure == reason));
        assert_eq!(told.0, vec![reason; 3]);
        assert_eq!(fake.failures, ["0 it broke"], "it is stored once");
    }

    #[test]
    fn a_row_goes_on_where_an_earlier_session_stopped() {
        let design = Design::default();
        let mut whole = Fake::new(0.998);
        let (rows, _) = run(&mut whole, 1, &design, 600);
        let values = rows[0].betting.values();
        let past = PriorRow {
            log_ratios: values[..5].to_vec(),
            turns: rows[0].betting.turns().unwrap()[..5].to_vec(),
            further: Vec::new(),
            schedule: Schedule::Fixed(Scheme::Sequential),
            outside: OutsideUse::default(),
            late: Vec::new(),
            planned: None,
            spent: Duration::from_secs(1),
            // The sixth was cut in half.
            next_pair: PairId(6),
        };
        let mut fake = Fake::new(0.998);
        let resumed = vec![RowState::resumed(units(1)[0], &design, &past)];
        let coins = Coins::new(42, SetId(0), 1);
        let budget = Duration::from_secs(600);
        let (rows, result) =
            run_set(resumed, &design, coins, SetId(0), &|_| budget, &mut fake, &mut Nobody);
        result.unwrap();
        assert_eq!(rows[0].betting.values()[..5], past.log_ratios);
        assert_eq!(fake.slots[0].pair, PairId(6));
        assert_eq!(rows[0].betting.pairs(), 5 + fake.slots.len() / 2);
        assert_ne!(rows[0].judgement.verdict, Verdict::Inconclusive);
    }

    #[test]
    fn rows_that_make_records_go_over_to_sequential_pairs() {
        let design = Design::default();
        let measured = |quiet| {
            let fake = Fake::new(0.5);
            let mut not_interleavable = Restless { fake, is_known: false, left: 0, quiet };
            let open = Schedule::Open(SchemePilot::default());
            let rows =
                fresh_rows(&units(1), &design).into_iter().map(|row| row.on(open.clone(), &design));
            let coins = Coins::new(42, SetId(0), 0);
            let budget = Duration::from_secs(600);
            let (mut rows, result) = run_set(
                rows.collect(),
                &design,
                coins,
                SetId(0),
                &|_| budget,
                &mut not_interleavable,
                &mut Nobody,
            );
            result.unwrap();
            (rows.remove(0), not_interleavable.left)
        };
        for (quiet, schedule) in
            [(0, Schedule::Fixed(Scheme::Sequential)), (3, Schedule::Chosen(Scheme::Sequential))]
        {
            let (row, left) = measured(quiet);
            assert_eq!((row.schedule, row.failure, left), (schedule, None, 1));
            assert_eq!(row.judgement.verdict, Verdict::Slower);
        }
    }

    #[test]
    fn what_is_decided_is_not_measured_again() {
        let design = Design::default();
        let (rows, _) = run(&mut Fake::new(0.5), 1, &design, 600);
        let (pairs, mut fake) = (rows[0].betting.pairs(), Fake::new(0.5));
        let coins = Coins::new(42, SetId(0), 1);
        let budget = Duration::from_secs(600);
        let (rows, _) =
            run_set(rows, &design, coins, SetId(0), &|_| budget, &mut fake, &mut Nobody);
        assert_eq!((rows[0].betting.pairs(), fake.slots.len()), (pairs, 0));
    }

    #[test]
    fn an_interrupt_keeps_what_was_measured() {
        let mut fake = Fake::new(0.5);
        fake.stops_at = Some(9);
        let (rows, result) = run(&mut fake, 2, &Design::default(), 600);
        assert_eq!(result, Err(Stop::Interrupted));
        assert_eq!(rows.iter().map(|row| row.betting.pairs()).sum::<usize>(), 4);
    }
}
