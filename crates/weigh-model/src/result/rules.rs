//! Costs of audit rules, line by line: the report of `weigh rules`.
//!
//! Each cost applies to one process that the rules are in force for. All per-operation lists have
//! the order of [`RuleReport::operations`].

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::facts::Facts;
use crate::format;
use crate::result::warning::{Warning, as_sentences};

/// The version of the JSON document; it changes when a field changes its meaning or goes.
pub const SCHEMA: &str = "weighbridge/rules/1";

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CostMetric {
    /// Instructions of the kernel, by the PMU: the same on every run.
    Instructions,
    /// Nanoseconds; where there is no PMU.
    Nanoseconds,
}

impl CostMetric {
    /// A cost with its unit, for a sentence: `≈ 1.02 µs`, `3,120 instructions`. What the clock tells of
    /// nanoseconds is an estimate.
    pub fn amount(self, value: f64) -> String {
        match self {
            CostMetric::Instructions => format!("{} instructions", format::number(value)),
            CostMetric::Nanoseconds if value < 0.0 => format!("≈ −{}", format::time_ns(-value)),
            CostMetric::Nanoseconds => format!("≈ {}", format::time_ns(value)),
        }
    }
}

/// A cost, in the report's metric, with its 95 % interval.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(from = "WrittenCost")]
pub struct CostInterval {
    pub value: f64,
    pub low: f64,
    pub high: f64,
}

/// As JSON has it, where what is no finite number is a `null`.
#[derive(Deserialize)]
struct WrittenCost {
    value: Option<f64>,
    low: Option<f64>,
    high: Option<f64>,
}

impl From<WrittenCost> for CostInterval {
    fn from(written: WrittenCost) -> CostInterval {
        CostInterval {
            value: written.value.unwrap_or(f64::NAN),
            low: written.low.unwrap_or(f64::NEG_INFINITY),
            high: written.high.unwrap_or(f64::INFINITY),
        }
    }
}

impl CostInterval {
    /// A part of it in per cent; `None` where it may be nothing.
    pub fn share_pct(self, part: f64) -> Option<f64> {
        (self.low > 0.0).then(|| 100.0 * part / self.value)
    }
}

/// The whole answer.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RuleReport {
    /// Always [`SCHEMA`].
    pub schema: String,
    /// In the store; empty before it is there.
    #[serde(default)]
    pub id: String,
    /// The command line that measures this again.
    pub command: String,
    pub metric: CostMetric,
    /// True if all costs are estimates: times, which differ from run to run.
    pub is_estimate: bool,
    pub machine: Facts,
    /// Findings of `weigh doctor` that disturb a measurement, taken when it began.
    #[serde(serialize_with = "as_sentences")]
    pub warnings: Vec<Warning>,
    pub operations: Vec<OperationCosts>,
    /// Source of the operations' weights: a profile's command, or the default mix without a
    /// profile; a phrase.
    pub mix: String,
    /// Every line of the files that is neither blank nor a comment, in the order of loading.
    pub lines: Vec<LineReport>,
    pub classes: Vec<Class>,
    pub rewrites: Vec<Rewrite>,
    /// Measurements that belong here and could not be made.
    pub not_measured: Vec<NotMeasured>,
    /// Per system call of the mix, what all rules together add to a process that no audit rule
    /// concerns: measured with all of them loaded.
    pub total: CostInterval,
    /// Total in nanoseconds, in either metric; with the metric `instructions` measured separately
    /// by the clock.
    pub total_ns: CostInterval,
    /// Per system call of the mix, the part of that which any single rule brings.
    pub armed: CostInterval,
    /// Per system call of the mix, the sum of what the classes cost by themselves.
    pub sum_of_lines: CostInterval,
    /// The sum of the rules alone that were left out one by one, and confirmed.
    pub sum_of_confirmed: CostInterval,
    /// Extra CPU time of the profile's program, in per cent of what it used, for going through the rules;
    /// only with a profile.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub profile_cpu_pct: Option<CostInterval>,
    /// And for records, as far as the profile tells that they are made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub profile_records: Option<ProfileRecords>,
    /// Notes that a reader must know, in whole sentences.
    pub notes: Vec<String>,
    /// Seconds that measuring took.
    pub elapsed_s: f64,
}

/// Something that the cost was weighed on.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct OperationCosts {
    /// `getppid`, `read`, `stat`, `open-close`, `create-unlink`, `fork`, `exec`.
    pub name: String,
    pub syscalls_per_op: f64,
    /// Operations per system call of the mix.
    pub weight: f64,
    /// Without an audit context, with one and a rule that concerns nobody, with all rules.
    pub clean: CostInterval,
    pub armed: CostInterval,
    pub full: CostInterval,
    /// By the clock, where the metric is another.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub elapsed_ns: Option<Elapsed>,
}

/// Nanoseconds of an operation at the three levels.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Elapsed {
    pub clean: CostInterval,
    pub armed: CostInterval,
    pub full: CostInterval,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct LineReport {
    pub file: PathBuf,
    /// Counted from 1.
    pub number: usize,
    pub text: String,
    pub fate: Fate,
    /// As `the path does not exist`: phrases.
    pub warnings: Vec<String>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Fate {
    Loaded(Box<LineCost>),
    /// This host had the very rule before; it was left alone and not weighed.
    Present,
    /// `auditctl` or the kernel refused it, with this reason.
    Refused(String),
    /// Not a rule, or one that a measurement must not carry out; the reason.
    Skipped(String),
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct LineCost {
    /// Cost added to each operation that the rule does not match; for operations that it matches
    /// see `matched`.
    pub per_operation: Vec<CostInterval>,
    /// Cost added per system call of the mix.
    pub per_syscall: CostInterval,
    pub standing: Standing,
    /// Index into [`RuleReport::classes`].
    pub class: usize,
    /// Only of rules that make records, which `never` does not.
    pub matched: Option<Matched>,
}

/// How well a rule's cost is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Standing {
    /// Leaving this one rule out of the loaded set gave its cost back, twice.
    Confirmed,
    /// Figure of the rule's class, which the kernel treats alike: the rule's own cost is too small
    /// to measure.
    OfItsClass,
    /// Leaving out this one rule gave back something else than what is shown, and not the same twice: the
    /// figure is that of its class, or the mean, and the interval reaches from the one to the other.
    Contradicted,
    /// Below what can be told apart: its class as a whole is not to be told from nothing.
    BelowResolution,
    /// It costs nothing: counted, and zero.
    Nothing,
}

impl Standing {
    /// Returns true if a figure of this rule can be shown.
    pub fn has_figure(self) -> bool {
        matches!(self, Standing::Confirmed | Standing::OfItsClass | Standing::Contradicted)
    }
}

/// Cost of a system call that matches the rule.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Matched {
    /// The operation that it was measured on, or that its system calls resemble.
    pub operation: String,
    pub records: f64,
    pub log_bytes: f64,
    /// Nanoseconds, in either metric.
    pub elapsed_ns: f64,
    /// True if the figures come from the operation under a rule of ours, not under this rule.
    pub is_estimate: bool,
}

/// Rules that the kernel treats alike.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Class {
    /// As `directory watches`.
    pub title: String,
    pub rules: usize,
    /// Per system call of the mix, of all of them together.
    pub per_syscall: CostInterval,
    /// The sum of what each of them gives back when it alone is left out, where that is not the same.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub one_by_one: Option<CostInterval>,
    /// Share of the sum of all lines, in per cent; `None` where that sum is too small to detect.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub share_pct: Option<f64>,
}

/// Records that a program makes whatever it does besides: of calls that a rule has no condition for.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ProfileRecords {
    /// Their names.
    pub calls: Vec<String>,
    /// Share of the program's CPU time, in per cent.
    pub cpu_pct: f64,
}

/// Something that was not measured; all else is.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct NotMeasured {
    /// A phrase.
    pub what: String,
    /// A sentence, or what follows `because`.
    pub why: String,
}

/// Another way to write some of the rules.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Rewrite {
    /// As `list the system calls instead of watching the directory /etc/`.
    pub title: String,
    /// Indices into [`RuleReport::lines`]; empty where only something is added.
    pub replaces: Vec<usize>,
    /// How many lines of `with` take the place of each of `replaces`, in its order. Older reports
    /// lack it: they have as many for each.
    #[serde(default)]
    pub with_each: Vec<usize>,
    /// Lines to put there, or at the very beginning.
    pub with: Vec<String>,
    pub is_first: bool,
    /// Records that the new rules no longer make, where they record less.
    pub gives_up: Option<String>,
    /// Measured with the rewrite loaded in place of the originals: positive is cheaper.
    pub saving_per_operation: Vec<CostInterval>,
    pub saving_per_syscall: CostInterval,
}
