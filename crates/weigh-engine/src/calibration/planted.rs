//! Results of this machine's experiments with a planted effect: how often the interval covers the
//! truth, and how often the effect is found.

use std::collections::BTreeMap;

use crate::stored_design::design;
use crate::summarise::summarise;
use paired::Verdict;
use paired::betting::Betting;
use paired::binomial::Share;
use paired::estimate::median;
use paired::judge::{MIN_PAIRS, WeightedClaim, judge_claims};
use weigh_model::record::Stored;
use weigh_model::result::calibration::{PeriodicExperiments, PlantedExperiments, PlantedWorkload};
use weigh_model::result::summary::Failure;
use weigh_model::result::work_name::WorkName;
use weigh_treatment::kind::planted::{PERIODIC_EVERY, PERIODIC_PPM, true_effect};
use weigh_verdict::family::weights;
use weigh_verdict::log_ratio::percent;
use weigh_verdict::pairs::{Measurements, gather};

struct PlantedRow {
    workload: WorkName,
    covers: bool,
    finds: bool,
    pairs: usize,
}

/// Judges experiments in which so many millionths were planted, each as its report does, and those with
/// an effect in one slice of several. Rows with fewer pairs than a verdict needs say nothing.
pub fn planted_experiments(
    experiments: &[Stored],
    periodic: &[Stored],
    share_ppm: u32,
    alpha: f64,
) -> PlantedExperiments {
    let true_effect = true_effect(share_ppm);
    let rows: Vec<PlantedRow> =
        experiments.iter().flat_map(|stored| judged(stored, true_effect)).collect();
    let mut by_workload: BTreeMap<&WorkName, Vec<&PlantedRow>> = BTreeMap::new();
    for row in &rows {
        by_workload.entry(&row.workload).or_default().push(row);
    }
    let workload = |(name, rows): (&WorkName, Vec<&PlantedRow>)| PlantedWorkload {
        workload: name.clone(),
        covered: Share::new(rows.iter().map(|row| row.covers), alpha),
        found: Share::new(rows.iter().map(|row| row.finds), alpha),
        pairs: median(&rows.iter().map(|row| row.pairs as f64).collect::<Vec<_>>()).unwrap_or(0.0),
    };
    PlantedExperiments {
        share_pct: f64::from(share_ppm) / 1e4,
        true_effect_pct: percent(true_effect),
        experiments: experiments.iter().map(|stored| stored.id.to_string()).collect(),
        workloads: by_workload.into_iter().map(workload).collect(),
        covered: Share::new(rows.iter().map(|row| row.covers), alpha),
        found: Share::new(rows.iter().map(|row| row.finds), alpha),
        left_out: experiments.iter().flat_map(left_out).collect(),
        periodic: periodic_experiments(periodic, alpha),
    }
}

/// Summarises the reports of experiments with a periodic effect.
fn periodic_experiments(experiments: &[Stored], alpha: f64) -> PeriodicExperiments {
    let rows = experiments.iter().flat_map(|stored| summarise(stored).results);
    let verdicts: Vec<Verdict> = rows.map(|row| row.verdict).collect();
    let is_denied = |verdict: &Verdict| matches!(verdict, Verdict::Equivalent | Verdict::Faster);
    PeriodicExperiments {
        every: PERIODIC_EVERY,
        share_pct: f64::from(PERIODIC_PPM) / 1e4,
        true_effect_pct: percent(true_effect(PERIODIC_PPM)),
        experiments: experiments.iter().map(|stored| stored.id.to_string()).collect(),
        found: Share::new(verdicts.iter().map(|verdict| *verdict == Verdict::Slower), alpha),
        denied: Share::new(verdicts.iter().map(is_denied), alpha),
    }
}

fn judged(stored: &Stored, true_effect: f64) -> Vec<PlantedRow> {
    let measured = gather(stored);
    let bettings: Vec<Betting> = measured.iter().map(Measurements::betting).collect();
    let claims = measured.iter().zip(&bettings);
    let claims =
        claims.map(|(of_row, row)| WeightedClaim { row, weight: weights(stored, of_row).rate });
    let judgements = judge_claims(claims, &design(stored));
    let with_pairs = measured.iter().zip(judgements);
    let with_pairs = with_pairs.filter(|(row, _)| row.series.len() >= MIN_PAIRS);
    with_pairs
        .map(|(row, judgement)| PlantedRow {
            workload: stored.header.works[row.work].name.clone(),
            covers: (judgement.interval.low..=judgement.interval.high).contains(&true_effect),
            finds: judgement.verdict == Verdict::Slower,
            pairs: row.series.len(),
        })
        .collect()
}

/// Begins what a workload says in whose samples too few operations would be planted
/// (`workloads/driver/sample.c`).
const TOO_FEW: &str = "too few operations to plant ";

/// Returns why nothing is planted in a workload, without the exit status with which it says so.
pub fn why_not_planted(reason: &str) -> Option<&str> {
    reason.find(TOO_FEW).map(|at| &reason[at..])
}

/// Returns the workloads, with reasons, that failed only where they had to do more.
fn left_out(stored: &Stored) -> impl Iterator<Item = (String, String)> + '_ {
    let is_baseline = |failure: &Failure| failure.arm == stored.header.arms[0];
    let failures = stored.failures.iter().filter(move |failure| !is_baseline(failure));
    let why = |reason: &str| why_not_planted(reason).unwrap_or(reason).to_owned();
    failures.map(move |failure| (failure.workload.to_string(), why(&failure.reason)))
}
