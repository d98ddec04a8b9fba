//! `weigh atlas`: what does each security feature and sensor of a list cost?
//!
//! Each treatment of the list is measured by an experiment of its own, as `weigh compare` measures it. These
//! experiments have the atlas's tag, and the page is made from them. So an atlas that was interrupted, or
//! killed, goes on where the store ends.

use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::time::Duration;

use clap::Args;

use super::files::{Files, keep};
use super::formats::csv_of;
use super::go_on::{ContinueOption, settled_by_continue};
use super::measuring::{MEASURING, WaitOption};
use super::naming::Names;
use super::progress_sink::Terminal;
use super::{Context, ERROR, INCONCLUSIVE, INTERRUPTED, exit_status, value};
use weigh_engine::atlas;
use weigh_engine::atlas_session::{
    AtlasOptions, AtlasSession, all_as_stored, check_budget, check_workloads,
};
use weigh_host::interruption::listen_for_signals;
use weigh_model::atlas_list::{AtlasEntry, AtlasList};
use weigh_model::ids::ExperimentId;
use weigh_model::record::ExperimentKind;
use weigh_model::result::atlas::{AtlasReport, AtlasResult, SCHEMA};
use weigh_model::result::report::Report;
use weigh_model::result::summary::State;
use weigh_store::Store;

const QUICK_BUDGET: Duration = Duration::from_secs(20 * 60);
/// As `weigh compare` has it.
const MARGIN_PCT: f64 = 1.0;
const WAIT_HELP: &str = "Wait up to TIME if another session of this atlas is running, or another experiment \
                         on this host [default: 1h for an experiment]";

const EXAMPLES: &str = "\
Examples:
  sudo weigh atlas --quick --html atlas.html
      Measure all treatments that work here in 20 minutes.
  sudo weigh atlas --markdown atlas.md
      The whole atlas, with the suite `syscalls`: several hours.
  sudo weigh atlas --continue k3f9qx
      Continue an atlas that was interrupted or killed.
  sudo weigh atlas --only landlock --only tracer --budget 10m
      Only the entries whose treatment, group or title contains one of these.
  weigh atlas --list my.toml -w openat2-close
      Your own list of treatments, with your own workload.
  weigh show k3f9qx
      The page again, from the stored samples.

Exit status: 0 done, 2 error or no result, 3 inconclusive (no verdict for a row),
130 interrupted.";

/// Measure what each security feature and sensor costs: one page, sorted by cost
///
/// Compares every treatment of a list with its baseline, one after the other, with the same workloads. What
/// cannot work here (another kernel, a container, an ordinary user, a missing program) is named with the
/// reason, and the rest continues. Each treatment is an experiment of its own, tagged `atlas/ID`;
/// `weigh history --tag` lists them (docs/atlas.md).
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
#[command(mut_arg("csv", |csv| csv_of(csv, "row")))]
#[command(mut_args(settled_by_continue))]
#[command(mut_arg("wait", |wait| wait.help(WAIT_HELP)))]
pub struct AtlasArgs {
    /// Measure fewer workloads, all in 20 minutes
    #[arg(long, help_heading = MEASURING)]
    quick: bool,
    /// Only entries with this in treatment, group or title. May be repeated
    #[arg(long, value_name = "TEXT", help_heading = MEASURING)]
    only: Vec<String>,
    /// File with a list of treatments (docs/atlas.md) [default: suites/atlas/security.toml]
    #[arg(long, value_name = "FILE", help_heading = MEASURING)]
    list: Option<PathBuf>,
    /// Workload or suite to measure each treatment with. May be repeated [default: those of the list]
    #[arg(short, long = "workload", value_name = "WORKLOAD", help_heading = MEASURING)]
    workloads: Vec<String>,
    /// Time for all treatments together. What one does not need, the others get [default: 2m or more for
    /// each, at least 8s per row; with --quick 20m; with --continue what is left of that]. With --continue, a
    /// budget also gives more pairs to rows without a verdict
    #[arg(long, value_name = "TIME", value_parser = value::duration, allow_hyphen_values = true)]
    #[arg(help_heading = MEASURING)]
    budget: Option<Duration>,
    #[command(flatten)]
    queue: WaitOption,
    #[command(flatten)]
    names: Names,
    #[command(flatten)]
    later: ContinueOption,
    #[command(flatten)]
    files: Files,
}

impl AtlasArgs {
    pub fn run(self, context: &Context) -> Result<u8, String> {
        self.files.check_without_table()?;
        let new = match &self.later.go_on {
            Some(_) => None,
            None => Some(self.new_report(context)?),
        };
        let store = context.open_store()?;
        let is_continued = new.is_none();
        let id = match new {
            Some(report) => begin(report, &store)?,
            None => self.find(&store)?,
        };
        let interrupted = listen_for_signals()?;
        let mut sink = Terminal::of_pairs(context.color, MARGIN_PCT, 1);
        let options = AtlasOptions { budget: self.budget, is_continued, wait: self.queue.wait };
        let session = AtlasSession::open(&store, &id, options, &mut sink, &interrupted)?;
        store.set_naming(&id, &self.names.naming()).map_err(|error| error.to_string())?;
        let measured = session.measure(&mut sink);
        let report = atlas::load(&store, &id)?;
        let status = status_of(&report, interrupted.load(Ordering::Relaxed));
        let written = self.files.write(report.into(), context);
        let is_as_before = measured?;
        written?;
        Ok(exit_status(is_as_before, status))
    }

    /// The chosen entries, without results.
    fn new_report(&self, context: &Context) -> Result<AtlasReport, String> {
        let list = match &self.list {
            Some(path) => AtlasList::read(path)?,
            None => AtlasList::embedded()?,
        };
        let is_chosen = |entry: &AtlasEntry| {
            self.only.is_empty() || self.only.iter().any(|part| entry.matches(part))
        };
        let entries: Vec<AtlasEntry> = list.entries.into_iter().filter(is_chosen).collect();
        if entries.is_empty() {
            return Err(format!(
                "--only {}: no entry of the list contains it",
                self.only.join(" --only ")
            ));
        }
        let workloads = match (self.workloads.is_empty(), self.quick) {
            (false, _) => self.workloads.clone(),
            (true, true) => list.quick_workloads,
            (true, false) => list.workloads,
        };
        let budget = self.budget.or_else(|| self.quick.then_some(QUICK_BUDGET));
        // A slip in a workload is an error of the command line, and not of forty treatments.
        let rows = check_workloads(&workloads)?;
        check_budget(budget, entries.len(), rows)?;
        let report = AtlasReport {
            schema: SCHEMA.into(),
            command: context.again.to_string(),
            machine: weigh_host::machine::facts::read(),
            entries: all_as_stored(entries)?,
            workloads,
            budget,
            ..AtlasReport::default()
        };
        Ok(report)
    }

    /// The atlas to continue.
    fn find(&self, store: &Store) -> Result<ExperimentId, String> {
        let id = match self.later.go_on.as_deref() {
            None | Some("latest") => store.latest_of(ExperimentKind::Atlas),
            Some(named) => store.find(Some(named)),
        };
        id.map_err(|error| error.to_string())
    }
}

/// Stores a new atlas. It is complete when the last entry is; until then its process may die at any time.
fn begin(report: AtlasReport, store: &Store) -> Result<ExperimentId, String> {
    let mut report = Report::from(report);
    keep(&mut report, (0.0, State::Interrupted), store)?;
    report.id().to_owned().try_into()
}

fn status_of(report: &AtlasReport, is_interrupted: bool) -> u8 {
    let has_failed = |result: &AtlasResult| {
        result.obstacle.as_ref().is_some_and(|obstacle| !obstacle.is_of_machine)
            || result.measured.as_ref().is_some_and(|measured| !measured.failures.is_empty())
    };
    match () {
        () if is_interrupted => INTERRUPTED,
        () if report.entries.iter().any(has_failed) => ERROR,
        () if report.entries.iter().all(|result| result.rows().is_empty()) => ERROR,
        () if report.entries.iter().any(AtlasResult::is_open) => INCONCLUSIVE,
        () => 0,
    }
}
