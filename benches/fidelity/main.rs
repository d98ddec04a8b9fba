//! Other suites' programs and ours for the same work, in turns on one CPU: do they measure the same?
//! `docs/fidelity.md` explains.
//!
//! ```text
//! cargo bench -p benches --bench fidelity -- [--unixbench DIR] [--lmbench DIR] [--workloads FILE]
//!     [--seconds N] [--only TEXT] [--write docs/fidelity.md]
//! ```

use std::process::{Command, ExitCode};

use rustix::thread::{CpuSet, sched_setaffinity};

mod compare;
mod options;
mod programs;
mod read;
mod rows;

use options::Options;
use support::{duel, end, machine as here, table};

/// The CPU of everything: that to which `perf bench futex` pins itself.
const CPU: usize = 0;

fn main() -> ExitCode {
    let options = Options::parse(std::env::args().skip(1));
    end::end("fidelity", options.and_then(|options| run(&options)))
}

fn run(options: &Options) -> Result<(), String> {
    let mut cpus = CpuSet::new();
    cpus.set(CPU);
    sched_setaffinity(None, &cpus).map_err(|error| format!("cannot stay on CPU {CPU}: {error}"))?;
    let (table, absent) = compare::compare(options)?;
    println!("{}", table::text(&table));
    if !absent.is_empty() {
        println!("Not compared, as they are not there: {}.", absent.join(", "));
    }
    if let Some(path) = &options.write {
        let generated = format!("{}\n{}", provenance(options, &absent), table::markdown(&table));
        table::write(path, "fidelity", &generated)?;
    }
    Ok(())
}

/// Where, and what versions.
fn provenance(options: &Options, absent: &[&str]) -> String {
    let mut versions: Vec<String> =
        [["perf", "--version"], ["cc", "--version"]].into_iter().filter_map(version).collect();
    let trees = [("UnixBench", &options.unixbench), ("lmbench", &options.lmbench)];
    for (name, tree) in trees {
        versions.extend(tree.as_ref().map(|tree| format!("{name} in {}", tree.display())));
    }
    let ours = match &options.workloads {
        Some(file) => format!("ours: {}", file.display()),
        None => "ours: the embedded workloads, -O2".into(),
    };
    let absent = match absent {
        [] => String::new(),
        names => format!(" Not compared, as they were not there: {}.", names.join(", ")),
    };
    format!("{}, all on CPU {CPU}. {}; {ours}.{absent}\n", here::line(), versions.join("; "),)
}

/// The first line that a program says of itself.
fn version([program, option]: [&str; 2]) -> Option<String> {
    let output = Command::new(program).arg(option).output().ok()?;
    Some(String::from_utf8_lossy(&output.stdout).lines().next()?.trim().to_owned())
}
