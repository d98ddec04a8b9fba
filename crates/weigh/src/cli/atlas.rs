//! `weigh atlas`: what does each security feature and sensor of a list cost?
//!
//! Each treatment of the list is measured by an experiment of its own, as `weigh compare` measures it. These
//! experiments have the atlas's tag, and the page is made from them. So an atlas that was interrupted, or
//! killed, goes on where the store ends.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use clap::Args;

use super::files::{Files, keep};
use super::formats::csv_of;
use super::go_on::{ContinueOption, settled_by_continue};
use super::measuring::{MEASURING, WaitOption};
use super::naming::Names;
use super::progress_sink::Terminal;
use super::{Context, ERROR, INCONCLUSIVE, INTERRUPTED, exit_status, output, value};
use weigh_engine::atlas::{self, check_available, tag};
use weigh_engine::provenance::check_machine;
use weigh_engine::request::{
    Common, Compared, Comparison, Interleave, Plan, ProgressSink, Request, Workloads,
};
use weigh_engine::session::{Done, More, execute, go_on};
use weigh_host::chance;
use weigh_host::interruption::listen_for_signals;
use weigh_model::atlas_list::{AtlasEntry, AtlasList};
use weigh_model::format;
use weigh_model::ids::ExperimentId;
use weigh_model::label::{ArmLabel, Term};
use weigh_model::record::{ExperimentKind, Stored};
use weigh_model::result::atlas::{AtlasReport, AtlasResult, Obstacle, SCHEMA};
use weigh_model::result::report::Report;
use weigh_model::result::summary::State;
use weigh_model::result::work_name::WorkName;
use weigh_model::shell::command_line;
use weigh_model::workload::suite;
use weigh_report::formats::json;
use weigh_store::Store;
use weigh_store::names::Naming;
use weigh_treatment as treatment;
use weigh_treatment::placebo::DefaultBaseline;

/// As `weigh compare` has them.
const BUDGET_OF_ENTRY: Duration = Duration::from_secs(120);
const BUDGET_PER_ROW: Duration = Duration::from_secs(8);
const QUICK_BUDGET: Duration = Duration::from_secs(20 * 60);
/// In less time no row has the pairs for a result.
const LEAST_PER_ROW: Duration = Duration::from_secs(1);
/// As `weigh compare` has it.
const MARGIN_PCT: f64 = 1.0;
const WAIT_HELP: &str =
    "Wait up to TIME if another experiment is running on this host [default: 1h]";
/// An atlas takes hours, in which others may measure something short.
const WAIT: Duration = Duration::from_secs(3600);

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
        let (id, budget) = match new {
            Some(report) => self.begin(report, &store)?,
            None => self.reopen(&store)?,
        };
        store.set_naming(&id, &self.names.naming()).map_err(|error| error.to_string())?;
        let session = Session {
            store: &store,
            id: &id,
            budget,
            narrows: self.later.go_on.is_some() && self.budget.is_some(),
            wait: self.queue.wait.unwrap_or(WAIT),
            rows: check_workloads(&atlas::list(&store, &id)?.workloads)?,
            interrupted: listen_for_signals()?,
        };
        let measured = session.measure(&mut Terminal::of_pairs(context.color, MARGIN_PCT, 1));
        let report = atlas::load(&store, &id)?;
        let status = status_of(&report, session.interrupted.load(Ordering::Relaxed));
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
        let least = LEAST_PER_ROW * (rows * entries.len()) as u32;
        if let Some(budget) = budget.filter(|budget| *budget < least) {
            return Err(format!(
                "--budget {} is too short for {} with {}: use --budget {} or more, or choose fewer with \
                 --only, -w or --quick",
                format::clock(budget.as_secs_f64()),
                format::plural(entries.len(), "treatment"),
                format::plural(rows, "workload"),
                format::budget(least.as_secs_f64())
            ));
        }
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

    fn begin(
        &self,
        report: AtlasReport,
        store: &Store,
    ) -> Result<(ExperimentId, Option<Duration>), String> {
        let budget = report.budget;
        let mut report = Report::from(report);
        // Complete when the last entry is; until then its process may die at any time.
        keep(&mut report, (0.0, State::Interrupted), store)?;
        Ok((report.id().to_owned().try_into()?, budget))
    }

    /// The time that a later session has: a new budget, or what is left of the first one.
    fn reopen(&self, store: &Store) -> Result<(ExperimentId, Option<Duration>), String> {
        let id = match self.later.go_on.as_deref() {
            None | Some("latest") => store.latest_of(ExperimentKind::Atlas),
            Some(named) => store.find(Some(named)),
        };
        let id = id.map_err(|error| error.to_string())?;
        let report = atlas::load(store, &id)
            .map_err(|problem| format!("cannot continue {id} as an atlas: {problem}"))?;
        // A table compares the rows of one machine and one kernel.
        for changed in check_machine(&report.machine, &weigh_host::machine::facts::read())? {
            output::note(&format!("Since the atlas began: {changed}."));
        }
        let spent = Duration::from_secs_f64(report.elapsed_s);
        let left = report.budget.map(|budget| budget.saturating_sub(spent));
        Ok((id, self.budget.or(left)))
    }
}

/// The entries with their labels as experiments are stored. Labels that differ only in how they are written
/// would share one experiment.
fn all_as_stored(entries: Vec<AtlasEntry>) -> Result<Vec<AtlasResult>, String> {
    let mut stored: Vec<AtlasResult> = Vec::new();
    for entry in entries {
        let written = entry.treatment.clone();
        let result = as_stored(entry)?;
        let label = &result.entry.treatment;
        if stored.iter().any(|other| other.entry.treatment == *label) {
            return Err(format!(
                "`{written}` is listed twice, also as `{label}`: remove one entry"
            ));
        }
        stored.push(result);
    }
    Ok(stored)
}

/// The entry with its label as experiments are stored. An unknown treatment is a slip, and not one that this
/// machine lacks.
fn as_stored(entry: AtlasEntry) -> Result<AtlasResult, String> {
    let ArmLabel { places, treatments } = treatment::read_label(&entry.treatment)?;
    let is_known = |term: &Term| treatment::find(&term.name).is_some();
    if !places.iter().chain(&treatments).all(is_known) {
        treatment::parse(&entry.treatment)?;
    }
    let treatment = treatment::canonical(&entry.treatment)?;
    Ok(AtlasResult::of(AtlasEntry { treatment, ..entry }))
}

/// Checks the names of workloads before anything is stored. Returns how many they are, those of suites
/// included.
fn check_workloads(workloads: &[String]) -> Result<usize, String> {
    let arms = vec!["none".to_owned(), "none".to_owned()];
    let common = Common { arms, ..Common::default() };
    let comparison = comparison(workloads)?;
    weigh_engine::session::check_works(&Request { common, plan: Plan::Compare(comparison) })
}

fn comparison(workloads: &[String]) -> Result<Comparison, String> {
    let names = WorkName::names_of(workloads)?;
    let suites = suite::from_files(&names)?;
    let workloads = Workloads { names: workloads.to_vec(), suites, ..Workloads::default() };
    Ok(Comparison {
        compared: Compared::Workloads(workloads),
        interleave: Interleave::PilotChooses,
        takes_old_pairs: true,
        is_announced: true,
        ..Comparison::default()
    })
}

/// One session of an atlas.
struct Session<'a> {
    store: &'a Store,
    id: &'a ExperimentId,
    /// For all entries that are left together; each has its own without.
    budget: Option<Duration>,
    /// True if rows without a verdict get more pairs.
    narrows: bool,
    wait: Duration,
    /// Rows of each entry.
    rows: usize,
    interrupted: Arc<AtomicBool>,
}

/// Reason why an entry has no new samples.
enum NotMeasured {
    /// This entry has a problem; the others are measured.
    Entry(Obstacle),
    /// Another experiment has the machine for longer than this session waits; so no entry can be measured.
    Busy(String),
}

impl Session<'_> {
    /// Measures the entries that are left. Returns true if the system is as it was before.
    fn measure(&self, sink: &mut Terminal) -> Result<bool, String> {
        let mut list = atlas::list(self.store, self.id)?;
        let mut report = atlas::load(self.store, self.id)?;
        let wants = |result: &AtlasResult| result.is_left() || self.narrows && result.is_open();
        let all = report.entries.len();
        let left: Vec<usize> = (0..all).filter(|at| wants(&report.entries[*at])).collect();
        if left.is_empty() {
            sink.announce(&format!("There is nothing left to measure of {}.", self.id));
        }
        let mut is_as_before = true;
        // Time in which entries were measured: waiting for another experiment takes none of the budget.
        let mut spent = Duration::ZERO;
        let mut known = self.experiments()?;
        for (done, at) in left.iter().copied().enumerate() {
            if self.interrupted.load(Ordering::Relaxed) {
                break;
            }
            // Another session of this atlas may have measured it meanwhile.
            if self.experiments()? != known {
                report = atlas::load(self.store, self.id)?;
            }
            if !wants(&report.entries[at]) {
                continue;
            }
            let left = left.len() - done;
            let result = &report.entries[at];
            output::note(&self.progress(&result.entry, (at + 1, all), (done, left), spent));
            let measured =
                self.measure_entry(result, &report.workloads, self.share(left, spent), sink);
            list.entries[at].obstacle = match measured {
                Ok(done) => {
                    is_as_before &= output::tell_what_is_left(done.left.as_deref());
                    let before_s =
                        result.measured.as_ref().map_or(0.0, |measured| measured.elapsed_s);
                    let stored = done.load(self.store)?;
                    spent += Duration::from_secs_f64((stored.elapsed_s - before_s).max(0.0));
                    let reason = reason(&done, &stored);
                    done.not_kept.map_or(Ok(reason), Err)?
                }
                Err(NotMeasured::Entry(obstacle)) => Some(obstacle),
                Err(NotMeasured::Busy(problem)) => return Err(problem),
            };
            if let Some(obstacle) = &list.entries[at].obstacle {
                output::note(&format!("Not measured: {}", obstacle.reason));
            }
            let elapsed_s = report.elapsed_s + spent.as_secs_f64();
            self.store_list(&list, State::Interrupted, elapsed_s)?;
            known = self.experiments()?;
        }
        let report = atlas::load(self.store, self.id)?;
        let is_over =
            report.entries.iter().all(|result| !result.is_left() || result.obstacle.is_some());
        let state = if is_over { State::Complete } else { State::Interrupted };
        self.store_list(&list, state, report.elapsed_s)?;
        Ok(is_as_before)
    }

    /// The experiments of this atlas.
    fn experiments(&self) -> Result<Vec<ExperimentId>, String> {
        self.store.tagged(&tag(self.id)).map_err(|error| error.to_string())
    }

    /// Stores why entries have no experiment; all else is in the experiments.
    fn store_list(&self, list: &AtlasReport, state: State, elapsed_s: f64) -> Result<(), String> {
        let document = (json::FORMAT.render)(&list.clone().into())?;
        let stored = self.store.set_document(self.id, state, elapsed_s, &document);
        stored.map_err(|error| error.to_string())
    }

    /// `Entry 3 of 42: ...`, with the time that all others may take.
    fn progress(
        &self,
        entry: &AtlasEntry,
        (number, all): (usize, usize),
        (done, left): (usize, usize),
        spent: Duration,
    ) -> String {
        let rest = match self.budget {
            Some(budget) => Some(budget.saturating_sub(spent)),
            None => spent.checked_div(done as u32).map(|each| each * left as u32),
        };
        let rest = rest.filter(|rest| !rest.is_zero());
        let rest = rest.map(|rest| format!(", about {} left", format::clock(rest.as_secs_f64())));
        let (label, title) = (format::quoted(&entry.treatment), format::label(&entry.title));
        format!("Entry {number} of {all}{}: {label} ({title})", rest.unwrap_or_default())
    }

    /// The time of the next entry: an equal share of what is left.
    fn share(&self, left: usize, spent: Duration) -> Option<Duration> {
        let rest = self.budget?.saturating_sub(spent);
        Some((rest / left as u32).max(LEAST_PER_ROW * self.rows as u32))
    }

    /// Begins the experiment of an entry, or continues it.
    fn measure_entry(
        &self,
        result: &AtlasResult,
        workloads: &[String],
        share: Option<Duration>,
        sink: &mut Terminal,
    ) -> Result<Done, NotMeasured> {
        let began = Instant::now();
        // What cannot begin fails at once. Only a wait for another experiment takes that long.
        let failed = |reason| match began.elapsed() < self.wait {
            true => NotMeasured::Entry(Obstacle { reason, is_of_machine: false }),
            false => NotMeasured::Busy(reason),
        };
        let treated = result.entry.treatment.clone();
        let not_here = |reason| NotMeasured::Entry(Obstacle { reason, is_of_machine: true });
        let DefaultBaseline { label: base, warning } =
            DefaultBaseline::of(std::slice::from_ref(&treated)).map_err(not_here)?;
        let arms = vec![base, treated];
        check_available(&arms).map_err(not_here)?;
        let (budget, per_row) = match share {
            Some(share) => (share, Duration::ZERO),
            None => (BUDGET_OF_ENTRY, BUDGET_PER_ROW),
        };
        if let Some(measured) = result.measured.as_ref().filter(|of| of.state != State::Failed) {
            let more = More {
                budget,
                budget_per_row: per_row,
                fail_above: None,
                precision: None,
                wait: Some(self.wait),
            };
            let id = measured.id.clone().try_into().map_err(failed)?;
            let stored = self.store.load(&id).map_err(|error| failed(error.to_string()))?;
            match go_on(&stored, more, self.store, sink, &self.interrupted).map_err(failed) {
                Err(NotMeasured::Entry(it)) => {
                    output::note(&format!(
                        "Begins anew, as {} cannot be continued: {}",
                        &*id, it.reason
                    ));
                }
                continued => return continued,
            }
        }
        let seed = chance::seed().map_err(failed)?;
        let common = Common {
            again: again(&arms, workloads, seed),
            arms,
            seed,
            budget,
            naming: Naming { name: None, tags: vec![tag(self.id)] },
            warnings: warning.into_iter().collect(),
            wait: Some(self.wait),
            ..Common::default()
        };
        let comparison = comparison(workloads).map_err(failed)?;
        let comparison = Comparison { budget_per_row: per_row, ..comparison };
        let request = Request { common, plan: Plan::Compare(comparison) };
        execute(&request, self.store, sink, &self.interrupted).map_err(failed)
    }
}

/// Why a measurement that was begun has no result.
fn reason(done: &Done, stored: &Stored) -> Option<Obstacle> {
    if done.is_stored() && stored.state != State::Failed {
        return None;
    }
    let mut failures = stored.failures.iter().map(|failure| failure.reason.clone());
    let reason = stored.failure.clone().or_else(|| failures.next());
    // Interrupted before its first sample, it is measured by the next session.
    reason.map(|reason| Obstacle { reason, is_of_machine: false })
}

/// The command line that measures an entry alone.
fn again(arms: &[String], workloads: &[String], seed: u64) -> String {
    let mut words = vec!["weigh".to_owned(), "compare".into(), arms[1].clone()];
    if arms[0] != "none" {
        words.extend(["--base".into(), arms[0].clone()]);
    }
    words.extend(workloads.iter().flat_map(|name| ["-w".to_owned(), name.clone()]));
    words.extend(["--no-detail".into(), "--seed".into(), seed.to_string()]);
    command_line(words.iter().map(String::as_str))
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Entries with a path may lack its file.
    #[test]
    fn every_treatment_of_the_embedded_list_exists() {
        for entry in AtlasList::embedded().unwrap().entries {
            let label = entry.treatment.clone();
            as_stored(entry).unwrap();
            if let Err(problem) = treatment::parse(&label) {
                assert!(label.contains('/'), "{label}: {problem}");
            }
        }
    }

    #[test]
    fn the_command_of_an_entry_measures_it_alone() {
        let arms = ["cgroup:pids".to_owned(), "cgroup:pids.max=9".to_owned()];
        assert_eq!(
            again(&arms, &["stat".to_owned()], 7),
            "weigh compare cgroup:pids.max=9 --base cgroup:pids -w stat --no-detail --seed 7"
        );
    }
}
