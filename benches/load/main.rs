//! Cost of the driver of a load. Its users run a job that is next to nothing, one system call, in
//! growing numbers. `docs/evidence/load.md` has the table. It fails if the cost of a user grows
//! with their number.
//!
//! ```text
//! cargo bench -p benches --bench load -- [--repeat N] [--write docs/evidence/load.md]
//! ```

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::time::Instant;

use paired::estimate::median;
use serde_json::Value;
use support::{end, machine, table};
use table::Table;
use weigh_workload::executable::Executable;

const USERS: [u64; 4] = [250, 1000, 2500, 5000];
const JOBS: u64 = 100;
/// With twenty times as many users, one may cost so many times as much: twice is noise of a busy machine, and
/// a cost that grows with their number would be twenty.
const MOST_GROWTH: f64 = 3.0;

/// Options of the command line.
struct Options {
    repeat: usize,
    write: Option<PathBuf>,
}

impl Options {
    fn parse(mut arguments: impl Iterator<Item = String>) -> Result<Options, String> {
        let mut options = Options { repeat: 3, write: None };
        while let Some(argument) = arguments.next() {
            let mut value = || arguments.next().ok_or(format!("{argument} needs a value"));
            match argument.as_str() {
                "--bench" => {} // cargo says so
                "--repeat" => {
                    let text = value()?;
                    let number = text.parse().ok().filter(|n| *n > 0);
                    options.repeat = number.ok_or(format!("`{text}` is no number"))?;
                }
                "--write" => options.write = Some(value()?.into()),
                other => return Err(format!("`{other}` is no option")),
            }
        }
        Ok(options)
    }
}

fn main() -> ExitCode {
    let options = Options::parse(std::env::args().skip(1));
    end::end("load", options.and_then(|options| measure(&options)))
}

/// Results of a load with so many users: medians over its launches.
struct Found {
    users: u64,
    /// Driver's time for a job, outside of the job and of waiting, in nanoseconds.
    driver_ns: f64,
    /// Time in a job, in nanoseconds.
    job_ns: f64,
    /// From the first fork until all have ended, of each user.
    user_us: f64,
    memory_kib: f64,
    /// Driver's share of the CPU time of users and driver, in per cent.
    driver_pct: f64,
}

fn measure(options: &Options) -> Result<(), String> {
    let scratch = tempfile::tempdir().map_err(|error| error.to_string())?;
    Executable::unpack(scratch.path())?;
    let program = scratch.path().join("weigh-workloads");
    let found: Vec<Found> = USERS
        .iter()
        .map(|users| of_users(&program, *users, options.repeat))
        .collect::<Result<_, _>>()?;
    let row = |one: &Found| {
        vec![
            one.users.to_string(),
            format!("{:.2}", one.driver_ns / 1e3),
            format!("{:.2}", one.job_ns / 1e3),
            format!("{:.0}", one.user_us),
            format!("{:.0}", one.memory_kib),
            format!("{:.1}", one.driver_pct),
            "all".into(),
        ]
    };
    let head = [
        "users",
        "driver, µs a job",
        "job, µs",
        "µs a user",
        "KiB a user",
        "driver, % of CPU time",
        "jobs done",
    ];
    let table = Table {
        title: format!("{JOBS} jobs of one system call (`getppid`) for each user"),
        head: head.map(String::from).to_vec(),
        rows: found.iter().map(row).collect(),
    };
    println!("{}", table::text(&table));
    let generated = format!("{}\n\n{}", machine::line(), table::markdown(&table));
    if let Some(path) = &options.write {
        table::write(path, "load", &generated)?;
    }
    let costs = || found.iter().map(|one| one.user_us);
    let (least, most) = (costs().fold(f64::INFINITY, f64::min), costs().fold(0.0, f64::max));
    match most / least <= MOST_GROWTH {
        true => Ok(()),
        false => Err(format!("a user costs {least:.0} µs with some and {most:.0} µs with others")),
    }
}

fn of_users(program: &Path, users: u64, repeat: usize) -> Result<Found, String> {
    let mut samples = Vec::new();
    for _ in 0..repeat {
        samples.push(sample(program, users)?);
    }
    let of = |number: usize| {
        median(&samples.iter().map(|sample| sample[number]).collect::<Vec<_>>()).unwrap_or_default()
    };
    let [driver_ns, job_ns, user_us, memory_kib, driver_pct] = [of(0), of(1), of(2), of(3), of(4)];
    Ok(Found { users, driver_ns, job_ns, user_us, memory_kib, driver_pct })
}

/// One launch, of which no job may be missing.
fn sample(program: &Path, users: u64) -> Result<[f64; 5], String> {
    let directory = tempfile::tempdir().map_err(|error| error.to_string())?;
    let began = Instant::now();
    let mut command = Command::new(program);
    command.args(["load", "--users", &users.to_string(), &format!("getppid={JOBS}")]);
    command.current_dir(&directory).stdin(Stdio::null());
    let output = command.output().map_err(|error| error.to_string())?;
    let took_us = began.elapsed().as_secs_f64() * 1e6;
    let said = String::from_utf8_lossy(&output.stderr);
    let line: Value = serde_json::from_slice(&output.stdout)
        .map_err(|error| format!("{users} users: {error}: {said}"))?;
    if line["operations"].as_u64() != Some(users * JOBS) {
        return Err(format!("{users} users did {} jobs", line["operations"]));
    }
    let reading = |name: &str| {
        let all = line["readings"].as_array()?;
        all.iter().find(|reading| reading["name"] == name)?["value"].as_f64()
    };
    let named = |name: &str| reading(name).ok_or(format!("there is no reading {name}"));
    Ok([
        named("driver_time")?,
        named("mean_job_time")?,
        took_us / users as f64,
        named("user_memory")? / 1024.0,
        named("driver_cpu")?,
    ])
}
