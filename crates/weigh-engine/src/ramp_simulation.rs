//! Ramps on simulated machines whose peak is known: how often the points that are not told apart from the
//! best one have all in them that are as good, and how often the interval of its jobs per minute holds the
//! truth. `cargo test --lib ramp_simulation -- --nocapture` prints the tables of docs/evidence/load.md.

use std::time::Duration;

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::plan::drive;
use super::plan::ramp::RampPlanner;
use super::plan::simulated::{Simulated, Watcher, normal, points};
use super::platform::{SampleError, SampleSlot, Stop};
use needs::repetitions;
use paired::estimate::median;
use weigh_model::result::alike::{RampSample, THROUGHPUT};
use weigh_model::result::load::{LoadAnswers, LoadPoint, Throughput};
use weigh_model::role::SampleRole;
use weigh_verdict::ramp::{RampGoal, RampPlan, default_points};

/// How a machine differs from sample to sample, whatever is measured.
#[derive(Clone, Copy, Debug)]
enum RampMachine {
    /// Independent and normal, with this deviation.
    White(f64),
    /// AR(1) of 5 % with this correlation, and 2 % of independent noise.
    Drifting(f64),
    /// Two speeds a fifth apart, each of which lasts so many samples in the mean; and 2 % of noise.
    TwoSpeeds(f64),
}

/// Throughput of a simulated machine as a function of its users.
type SimulatedCurve = fn(f64) -> f64;

const FLAT: SimulatedCurve = |_| 1000.0;
/// Grows up to eight users, then falls by 2 % for each doubling.
const PEAKED: SimulatedCurve =
    |users| 125.0 * users.min(8.0) * (1.0 - 0.02 * (users / 8.0).log2().max(0.0));
/// As two CPUs did `load:compute`: 20 % with one user, 94 % with 8, all from 32 on.
const BROAD: SimulatedCurve = |users| 1000.0 * users * users / (users * users + 4.0);

/// More steps than a budget has.
const STEPS: usize = 150;

struct Ramped {
    answers: LoadAnswers,
    /// The mean of what the machine was in the rounds, as a factor.
    in_rounds: f64,
    samples: usize,
}

/// A sample takes a second of the budget.
fn ramped(machine: RampMachine, curve: SimulatedCurve, seed: u64, budget: Duration) -> Ramped {
    let users = default_points(64);
    let mut chance = ChaCha8Rng::seed_from_u64(seed);
    let mut state = normal(&mut chance);
    let mut is_fast = chance.random_bool(0.5);
    let (mut in_rounds, mut left) = (Vec::new(), STEPS);
    let mut platform = Simulated::new(|slot: &SampleSlot| {
        left = left.checked_sub(1).ok_or(SampleError::Stop(Stop::Interrupted))?;
        // What it is at the moment, as a logarithm, and the deviation of what is independent.
        let (log, deviation) = match machine {
            RampMachine::White(deviation) => (0.0, deviation),
            RampMachine::Drifting(kept) => {
                state = kept * state + (1.0 - kept * kept).sqrt() * normal(&mut chance);
                (0.05 * state, 0.02)
            }
            RampMachine::TwoSpeeds(lasts) => {
                is_fast ^= chance.random_bool(1.0 / lasts);
                (if is_fast { 0.1 } else { -0.1 }, 0.02)
            }
        };
        if slot.role == SampleRole::Remeasured {
            in_rounds.push(log);
        }
        let users = users[slot.unit.work] as f64;
        Ok(curve(users) * (log + deviation * normal(&mut chance)).exp())
    });
    let plan = RampPlan { seed, ..RampPlan::doubling(RampGoal::Peak, 0.05) };
    let mut ramp = RampPlanner::new(points(&users, 0), plan, budget);
    let ended = drive(&mut ramp, &mut platform, &mut Watcher::default());
    assert!(matches!(ended, Ok(()) | Err(Stop::Interrupted)), "{ended:?}");
    assert!(platform.now <= budget, "{:?}", platform.now);
    let sample = |(slot, jobs_per_min): &(SampleSlot, f64)| {
        let round = (slot.role == SampleRole::Remeasured).then_some(slot.pair.0);
        RampSample {
            users: users[slot.unit.work],
            jobs_per_min: *jobs_per_min,
            job_ns: None,
            round,
        }
    };
    let samples: Vec<RampSample> = platform.taken.iter().map(sample).collect();
    let in_rounds = (in_rounds.iter().sum::<f64>() / in_rounds.len() as f64).exp();
    Ramped { answers: answers(&samples), in_rounds, samples: samples.len() }
}

/// As `load_answers` has it from the store.
fn answers(samples: &[RampSample]) -> LoadAnswers {
    let mut users: Vec<usize> = samples.iter().map(|one| one.users).collect();
    users.sort_unstable();
    users.dedup();
    let point = |users: usize| {
        let own = || samples.iter().filter(|one| one.users == users);
        let fresh: Vec<f64> =
            own().filter(|one| one.round.is_some()).map(|one| one.jobs_per_min).collect();
        let rates =
            if fresh.is_empty() { own().map(|one| one.jobs_per_min).collect() } else { fresh };
        let found = Throughput::of(&rates);
        LoadPoint {
            users,
            jobs_per_min: median(&rates).unwrap(),
            jobs_per_min_low: found.map(|found| found.low),
            jobs_per_min_high: found.map(|found| found.high),
            samples: rates.len(),
            ..LoadPoint::default()
        }
    };
    LoadAnswers::new("load:x".into(), users.into_iter().map(point).collect(), samples)
}

/// Outcomes of many ramps, in per cent.
#[derive(Debug, Default)]
struct RampOutcome {
    /// All points that are as good are among those that are not told apart.
    complete: f64,
    /// The interval holds what the point did in this run, and what it does in the long run.
    covers_run: f64,
    covers: f64,
    /// No peak could be named.
    unnamed: f64,
    /// How many points are not told apart, and samples taken, in the mean.
    alike: f64,
    samples: f64,
}

fn found(machine: RampMachine, curve: SimulatedCurve, often: u64) -> RampOutcome {
    let mut found = RampOutcome::default();
    let highest =
        default_points(64).into_iter().map(|users| curve(users as f64)).fold(0.0, f64::max);
    for seed in 0..often {
        let Ramped { answers, in_rounds, samples } = ramped(machine, curve, seed, Duration::MAX);
        let best = answers.best().expect("there is time for rounds");
        let truth = curve(best.users as f64);
        let is_as_good = |users: usize| curve(users as f64) >= THROUGHPUT.as_good * highest;
        let good =
            answers.points.iter().map(|point| point.users).filter(|users| is_as_good(*users));
        let holds = |rate: f64| (best.throughput.low..=best.throughput.high).contains(&rate);
        // What the sentence says is the best is the best of the table.
        assert!(answers.points.iter().all(|one| one.jobs_per_min <= best.throughput.jobs_per_min));
        let share = |is_so: bool| if is_so { 100.0 / often as f64 } else { 0.0 };
        found.complete += share(good.into_iter().all(|users| best.as_good.contains(&users)));
        found.covers_run += share(holds(truth * in_rounds));
        found.covers += share(holds(truth));
        found.unnamed += share(answers.no_peak.is_some());
        found.alike += best.as_good.len() as f64 / often as f64;
        found.samples += samples as f64 / often as f64;
    }
    found
}

#[test]
fn points_that_are_as_good_are_not_told_apart_and_the_interval_holds_the_truth() {
    let often = repetitions(50, 2000);
    // The least that intervals have to hold of the long run. A machine that keeps its speed for longer than a
    // ramp lasts shows one speed of two: no interval of one ramp holds both.
    let machines = [
        (RampMachine::White(0.02), 97.0),
        (RampMachine::White(0.1), 97.0),
        (RampMachine::White(0.3), 97.0),
        (RampMachine::Drifting(0.9), 85.0),
        (RampMachine::Drifting(0.97), 65.0),
        (RampMachine::TwoSpeeds(10.0), 75.0),
        (RampMachine::TwoSpeeds(40.0), 40.0),
    ];
    for (name, curve) in [("flat", FLAT), ("peak at 8", PEAKED)] {
        for (machine, least) in machines {
            let found = found(machine, curve, often);
            println!("{name}, {machine:?}: {found:.1?}");
            assert!(found.complete >= 95.0, "{name}, {machine:?}: {found:?}");
            assert!(found.covers_run >= 93.0, "{name}, {machine:?}: {found:?}");
            assert!(found.covers >= least, "{name}, {machine:?}: {found:?}");
        }
    }
}

/// A real ramp of three minutes has about 60 samples, so this test simulates 60 s with samples of one second.
/// With rounds for the cheapest points instead of the highest, and no peak where a point without rounds was
/// higher by chance, one in eight ramps on such a machine named one.
#[test]
fn a_short_ramp_over_a_broad_peak_names_it_with_all_that_are_as_good() {
    let often = repetitions(200, 2000);
    let (mut named, mut complete, mut covers) = (0, 0, 0);
    for seed in 0..often {
        let budget = Duration::from_secs(60);
        let Ramped { answers, .. } = ramped(RampMachine::White(0.02), BROAD, seed, budget);
        let Some(peak) = answers.peak else { continue };
        named += 1;
        let is_as_good = |users: usize| BROAD(users as f64) >= THROUGHPUT.as_good * BROAD(96.0);
        let mut good =
            answers.points.iter().map(|point| point.users).filter(|one| is_as_good(*one));
        complete += u64::from(good.all(|users| peak.as_good.contains(&users)));
        let truth = BROAD(peak.users as f64);
        covers += u64::from((peak.throughput.low..=peak.throughput.high).contains(&truth));
    }
    println!("named {named} of {often}, complete {complete}, covers {covers}");
    assert!(100 * named >= 95 * often, "{named} of {often}");
    assert!(100 * complete >= 95 * named, "{complete} of {named}");
    assert!(100 * covers >= 97 * named, "{covers} of {named}");
}
