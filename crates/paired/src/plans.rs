//! The promise and the power of a plan that is made after the pilot, on a simulated machine.

use super::betting::{Betting, DEFAULT_SCALE};
use super::design::Design;
use super::judge::MIN_PAIRS;
use super::simulated::{Machine, Noise};

const NOISES: [Noise; 5] =
    [Noise::White, Noise::HeavyTailed, Noise::Wandering, Noise::Drifting, Noise::Alternating];
/// 5 % and three standard errors of 500 experiments.
const ALLOWED: f64 = 0.08;

/// Pairs until a row differs, and the share of rows that do, of at most `most` pairs whose samples scatter by
/// 2 %; with a plan that is made after the pilot, or without one.
fn stops_with(noise: Noise, effect: f64, plan: Option<f64>, repetitions: u64) -> (f64, f64) {
    const MOST: usize = 400;
    let of_experiment = |seed: u64| {
        let mut machine = Machine::new(noise, seed);
        let mut row = Betting::new(DEFAULT_SCALE);
        (1..=MOST).find(|pairs| {
            // Twice the noise of half the effect.
            row.push(2.0 * machine.pair(effect / 2.0)).unwrap();
            if let Some(planned) = plan.filter(|_| *pairs == MIN_PAIRS) {
                row = row.clone().plan_after_pilot(planned);
            }
            *pairs >= MIN_PAIRS && row.p_zero() <= Design::default().alpha
        })
    };
    let stops: Vec<Option<usize>> = (0..repetitions).map(of_experiment).collect();
    let found = stops.iter().flatten().count() as f64 / repetitions as f64;
    let pairs = stops.iter().map(|stop| stop.unwrap_or(MOST)).sum::<usize>() as f64;
    (found, pairs / repetitions as f64)
}

/// A plan that is made after eight pairs: the promise holds whenever one stops, and it saves pairs.
#[test]
fn a_plan_after_the_pilot_keeps_the_promise_and_saves_pairs() {
    for noise in NOISES {
        let (alarms, _) = stops_with(noise, 0.0, Some(60.0), 500);
        assert!(alarms <= ALLOWED, "{noise:?}: {alarms}");
    }
    let [(_, without), (_, with)] =
        [None, Some(60.0)].map(|plan| stops_with(Noise::White, -0.01, plan, 600));
    assert!(with <= 0.93 * without, "{with} pairs, {without} without a plan");
}

/// Prints the table of "Where n* cannot be known" in docs/evidence/statistics-simulations.md.
#[test]
#[ignore = "it prints a table"]
fn print_the_table_of_plans_after_the_pilot() {
    for noise in NOISES {
        let cells = [None, Some(60.0), Some(240.0)].map(|plan| {
            let [(alarms, _), (_, pairs)] =
                [0.0, -0.01].map(|effect| stops_with(noise, effect, plan, 2000));
            format!("{pairs:.0} ({:.1} %)", 100.0 * alarms)
        });
        println!("| {noise:?} | {} |", cells.join(" | "));
    }
}
