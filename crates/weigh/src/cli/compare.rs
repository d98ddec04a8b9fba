//! `weigh compare`: what does a change cost?

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use clap::Args;

use super::again::Again;
use super::audience::Terminal;
use super::files::Files;
use super::hooks::Hooks;
use super::naming::Names;
use super::{ABOVE_LIMIT, Context, INCONCLUSIVE, INTERRUPTED, copies, go_on, output, value};
use crate::experiment::request::{Plan, Request};
use crate::experiment::session::{Done, execute};
use crate::experiment::summarise::summarise;
use crate::format;
use crate::result::gate::Above;
use crate::result::summary::{State, Summary};
use crate::result::work_name::WorkName;
use crate::store::record::Kind;
use crate::store::{self, Store};
use crate::treatment;
use crate::workload::metric::Metric;
use crate::workload::suite;
use paired::Verdict;
use paired::design::Design;
use paired::judge::MIN_PAIRS;
use paired::multiplicity::Multiplicity;

const EXAMPLES: &str = "\
Examples:
  sudo weigh compare audit
      Audit every system call of ten workloads, for at most two minutes.
  sudo weigh compare audit:rules=/etc/audit/audit.rules -w unixbench --budget 6m
      Your own rules and UnixBench's twelve workloads.
  weigh compare seccomp:profile=docker.json -- ./my-server-bench --quick
      Your own command under your own profile. If the command prints a line
      {\"operations\":N,\"elapsed_ns\":N}, that gives its rate; otherwise its run time does.
  weigh compare seccomp -w getppid -w stat --fail-above 3% --junit weigh.xml --github-summary
      For CI: exit status 1 if a workload is significantly more than 3 % slower.
  weigh compare seccomp --metric latency_p99 --metric peak_memory -w pipe
      Verdicts on the 99th percentile of an operation's time and on memory as well.
  weigh compare --continue k3f9qx --budget 5m
      Continue an experiment that has no verdict yet, or was interrupted.
  weigh compare seccomp --prepare 'make clean' -- make -j2
      A build: without --prepare, every run but the first would find nothing to do.
  sudo weigh compare fs:ext4 --base fs:xfs -w fstime
      File systems against each other, on a new one for every sample.
  weigh compare none
      Two identical arms (an A/A test): every difference found is a false alarm.

Environment:
  WEIGH_WORKLOADS=FILE  measure another build of the workloads instead of the embedded one, such as
                        one made with another compiler or other flags (docs/workloads.md)

`weigh list treatments` and `weigh list workloads` show what there is.

Exit status: 0 done, 1 a cost above --fail-above, 2 error or no result, 3 inconclusive, 130 interrupted.";

/// Weigh one or more treatments against a baseline
///
/// Runs every workload in pairs, once without and once with the treatment, in random order, until
/// each has a verdict (slower, faster or equivalent within the margin) or the budget is spent.
/// Verifies with every sample that the treatment was in force, and restores the system at the end.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct CompareArgs {
    /// What to weigh: NAME or NAME:PARAMETER=VALUE,… (docs/labels.md) [default: audit, or seccomp where
    /// auditing cannot be changed]
    #[arg(value_name = "TREATMENT")]
    treatments: Vec<String>,
    /// A workload, a suite, or a file with a suite; may be repeated [default: quick]
    #[arg(short, long = "workload", value_name = "WORKLOAD|SUITE")]
    workloads: Vec<String>,
    /// Treatment to compare against
    #[arg(long, value_name = "TREATMENT", default_value = "none")]
    base: String,
    /// What the workloads of all arms have around them (`weigh list fixtures`), such as fs:xfs; may be
    /// repeated
    #[arg(long = "fixture", value_name = "FIXTURE")]
    fixtures: Vec<String>,
    /// Stop measuring after this time, even if some rows have no verdict yet
    #[arg(long, value_name = "TIME", default_value = "2m", value_parser = value::duration)]
    #[arg(allow_hyphen_values = true)]
    budget: Duration,
    /// Measure exactly this many pairs per row and judge once, with Wilcoxon's test
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(MIN_PAIRS as i64..))]
    pairs: Option<u32>,
    /// Length of the timed part of a sample [default: 10ms to 250ms, chosen from the first pairs;
    /// with --pairs 20ms, or 70ms for audit, whose cost grows until its queue is full]
    #[arg(long, value_name = "TIME", value_parser = value::sample_length)]
    #[arg(conflicts_with = "command")]
    sample: Option<Duration>,
    /// Kill a launch that lasts longer; its workload has no result [default: 2m plus twice the sample
    /// length; for a command 24h]
    #[arg(long, value_name = "TIME", value_parser = value::duration)]
    timeout: Option<Duration>,
    /// Control the false discovery rate (e-BH) instead of the family-wise error rate (Holm); detects more
    /// when there are many rows
    #[arg(long, conflicts_with = "pairs")]
    fdr: bool,
    /// Differences smaller than this count as equivalent
    #[arg(long, value_name = "PERCENT", default_value = "1%", value_parser = value::percentage)]
    #[arg(allow_hyphen_values = true)]
    margin: f64,
    /// Seed of the random order; the same seed gives the same order
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// Repeat the whole experiment this many times, each time from scratch, and compare the sets
    /// (Nitzberg's Delta-1, Delta-2, Delta-3)
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=10))]
    sets: u32,
    /// Skip the detail pass, which measures the latency of single operations (p50, p99) after the pairs
    #[arg(long)]
    no_detail: bool,
    /// Continue a stored experiment for the time of --budget: measure more pairs of the same treatments and
    /// workloads, and judge all pairs together
    #[arg(long = "continue", value_name = "ID")]
    #[arg(conflicts_with_all = ["treatments", "workloads", "base", "pairs", "sample", "timeout", "fdr",
        "margin", "seed", "sets", "fixtures", "no_detail", "copies", "metrics", "command"])]
    go_on: Option<String>,
    /// Judge another metric of the same samples too, with a verdict of its own; may be repeated. peak_memory,
    /// block_input, block_output; latency_p50, latency_p90, latency_p99, latency_p99.9, for which every
    /// operation is timed by itself; or the name of a reading that your program reports
    #[arg(long = "metric", value_name = "NAME", value_delimiter = ',', value_parser = Metric::parse)]
    metrics: Vec<Metric>,
    /// Run this many copies of each workload at once, each pinned to a CPU; `all` for one per CPU
    #[arg(long, value_name = "N", default_value = "1", value_parser = value::copies)]
    #[arg(conflicts_with = "command")]
    copies: usize,
    /// Do not ask for confirmation of more than 16 copies per CPU
    #[arg(long)]
    yes: bool,
    /// Exit with status 1 if any workload is shown to cost more than this, with 95 % confidence over all
    /// rows together; passing does not prove that the cost is lower
    #[arg(long, value_name = "PERCENT", value_parser = value::percentage)]
    fail_above: Option<f64>,
    /// Exit with status 0 instead of 3 if some row stays inconclusive
    #[arg(long)]
    inconclusive_ok: bool,
    #[command(flatten)]
    names: Names,
    /// A command to weigh as a whole process, instead of workloads; options of weigh go before `--`
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<String>,
    #[command(flatten)]
    hooks: Hooks,
    #[command(flatten)]
    files: Files,
}

impl CompareArgs {
    pub fn run(mut self, context: &Context) -> Result<u8, String> {
        if !self.command.is_empty() && !self.workloads.is_empty() {
            return Err("give workloads with -w or a command after `--`, not both".into());
        }
        if self.command.is_empty()
            && std::env::args_os().next_back().is_some_and(|last| last == "--")
        {
            return Err("there is no command after `--`; is a shell variable unset?".into());
        }
        if self.command.first().is_some_and(String::is_empty) {
            return Err("the command after `--` is empty; is a shell variable unset?".into());
        }
        copies::confirm(&[self.copies], &self.workloads, self.yes)?;
        self.files.check()?;
        let store = context.open_store()?;
        let done = self.measure(&store, context)?;
        if self.go_on.is_some() {
            self.rename(&store, &done.id).map_err(|error| error.to_string())?;
        }
        let is_as_before = output::tell_what_is_left(done.left.as_deref());
        let stored = done.load(&store)?;
        let summary = summarise(&stored);
        let written = self.files.write(&summary, context);
        tell_errors(&summary);
        tell_what_is_above(&summary);
        done.not_kept.map_or(Ok(()), Err).and(written)?;
        Ok(match (is_as_before, exit_code(&summary, &stored.header.metrics)) {
            (false, _) => super::ERROR,
            (true, INCONCLUSIVE) if self.inconclusive_ok => 0,
            (true, code) => code,
        })
    }

    /// Another session may have another name and limit.
    fn rename(&self, store: &Store, id: &str) -> Result<(), store::Error> {
        store.set_naming(id, &self.names.naming())?;
        self.fail_above.map_or(Ok(()), |limit| store.set_fail_above(id, limit))
    }

    fn measure(&mut self, store: &Store, context: &Context) -> Result<Done, String> {
        if let Some(id) = &self.go_on {
            let interrupted = listen_for_signals()?;
            return go_on::run(id, self.budget, store, context, &interrupted);
        }
        if self.treatments.is_empty() {
            self.treatments.push(default_treatment());
        }
        let request = self.request(&context.again)?;
        let interrupted = listen_for_signals()?;
        let mut audience = Terminal {
            color: context.color,
            margin_pct: self.margin * 100.0,
            budget: self.budget,
            sets: self.sets as usize,
        };
        execute(&request, store, &mut audience, &interrupted)
    }

    fn request(&self, typed: &Again) -> Result<Request, String> {
        let labels = std::iter::once(&self.base).chain(&self.treatments);
        let arms = labels.map(|label| treatment::canonical(label)).collect::<Result<_, _>>()?;
        let seed = self.seed.unwrap_or_else(|| rand::random::<u32>().into());
        // What was drawn, and what depends on the machine.
        let again = typed.clone().of_these(&self.treatments).with("--seed", seed);
        let again = match self.copies {
            1 => again.without("--copies"),
            copies => again.with("--copies", copies),
        };
        let workloads = match self.workloads.is_empty() {
            true => vec!["quick".into()],
            false => self.workloads.clone(),
        };
        Ok(Request {
            kind: Kind::Compare,
            arms,
            suites: suite::from_files(&WorkName::names_of(&workloads)?)?,
            workloads,
            fixtures: treatment::canonical_fixtures(&self.fixtures)?,
            command: (!self.command.is_empty()).then(|| self.command.clone()),
            around: self.hooks.around(),
            copies: vec![self.copies],
            again: again.to_string(),
            seed,
            budget: self.budget,
            margin: self.margin,
            design: Design {
                margin: self.margin.ln_1p(),
                fixed_pairs: self.pairs.map(|pairs| pairs as usize),
                multiplicity: if self.fdr { Multiplicity::EBh } else { Multiplicity::Holm },
                ..Design::default()
            },
            sample_ms: self.sample.map(value::whole_ms),
            timeout: self.timeout,
            plan: Plan::Compare { sets: self.sets as usize },
            further_metrics: self.metrics.clone(),
            detail: !self.no_detail,
            naming: self.names.naming(),
            fail_above: self.fail_above,
        })
    }
}

/// What was asked for and has no verdict leaves a row open, be it that no sample has it.
fn exit_code(summary: &Summary, metrics: &[Metric]) -> u8 {
    let is_above = summary.gate.as_ref().is_some_and(|gate| !gate.passed);
    let unasked = [Metric::Rate, Metric::CpuTime];
    let is_open = summary.results.iter().any(|row| {
        let mut asked_for = metrics.iter().filter(|metric| !unasked.contains(metric));
        let has_verdict = |metric: &Metric| {
            let mut readings = row.readings.iter().filter(|reading| reading.metric == *metric);
            readings.any(|reading| reading.verdict != Verdict::Inconclusive)
        };
        row.verdict == Verdict::Inconclusive || asked_for.any(|metric| !has_verdict(metric))
    });
    match summary.state {
        State::Failed => super::ERROR,
        State::Interrupted => INTERRUPTED,
        _ if is_above => ABOVE_LIMIT,
        _ if summary.results.is_empty() || !summary.failures.is_empty() => super::ERROR,
        _ if is_open => INCONCLUSIVE,
        _ => 0,
    }
}

/// A job that fails is owed the reason, also where stdout goes elsewhere.
fn tell_what_is_above(summary: &Summary) {
    if let Some(gate) = summary.gate.as_ref().filter(|gate| !gate.passed) {
        let limit = format::margin(gate.fail_above_pct);
        let name = |row: &Above| format!("{} under {}", row.workload, row.treatment);
        let rows: Vec<String> = gate.above.iter().map(name).collect();
        output::problem(&format!("shown to cost more than {limit}: {}", rows.join(", ")));
    }
}

/// What makes the exit status that of an error, also where stdout goes elsewhere.
fn tell_errors(summary: &Summary) {
    if let Some(reason) = &summary.failure {
        output::problem(&format!("the experiment failed: {reason}"));
    }
    if !summary.failures.is_empty() {
        let names: BTreeSet<&WorkName> = summary.failures.iter().map(|f| &f.workload).collect();
        let names: Vec<String> = names.into_iter().map(WorkName::to_string).collect();
        let names = names.join(", ");
        output::problem(&format!("there is no result for {names}; the report says why"));
    }
}

/// Auditing is what most come for; who cannot change it gets an answer all the same.
fn default_treatment() -> String {
    let obstacle =
        treatment::find("audit").and_then(|kind| kind.probe().obstacle().map(str::to_owned));
    match obstacle {
        None => "audit".into(),
        Some(why) => {
            output::note(&format!("Weighing `seccomp` instead of `audit`: {why}."));
            "seccomp".into()
        }
    }
}

/// Ctrl-C, SIGTERM and SIGHUP end the experiment in good order; what was measured is kept.
pub fn listen_for_signals() -> Result<Arc<AtomicBool>, String> {
    use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
    let interrupted = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        signal_hook::flag::register(signal, Arc::clone(&interrupted))
            .map_err(|error| format!("cannot listen for signals: {error}"))?;
    }
    Ok(interrupted)
}
