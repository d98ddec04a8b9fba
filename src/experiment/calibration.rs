//! What the experiments with two identical arms say of this machine: how its pairs scatter, the
//! smallest effect that it will show, and whether it raises false alarms more often than promised.

use std::collections::BTreeMap;

use serde::Serialize;

use super::pairs::{Measurements, gather};
use super::summarise::{design, percent};
use crate::machine::Facts;
use crate::stats::Verdict;
use crate::stats::betting::{Betting, MAD_TO_SD};
use crate::stats::binomial::Tally;
use crate::stats::design::Design;
use crate::stats::detectable::half_width;
use crate::stats::estimate::{mad, median};
use crate::stats::judge::{MIN_PAIRS, judge_rows};
use crate::store::Store;
use crate::store::record::Stored;

/// The version of the JSON document.
const SCHEMA: &str = "weighbridge/calibration/1";
/// How many calibrations decide where the next experiment starts from: enough for a steady median,
/// and few enough to be read before every experiment.
pub const RECENT: usize = 20;
/// For how long a workload is measured, in seconds.
const SPANS_S: [f64; 3] = [10.0, 60.0, 300.0];

/// All calibrations of one machine together.
#[derive(Debug, Serialize)]
pub struct Calibration {
    pub schema: &'static str,
    pub hostname: String,
    pub cpu_model: String,
    pub kernel: String,
    /// Error rate of the intervals and of each experiment's claims.
    pub alpha: f64,
    /// Ids of the experiments, the latest first.
    pub experiments: Vec<String>,
    pub workloads: Vec<WorkloadNoise>,
    /// Experiments that called any of their rows slower or faster.
    pub experiment_alarms: Tally,
    /// Rows that would be called slower or faster if each were the only one of its experiment.
    pub row_alarms: Tally,
}

/// One workload in all calibrations.
#[derive(Debug, Serialize)]
pub struct WorkloadNoise {
    pub workload: String,
    /// Standard deviation of a pair's log-ratio, in per cent: 1.4826 · MAD, the median of the
    /// calibrations.
    pub noise_pct: f64,
    /// What a pair takes, launches and all.
    pub pair_s: f64,
    /// The smallest effect that half of all experiments show in 10 s, 1 min and 5 min for this
    /// workload; `None` where that is not enough for a verdict.
    pub smallest_effect_pct: [Option<f64>; SPANS_S.len()],
    pub experiments: usize,
    pub pairs: usize,
    /// Of its rows, those that would be called slower or faster if each were the only one.
    pub alarms: usize,
}

/// The calibrations of `machine`, whole, the latest first; all of them, or at most so many.
///
/// # Errors
/// A sentence, where the database cannot be read.
pub fn history(
    store: &Store,
    machine: &Facts,
    at_most: Option<usize>,
) -> Result<Vec<Stored>, String> {
    let ids = store.calibrations(machine, at_most).map_err(|error| error.to_string())?;
    ids.iter().map(|id| store.load(id).map_err(|error| error.to_string())).collect()
}

/// s₀ of every workload that was calibrated, as a standard deviation of log-ratios.
pub fn start_scales(history: &[Stored]) -> BTreeMap<String, f64> {
    by_workload(history).into_iter().map(|(name, rows)| (name, rows.noise())).collect()
}

impl Calibration {
    /// Judges the calibrations of one machine, the latest first; none where there are none.
    pub fn of(history: &[Stored]) -> Option<Calibration> {
        let machine = &history.first()?.header.machine;
        let alpha = Design::default().alpha;
        let workloads: Vec<WorkloadNoise> = by_workload(history)
            .into_iter()
            .map(|(workload, rows)| rows.summary(workload, alpha))
            .collect();
        // One without a row that could have had a verdict could not have raised an alarm.
        let outcomes: Vec<bool> = history.iter().filter_map(raises_alarm).collect();
        let alarming = outcomes.iter().filter(|alarm| **alarm).count();
        let rows = workloads.iter().map(|row| row.experiments).sum();
        let row_alarms = workloads.iter().map(|row| row.alarms).sum();
        Some(Calibration {
            schema: SCHEMA,
            hostname: machine.hostname.clone(),
            cpu_model: machine.cpu_model.clone(),
            kernel: machine.kernel.clone(),
            alpha,
            experiments: history.iter().map(|stored| stored.id.clone()).collect(),
            workloads,
            experiment_alarms: Tally::new(alarming, outcomes.len(), alpha),
            row_alarms: Tally::new(row_alarms, rows, alpha),
        })
    }

    pub fn json(&self) -> String {
        serde_json::to_string_pretty(self).expect("plain data with text keys") + "\n"
    }
}

/// Whether `weigh compare` would have called any row slower or faster; `None` where none had the pairs
/// for it.
fn raises_alarm(stored: &Stored) -> Option<bool> {
    let bettings: Vec<Betting> = gather(stored).iter().map(Measurements::betting).collect();
    let differs = |verdict| matches!(verdict, Verdict::Slower | Verdict::Faster);
    let judgements = judge_rows(&bettings, &design(stored));
    let could = bettings.iter().any(|betting| betting.pairs() >= MIN_PAIRS);
    could.then(|| judgements.iter().any(|judgement| differs(judgement.verdict)))
}

/// What all calibrations found of one workload: a value per calibration.
#[derive(Default)]
struct Rows {
    deviations: Vec<f64>,
    pair_s: Vec<f64>,
    pairs: usize,
    alarms: usize,
}

impl Rows {
    /// As a log-ratio.
    fn noise(&self) -> f64 {
        median(&self.deviations).unwrap_or(0.0)
    }

    fn summary(&self, workload: String, alpha: f64) -> WorkloadNoise {
        let (noise, pair_s) = (self.noise(), median(&self.pair_s).unwrap_or(0.0));
        let smallest = |span_s: f64| {
            let pairs = if pair_s > 0.0 { (span_s / pair_s) as usize } else { 0 };
            Some(percent(noise * half_width(pairs, alpha)?))
        };
        WorkloadNoise {
            workload,
            noise_pct: 100.0 * noise,
            pair_s,
            smallest_effect_pct: SPANS_S.map(smallest),
            experiments: self.deviations.len(),
            pairs: self.pairs,
            alarms: self.alarms,
        }
    }
}

/// Rows with fewer pairs than a verdict needs say nothing, of noise either.
fn by_workload(history: &[Stored]) -> BTreeMap<String, Rows> {
    let mut all: BTreeMap<String, Rows> = BTreeMap::new();
    for stored in history {
        let measured = gather(stored);
        for row in measured.iter().filter(|row| row.series.len() >= MIN_PAIRS) {
            let betting = row.betting();
            let judgement = judge_rows([&betting], &design(stored)).remove(0);
            let rows = all.entry(stored.header.works[row.work].name.clone()).or_default();
            rows.deviations.push(MAD_TO_SD * mad(betting.values()).unwrap_or(0.0));
            rows.pair_s.extend(row.pair_s());
            rows.pairs += row.series.len();
            rows.alarms +=
                usize::from(matches!(judgement.verdict, Verdict::Slower | Verdict::Faster));
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::summary::State;
    use crate::stats::simulated::{Machine, Noise};
    use crate::store::record::{Header, Kind, Measured, Work};

    /// A calibration whose treated arm is faster by `effect`: 0.1 s per sample, white noise of 1 %.
    fn calibration(store: &Store, seed: u64, effect: f64) {
        let work = |name: &str| Work {
            name: name.into(),
            unit: "lps".into(),
            syscalls_per_op: None,
            sample_ms: Some(70),
            start_scale: 0.01,
            on_curve: None,
        };
        let header = Header {
            kind: Kind::Calibrate,
            command: "weigh calibrate".into(),
            seed,
            budget_s: 60.0,
            alpha: 0.05,
            margin: 0.01,
            fixed_pairs: None,
            multiplicity: Default::default(),
            sets: 1,
            machine: this_machine(),
            arms: vec!["none".into(), "none".into()],
            suites: Vec::new(),
            works: ["stat", "pipe"].map(work).to_vec(),
        };
        let id = store.begin(&header).unwrap();
        let mut machine = Machine::new(Noise::White, seed);
        for number in 0..160 {
            let (pair, work, arm) = (number / 4, number / 2 % 2, number % 2);
            let rate = (machine.sample() + arm as f64 * effect).exp();
            let json = format!(r#"{{"operations":{rate},"elapsed_ns":1000000000}}"#);
            let sample = serde_json::from_str(&json).unwrap();
            let measured = Measured {
                work,
                arm,
                treated_arm: 1,
                set: 0,
                pair,
                position: arm,
                started_s: number as f64 / 10.0,
                sample,
                evidence: Default::default(),
                disturbance: None,
            };
            store.add_sample(&id, &measured).unwrap();
        }
        store.finish(&id, State::Complete, None).unwrap();
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
        assert!(Calibration::of(&none).is_none() && start_scales(&none).is_empty());
    }

    #[test]
    fn noise_cost_and_smallest_effect_are_those_of_the_machine() {
        let (_directory, store) = store();
        (0..6).for_each(|seed| calibration(&store, seed, 0.0));
        let history = history(&store, &this_machine(), None).unwrap();
        let scale = start_scales(&history)["stat"];
        assert!((0.011..0.018).contains(&scale), "√2 % per pair, not {scale}");
        let found = Calibration::of(&history).unwrap();
        let stat = found.workloads.iter().find(|row| row.workload == "stat").unwrap();
        assert_eq!((stat.experiments, stat.pairs, stat.alarms), (6, 240, 0));
        assert!((stat.pair_s - 0.2).abs() < 1e-9, "{}", stat.pair_s);
        let [short, minute, long] = stat.smallest_effect_pct.map(Option::unwrap);
        assert!(short > minute && minute > long && long > 0.0);
        assert!((0.5..1.2).contains(&short), "50 pairs of √2 %: {short}");
        assert_eq!((found.experiment_alarms.alarms, found.experiment_alarms.of), (0, 6));
        assert_eq!((found.row_alarms.of, found.row_alarms.chance), (12, 1.0));
    }

    #[test]
    fn false_alarms_are_counted_and_judged() {
        let (_directory, store) = store();
        (0..5).for_each(|seed| calibration(&store, seed, if seed < 3 { 0.0 } else { 0.05 }));
        let found = Calibration::of(&history(&store, &this_machine(), None).unwrap()).unwrap();
        let experiments = &found.experiment_alarms;
        assert!((experiments.alarms, experiments.of) == (2, 5) && !experiments.is_within());
        assert_eq!((found.row_alarms.alarms, found.row_alarms.of), (4, 10));
    }

    #[test]
    fn other_machines_and_other_experiments_do_not_count() {
        let (_directory, store) = store();
        (0..4).for_each(|seed| calibration(&store, seed, 0.0));
        let other = Facts { kernel: "6.2".into(), ..this_machine() };
        assert!(history(&store, &other, None).unwrap().is_empty());
        assert_eq!(history(&store, &this_machine(), Some(3)).unwrap().len(), 3);
    }
}
