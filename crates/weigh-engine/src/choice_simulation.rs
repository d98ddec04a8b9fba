//! Rows that choose their scheme, on simulated machines whose interleaved pairs are hardly better
//! than sequential ones. So the choice depends on few pairs; the error rates hold all the same.

use std::time::Duration;

use super::plan::simulated::{Pairwise, Simulated, Witness, open_rows, run_rows, unit};
use super::platform::{Observer, PairError, PairSlot, Readings, SampleSlot};
use super::row::RowState;
use needs::repetitions;
use paired::design::Design;
use paired::simulated::{Machine, Noise};
use weigh_model::result::scheme::Scheme;
use weigh_verdict::schedule::Schedule;

const PAIR: Duration = Duration::from_millis(100);

fn often() -> u64 {
    repetitions(40, 200)
}

/// True effects, by scheme.
#[derive(Clone, Copy, Debug)]
struct Truth {
    /// Sequential pairs of commands compare their time, and interleaved pairs their CPU time.
    sequential: f64,
    interleaved: f64,
    /// Cost of being the first of an interleaved pair.
    first_costs: f64,
    /// An interleaved pair with a lower log-ratio is one in which a command fails for lack of the CPU.
    fails_below: f64,
}

impl Default for Truth {
    fn default() -> Truth {
        let fails_below = f64::NEG_INFINITY;
        Truth { sequential: 0.0, interleaved: 0.0, first_costs: 0.0, fails_below }
    }
}

impl Truth {
    fn of_both(effect: f64) -> Truth {
        Truth { sequential: effect, interleaved: effect, ..Truth::default() }
    }

    fn of(&self, scheme: Scheme) -> f64 {
        match scheme {
            Scheme::Sequential => self.sequential,
            Scheme::Interleaved => self.interleaved,
        }
    }
}

/// Takes a pair on one of two machines, as its scheme says.
fn pair(
    [sequential, interleaved]: &mut [Machine; 2],
    truth: &Truth,
    slot: &PairSlot,
) -> Result<[Readings; 2], PairError> {
    let (machine, first_costs) = match slot.scheme {
        Scheme::Sequential => (sequential, 0.0),
        Scheme::Interleaved => (interleaved, truth.first_costs),
    };
    let [first, second] = [machine.sample() - first_costs, machine.sample()];
    let (baseline, treated) = if slot.baseline_first { (first, second) } else { (second, first) };
    let effect = truth.of(slot.scheme);
    let is_too_slow = treated + effect - baseline < truth.fails_below;
    if slot.scheme == Scheme::Interleaved && is_too_slow {
        return Err(PairError::Workload { position: 0, reason: "it failed".into() });
    }
    Ok([baseline, treated + effect].map(|log| Readings::of_rate(log.exp())))
}

/// Hears of the claim that the row is judged by at the time.
struct TruthWitness {
    truth: Truth,
    witness: Witness,
}

impl Observer for TruthWitness {
    fn pair(&mut self, _: usize, _: &RowState, _: Duration) {}

    fn round(&mut self, rows: &[RowState], _: Duration, _: Option<Duration>) {
        self.witness.truth = self.truth.of(rows[0].schedule.main());
        self.witness.hear(&rows[0].judgement);
    }
}

/// In how many of the repetitions that was, and how many went over to sequential pairs.
fn counted(noises: [Noise; 2], truth: Truth) -> (u64, u64) {
    // So narrow that no row is equivalent, and all go on beyond the choice.
    let design = &Design { margin: 1e-9, ..Design::default() };
    let (mut wrong, mut turned) = (0, 0);
    for seed in 0..often() {
        let mut machines = [(0, noises[0]), (1, noises[1])]
            .map(|(which, noise)| Machine::new(noise, 2 * seed + which));
        let alone = Simulated::new(|slot: &SampleSlot| unreachable!("{slot:?} is in no pair"));
        let mut platform = Pairwise::new(alone, |machine, slot, alone| {
            machine.now += PAIR;
            // A command was found that cannot share its CPU.
            pair(&mut machines, &truth, slot).inspect_err(|_| alone.push(slot.unit.treated_arm))
        });
        let mut told = TruthWitness { truth, witness: Witness::default() };
        let rows = open_rows(&[unit(0, 1)], design);
        let (rows, result) = run_rows(rows, design, (seed, 0), PAIR * 80, &mut platform, &mut told);
        result.unwrap();
        assert!(platform.machine.failures.is_empty(), "{:?}", platform.machine.failures);
        wrong += u64::from(told.witness.alarmed || told.witness.missed);
        turned += u64::from(rows[0].schedule == Schedule::Chosen(Scheme::Sequential));
    }
    (wrong, turned)
}

/// Skewed by stalls and by theft, bimodal as the clock has regimes, late as a warm-up and a neighbour drift.
#[test]
fn choosing_by_what_the_pairs_have_shown_breaks_no_promise() {
    let kinds = [Noise::White, Noise::Stalling, Noise::Stealing, Noise::Regimes, Noise::Drifting];
    for noise in kinds {
        for effect in [0.0, -0.003, -0.03] {
            let (wrong, turned) = counted([noise, noise], Truth::of_both(effect));
            // 5 %, and of few three standard errors more.
            let most = repetitions(6, 10);
            assert!(wrong <= most, "{noise:?} {effect}: {wrong} of {}", often());
            // Some kinds hardly ever turn.
            let least = repetitions(0, 1);
            assert!((least..often()).contains(&turned), "{noise:?}: {turned} turned");
        }
    }
}

#[test]
fn sequential_pairs_are_chosen_where_they_are_clearly_better() {
    let (_, turned) = counted([Noise::White, Noise::Alternating], Truth::of_both(0.0));
    assert!(turned > often() / 2, "{turned}");
}

/// Commands are judged by their CPU time or by their time, which are two claims: one may differ where the
/// other does not. The first command of an interleaved pair starts with cold caches, and the coin decides
/// which one that is.
#[test]
fn commands_keep_the_promise_of_the_claim_that_they_are_judged_by() {
    let kinds = [
        [Noise::Drifting, Noise::White],
        [Noise::White, Noise::Alternating],
        [Noise::Stealing, Noise::Stalling],
    ];
    for noises in kinds {
        for (sequential, interleaved) in [(0.0, 0.0), (0.0, -0.01), (-0.01, 0.0)] {
            let truth = Truth { sequential, interleaved, first_costs: 0.02, ..Truth::default() };
            let (wrong, _) = counted(noises, truth);
            // 5 %, and of few three standard errors more.
            let most = repetitions(6, 10);
            assert!(wrong <= most, "{noises:?} {sequential} {interleaved}: {wrong} of {}", often());
        }
    }
}

/// A command that fails beside the other one makes its row sequential, and the slower it is by chance, the
/// sooner it does so.
#[test]
fn commands_that_fail_when_they_are_slow_break_no_promise() {
    for noise in [Noise::White, Noise::Drifting, Noise::Stalling] {
        for effect in [0.0, -0.01] {
            let fails_below = -0.02;
            let (wrong, turned) =
                counted([noise, noise], Truth { fails_below, ..Truth::of_both(effect) });
            let most = repetitions(6, 10);
            assert!(wrong <= most, "{noise:?} {effect}: {wrong} of {}", often());
            assert!(turned > often() / 2, "{noise:?}: {turned} turned");
        }
    }
}
