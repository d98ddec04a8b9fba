//! How many samples a real experiment takes in a second, each committed to its database: by the
//! program itself, with two identical arms.

use std::path::Path;
use std::process::{Command, Stdio};

use rusqlite::Connection;

use crate::table::Table;

/// Pairs of each experiment.
const PAIRS: &str = "100";

/// Sampled experiments, with their options: a workload as usual, one as short as can be, and a
/// command that does nothing.
const EXPERIMENTS: [(&str, &[&str]); 3] = [
    ("`getppid`, 70 ms", &["-w", "getppid", "--sample", "70ms"]),
    ("`getppid`, 10 ms", &["-w", "getppid", "--sample", "10ms"]),
    ("the command `true`", &["--", "true"]),
];

/// Samples per second, and what of a sample's time is not the timed part.
///
/// # Errors
/// A sentence, where an experiment does not work.
pub fn table() -> Result<Table, String> {
    let mut rows = Vec::new();
    for (what, arguments) in EXPERIMENTS {
        let scratch = tempfile::tempdir().map_err(|error| error.to_string())?;
        let database = scratch.path().join("weigh.db");
        experiment(arguments, &database, scratch.path())?;
        let (samples, period_ms, timed_ms) = read(&database).map_err(|error| error.to_string())?;
        rows.push(vec![
            what.into(),
            format!("{:.1}", 1e3 / period_ms),
            format!("{period_ms:.2}"),
            format!("{timed_ms:.2}"),
            format!("{:.2}", period_ms - timed_ms),
            samples.to_string(),
        ]);
    }
    let head =
        ["experiment", "samples/s", "a sample [ms]", "timed part [ms]", "the rest [ms]", "samples"];
    Ok(Table {
        title: "Samples of an experiment, each committed".into(),
        head: head.map(String::from).to_vec(),
        rows,
    })
}

fn experiment(arguments: &[&str], database: &Path, scratch: &Path) -> Result<(), String> {
    let output = Command::new(support::program())
        .args(["compare", "none", "--pairs", PAIRS, "--budget", "5m", "--database"])
        .arg(database)
        .args(arguments)
        .env("XDG_STATE_HOME", scratch)
        .env("XDG_DATA_HOME", scratch)
        .stdin(Stdio::null())
        .output()
        .map_err(|error| format!("cannot run weigh: {error}"))?;
    match output.status.code() {
        Some(0 | 3) => Ok(()), // 3: measured, but not everything is decided
        _ => Err(format!("weigh: {}", String::from_utf8_lossy(&output.stderr).trim())),
    }
}

/// The number of samples, the time from one to the next, and that of the timed part, both as means.
fn read(database: &Path) -> rusqlite::Result<(u32, f64, f64)> {
    Connection::open(database)?.query_row(
        "SELECT count(*), 1e3 * (max(started_s) - min(started_s)) / (count(*) - 1),
            1e-6 * avg(json_extract(sample, '$.elapsed_ns')) FROM sample",
        [],
        |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)),
    )
}
