//! The effects of a full factorial design (`weigh-model/result/factorial.rs`): claims on the contrasts of
//! rounds.
//!
//! In a round each arm of a workload has a pair. Given what the machine does, its log-ratio is symmetric
//! about the arm's effect, by the coin that orders it; so a weighted sum of those of one round is symmetric
//! about the weighted sum of the effects, and the bets on it are fair as those on a pair are. For that the
//! arms go in step: whether an arm has a pair in a round must not depend on what another had in it.

use super::row::{self, RowState};
use paired::design::Design;
use weigh_model::ids::WorkId;
use weigh_model::result::factorial::Factorial;
use weigh_model::result::scheme::Scheme;
use weigh_treatment as treatment;
use weigh_verdict::effects::{contrasts, withhold};
use weigh_verdict::schedule::{Schedule, SchemePilot};

/// The design that the arms of these labels are, if they are one.
pub fn factorial(arms: &[String]) -> Option<Factorial> {
    let sets: Option<Vec<Vec<String>>> =
        arms.iter().map(|label| treatment::differences::factors(label)).collect();
    Factorial::of(&sets?)
}

/// How many claims on effects there are in an experiment of so many workloads.
pub fn claims(arms: &[String], works: usize) -> usize {
    factorial(arms).map_or(0, |design| design.effects().len() * works)
}

/// Gives the last row of each workload the claims on its effects, where all its arms are measured.
pub fn attach(rows: &mut [RowState], arms: &[String], design: &Design) {
    let Some(factorial) = factorial(arms) else { return };
    for row in 0..rows.len() {
        let of_work = of_work(rows, rows[row].unit.work);
        if of_work.len() == arms.len() - 1 && of_work.last() == Some(&row) {
            rows[row].claim_effects(&factorial, design);
        }
    }
}

/// The rows of a workload, by their arms.
fn of_work(rows: &[RowState], work: WorkId) -> Vec<usize> {
    let mut of_work: Vec<usize> = (0..rows.len()).filter(|i| rows[*i].unit.work == work).collect();
    of_work.sort_by_key(|i| rows[*i].unit.treated_arm);
    of_work
}

/// Judges all rows together, and the effects with them.
pub fn judge(rows: &mut [RowState], design: &Design) {
    for row in 0..rows.len() {
        if rows[row].effects.is_empty() {
            continue;
        }
        let of_work = of_work(rows, rows[row].unit.work);
        if of_work.iter().any(|row| rows[*row].failure.is_some()) {
            rows[row].effects.clear();
            continue;
        }
        let mut effects = std::mem::take(&mut rows[row].effects);
        let series: Vec<&[f64]> = of_work.iter().map(|row| rows[*row].betting.values()).collect();
        for claim in &mut effects {
            let known = claim.betting.pairs();
            for d in contrasts(&claim.factorial, claim.effect, &series).skip(known) {
                // A sum of finite numbers that is none is no evidence.
                let _ = claim.betting.push(d);
            }
        }
        rows[row].effects = effects;
    }
    row::judge(rows, design);
    for row in 0..rows.len() {
        let mut effects = std::mem::take(&mut rows[row].effects);
        for claim in &mut effects {
            let of_work = of_work(rows, rows[row].unit.work).into_iter();
            let weighted = of_work.zip(claim.factorial.weights(claim.effect));
            let arms = weighted.map(|(row, weight)| rows[row].of_effect(weight));
            withhold(&mut claim.judgement, &arms.collect::<Vec<_>>(), design);
        }
        rows[row].effects = effects;
    }
}

/// The rows whose pairs are taken as this one's, but for those that failed: all arms of its workload, if
/// that has effects, or itself.
pub fn partners(rows: &[RowState], row: usize) -> Vec<usize> {
    let work = rows[row].unit.work;
    let has_effects = rows.iter().any(|row| row.unit.work == work && !row.effects.is_empty());
    let mut partners = if has_effects { of_work(rows, work) } else { vec![row] };
    partners.retain(|row| rows[*row].failure.is_none());
    partners
}

/// Chooses the scheme after the pilot of a row. Partners choose when the pilots of all are over.
pub fn end_pilot(rows: &mut [RowState], row: usize, design: &Design) {
    if rows[row].ended_pilot().is_none() {
        return;
    }
    let partners = partners(rows, row);
    // In an earlier session some may have had a pair after it.
    let is_chosen = |row: &usize| rows[*row].schedule == Schedule::Chosen(Scheme::Interleaved);
    let scheme = match partners.iter().any(is_chosen) {
        true => Scheme::Interleaved,
        false => {
            let pilots: Option<Vec<&SchemePilot>> =
                partners.iter().map(|row| rows[*row].ended_pilot()).collect();
            let Some(pilots) = pilots else { return };
            SchemePilot::choose(&pilots)
        }
    };
    for row in partners {
        if rows[row].ended_pilot().is_some() {
            rows[row].settle(scheme, design);
        }
    }
}

/// Extends the chosen rows so that each workload with effects has all its arms or none.
pub fn in_step(rows: &[RowState], chosen: Vec<usize>) -> Vec<usize> {
    let has_effects =
        |work: WorkId| rows.iter().any(|row| row.unit.work == work && !row.effects.is_empty());
    let (in_step, mut others): (Vec<usize>, Vec<usize>) =
        chosen.into_iter().partition(|row| has_effects(rows[*row].unit.work));
    let mut works: Vec<WorkId> = in_step.iter().map(|row| rows[*row].unit.work).collect();
    works.sort_unstable();
    works.dedup();
    others.extend(works.into_iter().flat_map(|work| of_work(rows, work)));
    others.sort_unstable();
    others
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::super::engine::fresh_rows;
    use super::super::plan::simulated::{
        Nobody, Pairwise, Simulated, Witness, open_rows, run_rows, unit,
    };
    use super::super::platform::{Observer, Platform, SampleSlot};
    use super::*;
    use needs::repetitions;
    use paired::Verdict;
    use paired::simulated::{Machine, Noise};
    use weigh_model::ids::ArmId;
    use weigh_model::role::SampleRole;

    const SAMPLE: Duration = Duration::from_millis(20);

    /// Hears of each effect at the end of any round.
    struct Witnesses([Witness; 3]);

    impl Observer for Witnesses {
        fn pair(&mut self, _: usize, _: &RowState, _: Duration) {}

        fn round(&mut self, rows: &[RowState], _: Duration, _: Option<Duration>) {
            let claims = rows.iter().flat_map(|row| &row.effects);
            self.0.iter_mut().zip(claims).for_each(|(one, claim)| one.hear(&claim.judgement));
        }
    }

    /// An experiment with these effects of A, of B, and of both beyond that; and the arm of each pair.
    fn experiment(
        seed: u64,
        noise: Noise,
        [a, b, both]: [f64; 3],
    ) -> (Vec<RowState>, Vec<ArmId>, [Witness; 3]) {
        let labels = ["none", "nice:1", "cpus:0", "nice:1+cpus:0"].map(String::from);
        let design = Design::default();
        let units = [1, 2, 3].map(|arm| unit(0, arm));
        let mut rows = fresh_rows(&units, &design);
        attach(&mut rows, &labels, &design);
        let (mut machine, of_arms) = (Machine::new(noise, seed), [0.0, a, b, a + b + both]);
        let rate = |slot: &SampleSlot| Ok((machine.sample() + of_arms[slot.arm]).exp());
        let mut platform = Simulated { lasts: SAMPLE, ..Simulated::new(rate) };
        // A main effect is the mean over both settings of the other factor.
        let truths = [a + both / 2.0, b + both / 2.0, both];
        let mut witnesses = Witnesses(truths.map(Witness::of));
        let (rows, result) =
            run_rows(rows, &design, (seed, 0), SAMPLE * 6 * 60, &mut platform, &mut witnesses);
        result.expect("nothing stops a simulated machine");
        let pairs = platform.taken.chunks(2).map(|pair| pair[0].0.unit.treated_arm).collect();
        (rows, pairs, witnesses.0)
    }

    #[test]
    fn planted_effects_come_back_and_all_arms_go_in_step() {
        let (rows, pairs, witnesses) = experiment(1, Noise::White, [-0.2, 0.1, -0.3]);
        assert!(!witnesses.iter().any(|one| one.missed));
        for round in pairs.chunks(3) {
            let mut arms = round.to_vec();
            arms.sort_unstable();
            assert_eq!(arms, [1, 2, 3].map(ArmId));
        }
        let claims = &rows[2].effects;
        let verdicts: Vec<Verdict> = claims.iter().map(|claim| claim.judgement.verdict).collect();
        // 0.1 − 0.15: what B does depends on A, and in the mean it makes it slower.
        assert_eq!(verdicts, [Verdict::Slower, Verdict::Slower, Verdict::Slower]);
        let estimates: Vec<f64> = claims.iter().map(|claim| claim.judgement.estimate).collect();
        for (estimate, truth) in estimates.iter().zip([-0.35, -0.05, -0.3]) {
            assert!((estimate - truth).abs() < 0.05, "{estimates:?}");
        }
    }

    #[test]
    fn what_adds_up_is_no_interaction_whatever_the_noise() {
        let often = repetitions(12, 24);
        for noise in Noise::ALL {
            let (mut alarms, mut misses) = (0, [0; 3]);
            for seed in 0..often {
                let witnesses = experiment(seed, noise, [-0.1, 0.0, 0.0]).2;
                alarms += u64::from(witnesses.iter().any(|one| one.alarmed));
                for (count, one) in misses.iter_mut().zip(&witnesses) {
                    *count += u64::from(one.missed);
                }
            }
            // 5 % and three standard errors.
            let allowed = often / 20 + often / 6;
            assert!(alarms <= allowed, "{noise:?}: {alarms} of {often}");
            assert!(misses.iter().all(|missed| *missed <= allowed), "{noise:?}: {misses:?}");
        }
    }

    #[test]
    fn where_one_arm_cannot_be_interleaved_all_change_in_step_and_have_their_verdicts() {
        let design = Design::default();
        let labels = ["none", "nice:1", "cpus:0", "nice:1+cpus:0"].map(String::from);
        for (by_first_pair, arm) in [true, false].into_iter().flat_map(|by| [(by, 1), (by, 3)]) {
            let (mut noise, of_arms) = (Machine::new(Noise::White, 7), [0.0, -0.2, 0.1, -0.4]);
            let rate = |slot: &SampleSlot| Ok((noise.sample() + of_arms[slot.arm]).exp());
            let machine = Simulated { lasts: SAMPLE, ..Simulated::new(rate) };
            // Its first pair shows that it cannot, or its first interleaved one.
            let arm = ArmId(arm);
            let mut platform = Pairwise::new(machine, |machine, slot, _| {
                let mut readings = machine.pair(slot)?;
                if slot.scheme == Scheme::Interleaved && slot.unit.treated_arm == arm {
                    readings[1].outside.as_mut().expect("it has a reading").tasks = 2;
                }
                Ok(readings)
            });
            platform.alone.extend(by_first_pair.then_some(arm));
            let units = [1, 2, 3].map(|arm| unit(0, arm));
            let mut rows = open_rows(&units, &design);
            attach(&mut rows, &labels, &design);
            let (rows, result) =
                run_rows(rows, &design, (7, 0), SAMPLE * 6 * 200, &mut platform, &mut Nobody);
            result.expect("nothing stops a simulated machine");
            let what = format!("arm {arm}, by its first pair: {by_first_pair}");
            platform.left.sort_unstable();
            assert_eq!(platform.left, [1, 2, 3].map(ArmId), "{what}");
            let has_left = |row: &&RowState| row.schedule.main() == Scheme::Sequential;
            assert_eq!(rows.iter().filter(has_left).count(), 3, "{what}");
            let verdicts = rows.iter().map(|row| row.judgement.verdict);
            let expected = [Verdict::Slower, Verdict::Faster, Verdict::Slower];
            assert_eq!(verdicts.collect::<Vec<_>>(), expected, "{what}");
            let effects = rows[2].effects.iter().map(|claim| claim.judgement.verdict);
            assert_eq!(effects.collect::<Vec<_>>(), [Verdict::Slower; 3], "{what}");
            let judged: Vec<ArmId> = (platform.pairs.iter())
                .filter(|pair| pair.scheme == Scheme::Sequential)
                .filter(|pair| by_first_pair || pair.role == SampleRole::Compared)
                .map(|pair| pair.unit.treated_arm)
                .collect();
            for round in judged.chunks_exact(3) {
                let mut arms = round.to_vec();
                arms.sort_unstable();
                assert_eq!(arms, [1, 2, 3].map(ArmId), "{what}");
            }
            for row in rows.iter().filter(|_| by_first_pair) {
                let of_row = judged.iter().filter(|arm| **arm == row.unit.treated_arm).count();
                assert_eq!(row.betting.pairs(), of_row, "{what}: the first pair counts");
            }
        }
    }

    #[test]
    fn only_whole_designs_have_effects() {
        let labels = ["none", "nice:1", "nice:2", "nice:1+cpus:0"].map(String::from);
        assert!(factorial(&labels).is_none());
        let labels = ["none", "nice:1", "cpus:0", "cpus:0+nice:1"].map(String::from);
        let design = factorial(&labels).expect("in any order");
        assert_eq!(design.factors, ["nice:1", "cpus:0"]);
        assert_eq!(claims(&labels, 5), 15);
    }
}
