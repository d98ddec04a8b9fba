//! How long, and in how much memory, an experiment of many samples is read and judged: what
//! `weigh show` does. The size grows tenfold twice; each is done by a fresh process.
//!
//! The largest is held against limits. Too much memory fails, as it is the same on every machine; too much
//! time is only told, as it depends on what else runs.
//!
//! ```text
//! cargo bench -p benches --bench judge
//! ```

use std::path::Path;
use std::process::{Command, ExitCode};
use std::time::Instant;

use paired::simulated::{Machine, Noise};
use rusqlite::{Connection, params};
use support::end;
use weigh_engine::summarise::summarise;
use weigh_model::record::{ExperimentKind, Header, StoredWork};
use weigh_model::result::summary::State;
use weigh_model::workload::metric::Metric;
use weigh_report::terminal::{self, Room};
use weigh_store::Store;

/// Samples of the experiments.
const SIZES: [usize; 3] = [10_000, 100_000, 1_000_000];

/// Time limit for the largest of them, in seconds.
const LIMIT_S: f64 = 2.0;
const LIMIT_MB: f64 = 200.0;

/// As many as the suite `unixbench` has.
const WORKLOADS: usize = 12;

/// The hidden role: judge one experiment, and say what it took.
const CHILD: &str = "__judge";

/// Cost of one size.
#[derive(Clone, Copy)]
struct Cost {
    load_s: f64,
    judge_s: f64,
    peak_mb: f64,
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let result = match &arguments[..] {
        [role, database] if role == CHILD => judge(Path::new(database)),
        _ => compare_sizes(),
    };
    end::end("judge", result)
}

fn compare_sizes() -> Result<(), String> {
    println!("  samples   read [s]  judge [s]   both [s]  growth  peak RSS [MB]  growth");
    let mut before: Option<Cost> = None;
    for samples in SIZES {
        let scratch = tempfile::tempdir().map_err(|error| error.to_string())?;
        let database = scratch.path().join("weigh.db");
        fill(&database, samples)?;
        let cost = measure(&database)?;
        let both_s = cost.load_s + cost.judge_s;
        let times = |now: f64, then: fn(&Cost) -> f64| {
            before.as_ref().map_or(String::new(), |before| format!("×{:.1}", now / then(before)))
        };
        println!(
            "{samples:>9}  {:>9.3}  {:>9.3}  {both_s:>9.3}  {:>6}  {:>13.1}  {:>6}",
            cost.load_s,
            cost.judge_s,
            times(both_s, |cost| cost.load_s + cost.judge_s),
            cost.peak_mb,
            times(cost.peak_mb, |cost| cost.peak_mb),
        );
        before = Some(cost);
    }
    before.map_or(Ok(()), |largest| hold_against_limits(&largest))
}

/// Says how the largest size did.
///
/// # Errors
/// Where it took too much memory.
fn hold_against_limits(cost: &Cost) -> Result<(), String> {
    let samples = SIZES[SIZES.len() - 1];
    let both_s = cost.load_s + cost.judge_s;
    let word = |is_within: bool| if is_within { "PASS" } else { "over" };
    println!(
        "{samples} samples: time {both_s:.2} s of {LIMIT_S} s: {}; memory {:.0} MB of {LIMIT_MB} MB: {}",
        word(both_s <= LIMIT_S),
        cost.peak_mb,
        word(cost.peak_mb <= LIMIT_MB)
    );
    if cost.peak_mb <= LIMIT_MB {
        return Ok(());
    }
    Err(format!("{samples} samples took {:.0} MB, more than {LIMIT_MB} MB", cost.peak_mb))
}

/// Has a fresh process judge what is in the database.
fn measure(database: &Path) -> Result<Cost, String> {
    let program = std::env::current_exe().map_err(|error| error.to_string())?;
    let child = Command::new(program).arg(CHILD).arg(database).output();
    let output = child.map_err(|error| error.to_string())?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let numbers: Vec<f64> = text.split_whitespace().filter_map(|word| word.parse().ok()).collect();
    match numbers[..] {
        [load_s, judge_s, peak_mb] => Ok(Cost { load_s, judge_s, peak_mb }),
        _ => Err(format!(
            "the child said {text:?} and {:?}",
            String::from_utf8_lossy(&output.stderr)
        )),
    }
}

fn judge(database: &Path) -> Result<(), String> {
    let started = Instant::now();
    let store = Store::open(database).map_err(|error| error.to_string())?;
    let id = store.find(None).map_err(|error| error.to_string())?;
    let stored = store.load(&id).map_err(|error| error.to_string())?;
    let load_s = started.elapsed().as_secs_f64();
    let report = terminal::render(&summarise(&stored), Room::FILE, false);
    if !report.contains("w11") {
        return Err(format!("the report misses a workload:\n{report}"));
    }
    let judge_s = started.elapsed().as_secs_f64() - load_s;
    println!("{load_s} {judge_s} {}", peak_mb()?);
    Ok(())
}

/// The most memory that this process has had, in MB of 10⁶ bytes.
fn peak_mb() -> Result<f64, String> {
    let status = std::fs::read_to_string("/proc/self/status").map_err(|error| error.to_string())?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib = line.and_then(|line| line.trim().trim_end_matches(" kB").parse::<f64>().ok());
    kib.map(|kib| kib * 1.024e-3).ok_or("/proc/self/status has no VmHWM".into())
}

/// An experiment of this many samples: each workload 1 % slower under drift and bursts.
fn fill(database: &Path, samples: usize) -> Result<(), String> {
    let store = Store::open(database).map_err(|error| error.to_string())?;
    let work = |row: usize| StoredWork {
        name: (*format!("w{row}")).into(),
        unit: "lps".into(),
        syscalls_per_op: Some(1.0),
        sample_ms: Some(70),
        start_scale: paired::betting::DEFAULT_SCALE.into(),
        on_curve: None,
    };
    let header = Header {
        metrics: Metric::judged(None, &[]),
        kind: ExperimentKind::Compare,
        command: "weigh compare seccomp".into(),
        seed: 1,
        budget_s: 1e6,
        alpha: 0.05,
        margin: 0.01,
        planned_pairs: Some(500.0),
        sets: 1,
        machine: weigh_model::facts::Facts::default(),
        arms: vec!["none".into(), "seccomp".into()],
        works: (0..WORKLOADS).map(work).collect(),
        ..Header::default()
    };
    let id = store.begin(&header).map_err(|error| error.to_string())?;
    insert(database, &id, samples).map_err(|error| error.to_string())?;
    store.finish(&id, State::Complete, None).map_err(|error| error.to_string())
}

/// All samples in one transaction: the store itself commits each, which is not what is measured here.
fn insert(database: &Path, id: &str, samples: usize) -> rusqlite::Result<()> {
    let mut connection = Connection::open(database)?;
    let transaction = connection.transaction()?;
    let mut machines: Vec<Machine> =
        (0..WORKLOADS as u64).map(|row| Machine::new(Noise::Drifting, row)).collect();
    let mut statement = transaction.prepare(
        "INSERT INTO sample (experiment, work, arm, treated_arm, role, scheme, set_number, pair, position,
            started_s, padding_bytes, sample, disturbance, evidence)
         VALUES (?1, ?2, ?3, 1, 'compared', 'sequential', 0, ?4, ?5, ?6, 7, ?7, ?8, ?9)",
    )?;
    for number in 0..samples {
        let (pair, position) = (number / 2, number % 2);
        let (row, round) = (pair % WORKLOADS, pair / WORKLOADS);
        // Whatever the order of the arms, it costs the same to judge.
        let arm = (position + round) % 2;
        let rate = 1e6 * (machines[row].sample() - 0.01 * arm as f64).exp();
        let sample = format!(
            "{{\"operations\":{:.1},\"elapsed_ns\":70000000,\"total_operations\":{:.1},\
             \"rate\":{rate},\"unit\":\"lps\",\"syscalls_per_op\":1.0,\"user_ns\":35488000,\
             \"system_ns\":35336000,\"voluntary_switches\":203,\"involuntary_switches\":43,\
             \"minor_faults\":655,\"major_faults\":0,\"kernel_instructions\":null}}",
            rate * 0.07,
            rate * 0.1,
        );
        let disturbance = format!(
            "{{\"during_ns\":101234567,\"psi_cpu_us\":{},\"steal_ticks\":0}}",
            number * 7919 % 9973
        );
        let evidence = if arm == 1 { "{\"seccomp_mode\":\"2\"}" } else { "{}" };
        let started_s = number as f64 * 0.1;
        statement.execute(params![
            id,
            row,
            arm,
            round,
            position,
            started_s,
            sample,
            disturbance,
            evidence
        ])?;
    }
    drop(statement);
    transaction.commit()
}
