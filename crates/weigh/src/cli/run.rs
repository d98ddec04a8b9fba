//! `weigh run`: this machine alone.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use clap::Args;

use super::copies::{self, Copies};
use super::endurance::EnduranceOptions;
use super::files::Files;
use super::formats::csv_of;
use super::measuring::{BesideOptions, FixtureOption, Measuring, also, defaults_to};
use super::mixes::Mixes;
use super::progress_sink::Terminal;
use super::reproduce::ReproduceCommand;
use super::run_plans::{ChosenPlan, OTHER_ENDS};
use super::{Context, INCONCLUSIVE, INTERRUPTED, exit_status, output, repeated, value};
use weigh_engine::length::LONG_START_MS;
use weigh_engine::request::{Passes, Plan, Request, Run, Workloads};
use weigh_engine::run_report;
use weigh_engine::session::{Done, execute};
use weigh_host::interruption::listen_for_signals;
use weigh_host::machine;
use weigh_model::hardware_speed::{self, HardwareSpeed, PartRate};
use weigh_model::result::repeated::RepeatedReport;
use weigh_model::result::run::RunReport;
use weigh_model::result::summary::State;
use weigh_model::result::work_name::{NET, WorkName};
use weigh_model::workload::{mix, suite};
use weigh_store::Store;
use weigh_verdict::ramp::RampGoal;
use weigh_verdict::repeated::length;

const SHORTEST_P99: Duration = Duration::from_micros(100);
/// A client gives up then.
const LONGEST_P99: Duration = Duration::from_secs(10);
/// Default length of a pass of --capacity, in ms.
const PROBE_MS: u64 = 2000;

const BUDGET_HELP: &str = "Stop measuring after this time. Rows may then have fewer samples. A time that is \
                           too short for a sample of each row is refused [default: no limit]";
pub const RATE_OF_CLIENTS: &str =
    ". With --for: requests that the clients together start per second";

const EXAMPLES: &str = "\
Examples:
  weigh run
      Measure the suite `quick`. Add --budget 20s to stop earlier, with fewer samples.
  weigh run unixbench
      Show UnixBench's index, for one copy and for one copy per CPU.
  weigh run unixbench --classic
      Use UnixBench's own durations and passes; takes an hour.
  weigh run getppid --copies 1..all
      Does it scale? Draw a curve over 1, 2, … copies, up to one per CPU.
  weigh run memory --html memory.html
      At which size does memory get slow? Draw curves over the size.
  weigh run stat getppid --samples 50 --json -
  weigh run disk_brd disk_rr --cold
      Read from the disk, not from the page cache; rows disk_brd@cold, …
  weigh run app:web.cookie@nginx-fpm --clients 8 --for 2h
      Does the server still answer after two hours?
  weigh run app:web.cookie@nginx-fpm --clients 64 --capacity p99=50ms
      How many requests per second can it answer, 99 of 100 within 50 ms?

Environment:
  WEIGH_WORKLOADS=FILE  measure this file instead of the embedded workloads,
                        such as a build by another compiler (docs/workloads.md)

Exit status: 0 done, 2 error or no result, 130 interrupted.";

/// Measure this machine without a comparison, as UnixBench and lmbench do
///
/// Runs all workloads one after the other, in several passes, and shows the median rate of each with its
/// spread, in operations per second or another unit of the workload. Gives no verdicts: two runs differ for
/// many reasons, so use `weigh compare` for a comparison.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
#[command(mut_arg("budget", |budget| budget.help(BUDGET_HELP).conflicts_with_all(OTHER_ENDS)))]
#[command(mut_arg("csv", |csv| csv_of(csv, "sample")))]
#[command(mut_arg("lasting", |lasting| lasting.conflicts_with_all(["sample", "classic"])))]
#[command(mut_arg("rate", |rate| also(rate, RATE_OF_CLIENTS)))]
#[command(mut_arg("timeout", |timeout| defaults_to(timeout, "2m plus twice the sample length")))]
pub struct RunArgs {
    /// Workloads or suites to measure, such as stat or unixbench. May be files with suites, such as ./my.toml
    /// [default: quick]
    #[arg(value_name = "WORKLOAD|SUITE")]
    workloads: Vec<String>,
    /// Measure each test of this workfile of re-aim alone, as its -o does. May be a mix in TOML
    #[arg(long, value_name = "FILE", hide_short_help = true)]
    workfile: Option<PathBuf>,
    #[command(flatten)]
    plan: ChosenPlan,
    /// Length of the timed part of a sample, such as 100ms [default: 70ms; 2s with --capacity]
    #[arg(long, value_name = "TIME", value_parser = value::sample_length)]
    sample: Option<Duration>,
    /// Lengths of samples to compare, such as 2s,4s,8s. Measures everything with each length, as an
    /// experiment of its own, and shows how much the rates change from sample to sample
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = value::sample_length)]
    #[arg(conflicts_with_all = ["sample", "lasting", "capacity", "classic"], hide_short_help = true)]
    lengths: Vec<Duration>,
    #[command(flatten)]
    endurance: EnduranceOptions,
    /// Find a server's highest request rate while its p99 answer time is below TIME. With p99=50ms, 99 % of
    /// the answers arrive within 50 ms. For workloads that send requests to a server.
    ///
    /// Requests start at random moments, whether or not earlier answers have come (open loop). weigh
    /// searches six times, each time with newly started servers, for about a minute each. It shows the
    /// median and range of the six results (docs/applications-load.md).
    #[arg(long, value_name = "p99=TIME", value_parser = p99,
          conflicts_with_all = ["lasting", "classic", "rate"])]
    capacity: Option<Duration>,
    #[command(flatten)]
    measuring: Measuring,
    /// Copies to run at once, such as 1..all. Each is pinned to a CPU; `all` runs one per CPU that weigh may
    /// use (docs/doctor.md). For workloads that send requests to a server, it is the number of clients.
    /// Several numbers, such as 1,2,4 or 1..all, make a curve [default: 1; for suites with an index, and with
    /// --classic, `1,all` as in UnixBench]
    ///
    /// A range of more than eight numbers is measured at its first and last number and the powers of two
    /// between.
    #[arg(long, visible_alias = "clients", value_name = "N", value_parser = Copies::parse)]
    copies: Option<Copies>,
    #[command(flatten)]
    fixtures: FixtureOption,
    #[command(flatten)]
    beside: BesideOptions,
    #[command(flatten)]
    mixes: Mixes,
    /// Do not ask before running more than 16 copies per CPU
    #[arg(long, hide_short_help = true)]
    yes: bool,
    /// Measure for as long, and as often, as the original suite does, such as UnixBench. Use its scoring
    #[arg(long, conflicts_with = "sample")]
    classic: bool,
    #[command(flatten)]
    files: Files,
}

impl RunArgs {
    pub fn run(mut self, context: &Context) -> Result<u8, String> {
        if let Some(file) = &self.workfile {
            let (tests, doubts) = mix::tests_alone(file)?;
            doubts.iter().for_each(|doubt| output::note(doubt));
            self.workloads.extend(tests);
        }
        if self.workloads.is_empty() {
            self.workloads.push("quick".into());
        }
        self.files.check()?;
        refuse_grids(&self.workloads)?;
        self.endurance.check()?;
        let wanted = self.copies.as_ref().map_or(&[][..], |copies| &copies.0);
        copies::confirm(wanted, &self.workloads, self.yes)?;
        if !self.lengths.is_empty() {
            return self.compare_lengths(context);
        }
        let request = self.request(&context.again)?;
        let store = context.open_store_for(&request)?;
        let interrupted = listen_for_signals()?;
        let mut terminal = Terminal::of_run(context.color);
        let done = execute(&request, &store, &mut terminal, &interrupted)?;
        let kept = match self.is_of_hardware() {
            true => keep_hardware(&done, &store, context),
            false => Ok(()),
        };
        let ended = end(&done, |_| true, &store, &self.files, context);
        kept.and(ended)
    }

    /// White's study of durations.
    fn compare_lengths(self, context: &Context) -> Result<u8, String> {
        self.files.check_without_table()?;
        let lengths = self.lengths.clone();
        let mut one = RunArgs { lengths: Vec::new(), ..self };
        let mut requests = Vec::new();
        for length in &lengths {
            one.sample = Some(*length);
            let milliseconds = format!("{}ms", value::whole_ms(*length));
            let typed = context.again.clone().without("--lengths");
            requests.push(one.request(&typed.with("--sample", milliseconds))?);
        }
        let answers = |runs: &[RunReport]| {
            let of_lengths = lengths.iter().map(Duration::as_secs_f64).zip(runs);
            let lengths = of_lengths.map(|(seconds, run)| length(seconds, run)).collect();
            RepeatedReport { lengths, ..RepeatedReport::default() }
        };
        repeated::run(&requests, |_| true, answers, &one.files, context)
    }

    fn request(&self, typed: &ReproduceCommand) -> Result<Request, String> {
        let names = WorkName::names_of(&self.workloads)?;
        let suites = suite::from_files(&names)?;
        let copies = match &self.copies {
            Some(copies) => copies.clone(),
            None => Copies::default_of(&names, &suites, self.classic)?,
        };
        // The file may be another one by then.
        let mut again = typed.clone().without("--workfile").of_these(&self.workloads);
        // What the default is depends on the machine.
        if self.copies.is_some() || copies != Copies(vec![1]) {
            again = again.with("--copies", &copies);
        }
        let sample_ms = match self.endurance.pass_length() {
            Some(pass) => value::whole_ms(pass),
            None => self.sample.map_or(
                if self.capacity.is_some() { PROBE_MS } else { LONG_START_MS },
                value::whole_ms,
            ),
        };
        let run = Run {
            workloads: Workloads {
                names: self.workloads.clone(),
                suites,
                mixes: self.mixes.read(&names)?,
                job_sizes: self.mixes.sizes_of_run(self.endurance.lasting.is_some()),
                copies: copies.0,
                beside: self.beside.beside.clone(),
                client: self.beside.client.clone(),
            },
            fixtures: self.fixtures.labels()?,
            sample_ms,
            passes: self.passes(),
        };
        // Of the sizes of the environment, and of when requests begin in an open loop.
        let common = self.measuring.common(&again, self.measuring.seed()?);
        Ok(Request { common, plan: Plan::Run(run) })
    }

    /// Returns true if this measures the suite `hardware` alone, as it is.
    fn is_of_hardware(&self) -> bool {
        self.workloads == [hardware_speed::SUITE]
            && self.copies.is_none()
            && matches!(self.fixtures.labels().as_deref(), Ok([]))
            && self.beside.beside.is_empty()
            && matches!(self.passes(), Passes::Planned { .. })
    }

    fn passes(&self) -> Passes {
        if let Some(p99) = self.capacity {
            return Passes::Capacity { p99_ns: p99.as_nanos() as f64 };
        }
        match self.endurance.passes(self.mixes.per_1000s()) {
            Some(endurance) => Passes::Endure(endurance),
            None if self.classic => Passes::Classic,
            None => self.plan.clone().passes(),
        }
    }
}

/// Keeps the rates of the suite `hardware` for later reports, if all of it was measured.
fn keep_hardware(done: &Done, store: &Store, context: &Context) -> Result<(), String> {
    let report = run_report::report(&done.load(store)?);
    let stored = done.load(store)?;
    let is_whole = report.results.len() == stored.header.works.len();
    if done.state != State::Complete || !report.failures.is_empty() || !is_whole {
        return Ok(());
    }
    let rates = report.results.iter().map(|row| {
        let part = PartRate { rate: row.rate, unit: row.unit.clone() };
        (row.workload.to_string(), part)
    });
    let found = HardwareSpeed {
        experiment: report.id.clone(),
        started: report.started.clone(),
        hostname: report.machine.hostname.clone(),
        cpu_model: report.machine.cpu_model.clone(),
        rates: rates.collect(),
    };
    let kept = context.data_directory()?;
    machine::hardware_speed::keep(&found, &kept)
        .map_err(|error| format!("{}: {error}", kept.display()))
}

/// Measures this machine alone, writes the reports, and gives the exit status.
pub fn measure(
    request: &Request,
    store: &Store,
    files: &Files,
    context: &Context,
    interrupted: &Arc<AtomicBool>,
) -> Result<u8, String> {
    let done = execute(request, store, &mut Terminal::of_run(context.color), interrupted)?;
    end(&done, |report| has_its_answer(request, report), store, files, context)
}

/// Returns false if no sweep over a grid of the network is complete.
pub fn is_swept(report: &RunReport) -> bool {
    report.net.as_ref().is_none_or(|net| net.sweeps > 0)
}

/// Returns false if a peak was sought and rounds confirm none, or if no sweep is complete.
pub fn has_its_answer(request: &Request, report: &RunReport) -> bool {
    let seeks_peak = matches!(&request.plan, Plan::Ramp(load) if load.ramp.goal == RampGoal::Peak);
    // A ramp that ended at its first point has no curve.
    let mut curves = report.loads.iter();
    let has_peak =
        !seeks_peak || curves.len() > 0 && curves.all(|answers| answers.best().is_some());
    has_peak && is_swept(report)
}

/// Finishes a measured run. `is_decided` is false of a report without the answer that was asked for.
pub fn end(
    done: &Done,
    is_decided: impl Fn(&RunReport) -> bool,
    store: &Store,
    files: &Files,
    context: &Context,
) -> Result<u8, String> {
    let is_as_before = output::tell_what_is_left(done.left.as_deref());
    let mut report = run_report::report(&done.load(store)?);
    if !done.is_stored() {
        report.id.clear();
    }
    let (has_failed, is_decided) = (!report.failures.is_empty(), is_decided(&report));
    let written = files.write(report.into(), context);
    done.not_kept.clone().map_or(Ok(()), Err).and(written)?;
    let status = match done.state {
        State::Failed => super::ERROR,
        State::Interrupted => INTERRUPTED,
        _ if has_failed => super::ERROR,
        _ if !is_decided => INCONCLUSIVE,
        _ => 0,
    };
    Ok(exit_status(is_as_before, status))
}

/// A grid is measured cell by cell, which another command does.
fn refuse_grids(labels: &[String]) -> Result<(), String> {
    let names = WorkName::names_of(labels)?;
    match names.iter().find_map(|name| name.strip_prefix(NET)) {
        Some(grid) => Err(format!(
            "`{NET}{grid}` is a grid of network cells: `weigh net --grid {grid}` measures it"
        )),
        None => Ok(()),
    }
}

/// Parses a limit such as `p99=50ms`.
fn p99(text: &str) -> Result<Duration, String> {
    let time = text.strip_prefix("p99=").ok_or("write the percentile and its limit: p99=50ms")?;
    let parsed: Option<jiff::SignedDuration> = time.parse().ok();
    parsed
        .and_then(|time| Duration::try_from(time).ok())
        .filter(|time| (SHORTEST_P99..=LONGEST_P99).contains(time))
        .ok_or_else(|| "takes a time from 100us to 10s, such as p99=50ms".into())
}
