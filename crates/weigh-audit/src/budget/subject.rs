//! Subject of a budget: a workload or a command, with its samples and bursts.

use std::path::PathBuf;

use super::treated::{ARM, Treated};
use weigh_engine::parse_sample::hold_unit;
use weigh_engine::platform::Stop;
use weigh_engine::resolve::resolve;
use weigh_engine::selection::Selection;
use weigh_engine::work::Work;
use weigh_model::evidence::Evidence;
use weigh_model::result::budget::PerOperation;
use weigh_model::result::quantity::EvidenceQuantity;
use weigh_model::workload::mix::JobSizes;
use weigh_model::workload::sample::Sample;
use weigh_treatment::audit::quantities::{KAUDITD_CPU, LOG_BYTES, LOST, RECORDS, SINK_CPU};
use weigh_verdict::evidence::Sums;
use weigh_workload::executable::{Executable, Length};
use weigh_workload::launcher::Job;

const SAMPLES: usize = 5;
const SAMPLE_MS: u64 = 70;
/// A command takes what it takes, and its records are counted from its start to its end.
const RUNS: usize = 3;

#[derive(Clone, Debug)]
pub enum Subject {
    Workload(String),
    Command(Vec<String>),
}

impl Subject {
    /// Finds the workload or command of that name.
    pub fn resolve(&self, executable: &Executable) -> Result<Work, String> {
        match self {
            Subject::Command(argv) => {
                let directory: PathBuf = std::env::current_dir()
                    .map_err(|error| format!("cannot find the current directory: {error}"))?;
                Ok(Work::Command { argv: argv.clone(), directory })
            }
            Subject::Workload(name) => {
                let sizes = JobSizes::default();
                let names = &Selection::of(std::slice::from_ref(name), &sizes);
                let mut works = resolve(names, executable)?;
                match (works.pop(), works.is_empty()) {
                    (Some(work), _) if work.server().is_some() => Err(format!(
                        "`{name}` sends requests to a server, which `weigh budget` does not start: use \
                         `weigh compare audit -w {name}`, which shows the records per operation"
                    )),
                    (Some(work), true) => Ok(work),
                    _ => Err(format!(
                        "`{name}` is a suite: a budget takes one workload (`weigh list workloads`)"
                    )),
                }
            }
        }
    }
}

pub fn operation(work: &Work) -> &'static str {
    match work {
        Work::Builtin { .. } => "operation",
        Work::Interpreted(one) if one.times_itself() => "operation",
        Work::Interpreted(_) | Work::Command { .. } | Work::CommandComparison { .. } => "run",
        Work::Load(_) => "job",
        Work::Net(_) => "bit",
    }
}

/// Launches samples with auditing proved, and tells what an operation makes.
pub fn measure(treated: &mut Treated, work: &Work) -> Result<PerOperation, Stop> {
    let startup = match work.startup_job(treated.context().place) {
        Some(job) => {
            let (launched, evidence) = treated.launch_counted(&job)?;
            let sample = work.read(&launched).map_err(Stop::Failed)?;
            Some((sample.total_operations.unwrap_or(sample.operations), evidence))
        }
        None => None,
    };
    let samples = if startup.is_some() { SAMPLES } else { RUNS };
    let job = job(treated, work)?;
    let mut sum: Option<Evidence> = None;
    let (mut operations, mut timed, mut elapsed_s) = (0.0, 0.0, 0.0);
    let mut unit = None;
    for _ in 0..samples {
        let (launched, evidence) = treated.launch_counted(&job)?;
        let sample: Sample = work.read(&launched).map_err(Stop::Failed)?;
        hold_unit(&mut unit, &sample, work).map_err(Stop::Failed)?;
        operations += sample.total_operations.unwrap_or(sample.operations);
        timed += sample.operations;
        elapsed_s += sample.elapsed_ns as f64 / 1e9;
        match &mut sum {
            Some(sum) => sum.add(evidence),
            None => sum = Some(evidence),
        }
    }
    let evidence = sum.unwrap_or_default();
    let startup_operations = startup.as_ref().map_or(0.0, |(operations, _)| *operations);
    let sums = Sums { launches: samples as f64, operations, startup_operations };
    let per_operation = |quantity: &EvidenceQuantity| {
        let at_startup = startup.as_ref().and_then(|(_, evidence)| evidence.number(quantity));
        sums.per_operation(evidence.number(quantity)?, at_startup)
    };
    let missed = || {
        Stop::Failed(
            "the workload does only one operation per sample, so its records cannot be separated from those \
             of its start: run the workload as a command"
                .into(),
        )
    };
    Ok(PerOperation {
        launches: samples,
        records: per_operation(&RECORDS).ok_or_else(missed)?,
        log_bytes: per_operation(&LOG_BYTES).ok_or_else(missed)?,
        full_speed: timed / elapsed_s,
        lost: evidence.whole(&LOST).unwrap_or(0),
        sink_cpu_ns: per_operation(&SINK_CPU).map(|cpu_s| cpu_s * 1e9),
        kauditd_cpu_ns: per_operation(&KAUDITD_CPU).map(|cpu_s| cpu_s * 1e9),
    })
}

/// The launch of one sample.
fn job(treated: &Treated, work: &Work) -> Result<Job, Stop> {
    let length = Length::settled(SAMPLE_MS);
    work.job(ARM, treated.context().place, length, 0).map_err(Stop::Failed)
}

/// Launches so many operations as fast as they come: in one process, of a command one run after the other.
pub fn burst(treated: &mut Treated, work: &Work, operations: u64) -> Result<(), Stop> {
    let (job, launches) = match work {
        Work::Builtin { workload, copies, .. } => {
            let argv = treated.context().place.executable.operations_argv(
                &workload.name,
                *copies,
                operations,
            );
            let job = job(treated, work)?;
            (Job { argv, ..job }, 1)
        }
        Work::Interpreted(_)
        | Work::Command { .. }
        | Work::CommandComparison { .. }
        | Work::Load(_)
        | Work::Net(_) => {
            let job = job(treated, work)?;
            (job, operations)
        }
    };
    for _ in 0..launches {
        let launched = treated.launch(&job)?;
        work.read(&launched).map_err(Stop::Failed)?;
    }
    Ok(())
}
