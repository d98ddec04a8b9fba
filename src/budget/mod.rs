//! `weigh budget`: how much audit rules write, how many records must be able to wait, and what happens at
//! several times the rate. One arm only, the treated one: nothing is compared here.

use std::path::Path;
use std::sync::atomic::AtomicBool;

use crate::experiment::fitness;
use crate::experiment::platform::Stop;
use crate::experiment::request::build_treatments;
use crate::experiment::session::claim_resources;
use crate::experiment::work::Work;
use crate::machine::Facts;
use crate::machine::file_system::file_system;
use crate::report::budget::{BudgetReport, Day, PerOperation, SCHEMA};
use crate::treatment::audit::configuration::Shared;
use crate::treatment::claim::only_one_at_a_time;
use crate::treatment::guard::Guard;
use crate::treatment::{Bench, label};
use crate::workload::kernels::Kernels;

mod backlog;
mod compress;
mod disk_full;
mod load;
mod small_disk;
mod subject;
mod treated;

pub use subject::Subject;
use treated::Treated;

/// Rates that are shown where none is asked for.
const USUAL_RATES: [f64; 4] = [1.0, 10.0, 100.0, 1000.0];
/// Of a rate that was asked for.
const MULTIPLES: [f64; 4] = [1.0, 2.0, 5.0, 10.0];
/// The load's rate where none is asked for, as a share of the full speed: so that ten times it is that.
const USUAL_SHARE: f64 = 0.1;

/// What is wanted.
#[derive(Clone, Debug)]
pub struct Request {
    /// As it was written: `audit` with its parameters.
    pub treatment: String,
    pub subject: Subject,
    /// Operations a second.
    pub rates: Vec<f64>,
    /// Operations of a burst.
    pub burst: Option<u64>,
    pub disk_full: bool,
    /// The command line that measures this again.
    pub again: String,
}

/// What came of it, and what could not be put back.
#[derive(Debug)]
pub struct Done {
    pub report: BudgetReport,
    pub left: Option<String>,
}

/// Measures a budget. `announce` is told what is being done.
///
/// # Errors
/// A sentence, where there is no result at all.
pub fn execute(
    request: &Request,
    interrupted: &AtomicBool,
    announce: &mut dyn FnMut(&str),
) -> Result<Done, String> {
    check_kind(&request.treatment)?;
    let treatments = build_treatments(std::slice::from_ref(&request.treatment))?;
    if request.disk_full {
        disk_full::check()?;
    }
    let _alone = only_one_at_a_time()?;
    let mut guard = Guard::arm(claim_resources(&treatments)?)
        .map_err(|error| format!("cannot start the guard process: {error}"))?;
    let result = measure(request, &mut guard, interrupted, announce);
    let left = guard.disarm().err();
    match result {
        Ok(report) => Ok(Done { report, left }),
        Err(problem) => {
            Err([Some(problem), left].into_iter().flatten().collect::<Vec<_>>().join("\n"))
        }
    }
}

/// Only `audit` writes records of what it is told to, and of a host's own settings none is touched.
fn check_kind(treatment: &str) -> Result<(), String> {
    let (name, parameters) = label::split(treatment)?;
    if name == "audit" && parameters.has("live") {
        return Err("`audit:live` leaves this host's backlog as it is, and a budget tries several: weigh the \
                    host's rule files with `audit:rules=/etc/audit/rules.d`, on a machine like it"
            .into());
    }
    if name == "audit" && !parameters.has("residual") {
        return Ok(());
    }
    Err(format!("`{treatment}` writes no log: a budget is of `audit`, or of `audit:rules=FILE`"))
}

fn measure(
    request: &Request,
    guard: &mut Guard,
    interrupted: &AtomicBool,
    announce: &mut dyn FnMut(&str),
) -> Result<BudgetReport, String> {
    let scratch = guard.scratch_directory().map_err(|error| {
        format!("cannot create a directory in {}: {error}", std::env::temp_dir().display())
    })?;
    let kernels = Kernels::unpack(&scratch)?;
    let bench =
        Bench { kernels: &kernels, scratch: &scratch, interrupted, audit: Shared::default() };
    let work = request.subject.resolve(&bench)?;
    let (machine, warnings) = fitness::look(Some(file_system(&scratch)), &std::env::temp_dir());
    let mut treated =
        Treated::set_up(bench, &request.treatment, guard, announce).map_err(reason)?;
    announce("Counting the records of an operation…");
    let per_operation = subject::measure(&mut treated, &work).map_err(reason)?;
    let mut report = BudgetReport {
        machine,
        warnings,
        ..begin(request, &treated, &work, per_operation, &scratch)?
    };
    let ended = rest(request, treated, &work, guard, &mut report, announce);
    match ended {
        Ok(()) => {}
        Err(Stop::Interrupted) => report.interrupted = true,
        Err(Stop::Failed(reason)) => report.failure = Some(reason),
    }
    Ok(report)
}

/// What is known when the samples are done.
fn begin(
    request: &Request,
    treated: &Treated,
    work: &Work,
    per_operation: PerOperation,
    scratch: &Path,
) -> Result<BudgetReport, String> {
    let compressed = compress::compress_log(scratch)
        .map_err(|error| format!("the log of the samples: {error}"))?;
    let day = |rate: f64| Day::new(rate, per_operation.log_bytes, compressed);
    let mut days: Vec<Day> = match request.rates.is_empty() {
        true => USUAL_RATES.map(day).into(),
        false => request
            .rates
            .iter()
            .flat_map(|rate| MULTIPLES.map(|multiple| Day { multiple, ..day(multiple * rate) }))
            .collect(),
    };
    days.push(Day { is_full_speed: true, ..day(per_operation.full_speed) });
    Ok(BudgetReport {
        schema: SCHEMA,
        command: request.again.clone(),
        treatment: request.treatment.clone(),
        workload: work.name(),
        operation: subject::operation(work),
        machine: Facts::default(),
        warnings: Vec::new(),
        facts: treated.facts(),
        per_operation,
        compressed,
        days,
        backlog: None,
        loads: Vec::new(),
        disk_full: Vec::new(),
        interrupted: false,
        failure: None,
    })
}

/// What follows the samples, as far as it comes.
fn rest(
    request: &Request,
    mut treated: Treated,
    work: &Work,
    guard: &mut Guard,
    report: &mut BudgetReport,
    announce: &mut dyn FnMut(&str),
) -> Result<(), Stop> {
    let Bench { kernels, scratch, interrupted, .. } = treated.bench;
    let has_records = report.per_operation.records > 0.0;
    let result = match has_records {
        true => under_load(request, &mut treated, work, report, announce),
        false => Ok(()),
    };
    let restored = treated.take_down(guard);
    result.and(restored)?;
    if request.disk_full && has_records {
        let bench = Bench { kernels, scratch, interrupted, audit: Shared::default() };
        disk_full::policies(bench, &request.treatment, guard, &mut report.disk_full, announce)?;
    }
    Ok(())
}

/// Loads first, as each is proved by the treatment; the search changes the settings, and so ends that.
fn under_load(
    request: &Request,
    treated: &mut Treated,
    work: &Work,
    report: &mut BudgetReport,
    announce: &mut dyn FnMut(&str),
) -> Result<(), Stop> {
    let per_operation = &report.per_operation;
    let asked = request.rates.iter().copied().fold(0.0, f64::max);
    let rate = if asked > 0.0 { asked } else { USUAL_SHARE * per_operation.full_speed };
    announce("Loads of 2, 5 and 10 times the rate…");
    load::loads(treated, per_operation, rate, &mut report.loads)?;
    announce("Searching the smallest backlog that loses nothing…");
    let burst = request.burst.unwrap_or_else(|| backlog::usual_burst(per_operation));
    report.backlog = Some(backlog::search(treated, work, per_operation, burst)?);
    Ok(())
}

fn reason(stop: Stop) -> String {
    match stop {
        Stop::Interrupted => "interrupted before anything was measured".into(),
        Stop::Failed(reason) => reason,
    }
}
