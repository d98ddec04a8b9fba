//! Results of this machine's experiments with two identical arms. They show how its pairs scatter,
//! the smallest effect that it will show, and if false alarms are more frequent than promised.

pub mod planted;

use std::collections::BTreeMap;

use super::request::Request;
use super::stored_design::design;
use super::summarise::summarise;
use super::work::Work;
use paired::betting::{Betting, DEFAULT_SCALE};
use paired::binomial::FalseAlarms;
use paired::design::Design;
use paired::detectable::half_width;
use paired::estimate::{MAD_TO_SD, mad, median};
use paired::judge::{Judgement, MIN_PAIRS, judge_claims, judge_rows};
use paired::student::of_mean;
use paired::{Interval, Verdict};
use weigh_model::facts::Facts;
use weigh_model::ids::ExperimentId;
use weigh_model::record::Stored;
use weigh_model::result::calibration::{Calibration, SCHEMA, SPANS_S, These, WorkloadNoise};
use weigh_model::result::scheme::{Scheme, StartScales};
use weigh_model::result::summary::Pair;
use weigh_model::result::warning::Warning;
use weigh_model::result::work_name::WorkName;
use weigh_model::workload::metric::Metric;
use weigh_store::Store;
use weigh_verdict::family::claims;
use weigh_verdict::log_ratio::percent;
use weigh_verdict::pairs::{Measurements, gather};
use weigh_verdict::schedule::INTERLEAVED_SCALE;

/// How many calibrations decide where the next experiment starts from: enough for a steady median,
/// and few enough to be read before every experiment.
pub const RECENT: usize = 20;
/// The calibrations of `machine`, whole, the latest first; all of them, or at most so many.
pub fn history(
    store: &Store,
    machine: &Facts,
    at_most: Option<usize>,
) -> Result<Vec<Stored>, String> {
    let ids = store.calibrations(machine, at_most).map_err(|error| error.to_string())?;
    ids.iter().map(|id| store.load(id).map_err(|error| error.to_string())).collect()
}

/// How the pairs of calibrated workloads scattered, by how they were taken.
#[derive(Default)]
pub struct KnownNoise(BTreeMap<WorkName, BySchemes>);

#[derive(Default)]
struct BySchemes {
    sequential: Vec<f64>,
    interleaved: Vec<f64>,
}

impl KnownNoise {
    /// Collects the noise of calibrations. It is read before every experiment, so nothing is judged
    /// for it.
    pub fn of(history: &[Stored]) -> KnownNoise {
        let mut known = KnownNoise::default();
        for stored in history {
            for row in gather(stored) {
                let noise = known.0.entry(stored.header.works[row.work].name.clone()).or_default();
                let of_scheme = match row.schedule.main() {
                    Scheme::Sequential => &mut noise.sequential,
                    Scheme::Interleaved => &mut noise.interleaved,
                };
                let has_enough = row.series.len() >= MIN_PAIRS;
                of_scheme.extend(has_enough.then(|| deviation(&row.series)));
            }
        }
        known
    }

    /// s₀ of a workload: the median of its calibrations, or what is usual.
    pub fn start_scales(&self, workload: &WorkName) -> StartScales {
        let noise = self.0.get(workload);
        let sequential = noise.and_then(|noise| median(&noise.sequential));
        let interleaved = noise.and_then(|noise| median(&noise.interleaved));
        StartScales {
            sequential: sequential.unwrap_or(DEFAULT_SCALE),
            interleaved: Some(interleaved.unwrap_or(INTERLEAVED_SCALE)),
        }
    }
}

/// Approximate time of a launch besides its sample, in milliseconds, if no calibration shows it.
const LAUNCH_MS: u64 = 15;

/// How many pairs the budget of `request` will probably allow each of its rows, of samples that begin with
/// `start_ms`. From what the calibrations of this machine took, or else what a workload of ours takes about:
/// it must be known before the first pair. `None` where it cannot be, as of a command that was never
/// calibrated, and where the number is fixed.
pub fn planned_pairs(
    request: &Request,
    works: &[Work],
    calibrations: &[Stored],
    start_ms: u64,
) -> Option<f64> {
    let rows: Vec<(WorkName, Scheme, f64)> = (calibrations.iter())
        .flat_map(|stored| gather(stored).into_iter().map(move |row| (stored, row)))
        .filter_map(|(stored, row)| {
            let name = stored.header.works[row.work].name.clone();
            Some((name, row.schedule.main(), row.pair_s()?))
        })
        .collect();
    let can_interleave = request.plan.may_interleave();
    let pair_s = |work: &Work| {
        let known = |scheme: Scheme| {
            let of_work = rows.iter().filter(|(name, of, _)| (name, *of) == (&work.name(), scheme));
            median(&of_work.map(|(_, _, pair_s)| *pair_s).collect::<Vec<_>>())
        };
        // A row that could be interleaved and was calibrated sequentially chose that.
        let interleaved = known(Scheme::Interleaved).filter(|_| can_interleave);
        interleaved.or_else(|| known(Scheme::Sequential)).or_else(|| match work {
            work if work.has_length() => {
                let sample_ms = request.plan.sample_ms().unwrap_or(start_ms);
                Some(2e-3 * (sample_ms + LAUNCH_MS) as f64)
            }
            _ => None,
        })
    };
    let round_s: f64 = works.iter().map(pair_s).sum::<Option<f64>>()?;
    let treatments =
        request.common.arms.len().checked_sub(1).filter(|treatments| *treatments > 0)?;
    let pairs = request.common.budget.as_secs_f64() / (round_s * treatments as f64);
    (request.plan.design().fixed_pairs.is_none() && pairs.is_finite()).then(|| pairs.max(1.0))
}

/// How pairs scatter, as a standard deviation of log-ratios.
fn deviation(pairs: &[Pair]) -> f64 {
    let log_ratios: Vec<f64> =
        pairs.iter().map(Pair::log_ratio).filter(|d| d.is_finite()).collect();
    MAD_TO_SD * mad(&log_ratios).unwrap_or(0.0)
}

/// Judges the calibrations of one machine, the latest first, of which `these` were made just now;
/// none where there are none.
pub fn calibration(history: &[Stored], these: &[ExperimentId]) -> Option<Calibration> {
    let machine = &history.first()?.header.machine;
    let alpha = Design::default().alpha;
    let outcomes: Vec<Outcome> = history.iter().map(Outcome::of).collect();
    let mut workloads: BTreeMap<(&WorkName, Scheme), Rows> = BTreeMap::new();
    let is_of_these = |outcome: &&Outcome| these.contains(&outcome.id);
    for outcome in &outcomes {
        for row in &outcome.rows {
            let rows = workloads.entry((&row.workload, row.scheme)).or_default();
            rows.add(row, is_of_these(&outcome));
        }
    }
    let all = || outcomes.iter();
    let of_these = || outcomes.iter().filter(is_of_these);
    let of_bias = alpha / workloads.len() as f64;
    let workloads = workloads
        .into_iter()
        .map(|((name, scheme), rows)| rows.summary(name, scheme, alpha, of_bias));
    Some(Calibration {
        schema: SCHEMA,
        hostname: machine.hostname.clone(),
        cpu_model: machine.cpu_model.clone(),
        kernel: machine.kernel.clone(),
        alpha,
        experiments: all().map(|outcome| outcome.id.to_string()).collect(),
        workloads: workloads.collect(),
        experiment_alarms: tally(all().filter_map(|outcome| outcome.alarmed), alpha),
        row_alarms: tally(all().flat_map(Outcome::row_alarms), alpha),
        cpu_time_row_alarms: tally(all().flat_map(Outcome::cpu_time_alarms), alpha),
        these: These {
            experiments: of_these().map(|outcome| outcome.id.to_string()).collect(),
            experiment_alarms: tally(of_these().filter_map(|outcome| outcome.alarmed), alpha),
            row_alarms: tally(of_these().flat_map(Outcome::row_alarms), alpha),
            cpu_time_row_alarms: tally(of_these().flat_map(Outcome::cpu_time_alarms), alpha),
            warnings: warnings(history, these),
        },
        planted: None,
    })
}

fn warnings(history: &[Stored], these: &[ExperimentId]) -> Vec<Warning> {
    let mut warnings = Vec::new();
    for stored in history.iter().filter(|stored| these.contains(&stored.id)) {
        for warning in summarise(stored).warnings {
            if !warnings.contains(&warning) {
                warnings.push(warning);
            }
        }
    }
    warnings
}

/// Each of `alarms` says whether one was raised.
fn tally(alarms: impl Iterator<Item = bool>, alpha: f64) -> FalseAlarms {
    let alarms: Vec<bool> = alarms.collect();
    FalseAlarms::new(alarms.iter().filter(|alarm| **alarm).count(), alarms.len(), alpha)
}

/// One calibration, judged.
struct Outcome {
    id: ExperimentId,
    /// True if `weigh compare` would have called any row slower or faster. `None` if no row had
    /// enough pairs for a verdict.
    alarmed: Option<bool>,
    /// Rows with enough pairs for a verdict. Other rows say nothing, not even about noise.
    rows: Vec<RowOutcome>,
}

struct RowOutcome {
    workload: WorkName,
    /// Scheme of the pairs that the row is judged by.
    scheme: Scheme,
    deviation: f64,
    pair_s: Option<f64>,
    pairs: usize,
    /// The effect, as a log-ratio.
    estimate: f64,
    /// Were it the only row.
    alarmed: bool,
    /// True if the row's CPU time would have raised an alarm; `None` if CPU time was not judged.
    cpu_time_alarmed: Option<bool>,
}

impl Outcome {
    fn of(stored: &Stored) -> Outcome {
        let differs =
            |judgement: &Judgement| matches!(judgement.verdict, Verdict::Slower | Verdict::Faster);
        let design = design(stored);
        let alone = Design { rows: 1, ..design.clone() };
        let measured = gather(stored);
        let bettings: Vec<Betting> = measured.iter().map(Measurements::betting).collect();
        let judges_cpu_time = stored.header.metrics.contains(&Metric::CpuTime);
        let metrics = stored.header.metrics.iter().filter(|metric| **metric != Metric::Rate);
        let of_metric = |metric| measured.iter().map(|row| row.betting_of(metric)).collect();
        let further: Vec<Vec<Betting>> = metrics.map(of_metric).collect();
        let claims = claims(stored, &measured, &bettings, &further, std::iter::empty());
        let could = bettings.iter().any(|betting| betting.pairs() >= MIN_PAIRS);
        let row = |(row, betting): (&Measurements, &Betting)| {
            let judgement = judge_rows([betting], &alone).remove(0);
            RowOutcome {
                workload: stored.header.works[row.work].name.clone(),
                scheme: row.schedule.main(),
                deviation: deviation(&row.series),
                pair_s: row.pair_s(),
                pairs: row.series.len(),
                estimate: judgement.estimate,
                alarmed: differs(&judgement),
                cpu_time_alarmed: judges_cpu_time.then(|| {
                    judge_rows([&row.betting_of(&Metric::CpuTime)], &alone).iter().any(differs)
                }),
            }
        };
        let with_pairs = measured.iter().zip(&bettings);
        let with_pairs = with_pairs.filter(|(row, _)| row.series.len() >= MIN_PAIRS);
        Outcome {
            id: stored.id.clone(),
            alarmed: could.then(|| judge_claims(claims, &design).iter().any(differs)),
            rows: with_pairs.map(row).collect(),
        }
    }

    fn row_alarms(&self) -> impl Iterator<Item = bool> {
        self.rows.iter().map(|row| row.alarmed)
    }

    fn cpu_time_alarms(&self) -> impl Iterator<Item = bool> {
        self.rows.iter().filter_map(|row| row.cpu_time_alarmed)
    }
}

/// Results of all calibrations for one workload: a value per calibration.
#[derive(Default)]
struct Rows {
    deviations: Vec<f64>,
    pair_s: Vec<f64>,
    estimates: Vec<f64>,
    pairs: usize,
    alarms: usize,
    /// Calibrations of this command.
    these: usize,
}

impl Rows {
    fn add(&mut self, row: &RowOutcome, is_of_these: bool) {
        self.these += usize::from(is_of_these);
        self.deviations.push(row.deviation);
        self.pair_s.extend(row.pair_s);
        // Of this command alone: its number of experiments was fixed before.
        if is_of_these {
            self.estimates.push(row.estimate);
        }
        self.pairs += row.pairs;
        self.alarms += usize::from(row.alarmed);
    }

    /// `of_bias` is its share of the error rate of the biases of all rows.
    fn summary(
        &self,
        workload: &WorkName,
        scheme: Scheme,
        alpha: f64,
        of_bias: f64,
    ) -> WorkloadNoise {
        let middle = |values: &[f64]| median(values).unwrap_or(0.0);
        let (noise, pair_s) = (middle(&self.deviations), middle(&self.pair_s));
        let smallest = |span_s: f64| {
            let pairs = if pair_s > 0.0 { (span_s / pair_s) as usize } else { 0 };
            Some(percent(noise * half_width(pairs, alpha)?))
        };
        WorkloadNoise {
            workload: workload.clone(),
            scheme,
            noise_pct: 100.0 * noise,
            pair_s,
            smallest_effect_pct: SPANS_S.map(smallest),
            experiments: self.deviations.len(),
            these_experiments: self.these,
            pairs: self.pairs,
            alarms: self.alarms,
            bias_pct: of_mean(&self.estimates, of_bias)
                .map(|Interval { low, high }| [low, high].map(percent)),
        }
    }
}

#[cfg(test)]
mod tests;
