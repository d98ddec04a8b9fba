//! Summary of an experiment, in the form that every report shows.
//!
//! The engine and `weigh show` each build a [`Summary`] from the stored samples; each format is one
//! file of `weigh-report/formats/`. Serialised, it *is* the documented JSON ([`SCHEMA`],
//! `docs/json.md`): a field added here is added there.

use serde::{Deserialize, Serialize};

use crate::facts::Facts;
use crate::ids::{PairId, SetId};
use crate::result::cost::AddedCost;
use crate::result::curve;
use crate::result::curve::{Chart, CurvePoint, OnCurve, Quantity};
use crate::result::dose::DoseCurve;
use crate::result::factorial::FactorialEffect;
use crate::result::gate::{Gate, NamedRow};
use crate::result::imported::Imported;
use crate::result::load_compared::ComparedLoad;
use crate::result::metrics::Metrics;
use crate::result::preliminary::Preliminary;
use crate::result::profiled::Profiled;
use crate::result::quantity;
use crate::result::quantity::{Amounts, EvidenceQuantity, QuantityKind};
use crate::result::reading::Reading;
use crate::result::scheme::Scheme;
use crate::result::series::RunSeries;
use crate::result::times::TimesRow;
use crate::result::versus;
use crate::result::versus::Versus;
use crate::result::warning::{Warning, as_sentences};
use crate::result::work_name::WorkName;
use crate::workload::metric::{Metric, MetricValue};
use paired::judge::MIN_PAIRS;
use paired::multiplicity::Multiplicity;
use paired::{Verdict, Withheld};

/// The version of the JSON document; it changes when a field changes its meaning or goes.
pub const SCHEMA: &str = "weighbridge/experiment/2";

/// The label of an arm without a treatment.
pub const NOTHING: &str = "none";

/// How an experiment ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// Its process is still measuring.
    #[default]
    Running,
    /// Every row has its verdict, or the budget is spent.
    Complete,
    /// Ctrl-C, or the process died: what was measured is kept.
    Interrupted,
    /// A treatment was not in force, or the store could not be written.
    Failed,
}

/// One experiment, ready to be shown.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Summary {
    /// Always [`SCHEMA`].
    pub schema: String,
    /// Short random identifier, as `weigh show` takes it.
    pub id: String,
    /// RFC 3339, UTC.
    pub started: String,
    pub state: State,
    /// Why it failed, as one sentence; only with [`State::Failed`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
    /// The command line that measures the same again, ready for a shell.
    pub command: String,
    pub seed: u64,
    /// In how many sessions it was measured: more than one where it was continued.
    #[serde(default = "one")]
    pub sessions: usize,
    /// All stored samples, also those of no judged pair; not part of the JSON.
    #[serde(skip)]
    pub samples: usize,
    pub elapsed_s: f64,
    pub budget_s: f64,
    /// Error rate of the intervals, e.g. 0.05.
    pub alpha: f64,
    /// Promise of `alpha` for all claims of slower and faster together: `holm`, the chance that any
    /// is false, or `e-bh`, the share of false ones.
    #[serde(default = "holm")]
    pub multiplicity: String,
    /// The margin of equivalence, e.g. 1.0.
    pub margin_pct: f64,
    pub machine: Facts,
    /// Label of the baseline arm, e.g. `none`.
    pub baseline: String,
    /// Kind of baseline, e.g. `clean` or `residual`; absent where it has no meaning.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub baseline_state: Option<String>,
    /// Facts that the baseline's own treatment reports; empty for `none`.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub baseline_facts: Vec<String>,
    /// The treatments, in the order given on the command line.
    pub treatments: Vec<AppliedTreatment>,
    /// Where the arms are commands rather than treatments of a system.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub versus: Option<Versus>,
    /// Who has the treatments, of servers and of who asks them; absent where no workload asks one.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub treat: Option<String>,
    /// Where who asks them is on another machine: what --client took.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub client: Option<String>,
    pub results: Vec<Row>,
    /// Where the arms are a full factorial design: the effects of each factor, and of factors together.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub effects: Vec<FactorialEffect>,
    /// Cost of each further unit of a number in which three arms or more differ.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub doses: Vec<DoseCurve>,
    /// Comparison of each mix whose peak was sought, under each treatment.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub loads: Vec<ComparedLoad>,
    /// Times of parts of the operations in each arm, for workloads that report them.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub times: Vec<TimesRow>,
    /// Reports of a profiler, from launches beside the samples.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub profiles: Vec<Profiled>,
    pub failures: Vec<Failure>,
    /// Rows that were asked for and have no whole pair, although nothing failed: the time did not suffice.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub unmeasured: Vec<NamedRow>,
    /// Facts that a reader must know before believing the numbers.
    #[serde(serialize_with = "as_sentences")]
    pub warnings: Vec<Warning>,
    /// Metrics of `--metric`, each of which needs a verdict in every row.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub requested_metrics: Vec<Metric>,
    /// Passes over servers that are never started anew, of each arm.
    #[serde(skip)]
    pub passes: Vec<RunSeries>,
    /// Result of `--fail-above`; absent without it.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub gate: Option<Gate>,
    /// Where it is from, if it was not measured here.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub imported: Option<Imported>,
}

/// The rows of each treatment, both in the order of the experiment.
pub fn by_treatment(s: &Summary) -> Vec<(&str, Vec<&Row>)> {
    let mut groups: Vec<(&str, Vec<&Row>)> = Vec::new();
    for row in &s.results {
        match groups.iter_mut().find(|(label, _)| *label == row.treatment) {
            Some((_, rows)) => rows.push(row),
            None => groups.push((&row.treatment, vec![row])),
        }
    }
    groups
}

fn one() -> usize {
    1
}

impl Row {
    /// Returns the first of the requested metrics on which this row has no verdict, whether or not any
    /// sample has the metric.
    pub fn open_metric<'a>(&self, requested: &'a [Metric]) -> Option<&'a Metric> {
        let has_verdict = |metric: &Metric| {
            let mut readings = self.readings.iter().filter(|reading| reading.metric == *metric);
            readings.any(|reading| reading.verdict != Verdict::Inconclusive)
        };
        requested.iter().find(|metric| !has_verdict(metric))
    }
}

/// Multiplicity of documents that do not state it.
fn holm() -> String {
    Multiplicity::Holm.as_str().to_owned()
}

/// A treatment, and what it says about itself once it was applied.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct AppliedTreatment {
    /// As given on the command line, e.g. `audit:backlog=64`.
    pub label: String,
    /// In what it differs from the baseline, where that is more than one thing.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub differences: Vec<String>,
    /// Changes made to the system, one fact a sentence, e.g. `Every system call is audited.`
    pub facts: Vec<String>,
    /// Quantities that it produces; older documents do not list them.
    #[serde(default = "quantity::of_before")]
    pub quantities: Vec<EvidenceQuantity>,
}

impl Summary {
    /// Returns true if one command was timed, without another to compare it with.
    pub fn is_of_one_command(&self) -> bool {
        self.versus.is_some() && self.treatments.is_empty()
    }

    pub fn peak_row(&self, load: &ComparedLoad) -> Option<&Row> {
        let is_its = |row: &&Row| {
            row.workload.name == load.mix
                && row.workload.load.is_none()
                && row.treatment == load.treatment
        };
        self.results.iter().find(is_its)
    }

    /// Returns the quantities that the treatment of a row produces.
    pub fn quantities(&self, row: &Row) -> &[EvidenceQuantity] {
        let applied = self.treatments.iter().find(|applied| applied.label == row.treatment);
        applied.map(|applied| &*applied.quantities).unwrap_or_default()
    }
}

/// One workload under one treatment.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Row {
    #[serde(flatten)]
    pub workload: WorkName,
    /// Where the workload is a point of a curve.
    #[serde(flatten)]
    pub on_curve: Option<OnCurve>,
    pub treatment: String,
    /// Metric that is compared; `rate` for now.
    pub metric: String,
    /// How the pairs were taken. Absent if nothing could be interleaved, or `--interleave=off` excluded it:
    /// all pairs of the experiment were sequential then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scheme: Option<Scheme>,
    /// The unit of `baseline` and `treated`, e.g. `ops/s`, `KBps`, `lpm`, `MWIPS`, `runs/s`.
    pub unit: String,
    /// Median rate of the baseline's samples.
    pub baseline: f64,
    /// Median rate of the baseline's samples over all of their time. Only for interleaved pairs,
    /// whose rate is the rate of the median slice.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub baseline_over_all: Option<f64>,
    /// The rate that follows from `baseline` and the effect, so that the three agree:
    /// `baseline × (1 + effect_pct / 100)`.
    pub treated: f64,
    /// Median rate of the treated samples, which pairs nothing; absent in documents of before, where
    /// `treated` is that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub treated_median: Option<f64>,
    #[serde(flatten)]
    pub cost: AddedCost,
    /// Treated rate over baseline rate − 1, in per cent: negative is slower.
    pub effect_pct: f64,
    /// The interval of the effect; `None` while there are too few pairs to bound that side.
    pub low_pct: Option<f64>,
    pub high_pct: Option<f64>,
    /// Preliminary result of few pairs, before anything bounds the effect.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preliminary: Option<Preliminary>,
    /// Upper bound of the cost, with the error rate for this side alone, in per cent of the
    /// baseline's rate. Negative where it certainly gains; `None` while the pairs do not bound it.
    pub cost_at_most_pct: Option<f64>,
    pub verdict: Verdict,
    /// The verdict that the interval would bear, and why it is not given; only of an inconclusive row.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub withheld: Option<Withheld>,
    /// True if a slower or faster row also stays within the margin.
    pub within_margin: bool,
    /// True if its interval is as narrow as the target: half its width is at most the margin, or a
    /// share of the effect.
    #[serde(default)]
    pub precise: bool,
    pub pairs: usize,
    /// For an inconclusive row: how many more pairs it would probably take, as the middle of a forecast;
    /// absent where that is beyond what the forecast looked at, and with fewer pairs than a verdict needs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pairs_needed: Option<usize>,
    /// Bounds of the pairs needed: one in ten such rows needs fewer than `pairs_needed_low`, and
    /// nine in ten need at most `pairs_needed_high`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pairs_needed_low: Option<usize>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pairs_needed_high: Option<usize>,
    /// `pairs_needed` as time: how many seconds these pairs would probably take.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seconds_needed: Option<f64>,
    /// How many of the pairs were disturbed: others took the CPU while a sample ran. They count like
    /// the others.
    #[serde(default)]
    pub disturbed_pairs: usize,
    /// Findings of the pairs about rare long delays, and their limits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stalls: Option<StallSummary>,
    /// Readings of the same pairs for other metrics; includes CPU time, unless the number of pairs
    /// was fixed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub readings: Vec<Reading>,
    pub evidence: RowEvidence,
    #[serde(flatten)]
    pub metrics: Metrics,
    /// Why this row needs care, e.g. "cheaper because at least 12 % of the records were dropped".
    pub notes: Vec<String>,
    /// The effect of each set of `--sets`, in order; empty with one set.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub sets: Vec<SetEffect>,
    /// Pairs that a verdict takes at least, however large the effect; not part of the JSON.
    #[serde(skip)]
    pub least_pairs: usize,
    /// The forecast itself; not part of the JSON.
    #[serde(skip)]
    pub futures: Vec<Future>,
    /// Every pair in the order measured: for charts and CSV, not part of the JSON.
    #[serde(skip)]
    pub series: Vec<Pair>,
}

impl Row {
    /// Returns true if it has fewer pairs than any verdict needs.
    pub fn has_few_pairs(&self) -> bool {
        self.pairs < MIN_PAIRS
    }
}

/// Expected future of an undecided row.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Future {
    /// Time that its pairs take until it has a verdict.
    pub seconds: f64,
    /// True if the row was not followed any further: it takes longer than `seconds`.
    pub is_at_least: bool,
}

/// Samples that took much longer than usual, beside the other one of their pair.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct StallSummary {
    /// How much longer is a stall, in per cent.
    pub longer_pct: f64,
    /// How many samples of the baseline stalled, and of the treatment.
    pub baseline: usize,
    pub treated: usize,
    /// The share of treated samples that may stall, in per cent: more is excluded, with error rate `alpha`.
    pub treated_at_most_pct: f64,
}

/// The effect within one complete, separate set of the experiment (a Delta of Nitzberg's Table 2).
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct SetEffect {
    pub effect_pct: f64,
    pub low_pct: Option<f64>,
    pub high_pct: Option<f64>,
    pub pairs: usize,
}

/// One pair: two samples next to each other in time.
#[derive(Clone, Debug, PartialEq)]
pub struct Pair {
    /// Seconds from the start of the experiment to the start of the pair.
    pub started_s: f64,
    /// From its start to the start of the next sample of the set, of whatever row: with launches, and all
    /// that `weigh` does between samples. Of the last pair of a set, to its own end.
    pub lasted_s: f64,
    pub baseline_rate: f64,
    pub treated_rate: f64,
    /// Rates of both samples over all of their time; of interleaved pairs, the two above are those of the
    /// median slice.
    pub rates_over_all: [f64; 2],
    /// CPU time per operation of the baseline and of the treated sample, where both used any.
    pub cpu_ns_per_op: Option<[f64; 2]>,
    /// Values of each sample for the further metrics that are judged.
    pub further: Vec<(Metric, [MetricValue; 2])>,
    /// The coin: whether the baseline was measured first.
    pub baseline_first: bool,
    /// True if the sample launched before this pair, of whatever row, was a treated one.
    pub after_treated: bool,
    pub set: SetId,
    /// Number of the pair in its row and set; pairs without a rate are left out.
    pub number: PairId,
    /// True if others took the CPU while one of its samples ran; `docs/metrics.md` has the
    /// thresholds.
    pub is_disturbed: bool,
}

impl Pair {
    /// ln(treated rate / baseline rate): what the statistics work on.
    pub fn log_ratio(&self) -> f64 {
        (self.treated_rate / self.baseline_rate).ln()
    }

    /// Returns the log-ratio of any metric, positive where the treatment is better; `None` if the
    /// pair lacks it.
    pub fn log_ratio_of(&self, metric: &Metric) -> Option<f64> {
        let log_ratio = match metric {
            Metric::Rate => self.log_ratio(),
            Metric::CpuTime => {
                let [baseline, treated] = self.cpu_ns_per_op?;
                (baseline / treated).ln()
            }
            _ => {
                let [baseline, treated] = self.amounts(metric)?;
                treated.log()? - baseline.log()?
            }
        };
        Some(log_ratio).filter(|d| d.is_finite())
    }

    /// Returns the values of a further metric in the baseline's sample and the treated one.
    pub fn amounts(&self, metric: &Metric) -> Option<&[MetricValue; 2]> {
        self.further.iter().find(|(other, _)| other == metric).map(|(_, both)| both)
    }
}

/// Evidence that the treatment produced while the treated samples ran, per operation of the
/// workload.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RowEvidence {
    /// System calls that one operation makes, as the workload declares them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub syscalls_per_op: Option<f64>,
    /// Time of these operations: `log_bytes / treated_s` is how fast the log grows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub treated_s: Option<f64>,
    /// Amounts of the declared quantities ([`EvidenceQuantity`]): `NAME` in total, `NAME_per_op`,
    /// and `NAME_pct` for losses. Anything else that the treatment wants to show is here too, as
    /// `"notice": "two filters"`.
    #[serde(flatten)]
    pub amounts: Amounts,
}

/// Loss of evidence: items that should have been counted and were dropped, so the cost is too low.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Loss<'a> {
    /// Noun for the lost items.
    pub noun: &'a str,
    pub count: u64,
    /// Their share of themselves and those that arrived, in per cent: so much at least was dropped. Absent
    /// where it is not known how many arrived.
    pub pct: Option<f64>,
}

impl RowEvidence {
    /// Returns the largest loss among the quantities that its treatment declares, if any.
    pub fn loss<'a>(&self, quantities: &'a [EvidenceQuantity]) -> Option<Loss<'a>> {
        let lost = quantities.iter().filter(|quantity| quantity.kind == QuantityKind::Lost);
        let losses = lost.filter_map(|quantity| {
            let count = self.amounts.whole(&quantity.name).filter(|count| *count > 0)?;
            Some(Loss { noun: &quantity.noun, count, pct: self.amounts.number(&quantity.pct()) })
        });
        losses.max_by_key(|loss| loss.count)
    }
}

/// A workload that gave no result; the rest of the experiment went on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Failure {
    #[serde(flatten)]
    pub workload: WorkName,
    pub arm: String,
    /// One sentence that says what happened.
    pub reason: String,
}

impl Failure {
    /// Returns the name of the failed item: a workload, or the command when commands are compared.
    pub fn name(&self) -> String {
        versus::name(&self.workload, &self.arm)
    }

    /// Returns the name of the failed item with its arm.
    pub fn name_in_arm(&self) -> String {
        versus::name_in_arm(&self.workload, &self.arm)
    }
}

/// The effects of one treatment as charts; of a row without an interval there is no point yet.
pub fn charts_of_effects(rows: &[&Row]) -> Vec<Chart> {
    let is_bounded = |row: &&&Row| row.low_pct.or(row.high_pct).is_some();
    let rows = rows.iter().filter(is_bounded).filter(|row| row.effect_pct.is_finite());
    curve::charts(rows.filter_map(|row| {
        let point = CurvePoint {
            workload: row.workload.clone(),
            x: row.on_curve.as_ref()?.x,
            y: row.effect_pct,
            low: row.low_pct.filter(|pct| pct.is_finite()),
            high: row.high_pct.filter(|pct| pct.is_finite()),
        };
        Some((row.on_curve.as_ref()?, Quantity::Effect, point))
    }))
}
