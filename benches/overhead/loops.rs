//! Workloads against the same loops by hand (`bare.c`): instructions per operation, counted, and the
//! rates, in turns.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use weigh_model::workload::sample::Sample;
use weigh_workload::executable::{Executable, Length};

use crate::compile;
use crate::duel::{Contest, Outcome, fight};
use crate::table::Table;

/// The loops that `bare.c` has.
const LOOPS: [&str; 5] = ["getppid", "read", "stat", "pipe", "arith-int"];

/// The ratio that is promised: 1.01.
const MARGIN_PCT: f64 = 1.0;

/// Operations of the two counted runs. What a start takes is in both, and in the difference no more.
const COUNTED: [u64; 2] = [2_000, 22_000];

/// All loops, by both ways.
///
/// # Errors
/// A sentence, where a program cannot be compiled or does not work.
pub fn table(seconds: f64) -> Result<Table, String> {
    let scratch = tempfile::tempdir().map_err(|error| error.to_string())?;
    let (executable, bare) =
        (Executable::unpack(scratch.path())?, compile("bare.c", &[], scratch.path())?);
    let bare_argv =
        |name: &str, n: u64| vec![bare.display().to_string(), name.into(), n.to_string()];
    let sample = |argv: &[String]| run(argv, scratch.path());
    let mut contests = Vec::new();
    for name in LOOPS {
        let first = sample(&executable.sample_argv(name, 1, Length::of_ms(100)))?.operations as u64;
        let (theirs, ours) = (bare_argv(name, first), executable.operations_argv(name, 1, first));
        contests.push(Contest {
            name: name.into(),
            theirs: Box::new(move || {
                sample(&theirs).map(|of| of.operations * 1e9 / of.elapsed_ns as f64)
            }),
            ours: Box::new(move || sample(&ours).map(|of| of.rate())),
        });
    }
    let budget = Duration::from_secs_f64(seconds * LOOPS.len() as f64);
    let outcomes = fight(&mut contests, MARGIN_PCT, budget, 1);
    let mut rows = Vec::new();
    for (name, outcome) in LOOPS.into_iter().zip(&outcomes) {
        let ours = instructions(
            |n| executable.operations_argv(name, 1, n),
            scratch.path(),
            |n| n + n / 32 + 1,
        );
        let theirs = instructions(|n| bare_argv(name, n), scratch.path(), |n| n);
        rows.push(row(name, ours, theirs, outcome));
    }
    let head = [
        "loop",
        "instructions, by hand",
        "workload",
        "ratio",
        "rate, workload / by hand",
        "95 %",
        "pairs",
        "verdict",
    ];
    let title = "A workload's loop against the same loop by hand";
    Ok(Table { title: title.into(), head: head.map(String::from).to_vec(), rows })
}

fn row(name: &str, ours: Option<f64>, theirs: Option<f64>, outcome: &Outcome) -> Vec<String> {
    let count = |count: Option<f64>| count.map_or("no valgrind".into(), |n| format!("{n:.2}"));
    let ratio = ours.zip(theirs).map(|(ours, theirs)| ours / theirs);
    let [rates, interval] = outcome.cells();
    let ratio = ratio.map_or("–".into(), |ratio| format!("{ratio:.3}"));
    vec![
        format!("`{name}`"),
        count(theirs),
        count(ours),
        ratio,
        rates,
        interval,
        outcome.pairs.to_string(),
        outcome.said(MARGIN_PCT, None),
    ]
}

fn run(argv: &[String], directory: &Path) -> Result<Sample, String> {
    let output = Command::new(&argv[0])
        .args(&argv[1..])
        .current_dir(directory)
        .stdin(Stdio::null())
        .output()
        .map_err(|error| format!("{}: {error}", argv[0]))?;
    let text = String::from_utf8_lossy(&output.stdout);
    let said = || format!("{argv:?}: {}", String::from_utf8_lossy(&output.stderr).trim());
    Sample::parse(&text).ok_or_else(said)?
}

/// Instructions of user mode per operation, by callgrind. `None` without valgrind.
fn instructions(
    argv: impl Fn(u64) -> Vec<String>,
    directory: &Path,
    executed: impl Fn(u64) -> u64,
) -> Option<f64> {
    let [few, many] = COUNTED.map(|n| collected(&argv(n), directory));
    let operations = executed(COUNTED[1]) - executed(COUNTED[0]);
    Some((many? - few?) / operations as f64)
}

/// All instructions that one run executes.
fn collected(argv: &[String], directory: &Path) -> Option<f64> {
    let output = Command::new("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
        .args(argv)
        .current_dir(directory)
        .stdin(Stdio::null())
        .output()
        .ok()?;
    let text = String::from_utf8_lossy(&output.stderr);
    text.lines().find_map(|line| line.split_once("Collected :")?.1.trim().parse().ok())
}
