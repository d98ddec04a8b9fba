//! Tests of violations of the interval's model, planted in a simulated machine: samples that change
//! the next one, and rare stalls. The scheduler, the stopping rule and the judgement are the real
//! ones. `tests/weighing/planted.rs` does the same through the whole program.

use std::time::Duration;

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::engine::fresh_rows;
use super::plan::simulated::{Nobody, Simulated, run_rows, unit};
use super::platform::SampleSlot;
use super::row::RowState;
use needs::repetitions;
use paired::design::Design;
use paired::simulated::{Machine, Noise};
use paired::stalls::Stalls;
use paired::{Doubt, Verdict};

const SAMPLE: Duration = Duration::from_millis(10);

/// Planted changes of ln(rate), or of the time.
#[derive(Clone, Copy, Debug, Default)]
struct PlantedNoise {
    effect: f64,
    /// Change of a baseline's sample after a treated one.
    on_baseline: f64,
    /// Change of a treated sample after a treated one.
    on_treated: f64,
    /// Change of the second sample of each pair.
    on_second: f64,
    /// The share of treated samples that take three times as long.
    stalls: f64,
    /// The share of treated samples that take longer by an exponential of 20 %.
    tail: f64,
}

/// One experiment of one row under white noise of 1 % per sample, of at most so many pairs.
fn experiment(planted: PlantedNoise, seed: u64, pairs: u32) -> RowState {
    let units = [unit(0, 1)];
    let design = Design { planned_pairs: Some(f64::from(pairs)), ..Design::default() };
    let mut machine = Machine::new(Noise::White, seed);
    let mut chance = ChaCha8Rng::seed_from_u64(!seed);
    let mut after_treated = false;
    let rate = |slot: &SampleSlot| {
        let is_treated = !slot.arm.is_baseline();
        let carried = if is_treated { planted.on_treated } else { planted.on_baseline };
        let mut rate = machine.sample();
        rate += if after_treated { carried } else { 0.0 };
        rate += if slot.position == 1 { planted.on_second } else { 0.0 };
        if is_treated {
            let is_stalled = chance.random_bool(planted.stalls);
            let has_tail = chance.random_bool(planted.tail);
            let tail = -0.2 * (1.0 - chance.random::<f64>()).ln();
            rate += planted.effect;
            rate -= if is_stalled { 3.0_f64.ln() } else { 0.0 };
            rate -= if has_tail { tail.ln_1p() } else { 0.0 };
        }
        after_treated = is_treated;
        Ok(rate.exp())
    };
    let mut simulation = Simulated { lasts: SAMPLE, ..Simulated::new(rate) };
    let budget = SAMPLE * 2 * pairs;
    let rows = fresh_rows(&units, &design);
    let (mut rows, result) =
        run_rows(rows, &design, (seed, 0), budget, &mut simulation, &mut Nobody);
    result.expect("nothing stops a simulated machine");
    rows.remove(0)
}

fn share(planted: PlantedNoise, pairs: u32, holds: impl Fn(&RowState) -> bool) -> f64 {
    let experiments = repetitions(60, 200);
    let held = (0..experiments).filter(|seed| holds(&experiment(planted, *seed, pairs)));
    held.count() as f64 / experiments as f64
}

fn is(verdict: Verdict) -> impl Fn(&RowState) -> bool {
    move |row| row.judgement.verdict == verdict
}

/// 5 % and three standard errors.
const FIVE_PERCENT: f64 = 0.096;

#[test]
fn what_treated_samples_leave_behind_is_not_called_faster() {
    let to_both = PlantedNoise { on_baseline: -0.02, on_treated: -0.02, ..PlantedNoise::default() };
    let to_baseline = PlantedNoise { on_baseline: -0.02, ..PlantedNoise::default() };
    for planted in [to_both, to_baseline] {
        for pairs in [40, 150] {
            let faster = share(planted, pairs, is(Verdict::Faster));
            assert!(faster <= FIVE_PERCENT, "{planted:?}, {pairs} pairs: {faster} faster");
        }
    }
    let told = share(to_both, 60, |row| {
        let because = row.judgement.withheld.map(|withheld| withheld.because);
        matches!(because, Some(Doubt::CarryOver | Doubt::NotYetConfirmed))
    });
    assert!(told >= 0.8, "{told}");
}

#[test]
fn a_cost_hidden_by_carry_over_is_seldom_called_equivalent() {
    let hidden = PlantedNoise {
        effect: -0.01,
        on_baseline: -0.02,
        on_treated: -0.02,
        ..PlantedNoise::default()
    };
    let equivalent = share(hidden, 150, is(Verdict::Equivalent));
    assert!(equivalent <= 0.2, "{equivalent}");
}

#[test]
fn a_second_launch_that_is_simply_slower_keeps_its_verdict() {
    for on_second in [-0.02, 0.02] {
        let planted = PlantedNoise { effect: -0.01, on_second, ..PlantedNoise::default() };
        let withheld = share(planted, 150, |row| row.judgement.withheld.is_some());
        assert!(withheld <= 0.05, "{on_second}: {withheld} withheld");
        let slower = share(planted, 400, is(Verdict::Slower));
        assert!(slower >= 0.95, "{on_second}: {slower}");
    }
}

/// *Faster* takes more pairs than *slower*, as a quarter of them must show it.
#[test]
fn what_is_faster_is_called_so() {
    for (effect, pairs, floor) in [(0.5, 12, 0.95), (0.03, 60, 0.9), (0.01, 200, 0.8)] {
        let planted = PlantedNoise { effect, ..PlantedNoise::default() };
        let faster = share(planted, pairs, is(Verdict::Faster));
        assert!(faster >= floor, "{effect} in {pairs} pairs: {faster}");
    }
}

#[test]
fn what_equivalent_does_not_exclude_of_stalls_is_told() {
    for (stalls, tail) in [(0.05, 0.0), (0.01, 0.0), (0.03, 0.0), (0.0, 0.2)] {
        let planted = PlantedNoise { stalls, tail, ..PlantedNoise::default() };
        // Of the tail, what is longer than the threshold: about 14 % of the samples are.
        let unsaid = share(planted, 200, |row| {
            let found = Stalls::of(&row.betting, Design::default().margin).unwrap();
            let frequency = stalls + tail * (-found.threshold.exp_m1() / 0.2).exp();
            row.judgement.verdict == Verdict::Equivalent && found.treated_at_most(0.05) < frequency
        });
        assert!(unsaid <= FIVE_PERCENT, "{planted:?}: {unsaid}");
    }
}

/// Prints the tables of `docs/evidence/statistics-carry-over.md`.
#[test]
#[ignore = "prints the tables of docs/evidence/statistics-carry-over.md, asserts nothing"]
fn print_what_is_said_of_the_planted() {
    let cost = PlantedNoise { effect: -0.01, ..PlantedNoise::default() };
    let both = PlantedNoise { on_baseline: -0.02, on_treated: -0.02, ..PlantedNoise::default() };
    let all = [
        ("nothing", PlantedNoise::default()),
        ("−2 % after any treated sample", both),
        ("−2 % of a baseline after a treated one", PlantedNoise { on_treated: 0.0, ..both }),
        ("the same, and a true −1 %", PlantedNoise { effect: -0.01, ..both }),
        ("second launch −2 %, true −1 %", PlantedNoise { on_second: -0.02, ..cost }),
        ("second launch +2 %, true −1 %", PlantedNoise { on_second: 0.02, ..cost }),
        ("true +1 %", PlantedNoise { effect: 0.01, ..PlantedNoise::default() }),
        ("true +3 %", PlantedNoise { effect: 0.03, ..PlantedNoise::default() }),
        ("5 % ×3", PlantedNoise { stalls: 0.05, ..PlantedNoise::default() }),
        ("3 % ×3", PlantedNoise { stalls: 0.03, ..PlantedNoise::default() }),
        ("1 % ×3", PlantedNoise { stalls: 0.01, ..PlantedNoise::default() }),
        ("20 % + Exp(20 %)", PlantedNoise { tail: 0.2, ..PlantedNoise::default() }),
    ];
    for (name, planted) in all {
        let rows: Vec<RowState> = (0..1000).map(|seed| experiment(planted, seed, 150)).collect();
        let count = |holds: &dyn Fn(&RowState) -> bool| {
            100.0 * rows.iter().filter(|row| holds(row)).count() as f64 / rows.len() as f64
        };
        let verdicts = [Verdict::Slower, Verdict::Faster, Verdict::Equivalent]
            .map(|verdict| count(&is(verdict)));
        let doubts = [Doubt::CarryOver, Doubt::OrderMatters, Doubt::NotYetConfirmed, Doubt::Stalls]
            .map(|doubt| {
                count(&|row| {
                    row.judgement.withheld.is_some_and(|withheld| withheld.because == doubt)
                })
            });
        let pairs =
            rows.iter().map(|row| row.betting.pairs()).sum::<usize>() as f64 / rows.len() as f64;
        println!("| {name} | {verdicts:.1?} | {doubts:.1?} | {pairs:.0} |");
    }
}
