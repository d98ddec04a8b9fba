//! Rows that choose their scheme, on simulated machines whose interleaved pairs are hardly better
//! than sequential ones. So the choice depends on few pairs; the error rates hold all the same.

use std::time::Duration;

use super::engine::{fresh_rows, run_set};
use super::order::Coins;
use super::plan::simulated::unit;
use super::platform::{
    Observer, PairError, PairSlot, Platform, Readings, SampleError, SampleSlot, Stop,
};
use super::row::RowState;
use needs::repetitions;
use paired::Verdict;
use paired::design::Design;
use paired::simulated::{Machine, Noise};
use weigh_model::ids::SetId;
use weigh_model::result::scheme::Scheme;
use weigh_verdict::schedule::{Schedule, SchemePilot};

const PAIR: Duration = Duration::from_millis(100);

fn often() -> u64 {
    repetitions(40, 200)
}

struct TwoSchemes {
    sequential: Machine,
    interleaved: Machine,
    truth: Truth,
    now: Duration,
}

/// True effects, by scheme.
#[derive(Clone, Copy)]
struct Truth {
    /// Sequential pairs of commands compare their time, and interleaved pairs their CPU time.
    sequential: f64,
    interleaved: f64,
    /// Cost of being the first of an interleaved pair.
    first_costs: f64,
}

impl Truth {
    fn of_both(effect: f64) -> Truth {
        Truth { sequential: effect, interleaved: effect, first_costs: 0.0 }
    }

    fn of(&self, scheme: Scheme) -> f64 {
        match scheme {
            Scheme::Sequential => self.sequential,
            Scheme::Interleaved => self.interleaved,
        }
    }
}

impl Platform for TwoSchemes {
    fn elapsed(&self) -> Duration {
        self.now
    }

    fn time_left(&self) -> Duration {
        Duration::MAX
    }

    fn sample(&mut self, slot: &SampleSlot) -> Result<Readings, SampleError> {
        unreachable!("{slot:?} is in no pair");
    }

    fn pair(&mut self, slot: &PairSlot) -> Result<[Readings; 2], PairError> {
        self.now += PAIR;
        let (machine, first_costs) = match slot.scheme {
            Scheme::Sequential => (&mut self.sequential, 0.0),
            Scheme::Interleaved => (&mut self.interleaved, self.truth.first_costs),
        };
        let [first, second] = [machine.sample() - first_costs, machine.sample()];
        let (baseline, treated) =
            if slot.baseline_first { (first, second) } else { (second, first) };
        let effect = self.truth.of(slot.scheme);
        Ok([baseline, treated + effect].map(|log| Readings::of_rate(log.exp())))
    }

    fn failed(&mut self, _: &SampleSlot, reason: &str) -> Result<(), Stop> {
        panic!("a simulated machine does not fail: {reason}");
    }
}

/// Errors about the truth: an interval that left it out, or a claim of a difference that does not
/// exist.
struct TruthWitness {
    truth: Truth,
    was_wrong: bool,
}

impl Observer for TruthWitness {
    fn pair(&mut self, _: usize, _: &RowState, _: Duration) {}

    fn round(&mut self, rows: &[RowState], _: Duration, _: Option<Duration>) {
        let judgement = &rows[0].judgement;
        let interval = judgement.interval;
        let truth = self.truth.of(rows[0].schedule.main());
        self.was_wrong |= truth < interval.low || truth > interval.high;
        let differs = matches!(judgement.verdict, Verdict::Slower | Verdict::Faster);
        self.was_wrong |= differs && truth == 0.0;
    }
}

/// In how many of the repetitions that was, and how many went over to sequential pairs.
fn counted(noises: [Noise; 2], truth: Truth) -> (u64, u64) {
    // So narrow that no row is equivalent, and all go on beyond the choice.
    let design = &Design { margin: 1e-9, ..Design::default() };
    let (mut wrong, mut turned) = (0, 0);
    for seed in 0..often() {
        let [sequential, interleaved] = [(0, noises[0]), (1, noises[1])]
            .map(|(which, noise)| Machine::new(noise, 2 * seed + which));
        let mut machine = TwoSchemes { sequential, interleaved, truth, now: Duration::ZERO };
        let mut witness = TruthWitness { truth, was_wrong: false };
        let rows: Vec<RowState> = fresh_rows(&[unit(0, 1)], design)
            .into_iter()
            .map(|row| row.on(Schedule::Open(SchemePilot::default()), design))
            .collect();
        let coins = Coins::new(seed, SetId(0), 0);
        let end = PAIR * 80;
        let (rows, result) =
            run_set(rows, design, coins, SetId(0), &|_| end, &mut machine, &mut witness);
        result.unwrap();
        wrong += u64::from(witness.was_wrong);
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
            let truth = Truth { sequential, interleaved, first_costs: 0.02 };
            let (wrong, _) = counted(noises, truth);
            // 5 %, and of few three standard errors more.
            let most = repetitions(6, 10);
            assert!(wrong <= most, "{noises:?} {sequential} {interleaved}: {wrong} of {}", often());
        }
    }
}
