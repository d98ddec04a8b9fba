//! `weigh budget`: how much audit rules write, the backlog limit that they need, and what happens at
//! several times the rate. One arm only, the treated one: nothing is compared here.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use weigh_engine::platform::Stop;
use weigh_engine::request::build_treatments;
use weigh_engine::work::Work;
use weigh_host::undo::guard::Guard;
use weigh_model::result::budget::{BudgetReport, Compressed, Day, PerOperation, SCHEMA};
use weigh_station::{OpeningNews, Station, with_workloads};
use weigh_treatment::{ApplyContext, read_label, with_parameter};
use weigh_workload::executable::Executable;

mod backlog;
mod backlog_memory;
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
/// Multiples of the requested rate.
const MULTIPLES: [f64; 4] = [1.0, 2.0, 5.0, 10.0];
/// The load's rate where none is asked for, as a share of the maximum rate: so that ten times it is that.
const USUAL_SHARE: f64 = 0.1;

/// In place of the limits that the treatment asks for, to count: with the kernel's own wait.
const WITH_WAITS: (&str, &str) = ("wait", "60s");
const COUNTED_WITH_WAITS: &str = "Records per operation and the maximum rate were measured with processes \
    waiting for room in the backlog, so that no record was dropped.";

#[derive(Clone, Debug)]
pub struct BudgetRequest {
    /// As it was written: `audit` with its parameters.
    pub treatment: String,
    pub subject: Subject,
    /// Operations a second.
    pub rates: Vec<f64>,
    pub burst: Option<u64>,
    pub disk_full: bool,
    /// How long to wait for another experiment on this host; not at all without.
    pub wait: Option<Duration>,
    /// The command line that measures this again.
    pub again: String,
}

/// Outcome of a budget, and anything that could not be restored.
#[derive(Debug)]
pub struct BudgetOutcome {
    /// `None` where it was interrupted before anything was measured.
    pub report: Option<BudgetReport>,
    pub left: Option<String>,
}

/// Checks what was typed.
///
/// # Errors
/// A sentence about the treatment, or the workload or command.
pub fn check_typed(request: &BudgetRequest) -> Result<(), String> {
    check_kind(&request.treatment)?;
    build_treatments(std::slice::from_ref(&request.treatment), &[])?;
    with_workloads(|executable| request.subject.resolve(executable).map(drop))
}

/// Measures a budget. `announce` is told what is being done.
pub fn execute(
    request: &BudgetRequest,
    interrupted: &Arc<AtomicBool>,
    announce: &mut dyn FnMut(&str),
) -> Result<BudgetOutcome, String> {
    check_kind(&request.treatment)?;
    let treatments = build_treatments(std::slice::from_ref(&request.treatment), &[])?;
    if request.disk_full {
        disk_full::check()?;
    }
    let check = |executable: &Executable| request.subject.resolve(executable).map(drop);
    let occupied = Station::occupied_by(&treatments);
    let mut tell = |news: OpeningNews| announce(news.sentence());
    let mut station = Station::open(occupied, request.wait, &mut tell, check)?;
    match measure(request, &mut station, interrupted, announce) {
        Ok(mut report) => {
            let report_of = report.as_mut();
            report_of.into_iter().for_each(|it| it.warnings.extend(station.changed_meanwhile()));
            Ok(BudgetOutcome { report, left: station.close() })
        }
        Err(problem) => Err(station.close_after(problem)),
    }
}

/// Only `audit` writes records of what it is told to, and of a host's own settings none is touched.
fn check_kind(treatment: &str) -> Result<(), String> {
    let arm = read_label(treatment)?;
    let audit = arm.treatments.iter().find(|term| term.name == "audit");
    let has = |parameter| audit.is_some_and(|term| term.parameters.has(parameter));
    if has("live") {
        return Err("`audit:live` leaves this host's backlog as it is, but a budget must try several \
            limits: use the host's rule files with `audit:rules=/etc/audit/rules.d`, on a similar machine"
            .into());
    }
    if audit.is_some() && !has("residual") {
        return Ok(());
    }
    Err(format!("`{treatment}` writes no log: use `audit` or `audit:rules=FILE`"))
}

fn measure(
    request: &BudgetRequest,
    station: &mut Station,
    interrupted: &Arc<AtomicBool>,
    announce: &mut dyn FnMut(&str),
) -> Result<Option<BudgetReport>, String> {
    let work = request.subject.resolve(&station.place.executable)?;
    let (machine, warnings) = station.look(&std::env::temp_dir());
    let counted = match count(request, station.context(interrupted), &work, announce) {
        Ok(counted) => counted,
        Err(Stop::Interrupted | Stop::NextBoot | Stop::OutOfTime) => return Ok(None),
        Err(Stop::Failed(reason) | Stop::NotKept(reason)) => return Err(reason),
    };
    let Counted { per_operation, compressed, .. } = counted;
    let mut report = BudgetReport {
        schema: SCHEMA.into(),
        id: String::new(),
        command: request.again.clone(),
        treatment: request.treatment.clone(),
        workload: work.name().to_string(),
        operation: subject::operation(&work).into(),
        machine,
        warnings,
        facts: counted.facts,
        per_operation,
        compressed,
        days: days(&request.rates, &per_operation, compressed),
        backlog: None,
        backlog_bytes_per_record: None,
        loads: Vec::new(),
        disk_full: Vec::new(),
        interrupted: false,
        failure: None,
    };
    let ended = counted.records_per_step.and_then(|records_per_step| match records_per_step {
        Some(records) => {
            let load = UnderLoad { work: &work, records_per_step: records };
            rest(request, station, interrupted, &load, &mut report, announce)
        }
        None => Ok(()),
    });
    match ended {
        Ok(()) => {}
        Err(Stop::Interrupted | Stop::NextBoot | Stop::OutOfTime) => report.interrupted = true,
        Err(Stop::Failed(reason) | Stop::NotKept(reason)) => report.failure = Some(reason),
    }
    Ok(Some(report))
}

/// Counts from the time in which no record was dropped.
struct Counted {
    per_operation: PerOperation,
    compressed: Option<Compressed>,
    /// Records per step of the load; `None` if the operation makes no records, so that the load is
    /// left out.
    records_per_step: Result<Option<f64>, Stop>,
    facts: Vec<String>,
}

/// Counts what an operation makes while processes wait for room, whatever limits the treatment asks for:
/// what is dropped cannot be counted, and a sample runs at its maximum rate, far above those that are asked.
fn count(
    request: &BudgetRequest,
    (context, guard): (ApplyContext, &mut Guard),
    work: &Work,
    announce: &mut dyn FnMut(&str),
) -> Result<Counted, Stop> {
    let label = with_parameter(&request.treatment, "audit", &["backlog", "wait"], WITH_WAITS)
        .map_err(Stop::Failed)?;
    let mut treated = Treated::set_up(context, &label, guard, announce)?;
    announce("Counting the records of an operation…");
    let counted = subject::measure(&mut treated, work).and_then(|per_operation| {
        // Before anything else is written into that log.
        let compressed =
            compress::compress_log(&treated.context().place.scratch).map_err(|error| {
                Stop::Failed(format!("cannot compress the log of the samples: {error}"))
            })?;
        let makes_records = per_operation.records > 0.0;
        let records_per_step =
            makes_records.then(|| load::records_per_step(&mut treated)).transpose();
        Ok(Counted { per_operation, compressed, records_per_step, facts: treated.facts() })
    });
    let restored = treated.take_down(guard);
    counted.and_then(|counted| restored.map(|()| counted))
}

/// The log of a day at each of the rates, and at the maximum rate.
fn days(rates: &[f64], per_operation: &PerOperation, compressed: Option<Compressed>) -> Vec<Day> {
    let day = |rate: f64| Day::new(rate, per_operation.log_bytes, compressed);
    let mut days: Vec<Day> = match rates.is_empty() {
        true => USUAL_RATES.map(day).into(),
        false => rates
            .iter()
            .flat_map(|rate| MULTIPLES.map(|multiple| Day { multiple, ..day(multiple * rate) }))
            .collect(),
    };
    days.push(Day { is_full_speed: true, ..day(per_operation.full_speed) });
    days
}

/// Launches under load: the work, and the number of records in a step of it.
struct UnderLoad<'a> {
    work: &'a Work,
    records_per_step: f64,
}

/// Runs the remaining measurements as far as possible, under the limits that the treatment asks
/// for.
fn rest(
    request: &BudgetRequest,
    station: &mut Station,
    interrupted: &Arc<AtomicBool>,
    load: &UnderLoad,
    report: &mut BudgetReport,
    announce: &mut dyn FnMut(&str),
) -> Result<(), Stop> {
    let (context, guard) = station.context(interrupted);
    let mut treated = Treated::set_up(context, &request.treatment, guard, &mut |_| {})?;
    report.facts = treated.facts();
    report.facts.push(COUNTED_WITH_WAITS.into());
    let result = under_load(request, &mut treated, load, report, announce);
    let restored = treated.take_down(guard);
    result.and(restored)?;
    if request.disk_full {
        let (context, guard) = station.context(interrupted);
        disk_full::policies(context, &request.treatment, guard, &mut report.disk_full, announce)?;
    }
    Ok(())
}

/// Loads first, as each is proved by the treatment; the search changes the settings, and so ends that.
fn under_load(
    request: &BudgetRequest,
    treated: &mut Treated,
    UnderLoad { work, records_per_step }: &UnderLoad,
    report: &mut BudgetReport,
    announce: &mut dyn FnMut(&str),
) -> Result<(), Stop> {
    let per_operation = &report.per_operation;
    let asked = request.rates.iter().copied().fold(0.0, f64::max);
    let rate = if asked > 0.0 { asked } else { USUAL_SHARE * per_operation.full_speed };
    announce("Applying loads of 2, 5 and 10 times the rate…");
    load::loads(treated, per_operation, *records_per_step, rate, &mut report.loads)?;
    announce("Searching for the smallest backlog that loses nothing…");
    let burst = request.burst.unwrap_or_else(|| backlog::usual_burst(per_operation));
    report.backlog = Some(backlog::search(treated, work, per_operation, burst)?);
    announce("Measuring the memory that a full backlog takes…");
    report.backlog_bytes_per_record = backlog_memory::bytes_per_record(treated)?;
    Ok(())
}
