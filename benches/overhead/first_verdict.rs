//! From return to the first verdict, as somebody at the terminal waits for it: from the start of the program
//! until it prints the verdict. Several programs, such as that of before a change, take turns.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use paired::estimate::median;
use rand::seq::SliceRandom;
use rustix::process::{Pid, Signal, kill_process};
use support::spin::Spin;

use crate::table::Table;

/// The second of the two commands does this share more.
const MORE: f64 = 0.05;

/// How long each program takes, and how long compared with the first one.
///
/// # Errors
/// A sentence, where one of them gives no verdict.
pub fn table(programs: &[PathBuf], rounds: usize) -> Result<Table, String> {
    let scratch = tempfile::tempdir().map_err(|error| error.to_string())?;
    let spin = Spin::new(scratch.path())?;
    let commands = [spin.command(0.0, 0), spin.command(MORE, 0)];
    let questions: [(&str, Vec<&str>); 2] = [
        ("`compare seccomp -w getppid`", vec!["compare", "seccomp", "-w", "getppid"]),
        ("`versus`: 20 ms, 5 % more", vec!["versus", &commands[0], &commands[1]]),
    ];
    let mut rows = Vec::new();
    for (what, arguments) in &questions {
        let mut times_ms = vec![Vec::new(); programs.len()];
        // The first round makes the database, and is not counted.
        for round in 0..=rounds {
            let mut order: Vec<usize> = (0..programs.len()).collect();
            order.shuffle(&mut rand::rng());
            for program in order {
                let home = scratch.path().join(program.to_string());
                let ms = first_verdict_ms(&programs[program], arguments, &home)?;
                times_ms[program].extend((round > 0).then_some(ms));
            }
        }
        for (program, own) in programs.iter().zip(&times_ms) {
            let ratios = own.iter().zip(&times_ms[0]).map(|(own, first)| own / first);
            let ratio = median(&ratios.collect::<Vec<_>>()).unwrap_or(f64::NAN);
            rows.push(row(what, program, own.clone(), ratio));
        }
    }
    let head = [
        "asked",
        "program",
        "median [ms]",
        "10 % [ms]",
        "90 % [ms]",
        "ratio to the first",
        "rounds",
    ];
    let title = "From return to the first verdict".into();
    Ok(Table { title, head: head.map(String::from).to_vec(), rows })
}

fn row(what: &str, program: &Path, mut times_ms: Vec<f64>, ratio: f64) -> Vec<String> {
    times_ms.sort_unstable_by(f64::total_cmp);
    let last = times_ms.len().saturating_sub(1) as f64;
    let at = |share: f64| {
        times_ms.get((share * last) as usize).map_or("–".into(), |ms| format!("{ms:.0}"))
    };
    let name = program.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let rounds = times_ms.len().to_string();
    vec![what.into(), name, at(0.5), at(0.1), at(0.9), format!("{ratio:.2}"), rounds]
}

/// Runs a program until it has printed its first verdict, and then interrupts it.
fn first_verdict_ms(program: &Path, arguments: &[&str], home: &Path) -> Result<f64, String> {
    let cannot = |error: std::io::Error| format!("{}: {error}", program.display());
    let mut command = Command::new(program);
    command.args(arguments).args(["--budget", "20s"]);
    command.env("XDG_DATA_HOME", home).env("XDG_STATE_HOME", home);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    let started = Instant::now();
    let mut child = command.spawn().map_err(cannot)?;
    let stderr = child.stderr.take().expect("it is piped");
    let (mut said, mut found_ms) = (String::new(), None);
    for line in BufReader::new(stderr).lines() {
        let line = line.map_err(cannot)?;
        if found_ms.is_none() && is_verdict(&line) {
            found_ms = Some(started.elapsed().as_secs_f64() * 1e3);
            kill_process(Pid::from_child(&child), Signal::INT)
                .map_err(|error| cannot(error.into()))?;
        }
        said += &format!("\n{line}");
    }
    child.wait().map_err(cannot)?;
    found_ms.ok_or_else(|| format!("{} gave no verdict:{said}", program.display()))
}

/// Returns true for the line that the program prints about a row as soon as the row has its verdict.
fn is_verdict(line: &str) -> bool {
    let verdicts = [", slower, ", ", faster, ", ", equivalent, "];
    line.starts_with('[') && verdicts.iter().any(|verdict| line.contains(verdict))
}
