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
    use super::super::plan::simulated::{Nobody, Pairwise, Simulated, open_rows, run_rows, unit};
    use super::super::platform::SampleError;
    use super::*;
    use paired::Verdict;
    use weigh_model::ids::ArmId;
    use weigh_verdict::prior_row::PriorRow;

    /// A machine that needs 100 ms per sample and whose treated arm runs at a given ratio; what `fails` says
    /// of a sample, and of the number of those before, takes its place.
    fn failing(
        ratio: f64,
        fails: impl Fn(&SampleSlot, usize) -> Option<SampleError>,
    ) -> Simulated<impl FnMut(&SampleSlot) -> Result<f64, SampleError>> {
        let mut samples = 0;
        let rate = move |slot: &SampleSlot| {
            samples += 1;
            // A little noise: identical values are a case of their own.
            let wobble = 1.0 + (samples * 7919 % 13) as f64 * 1e-4;
            let rate = if slot.arm.is_baseline() { 100.0 } else { 100.0 * ratio };
            fails(slot, samples - 1).map_or(Ok(rate * wobble), Err)
        };
        Simulated { lasts: Duration::from_millis(100), ..Simulated::new(rate) }
    }

    fn machine(ratio: f64) -> Simulated<impl FnMut(&SampleSlot) -> Result<f64, SampleError>> {
        failing(ratio, |_, _| None)
    }

    /// A machine on which the pairs of this work last for minutes; they are ended when they are to be.
    fn endless(work: WorkId, limit: Duration) -> impl Platform {
        let machine = Simulated { limit, ..machine(0.5) };
        Pairwise::new(machine, move |machine, slot, _| {
            if slot.unit.work != work {
                return machine.pair(slot);
            }
            machine.now = slot.until.unwrap_or(machine.limit);
            Err(PairError::OutOfTime { position: 0 })
        })
    }

    fn broken() -> SampleError {
        SampleError::Workload("it broke".into())
    }

    fn units(works: usize) -> Vec<RowKey> {
        (0..works).map(|work| unit(work, 1)).collect()
    }

    fn run(
        fake: &mut impl Platform,
        works: usize,
        design: &Design,
        budget_s: u64,
    ) -> (Vec<RowState>, Result<(), Stop>) {
        go_on(fake, fresh_rows(&units(works), design), design, (42, 0), budget_s)
    }

    fn go_on(
        fake: &mut impl Platform,
        rows: Vec<RowState>,
        design: &Design,
        coins: (u64, usize),
        budget_s: u64,
    ) -> (Vec<RowState>, Result<(), Stop>) {
        run_rows(rows, design, coins, Duration::from_secs(budget_s), fake, &mut Nobody)
    }

    #[test]
    fn the_first_pairs_end_with_the_time_and_the_rows_before_keep_theirs() {
        let mut fake = machine(0.5);
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
        let design = Design::default();
        let limit = Duration::from_secs(60) + AFTER_BUDGET;
        for seed in 0..10 {
            let mut endless = endless(WorkId(1), limit);
            let rows = fresh_rows(&units(3), &design);
            let (rows, result) = go_on(&mut endless, rows, &design, (seed, 0), 60);
            assert_eq!(result, Ok(()));
            assert_eq!((rows[1].measured(), rows[1].is_too_long), (0, true));
            let verdicts = [0, 2].map(|row| rows[row].judgement.verdict);
            assert_eq!(verdicts, [Verdict::Slower; 2], "seed {seed}");
        }
        let mut alone = endless(WorkId(0), limit);
        let (_, result) = run(&mut alone, 1, &design, 60);
        assert_eq!((result, alone.elapsed()), (Err(Stop::OutOfTime), limit));
    }

    #[test]
    fn a_pair_is_both_arms_next_to_each_other_in_both_orders() {
        let mut fake = machine(0.5);
        run(&mut fake, 3, &Design::default(), 600).1.unwrap();
        let slots = fake.slots();
        for pair in slots.chunks(2) {
            assert_eq!((pair[0].unit, pair[0].pair), (pair[1].unit, pair[1].pair));
            assert_ne!(pair[0].arm, pair[1].arm);
            assert_eq!((pair[0].position, pair[1].position), (0, 1));
        }
        let baseline_first = slots.chunks(2).filter(|pair| pair[0].arm.is_baseline()).count();
        assert!(baseline_first > 0 && baseline_first < slots.len() / 2);
    }

    #[test]
    fn the_seed_gives_the_order_again() {
        let [mut first, mut second] = [0.9; 2].map(machine);
        run(&mut first, 4, &Design::default(), 600).1.unwrap();
        run(&mut second, 4, &Design::default(), 600).1.unwrap();
        assert_eq!(first.slots(), second.slots());
    }

    #[test]
    fn a_clear_cost_is_decided_early_and_identical_arms_are_equivalent() {
        let mut fake = machine(0.15);
        let (rows, result) = run(&mut fake, 1, &Design::default(), 600);
        result.unwrap();
        assert_eq!(rows[0].judgement.verdict, Verdict::Slower);
        assert!(rows[0].betting.pairs() < 20, "{}", rows[0].betting.pairs());
        let (rows, _) = run(&mut machine(1.0), 1, &Design::default(), 600);
        assert_eq!(rows[0].judgement.verdict, Verdict::Equivalent);
    }

    #[test]
    fn the_budget_ends_it_without_a_verdict_it_cannot_bear() {
        let mut fake = machine(0.99);
        let (rows, result) = run(&mut fake, 5, &Design::default(), 3);
        assert_eq!(result, Ok(()));
        assert!(fake.now <= Duration::from_millis(3000), "{:?}", fake.now);
        assert!(rows.iter().all(|row| row.judgement.verdict == Verdict::Inconclusive));
    }

    #[test]
    fn the_budget_goes_where_a_verdict_is_in_reach() {
        let (mut quiet, mut samples) = (machine(0.998), 0_u32);
        // A workload whose noise no budget overcomes, beside a quiet one.
        let rate = move |slot: &SampleSlot| {
            samples += 1;
            let rate = (quiet.rate)(slot)?;
            let swing = if slot.unit.work.0 == 1 { 2.0 } else { 1.01 };
            let is_up = samples.wrapping_mul(2_654_435_761) >> 16 & 1 == 0;
            Ok(if is_up { rate * swing } else { rate / swing })
        };
        let mut uneven = Simulated { lasts: Duration::from_millis(100), ..Simulated::new(rate) };
        let (rows, result) = run(&mut uneven, 2, &Design::default(), 90);
        result.unwrap();
        let slots = uneven.slots();
        assert_ne!(rows[0].judgement.verdict, Verdict::Inconclusive);
        assert_eq!(rows[1].judgement.verdict, Verdict::Inconclusive);
        // While the quiet row was measured, the other had little more than what a judgement needs;
        // then it had all the rest.
        let decided = slots.iter().rposition(|slot| slot.unit.work.0 == 0).unwrap();
        let of_other =
            |slots: &[SampleSlot]| slots.iter().filter(|slot| slot.unit.work.0 == 1).count();
        let meanwhile = of_other(&slots[..decided]);
        assert!((2 * MIN_PAIRS..decided / 2).contains(&meanwhile), "{meanwhile} of {decided}");
        assert!(rows[0].betting.pairs() > 2 * MIN_PAIRS, "{}", rows[0].betting.pairs());
        assert!(of_other(&slots[decided..]) > 100);
    }

    #[test]
    fn a_fixed_number_of_pairs_is_kept_exactly() {
        let design = Design { fixed_pairs: Some(12), ..Design::default() };
        let (rows, _) = run(&mut machine(0.2), 2, &design, 600);
        assert!(rows.iter().all(|row| row.betting.pairs() == 12));
    }

    /// A row is called after its treated arm: what fails without the treatment is said to be of the baseline.
    #[test]
    fn a_failing_workload_does_not_stop_the_others() {
        for (arm, said) in [(0, "the baseline failed: it broke"), (1, "it broke")] {
            let is_it = |slot: &SampleSlot| (slot.unit.work, slot.arm) == (WorkId(1), ArmId(arm));
            let mut fake = failing(0.5, |slot, _| is_it(slot).then(broken));
            let (rows, result) = run(&mut fake, 3, &Design::default(), 600);
            assert_eq!(result, Ok(()));
            let [(slot, reason)] = &fake.failures[..] else { panic!("{:?}", fake.failures) };
            assert_eq!((slot.unit.work, &**reason), (WorkId(1), "it broke"));
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
        let mut fake = failing(0.5, |slot, _| slot.arm.is_baseline().then(broken));
        let (budget, mut told) = (Duration::from_secs(600), States(vec![None; 3]));
        let (rows, _) = run_rows(rows, &Design::default(), (42, 0), budget, &mut fake, &mut told);
        let reason = Some("the baseline failed: it broke".to_owned());
        assert!(rows.iter().all(|row| row.failure == reason));
        assert_eq!(told.0, vec![reason; 3]);
        assert_eq!(fake.failures.len(), 1, "it is stored once");
    }

    #[test]
    fn a_row_goes_on_where_an_earlier_session_stopped() {
        let design = Design::default();
        let mut whole = machine(0.998);
        let (rows, _) = run(&mut whole, 1, &design, 600);
        let values = rows[0].betting.values();
        let past = PriorRow {
            log_ratios: values[..5].to_vec(),
            turns: rows[0].betting.turns().unwrap()[..5].to_vec(),
            spent: Duration::from_secs(1),
            // The sixth was cut in half.
            ..PriorRow::new(PairId(6))
        };
        let mut fake = machine(0.998);
        let resumed = vec![RowState::resumed(units(1)[0], &design, &past)];
        let (rows, result) = go_on(&mut fake, resumed, &design, (42, 1), 600);
        result.unwrap();
        assert_eq!(rows[0].betting.values()[..5], past.log_ratios);
        assert_eq!(fake.taken[0].0.pair, PairId(6));
        assert_eq!(rows[0].betting.pairs(), 5 + fake.taken.len() / 2);
        assert_ne!(rows[0].judgement.verdict, Verdict::Inconclusive);
    }

    #[test]
    fn rows_that_make_records_go_over_to_sequential_pairs() {
        let design = Design::default();
        // The first interleaved pair after so many shows the records.
        let measured = |mut quiet: usize| {
            let mut restless = Pairwise::new(machine(0.5), |machine, slot, alone| {
                let readings = machine.pair(slot)?;
                let is_interleaved = slot.scheme == Scheme::Interleaved;
                if is_interleaved && quiet == 0 {
                    alone.push(slot.unit.treated_arm);
                    let reason = "it makes records".into();
                    return Err(PairError::Workload { position: 1, reason });
                }
                quiet -= usize::from(is_interleaved);
                Ok(readings)
            });
            let rows = open_rows(&units(1), &design);
            let (mut rows, result) = go_on(&mut restless, rows, &design, (42, 0), 600);
            result.unwrap();
            (rows.remove(0), restless.left.len())
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
        let (rows, _) = run(&mut machine(0.5), 1, &design, 600);
        let (pairs, mut fake) = (rows[0].betting.pairs(), machine(0.5));
        let (rows, _) = go_on(&mut fake, rows, &design, (42, 1), 600);
        assert_eq!((rows[0].betting.pairs(), fake.taken.len()), (pairs, 0));
    }

    #[test]
    fn an_interrupt_keeps_what_was_measured() {
        let interrupted = || SampleError::Stop(Stop::Interrupted);
        let mut fake = failing(0.5, |_, before| (before == 9).then(interrupted));
        let (rows, result) = run(&mut fake, 2, &Design::default(), 600);
        assert_eq!(result, Err(Stop::Interrupted));
        assert_eq!(rows.iter().map(|row| row.betting.pairs()).sum::<usize>(), 4);
    }
}
