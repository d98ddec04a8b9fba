//! `weigh run`: this machine alone.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use super::again::{Again, OUTPUT};
use super::audience::Terminal;
use super::copies::{self, Copies};
use super::files::default_html;
use super::naming::Names;
use super::pairing::listen_for_signals;
use super::show::{self, Privacy};
use super::{Context, INTERRUPTED, output, value};
use crate::experiment::around::Around;
use crate::experiment::length::LONG_START_MS;
use crate::experiment::request::{Plan, Request};
use crate::experiment::run_report;
use crate::experiment::session::execute;
use crate::report::dialect::Dialect;
use crate::report::terminal::Screen;
use crate::report::{run_page, run_text};
use crate::result::summary::State;
use crate::result::work_name::WorkName;
use crate::store::record::{Kind, Stored};
use crate::treatment;
use crate::workload::suite;
use paired::design::Design;

const EXAMPLES: &str = "\
Examples:
  weigh run                      the suite quick
  weigh run unixbench            with UnixBench's index: for one copy, and for one copy per CPU
  weigh run unixbench --classic  with UnixBench's own durations and passes; takes an hour
  weigh run unixbench --copies 1 one copy only, in half the time
  weigh run getppid --copies 1..all
                                 does it scale? One copy, two, … one per CPU, as a curve
  weigh run memory --html memory.html
                                 where does memory get slow? Curves over the size
  weigh run stat getppid --samples 50 --json -

Environment:
  WEIGH_WORKLOADS=FILE  measure another build of the workloads instead of the embedded one, such as
                        one made with another compiler or other flags (docs/workloads.md)

Exit status: 0 done, 2 error or no result, 130 interrupted.";

/// Measure this machine alone, in the units people use
///
/// Measures all workloads in turn, in several passes, and shows the median rate with its spread. For a
/// comparison, use `weigh compare`: two separate runs differ for many reasons.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct RunArgs {
    /// Workloads, suites, or files with suites [default: quick]
    #[arg(value_name = "WORKLOAD|SUITE")]
    workloads: Vec<String>,
    /// Samples per workload
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u32).range(3..))]
    samples: u32,
    /// Length of the timed part of a sample [default: 70ms]
    #[arg(long, value_name = "TIME", value_parser = value::sample_length)]
    sample: Option<Duration>,
    /// Kill a launch that lasts longer; its workload has no result [default: 2m plus twice the sample
    /// length]
    #[arg(long, value_name = "TIME", value_parser = value::duration)]
    timeout: Option<Duration>,
    /// Run this many copies of each workload at once, each pinned to a CPU; `all` for one per CPU. Several
    /// numbers (1,2,4 or 1..all) make a curve; of a range of more than eight, only its ends and the powers
    /// of two are measured [default: 1; like UnixBench, 1,all for suites with an index and with --classic]
    #[arg(long, value_name = "N", value_parser = Copies::parse)]
    copies: Option<Copies>,
    /// What the workloads have around them (`weigh list fixtures`), such as fs:xfs; may be repeated
    #[arg(long = "fixture", value_name = "FIXTURE")]
    fixtures: Vec<String>,
    /// Do not ask for confirmation of more than 16 copies per CPU
    #[arg(long)]
    yes: bool,
    /// Use the durations, number of passes and scoring of the original suite
    #[arg(long, conflicts_with_all = ["samples", "sample"])]
    classic: bool,
    #[command(flatten)]
    names: Names,
    /// Write the results as JSON; `-` is stdout
    #[arg(long, value_name = "FILE", help_heading = OUTPUT)]
    json: Option<PathBuf>,
    /// Print the way a well-known table looks: unixbench, lmbench or smalley
    #[arg(long = "as", value_name = "TABLE", help_heading = OUTPUT)]
    dialect: Option<Dialect>,
    /// Write the report as one HTML file, with charts [default: in the XDG data directory]
    #[arg(long, value_name = "FILE", help_heading = OUTPUT)]
    html: Option<PathBuf>,
    /// Show the warnings in full
    #[arg(short, long, help_heading = OUTPUT)]
    verbose: bool,
    #[command(flatten, next_help_heading = OUTPUT)]
    privacy: Privacy,
}

impl RunArgs {
    pub fn run(mut self, context: &Context) -> Result<u8, String> {
        if self.workloads.is_empty() {
            self.workloads.push("quick".into());
        }
        for path in [&self.json, &self.html].into_iter().flatten() {
            output::check_writable(path)?;
        }
        let wanted = self.copies.as_ref().map_or(&[][..], |copies| &copies.0);
        copies::confirm(wanted, &self.workloads, self.yes)?;
        let store = context.open_store()?;
        let request = self.request(&context.again)?;
        let interrupted = listen_for_signals()?;
        let mut audience =
            Terminal { color: context.color, margin_pct: 1.0, budget: Duration::ZERO, sets: 1 };
        let done = execute(&request, &store, &mut audience, &interrupted)?;
        audience.end_of_samples();
        let is_as_before = output::tell_what_is_left(done.left.as_deref());
        let stored = self.privacy.of_run(done.load(&store)?)?;
        let written = self.write(&stored, context);
        done.not_kept.map_or(Ok(()), Err).and(written)?;
        Ok(match done.state {
            State::Failed => super::ERROR,
            State::Interrupted => INTERRUPTED,
            _ if !is_as_before || !stored.failures.is_empty() => super::ERROR,
            _ => 0,
        })
    }

    /// The files, and the report on the terminal unless one of them goes to stdout.
    fn write(&self, stored: &Stored, context: &Context) -> Result<(), String> {
        let report = &run_report::report(stored);
        let json = self.json.as_ref().map(|path| output::write_json(path, &report.json()));
        let html = match &self.html {
            Some(path) => Ok(path.clone()),
            None => default_html(context, &report.id),
        };
        let html = html.and_then(|path| {
            output::write_report(&path, &run_page::render(report)?).map(|()| path)
        });
        let mut problems: Vec<String> = json.and_then(Result::err).into_iter().collect();
        let is_stdout = |path: &&PathBuf| path.as_os_str() == "-";
        if ![&self.json, &self.html].into_iter().flatten().any(|path| is_stdout(&path)) {
            let colour = output::wants_colour(context.color, &std::io::stdout());
            let path = html.as_ref().ok().map(|path| path.display().to_string());
            let (width, is_verbose) = (output::width(), self.verbose);
            let screen = Screen { width, colour, is_verbose, html: path.as_deref() };
            let usual = || run_text::render(report, &screen);
            // What was measured is worth more than the form that it was wanted in.
            let text = match self.dialect.map(|dialect| show::run_as(stored, dialect)) {
                Some(Ok(table)) => {
                    let html = path.as_ref().map(|html| format!("HTML:  {html}\n"));
                    format!(
                        "{table}\n{}more:  weigh show {}\n",
                        html.unwrap_or_default(),
                        report.id
                    )
                }
                Some(Err(problem)) => {
                    output::problem(&format!("not as wanted: {problem}"));
                    usual()
                }
                None => usual(),
            };
            problems.extend(output::print(&text).err());
        }
        problems.extend(html.err());
        if problems.is_empty() { Ok(()) } else { Err(problems.join("\n")) }
    }

    fn request(&self, typed: &Again) -> Result<Request, String> {
        let names = WorkName::names_of(&self.workloads)?;
        let suites = suite::from_files(&names)?;
        let copies = match &self.copies {
            Some(copies) => copies.clone(),
            None => Copies::default_of(&names, &suites, self.classic)?,
        };
        let mut again = typed.clone().of_these(&self.workloads);
        // What the default is depends on the machine.
        if self.copies.is_some() || copies != Copies(vec![1]) {
            again = again.with("--copies", &copies);
        }
        Ok(Request {
            kind: Kind::Run,
            arms: vec!["none".into()],
            workloads: self.workloads.clone(),
            suites,
            fixtures: treatment::canonical_fixtures(&self.fixtures)?,
            command: None,
            contest: None,
            around: Around::default(),
            copies: copies.0,
            again: again.to_string(),
            // Of the sizes of the environment; one arm has no other chance in it.
            seed: rand::random::<u32>().into(),
            budget: Duration::ZERO,
            margin: 0.01,
            design: Design::default(),
            sample_ms: Some(self.sample.map_or(LONG_START_MS, value::whole_ms)),
            timeout: self.timeout,
            plan: match self.classic {
                true => Plan::Classic,
                false => Plan::Run { passes: self.samples as usize },
            },
            further_metrics: Vec::new(),
            detail: false,
            naming: self.names.naming(),
            fail_above: None,
        })
    }
}
