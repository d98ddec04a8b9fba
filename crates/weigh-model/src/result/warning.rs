//! Warnings of reports as values. The store keeps them, and a report that is rendered or exported has their
//! sentences.
//!
//! The sentence of a kind stands beside its numbers: `thiserror` derives [`Display`](std::fmt::Display) from
//! it, which is the one renderer, though a warning is no error.

use serde::{Deserialize, Serialize, Serializer};
use serde_json::Value;
use thiserror::Error;

use crate::finding::Finding;
use crate::format::{clock, integer, plural, quoted, seconds};
use crate::result::work_name::{WORK, WorkName};

/// Description of a boot that failed, also for the console.
pub const BOOT_FAILED: &str = "failed: its kernel panicked or hung, or the power was cut. The machine then \
                               booted the normal entry";

/// A fact that a reader must know before believing the numbers. A `reason` or `problem` is the text of the
/// error that caused it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Error)]
#[serde(rename_all = "snake_case")]
pub enum Warning {
    #[error("{}", .0.sentence())]
    Machine(Finding),
    #[error(
        "Auditing was {change} by a different program during the measurement. Samples before and after are \
         not comparable: measure again."
    )]
    AuditingChanged { change: String },
    #[error(
        "The machine moved {} to or from swap during the measurement. Samples that waited for \
         swapped memory are slower: free memory, or turn swap off (`swapoff -a`), and measure again.",
        crate::format::bytes(*.bytes as f64)
    )]
    Swapped { bytes: u64 },
    #[error("The workloads come from {file}, not from this build of `weigh`.")]
    ForeignWorkloads { file: String },
    #[error("The workloads are statically linked, because this system lacks the dynamic loader.")]
    StaticWorkloads,
    #[error("Session {session}: {warning}")]
    InSession { session: usize, warning: Box<Warning> },
    #[error("Under `{arm}`: {warning}")]
    UnderArm { arm: String, warning: Box<Warning> },
    #[error("The machine differs: {what}.")]
    MachineDiffers { what: String },

    #[error(
        "The baseline is `none`, so the effect includes the cost of applying the treatment: {reason}."
    )]
    NoPlacebo { reason: String },
    #[error(
        "These treatments have no common placebo (the same steps without the effect), so the baseline is \
         `none`. Their effects include the cost of applying them. Compare each in its own experiment, or \
         use {}.",
        each(.placebos, |label| format!("`--base {label}`"), " or ")
    )]
    NoCommonPlacebo { placebos: Vec<String> },
    /// A sentence of a treatment: of a part that it could not do as asked, or of what it did not state when
    /// the experiment began.
    #[error("`{arm}`: {sentence}")]
    Treatment { arm: String, sentence: String },
    #[error(
        "`{arm}`: {language} differs from the baseline in {} factors ({}). The effect combines all of \
         them. To separate them, compare builds that differ in one factor.",
        .factors.len(), .factors.join(", ")
    )]
    InterpreterDiffers { arm: String, language: String, factors: Vec<String> },
    #[error("Boot {boot} (`{arm}`) {BOOT_FAILED}. `weigh` tried again.")]
    BootFailed { boot: usize, arm: String },

    #[error("No pair was interleaved: `{arm}` {reason}.")]
    CannotInterleave { arm: String, reason: String },
    #[error("No pair was interleaved: an arm is on a different machine.")]
    ArmElsewhere,
    #[error(
        "No pair was interleaved: samples of {sample_ms} ms are longer than {longest_ms} ms (--sample)."
    )]
    SamplesTooLong { sample_ms: u64, longest_ms: u64 },
    #[error(
        "Pairs of {} were sequential: only workloads that stay on one CPU, without a background load, can \
         be interleaved.",
        each(.workloads, |name| format!("`{name}`"), ", ")
    )]
    SequentialPairs { workloads: Vec<WorkName> },
    #[error(
        "{} changed to sequential pairs: {reason}. Only the sequential pairs count.",
        in_arm(.workload, .arm)
    )]
    LeftInterleaving { workload: WorkName, arm: String, reason: String },
    #[error("A pair was dropped because the connection was lost: {reason}.")]
    PairLost { reason: String },
    #[error(
        "`weigh` stopped measuring details of `{workload}` under `{arm}`: {reason}. The rates are not \
         affected."
    )]
    DetailAbandoned { workload: WorkName, arm: String, reason: String },
    #[error("Could not profile {workload} under `{arm}`: {problem}")]
    NotProfiled { workload: WorkName, arm: String, problem: String },
    #[error("Tracing ended after {traced} of {}: {reason}", plural(*.cells, "cell"))]
    TracingEnded { traced: usize, cells: usize, reason: String },
    #[error("{problem}")]
    CleanupFailed { problem: String },
    #[error("The experiment ended early: {problem}.")]
    EndedEarly { problem: String },

    #[error("The budget ended in pass {pass} of {passes}. Use a longer --budget.")]
    BudgetEndedInPass { pass: usize, passes: usize },
    #[error("The budget ended before {milestone}. Use a longer --budget.")]
    BudgetEndedBefore { milestone: Milestone },
    #[error(
        "{point} was not measured: the budget ({}) is too short. Use a longer --budget.",
        seconds(*.budget_s)
    )]
    NotMeasured { point: WorkName, budget_s: f64 },
    #[error(
        "No result for {}: the budget ended first. Use --budget {enough} or more.",
        some(.rows)
    )]
    BudgetTooSmall { rows: Vec<String>, enough: String },
    #[error("The ramp stopped at {point}, which failed: {reason}")]
    RampStopped { point: WorkName, reason: String },
    #[error("Under `{arm}`, the search for the peak stopped at {point}, which failed: {reason}")]
    SearchStopped { arm: String, point: WorkName, reason: String },
    #[error(
        "The budget is too short to compare {mix} at its peaks ({} without `{arm}`, {} with it). `weigh` \
         compared it at {} instead. Use a longer --budget.",
        plural(.peaks[0], "user"), plural(.peaks[1], "user"), plural(*.users, "user")
    )]
    BudgetBelowPeaks { mix: WorkName, arm: String, peaks: [usize; 2], users: usize },

    #[error(
        "{workload}: the first {what} came after {}, in pass {pass}: {kind} ({example}).",
        clock(*.after_s)
    )]
    FirstInEndurance {
        workload: WorkName,
        what: String,
        after_s: f64,
        pass: usize,
        kind: String,
        example: String,
    },
    #[error(
        "Each arm started its servers once, and the luck of a start is in all passes: there is no verdict. \
         To judge the rates over many starts, compare without --for."
    )]
    OneStartPerArm,
    #[error("{workload}: pass {pass} has no result: {problem}.")]
    PassFailed { workload: WorkName, pass: usize, problem: String },
    #[error("The cell {cell} had failed, so this session began it again: {reason}.")]
    CellRestarted { cell: WorkName, reason: String },
    #[error(
        "{workload}: its servers exited in pass {pass} of {passes}{}.",
        if .pass < .passes { "; the remaining passes are skipped" } else { "" }
    )]
    ServersExited { workload: WorkName, pass: usize, passes: usize },
    #[error("{workload}: {running} of {} did not exit when weigh stopped them.", plural(*.servers, "server"))]
    ServersStayed { workload: WorkName, running: usize, servers: usize },
    #[error(
        "{workload} under `{arm}`: {:.1} % of the answers were wrong ({} of {}): {kinds}. The rate counts \
         the good answers alone.",
        100.0 * *.wrong as f64 / *.answers as f64, integer(*.wrong), integer(*.answers)
    )]
    WrongAnswers { workload: WorkName, arm: String, wrong: u64, answers: u64, kinds: String },

    #[error(
        "The unit is operations per 10⁹ instructions (Ginstr), not per second. The emulated CPU has no \
         caches, no TLB and no CPU mitigations."
    )]
    PathLengths,
    #[error(
        "{disturbed} of {} were disturbed by other processes{} or heat. All pairs still count; the CSV marks \
         the disturbed ones. Most affected: {}, {} of {}.",
        plural(*.pairs, "pair"), if *.has_quota { ", the CPU quota" } else { "" }, quoted(.worst),
        .of_worst[0], .of_worst[1]
    )]
    Disturbed {
        disturbed: usize,
        pairs: usize,
        worst: String,
        of_worst: [usize; 2],
        /// True if a quota limits weigh: waiting for its next period looks like waiting for others.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        has_quota: bool,
    },
    #[error(
        "{}. Without the shell, the relative difference between the commands is larger than shown. Use -N to \
         execute them without a shell.",
        share_of_shell(.shell, *.start_ms, .command, *.run_ms)
    )]
    ShellStart { shell: String, start_ms: f64, command: String, run_ms: f64 },
    #[error(
        "Cannot read some settings of the experiment: {problem}. The report omits the shell, the treated \
         side (server or client) and the place of the clients. Use the version of weigh that measured it."
    )]
    RequestUnread { problem: String },
    #[error(
        "This report may lack the scores of a grid: {problem}. Use the version of weigh that \
         measured it."
    )]
    RequestOfRunUnread { problem: String },
    #[error("{machine}: its BTU is incomplete, so it has no rank.")]
    BtuIncomplete { machine: String },
    #[error(
        "{machine}: one sweep gives no interval, so the machine's rank is uncertain. Measure more sweeps."
    )]
    OneSweep { machine: String },
    #[error("{machine}: its links lost more packets than the grid drops on purpose.")]
    LinksLostPackets { machine: String },
    /// A doubt of the reader of a foreign file.
    #[error("{file}: {doubt}")]
    ImportedFile { file: String, doubt: String },

    /// A sentence out of an exported, stored or anonymised report, or of an experiment of an older weigh.
    #[error("{0}")]
    #[serde(untagged)]
    Sentence(String),
    /// A kind that only a newer weigh knows must not hide the experiment.
    #[error("A newer weigh stored a warning that this version cannot read: {0}.")]
    #[serde(untagged)]
    Unknown(Value),
}

impl Warning {
    /// As a warning about this session alone.
    pub fn in_session(self, session: usize) -> Warning {
        Warning::InSession { session, warning: Box::new(self) }
    }

    /// As a warning about this arm alone.
    pub fn under_arm(self, arm: &str) -> Warning {
        Warning::UnderArm { arm: arm.to_owned(), warning: Box::new(self) }
    }
}

/// Goal or step that the budget ended before.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, Error)]
#[serde(rename_all = "snake_case")]
pub enum Milestone {
    #[error("the interval of every load point was narrow enough")]
    NarrowPoints,
    #[error("the interval at the peak was narrow enough")]
    NarrowPeak,
    #[error("a peak was chosen")]
    Peak,
    #[error("the profiler ran")]
    Profiler,
    #[error("the cells were traced")]
    Trace,
    #[error("set {set} of {of} began")]
    Set { set: usize, of: usize },
}

/// Serializes warnings as their sentences, as documents have them.
pub fn as_sentences<S: Serializer>(warnings: &[Warning], to: S) -> Result<S::Ok, S::Error> {
    to.collect_seq(warnings.iter().map(Warning::to_string))
}

/// A row: a workload under a treatment, or a command.
fn in_arm(workload: &WorkName, arm: &str) -> String {
    match workload.name == WORK {
        true => quoted(arm),
        false => format!("{} under {}", quoted(workload), quoted(arm)),
    }
}

fn each<T>(items: &[T], shown: impl Fn(&T) -> String, between: &str) -> String {
    items.iter().map(shown).collect::<Vec<_>>().join(between)
}

/// All of a few names, or the first of many with their number: a grid has hundreds.
fn some(names: &[String]) -> String {
    const MOST: usize = 10;
    match names.len() {
        ..=MOST => each(names, String::clone, ", "),
        all => format!("{} and {} more", each(&names[..3], String::clone, ", "), all - 3),
    }
}

/// The start is measured on its own, so it may exceed a run that contains a start.
fn share_of_shell(shell: &str, start_ms: f64, command: &str, run_ms: f64) -> String {
    match start_ms < run_ms {
        true => format!(
            "Starting `{shell}` takes {start_ms:.2} ms of each {run_ms:.2} ms run of `{command}`"
        ),
        false => format!(
            "A run of `{command}` takes {run_ms:.2} ms; starting `{shell}` alone took {start_ms:.2} ms"
        ),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    /// Sentences, each with its warning as the store has it.
    const STORED: &str = include_str!("warnings.json");

    #[test]
    fn a_command_is_its_own_arm() {
        let left = |workload: &str, arm: &str| Warning::LeftInterleaving {
            workload: workload.into(),
            arm: arm.to_owned(),
            reason: "it waits".to_owned(),
        };
        let said =
            [left("stat", "audit"), left(WORK, "new --x")].map(|warning| warning.to_string());
        assert!(said[0].starts_with("`stat` under `audit` changed to sequential pairs: it waits"));
        assert!(said[1].starts_with("`new --x` changed to sequential pairs: it waits"));
    }

    #[test]
    fn hundreds_of_names_are_counted() {
        let rows: Vec<String> = (0..235).map(|at| format!("`{at}`")).collect();
        let warning = Warning::BudgetTooSmall { rows, enough: "20m".into() };
        assert!(warning.to_string().starts_with("No result for `0`, `1`, `2` and 232 more: "));
    }

    #[test]
    fn each_kind_comes_back_from_the_store_and_has_its_sentence() {
        let stored: BTreeMap<String, Value> = serde_json::from_str(STORED).unwrap();
        for (sentence, value) in &stored {
            let warning: Warning = serde_json::from_value(value.clone()).unwrap();
            assert_eq!(warning.to_string(), *sentence, "{warning:?}");
            assert_eq!(serde_json::to_value(&warning).unwrap(), *value);
            let is_unknown = matches!(warning, Warning::Unknown(_));
            assert_eq!(is_unknown, sentence.starts_with("A newer weigh"), "{warning:?}");
        }
        let (declared, _) = include_str!("warning.rs").split_once("impl Warning").unwrap();
        let kinds = declared.matches("#[error(").count();
        // Three kinds have two sentences each, and one has six.
        assert_eq!(stored.len(), kinds + 8, "each kind is in warnings.json");
    }
}
