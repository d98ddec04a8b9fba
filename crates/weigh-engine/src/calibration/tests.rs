//! Calibrations of a machine whose noise is known.

use super::planted::planted_experiments;
use super::*;
use crate::example;
use paired::simulated::{Machine, Noise};
use weigh_model::example::measured;
use weigh_model::ids::{ExperimentId, WorkId};
use weigh_model::record::{ExperimentKind, Header, Measured, StoredWork};
use weigh_model::result::summary::State;
use weigh_model::workload::metric::Metric;
use weigh_treatment::kind::planted;

/// A calibration whose treated arm is faster by `effect`: 0.1 s per sample, white noise of 1 %.
fn calibration(store: &Store, seed: u64, effect: f64) {
    experiment(store, seed, effect, "none");
}

/// Stores an experiment with the treatment of this name, and returns its id.
fn experiment(store: &Store, seed: u64, effect: f64, treatment: &str) -> ExperimentId {
    let work = |name| StoredWork { sample_ms: Some(70), ..example::work(name, "ops/s") };
    let header = Header {
        metrics: Metric::judged(Some(8), &[]),
        kind: ExperimentKind::Calibrate,
        command: "weigh calibrate".into(),
        seed,
        budget_s: 60.0,
        alpha: 0.05,
        margin: 0.01,
        sets: 1,
        machine: this_machine(),
        arms: vec!["none".into(), treatment.into()],
        works: ["stat", "pipe"].map(work).to_vec(),
        ..Header::default()
    };
    let id = store.begin(&header).unwrap();
    let mut machine = Machine::new(Noise::White, seed);
    for number in 0..160 {
        let (pair, work, position) = (number / 4, number / 2 % 2, number % 2);
        // A coin, or no pair would be without a treated sample before it.
        let treated_first =
            (seed + 1 + number as u64 / 2).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 63;
        let arm = position ^ treated_first as usize;
        let rate = (machine.sample() + arm as f64 * effect).exp();
        let json = format!(r#"{{"operations":{rate},"elapsed_ns":1000000000}}"#);
        let sample = serde_json::from_str(&json).unwrap();
        let measured = Measured {
            work: WorkId(work),
            started_s: number as f64 / 10.0,
            ..measured(arm, pair, position, sample)
        };
        store.add_sample(&id, &measured).unwrap();
    }
    store.finish(&id, State::Complete, None).unwrap();
    id
}

fn this_machine() -> Facts {
    Facts { hostname: "scales".into(), kernel: "6.1".into(), ..Facts::default() }
}

fn store() -> (tempfile::TempDir, Store) {
    let directory = tempfile::tempdir().unwrap();
    let store = Store::open(&directory.path().join("weigh.db")).unwrap();
    (directory, store)
}

#[test]
fn a_machine_without_a_history_has_no_calibration() {
    let (_directory, store) = store();
    let none = history(&store, &this_machine(), None).unwrap();
    assert!(super::calibration(&none, &[]).is_none());
}

#[test]
fn noise_cost_and_smallest_effect_are_those_of_the_machine() {
    let (_directory, store) = store();
    (0..6).for_each(|seed| calibration(&store, seed, 0.0));
    let history = history(&store, &this_machine(), None).unwrap();
    let StartScales { sequential, interleaved } =
        KnownNoise::of(&history).start_scales(&"stat".into());
    assert!((0.011..0.018).contains(&sequential), "√2 % per pair, not {sequential}");
    assert_eq!(interleaved, Some(INTERLEAVED_SCALE), "of turns, these tell nothing");
    let found = super::calibration(&history, &[]).unwrap();
    let stat = found.workloads.iter().find(|row| row.workload.name == "stat").unwrap();
    assert_eq!((stat.experiments, stat.pairs, stat.alarms), (6, 240, 0));
    assert!((stat.pair_s - 0.2).abs() < 1e-9, "{}", stat.pair_s);
    let [short, minute, long] = stat.smallest_effect_pct.map(Option::unwrap);
    assert!(short > minute && minute > long && long > 0.0);
    assert!((0.5..1.2).contains(&short), "50 pairs of √2 %: {short}");
    assert_eq!((found.experiment_alarms.alarms, found.experiment_alarms.of), (0, 6));
    assert_eq!((found.row_alarms.of, found.row_alarms.chance), (12, 1.0));
}

#[test]
fn arms_that_differ_in_each_calibration_are_biased() {
    for (effect, is_biased) in [(0.0, false), (-0.05, true)] {
        let (_directory, store) = store();
        (0..6).for_each(|seed| calibration(&store, seed, effect));
        let history = history(&store, &this_machine(), None).unwrap();
        let these: Vec<ExperimentId> = history.iter().map(|stored| stored.id.clone()).collect();
        let found = super::calibration(&history, &these).unwrap();
        for row in &found.workloads {
            let [low, high] = row.bias_pct.unwrap();
            let truth = 100.0 * effect.exp_m1();
            assert!(low < truth && truth < high, "{}: {low} to {high}", row.workload);
            assert_eq!(row.is_biased(), is_biased, "{}", row.workload);
        }
    }
}

#[test]
fn false_alarms_are_counted_and_judged() {
    let (_directory, store) = store();
    (0..5).for_each(|seed| calibration(&store, seed, if seed < 3 { 0.0 } else { -0.05 }));
    let history = history(&store, &this_machine(), None).unwrap();
    // The latest two, of which each raised an alarm.
    let these: Vec<ExperimentId> = history[..2].iter().map(|stored| stored.id.clone()).collect();
    let found = super::calibration(&history, &these).unwrap();
    let experiments = &found.experiment_alarms;
    assert!((experiments.alarms, experiments.of) == (2, 5) && !experiments.is_within());
    assert_eq!((found.row_alarms.alarms, found.row_alarms.of), (4, 10));
    let of_these = &found.these;
    assert_eq!((of_these.experiment_alarms.alarms, of_these.experiment_alarms.of), (2, 2));
    assert_eq!((of_these.row_alarms.alarms, of_these.row_alarms.of), (4, 4));
    assert!(of_these.experiments.iter().eq(these.iter().map(|id| &**id)));
}

#[test]
fn other_machines_and_other_experiments_do_not_count() {
    let (_directory, store) = store();
    (0..4).for_each(|seed| calibration(&store, seed, 0.0));
    let other = Facts { kernel: "6.2".into(), ..this_machine() };
    assert!(history(&store, &other, None).unwrap().is_empty());
    assert_eq!(history(&store, &this_machine(), Some(3)).unwrap().len(), 3);
}

/// 3 % more work, in six experiments of two rows.
fn with_planted(store: &Store) -> Vec<Stored> {
    let one = |seed| experiment(store, seed, -0.03_f64.ln_1p(), "planted:share=3%");
    (0..6).map(|seed| store.load(&one(seed)).unwrap()).collect()
}

#[test]
fn a_planted_effect_is_covered_and_found() {
    let (_directory, store) = store();
    let mut experiments = with_planted(&store);
    let found = planted_experiments(&experiments, &[], 30_000, 0.05);
    assert!((found.true_effect_pct + 3.0 / 1.03).abs() < 1e-9, "{}", found.true_effect_pct);
    assert!((found.covered.count, found.covered.of) >= (11, 12), "{:?}", found.covered);
    assert_eq!((found.found.count, found.found.of), (12, 12));
    assert_eq!((found.workloads.len(), found.workloads[0].covered.of), (2, 6));
    assert_eq!((found.workloads[0].pairs, found.left_out.len()), (40.0, 0));

    let wrong = planted_experiments(&experiments, &[], 200_000, 0.05);
    assert_eq!((wrong.covered.count, wrong.covered.of), (0, 12), "another effect is not covered");
    assert!(wrong.covered.high_pct < 95.0);

    let (workload, reason) = ("pipe".into(), "too few".to_owned());
    let arm = "planted:share=3%".to_owned();
    experiments[0].failures.push(weigh_model::result::summary::Failure { workload, arm, reason });
    let found = planted_experiments(&experiments, &[], 30_000, 0.05);
    assert_eq!((found.covered.of, &*found.left_out["pipe"]), (11, "too few"));
}

/// Checks that denied effects are counted. A median of slices misses a cost in one of five slices.
#[test]
fn a_periodic_effect_that_is_denied_is_counted() {
    let (_directory, store) = store();
    let label = planted::periodic_label();
    let periodic = |effect: f64| {
        let ids: Vec<ExperimentId> =
            (0..6).map(|seed| experiment(&store, seed, effect, &label)).collect();
        let stored: Vec<Stored> = ids.iter().map(|id| store.load(id).unwrap()).collect();
        planted_experiments(&[], &stored, 10_000, 0.05).periodic
    };
    let denied = periodic(0.2);
    assert_eq!((denied.denied.count, denied.denied.of, denied.found.count), (12, 12, 0));
    let found = periodic(planted::true_effect(planted::PERIODIC_PPM));
    assert_eq!((found.denied.count, found.found.count, found.found.of), (0, 12, 12));
    assert!((found.true_effect_pct + 100.0 / 21.0).abs() < 1e-9 && found.experiments.len() == 6);
}

#[test]
fn experiments_with_a_planted_effect_are_no_history() {
    let (_directory, store) = store();
    with_planted(&store);
    assert!(history(&store, &this_machine(), None).unwrap().is_empty());
    calibration(&store, 9, 0.0);
    let all = history(&store, &this_machine(), None).unwrap();
    assert_eq!(super::calibration(&all, &[]).unwrap().experiment_alarms.alarms, 0);
    assert_eq!(all.len(), 1);
}
