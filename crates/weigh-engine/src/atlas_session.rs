//! A session of an atlas: each entry of its list is measured by an experiment of its own, as `weigh compare`
//! measures it.
//!
//! These experiments have the atlas's tag, and the page is made from them. So an atlas that was interrupted,
//! or killed, goes on where the store ends. One session at a time has an atlas: another would measure the
//! same entries.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use super::atlas::{check_available, list, load, tag};
use super::provenance::check_machine;
use super::request::{
    Common, Compared, Comparison, Interleave, Plan, ProgressSink, Request, Workloads,
};
use super::session::{Done, More, check_works, execute, go_on};
use weigh_host::chance;
use weigh_host::machine::facts;
use weigh_host::undo::claim::{SessionLock, only_one_session};
use weigh_host::undo::queue::{self, Refused};
use weigh_model::atlas_list::AtlasEntry;
use weigh_model::format;
use weigh_model::ids::ExperimentId;
use weigh_model::label::{ArmLabel, Term};
use weigh_model::record::Stored;
use weigh_model::result::atlas::{AtlasReport, AtlasResult, Obstacle};
use weigh_model::result::summary::State;
use weigh_model::result::work_name::WorkName;
use weigh_model::shell::command_line;
use weigh_model::workload::suite;
use weigh_store::Store;
use weigh_store::names::Naming;
use weigh_treatment as treatment;
use weigh_treatment::placebo::DefaultBaseline;

/// As `weigh compare` has them.
const BUDGET_OF_ENTRY: Duration = Duration::from_secs(120);
const BUDGET_PER_ROW: Duration = Duration::from_secs(8);
/// In less time no row has the pairs for a result.
const LEAST_PER_ROW: Duration = Duration::from_secs(1);
/// An atlas takes hours, in which others may measure something short.
pub const WAIT: Duration = Duration::from_secs(3600);

/// The entries with their labels as experiments are stored. Labels that differ only in how they are written
/// would share one experiment.
///
/// # Errors
/// A sentence about an entry that is listed twice, or whose treatment nobody knows.
pub fn all_as_stored(entries: Vec<AtlasEntry>) -> Result<Vec<AtlasResult>, String> {
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
///
/// # Errors
/// A sentence about what was typed.
pub fn check_workloads(workloads: &[String]) -> Result<usize, String> {
    let arms = vec!["none".to_owned(), "none".to_owned()];
    let common = Common { arms, ..Common::default() };
    let comparison = comparison(workloads)?;
    check_works(&Request { common, plan: Plan::Compare(comparison) })
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

/// Checks that there is time for each row of so many entries.
///
/// # Errors
/// A sentence with the least budget.
pub fn check_budget(budget: Option<Duration>, entries: usize, rows: usize) -> Result<(), String> {
    let least = LEAST_PER_ROW * (rows * entries) as u32;
    match budget.filter(|budget| *budget < least) {
        None => Ok(()),
        Some(budget) => Err(format!(
            "--budget {} is too short for {} with {}: use --budget {} or more, or choose fewer with --only, \
             -w or --quick",
            format::clock(budget.as_secs_f64()),
            format::plural(entries, "treatment"),
            format::plural(rows, "workload"),
            format::budget(least.as_secs_f64())
        )),
    }
}

/// Time and scope of a session of an atlas.
#[derive(Clone, Copy, Debug, Default)]
pub struct AtlasOptions {
    /// For all entries that are left together; without it, what is left of the first session's.
    pub budget: Option<Duration>,
    /// True if the atlas was begun before. With a budget, rows without a verdict then get more pairs.
    pub is_continued: bool,
    /// How long it waits for another session of this atlas, or for another experiment; without it, it does
    /// not wait for a session, and up to [`WAIT`] for an experiment.
    pub wait: Option<Duration>,
}

/// One session of an atlas, which no other has meanwhile.
pub struct AtlasSession<'a> {
    store: &'a Store,
    id: &'a ExperimentId,
    /// For all entries that are left together; each has its own without.
    budget: Option<Duration>,
    /// True if rows without a verdict get more pairs.
    narrows: bool,
    wait: Duration,
    /// Rows of each entry.
    rows: usize,
    interrupted: &'a Arc<AtomicBool>,
    _lock: SessionLock,
}

/// Reason why an entry has no new samples.
enum NotMeasured {
    /// This entry has a problem; the others are measured.
    Entry(Obstacle),
    /// This entry has a result without a verdict for each row, which cannot be added to.
    Kept(String),
    /// Another experiment has the machine for longer than this session waits; so no entry can be measured.
    Busy(String),
}

impl NotMeasured {
    fn of(problem: impl Into<Refused>) -> NotMeasured {
        match problem.into() {
            Refused::Busy(problem) => NotMeasured::Busy(problem),
            Refused::Failed(reason) => {
                NotMeasured::Entry(Obstacle { reason, is_of_machine: false })
            }
        }
    }
}

impl<'a> AtlasSession<'a> {
    /// Opens a stored atlas, which no other session may have meanwhile.
    ///
    /// # Errors
    /// A sentence, where another session has it for too long, it is no atlas, or the machine is another one.
    pub fn open(
        store: &'a Store,
        id: &'a ExperimentId,
        options: AtlasOptions,
        sink: &mut dyn ProgressSink,
        interrupted: &'a Arc<AtomicBool>,
    ) -> Result<AtlasSession<'a>, String> {
        let what = format!("atlas {id}");
        let lock = queue::take(options.wait, &mut |said| sink.announce(said), || {
            only_one_session(&format!("atlas-{id}"), &what)
        })?;
        let report = load(store, id)
            .map_err(|problem| format!("cannot continue {id} as an atlas: {problem}"))?;
        // A table compares the rows of one machine and one kernel.
        for changed in check_machine(&report.machine, &facts::read())? {
            sink.announce(&format!("Since the atlas began: {changed}."));
        }
        let spent = Duration::from_secs_f64(report.elapsed_s);
        let left = report.budget.map(|budget| budget.saturating_sub(spent));
        Ok(AtlasSession {
            store,
            id,
            budget: options.budget.or(left),
            narrows: options.is_continued && options.budget.is_some(),
            wait: options.wait.unwrap_or(WAIT),
            rows: check_workloads(&report.workloads)?,
            interrupted,
            _lock: lock,
        })
    }

    /// Measures the entries that are left. Returns true if the system is as it was before.
    ///
    /// # Errors
    /// A sentence, where the machine is not to be had or nothing more could be stored.
    pub fn measure(&self, sink: &mut dyn ProgressSink) -> Result<bool, String> {
        let mut stored_list = list(self.store, self.id)?;
        let report = load(self.store, self.id)?;
        let wants = |result: &AtlasResult| result.is_left() || self.narrows && result.is_open();
        let all = report.entries.len();
        let left: Vec<usize> = (0..all).filter(|at| wants(&report.entries[*at])).collect();
        if left.is_empty() {
            sink.announce(&format!("There is nothing left to measure of {}.", self.id));
        }
        let mut is_as_before = true;
        // Time in which entries were measured: waiting for another experiment takes none of the budget.
        let mut spent = Duration::ZERO;
        for (done, at) in left.iter().copied().enumerate() {
            if self.interrupted.load(Ordering::Relaxed) {
                break;
            }
            let left = left.len() - done;
            let result = &report.entries[at];
            sink.announce(&self.progress(&result.entry, (at + 1, all), (done, left), spent));
            let (began, share) = (Instant::now(), self.share(left, spent));
            let measured = self.measure_entry(result, &report.workloads, share, sink);
            stored_list.entries[at].obstacle = match measured {
                Ok(done) => {
                    if let Some(left) = &done.left {
                        is_as_before = false;
                        sink.announce(&format!(
                            "The system is not as it was: {left}. `weigh restore` tries again."
                        ));
                    }
                    let stored = done.load(self.store)?;
                    spent += time_spent(result, &done, &stored);
                    let reason = reason(&done, &stored);
                    done.not_kept.map_or(Ok(reason), Err)?
                }
                Err(NotMeasured::Entry(obstacle)) => {
                    // It may have waited for another experiment, which takes none of the budget.
                    spent += share.map_or(Duration::ZERO, |share| share.min(began.elapsed()));
                    Some(obstacle)
                }
                Err(NotMeasured::Kept(why)) => {
                    sink.announce(&why);
                    None
                }
                Err(NotMeasured::Busy(problem)) => return Err(problem),
            };
            if let Some(obstacle) = &stored_list.entries[at].obstacle {
                sink.announce(&format!("Not measured: {}", obstacle.reason));
            }
            let elapsed_s = report.elapsed_s + spent.as_secs_f64();
            self.store_list(&stored_list, State::Interrupted, elapsed_s)?;
        }
        let report = load(self.store, self.id)?;
        let is_over =
            report.entries.iter().all(|result| !result.is_left() || result.obstacle.is_some());
        let state = if is_over { State::Complete } else { State::Interrupted };
        self.store_list(&stored_list, state, report.elapsed_s)?;
        Ok(is_as_before)
    }

    /// Stores why entries have no experiment; all else is in the experiments.
    fn store_list(&self, list: &AtlasReport, state: State, elapsed_s: f64) -> Result<(), String> {
        let document = serde_json::to_string(list)
            .map_err(|error| format!("cannot write the list of {}: {error}", self.id))?;
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
        let (name, title) = (entry.name(), format::label(&entry.title));
        let title = if name == title { String::new() } else { format!(" ({title})") };
        let name = format::quoted(&name);
        format!("Entry {number} of {all}{}: {name}{title}", rest.unwrap_or_default())
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
        sink: &mut dyn ProgressSink,
    ) -> Result<Done, NotMeasured> {
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
            let id = measured.id.clone().try_into().map_err(NotMeasured::of)?;
            let stored =
                self.store.load(&id).map_err(|error| NotMeasured::of(error.to_string()))?;
            let continued = go_on(&stored, more, self.store, sink, self.interrupted);
            match continued.map_err(NotMeasured::of) {
                // A new experiment would have fewer pairs, and the page has only one.
                Err(NotMeasured::Entry(it)) if measured.state == State::Complete => {
                    return Err(NotMeasured::Kept(format!(
                        "The result of {} stays as it is, as it cannot be continued: {}",
                        &*id, it.reason
                    )));
                }
                Err(NotMeasured::Entry(it)) => {
                    sink.announce(&format!(
                        "Begins anew, as {} cannot be continued: {}",
                        &*id, it.reason
                    ));
                }
                continued => return continued,
            }
        }
        let seed = chance::seed().map_err(NotMeasured::of)?;
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
        let comparison = comparison(workloads).map_err(NotMeasured::of)?;
        let comparison = Comparison { budget_per_row: per_row, ..comparison };
        let request = Request { common, plan: Plan::Compare(comparison) };
        execute(&request, self.store, sink, self.interrupted).map_err(NotMeasured::of)
    }
}

/// Time of this session alone. An experiment that was begun anew has nothing of the earlier one's time.
fn time_spent(result: &AtlasResult, done: &Done, stored: &Stored) -> Duration {
    let continued = result.measured.as_ref().filter(|measured| measured.id == *done.id);
    let before_s = continued.map_or(0.0, |measured| measured.elapsed_s);
    Duration::from_secs_f64((stored.elapsed_s - before_s).max(0.0))
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

#[cfg(test)]
mod tests {
    use super::*;
    use weigh_model::atlas_list::AtlasList;

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
