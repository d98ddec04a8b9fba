//! `weigh run`: this machine alone.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use super::audience::Terminal;
use super::compare::listen_for_signals;
use super::{Context, INTERRUPTED, output, value};
use crate::experiment::length::START_MS;
use crate::experiment::request::{Plan, Request};
use crate::experiment::run_report::RunReport;
use crate::experiment::session::execute;
use crate::report::format;
use crate::report::summary::State;
use crate::shell::command_line;
use crate::stats::design::Design;
use crate::store::record::{Kind, Stored};

const EXAMPLES: &str = "\
Examples:
  weigh run                      the suite quick
  weigh run unixbench            with UnixBench's index, in half a minute
  weigh run unixbench --classic  with UnixBench's own durations and passes, in half an hour
  weigh run unixbench --copies all
                                 as many copies of each at the same time as there are CPUs
  weigh run stat getppid --samples 50 --json -";

/// Measure this machine alone, in the units people use
///
/// Passes over all workloads in turn and shows the median rate with its spread. For a comparison,
/// use `weigh compare`: two runs that were made one after the other differ for many reasons.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Run {
    /// Workloads, suites, or files with suites [default: quick]
    #[arg(value_name = "WORKLOAD|SUITE")]
    workloads: Vec<String>,
    /// Samples per workload
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u32).range(3..))]
    samples: u32,
    /// Length of the timed part of a sample [default: 70ms]
    #[arg(long, value_name = "TIME", value_parser = value::sample_length)]
    sample: Option<Duration>,
    /// Copies of each workload at the same time, each pinned to a CPU; `all` for one per CPU
    #[arg(long, value_name = "N", default_value = "1", value_parser = value::copies)]
    copies: usize,
    /// Measure as long and as often as the suite's original, and score as it does
    #[arg(long, conflicts_with_all = ["samples", "sample"])]
    classic: bool,
    /// Write the results as JSON; `-` is stdout
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

impl Run {
    pub fn run(mut self, context: &Context) -> Result<u8, String> {
        if self.workloads.is_empty() {
            self.workloads.push("quick".into());
        }
        if let Some(path) = &self.json {
            output::check_writable(path)?;
        }
        let store = context.open_store()?;
        let request = self.request();
        let interrupted = listen_for_signals()?;
        let mut audience =
            Terminal { color: context.color, margin_pct: 1.0, budget: Duration::ZERO, sets: 1 };
        let done = execute(&request, &store, &mut audience, &interrupted)?;
        audience.end_of_samples();
        let is_as_before = output::tell_what_is_left(done.left.as_deref());
        let stored = store.load(&done.id).map_err(|error| error.to_string())?;
        if let Some(path) = &self.json {
            output::write_report(path, &RunReport::new(&stored).json())?;
        }
        if self.json.as_deref() != Some(std::path::Path::new("-")) {
            let colour = output::wants_colour(context.color, &std::io::stdout());
            output::print(&render(&stored, colour))?;
        }
        Ok(match done.state {
            State::Failed => super::ERROR,
            State::Interrupted => INTERRUPTED,
            _ if !is_as_before || !stored.failures.is_empty() => super::ERROR,
            _ => 0,
        })
    }

    fn request(&self) -> Request {
        let mut words: Vec<String> = ["weigh", "run"].map(String::from).to_vec();
        words.extend(self.workloads.iter().cloned());
        if self.copies > 1 {
            words.extend(["--copies".into(), self.copies.to_string()]);
        }
        if self.classic {
            words.push("--classic".into());
        } else {
            words.extend(["--samples".into(), self.samples.to_string()]);
            if let Some(sample) = self.sample {
                words.extend(["--sample".into(), format!("{}ms", value::whole_ms(sample))]);
            }
        }
        Request {
            kind: Kind::Run,
            arms: vec!["none".into()],
            workloads: self.workloads.clone(),
            command: None,
            copies: self.copies,
            again: command_line(words.iter().map(String::as_str)),
            seed: 0,
            budget: Duration::ZERO,
            margin: 0.01,
            design: Design::default(),
            sample_ms: Some(self.sample.map_or(START_MS, value::whole_ms)),
            plan: match self.classic {
                true => Plan::Classic,
                false => Plan::Run { passes: self.samples as usize },
            },
            detail: false,
        }
    }
}

/// The report of a run, as text.
pub fn render(stored: &Stored, colour: bool) -> String {
    let report = RunReport::new(stored);
    let mut text = String::new();
    if let Some(failure) = &report.failure {
        let _ = writeln!(text, "Failed: {failure}\n");
    }
    if report.state == State::Interrupted {
        text.push_str("Interrupted; this is what was measured until then.\n\n");
    }
    let has_index = report.results.iter().any(|row| row.index.is_some());
    let head = format!(
        "{:<17} {:>12} {:<7} {:>8}  {:>25} {:>8}{}",
        "workload",
        "rate",
        "unit",
        "spread",
        "lowest to highest",
        "samples",
        if has_index { format!("{:>9}", "index") } else { String::new() }
    );
    let _ = writeln!(text, "{}", if colour { format!("\x1b[1m{head}\x1b[0m") } else { head });
    for row in &report.results {
        let range =
            format!("{} to {}", format::rate(row.lowest, ""), format::rate(row.highest, ""));
        let index = row.index.map(|index| format!("{index:>9.1}")).unwrap_or_default();
        let _ = writeln!(
            text,
            "{:<17} {:>12} {:<7} {:>8}  {:>25} {:>8}{}",
            row.workload,
            format::rate(row.rate, "").trim(),
            row.unit,
            format!("±{} %", format::unsigned(row.spread_pct)),
            range,
            row.samples,
            index
        );
    }
    text.push_str(&compare_copies(&report));
    for index in &report.indices {
        let _ = writeln!(text, "\n{}", index.sentence());
    }
    for failure in &report.failures {
        let _ = writeln!(text, "\n{} gave no result: {}", failure.workload, failure.reason);
    }
    let _ = writeln!(text, "\nAgain: {}\nKept:  `weigh show {}`", report.command, report.id);
    text
}

/// How evenly the copies of each workload ran.
fn compare_copies(report: &RunReport) -> String {
    let mut text = String::new();
    for row in &report.results {
        let Some(copies) = &row.copies else { continue };
        let _ = writeln!(
            text,
            "{:<17} {:>12} to {} {} a copy, coefficient of variation {} %",
            row.workload,
            format::rate(copies.lowest, "").trim(),
            format::rate(copies.highest, "").trim(),
            row.unit,
            format::unsigned(copies.variation_pct)
        );
    }
    if text.is_empty() { text } else { format!("\nThe copies of each, alone:\n{text}") }
}
