//! From asking the launcher for a sample to the workload's first operation: what a library that is
//! preloaded into the workload (`probe.c`) saw.

use std::sync::atomic::AtomicBool;

use rustix::time::{ClockId, clock_gettime};
use weigh_host::own_program;
use weigh_workload::executable::Executable;
use weigh_workload::launcher::{Job, Launcher, SUBCOMMAND};
use weigh_workload::setup::Setup;
use weigh_workload::stdout_use::StdoutUse;

use crate::compile;
use crate::table::Table;

/// Launches that are looked at.
const LAUNCHES: usize = 200;

/// How long the way in takes, and the whole launch of a single operation.
///
/// # Errors
/// A sentence, where the probe cannot be compiled or a launch fails.
pub fn table() -> Result<Table, String> {
    let scratch = tempfile::tempdir().map_err(|error| error.to_string())?;
    let executable = Executable::unpack(scratch.path())?;
    let probe = compile("probe.c", &["-shared", "-fPIC"], scratch.path())?;
    let never = AtomicBool::new(false);
    let mut launcher = Launcher::start(own_program::command(SUBCOMMAND), &Setup::default(), &never)
        .map_err(|error| error.to_string())?;
    let job = Job {
        argv: executable.operations_argv("getppid", 1, 1),
        environment: vec![("LD_PRELOAD".into(), probe.display().to_string())],
        directory: scratch.path().to_owned(),
        timeout_ms: 10_000,
        stdout: StdoutUse::KeepEnd,
        start: None,
        if_missing: None,
    };
    let (mut firsts, mut launches) = (Vec::new(), Vec::new());
    for _ in 0..LAUNCHES {
        let asked_ns = now_ns();
        let launched = launcher.run(&job, &never).map_err(|error| error.to_string())?;
        launches.push((now_ns() - asked_ns) as f64 / 1e3);
        let first = launched.stderr.lines().find_map(|line| line.strip_prefix("first "));
        let first_ns: i64 = first.and_then(|text| text.parse().ok()).ok_or_else(|| {
            format!("the workload did not say when it began: {}", launched.stderr.trim())
        })?;
        firsts.push((first_ns - asked_ns) as f64 / 1e3);
    }
    let head =
        ["from the request of a sample", "median [µs]", "10 % [µs]", "90 % [µs]", "launches"];
    Ok(Table {
        title: "The launch of a sample".into(),
        head: head.map(String::from).to_vec(),
        rows: vec![
            row("to the workload's first operation", firsts),
            row("to the answer, after one operation", launches),
        ],
    })
}

fn row(what: &str, mut times_us: Vec<f64>) -> Vec<String> {
    times_us.sort_unstable_by(f64::total_cmp);
    let at =
        |share: f64| format!("{:.0}", times_us[(share * (times_us.len() - 1) as f64) as usize]);
    vec![what.into(), at(0.5), at(0.1), at(0.9), times_us.len().to_string()]
}

/// The clock that the probe reads too.
fn now_ns() -> i64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec * 1_000_000_000 + now.tv_nsec
}
