//! How long a sample should be: workloads against themselves, with samples of one length after the other,
//! and how narrow their intervals are after the same time. The better length depends on the machine.
//!
//! ```text
//! cargo bench -p benches --bench length -- [--write docs/verdicts.md] [--seconds N] [--rounds N]
//! ```

use std::path::PathBuf;
use std::process::{Command, ExitCode, Stdio};

use paired::estimate::median;
use serde_json::Value;

use support::{end, machine as here, table};
use table::Table;

/// One of arithmetic, one of a call, one of files, one of two processes, one of many.
const WORKLOADS: [&str; 5] = ["dhry2reg", "syscall", "fstime", "context1@same-cpu", "shell1"];
/// `None`: what the first pairs choose.
const LENGTHS: [Option<&str>; 6] =
    [None, Some("10ms"), Some("20ms"), Some("70ms"), Some("150ms"), Some("250ms")];

struct Options {
    write: Option<PathBuf>,
    /// Length of each experiment, in seconds.
    seconds: u64,
    /// Times that each length has its turn.
    rounds: usize,
}

impl Options {
    fn parse(mut arguments: impl Iterator<Item = String>) -> Result<Options, String> {
        let mut options = Options { write: None, seconds: 20, rounds: 3 };
        while let Some(argument) = arguments.next() {
            let mut value = || arguments.next().ok_or(format!("{argument} needs a value"));
            let number =
                |text: String| text.parse::<u64>().map_err(|_| format!("`{text}` is no number"));
            match argument.as_str() {
                "--bench" => {} // cargo says so
                "--write" => options.write = Some(value()?.into()),
                "--seconds" => options.seconds = number(value()?)?,
                "--rounds" => options.rounds = number(value()?)? as usize,
                other => return Err(format!("`{other}` is no option")),
            }
        }
        Ok(options)
    }
}

fn main() -> ExitCode {
    let options = Options::parse(std::env::args().skip(1));
    end::end("length", options.and_then(|options| compare(&options)))
}

fn compare(options: &Options) -> Result<(), String> {
    // By length and workload: the half-widths of all rounds.
    let mut found = vec![vec![Vec::new(); WORKLOADS.len()]; LENGTHS.len()];
    for round in 0..options.rounds {
        for (of_length, length) in found.iter_mut().zip(LENGTHS) {
            eprintln!("round {}: {}", round + 1, length.unwrap_or("as chosen"));
            let report = weigh(length, options.seconds)?;
            for (half_widths, workload) in of_length.iter_mut().zip(WORKLOADS) {
                half_widths.push(half_width_pct(&report, workload)?);
            }
        }
    }
    let head =
        std::iter::once("length".to_owned()).chain(WORKLOADS.map(|name| format!("`{name}`")));
    let rows = LENGTHS.iter().zip(&found).map(|(length, of_length)| {
        let cells = of_length.iter().map(|half| cell(half));
        std::iter::once(length.unwrap_or("as chosen").to_owned()).chain(cells).collect()
    });
    let table = Table {
        title: "Half-widths by the length of a sample".into(),
        head: head.collect(),
        rows: rows.collect(),
    };
    println!("{}", table::text(&table));
    let Some(path) = &options.write else { return Ok(()) };
    table::write(path, "length", &format!("{}\n{}", provenance(options), table::markdown(&table)))
}

/// Weighs the workloads against themselves until the time is up: with so narrow a margin nothing is decided
/// before.
fn weigh(length: Option<&str>, seconds: u64) -> Result<Value, String> {
    let scratch = tempfile::tempdir().map_err(|error| error.to_string())?;
    let file = scratch.path().join("result.json");
    let mut command = Command::new(support::program());
    command.args([
        "compare",
        "none",
        "--interleave=off",
        "--no-detail",
        "--margin",
        "0.0001%",
        "--json",
    ]);
    command.arg(&file);
    command.args(["--budget", &format!("{seconds}s")]);
    command.args(WORKLOADS.iter().flat_map(|name| ["-w", name]));
    if let Some(length) = length {
        command.args(["--sample", length]);
    }
    let status = command
        .env("XDG_DATA_HOME", scratch.path())
        .env("XDG_STATE_HOME", scratch.path())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .map_err(|error| format!("weigh: {error}"))?;
    if !matches!(status.code(), Some(0 | 3)) {
        return Err(format!("`{command:?}` failed"));
    }
    let text = std::fs::read(&file).map_err(|error| format!("weigh's JSON: {error}"))?;
    serde_json::from_slice(&text).map_err(|error| format!("weigh's JSON: {error}"))
}

/// Half of the interval of a row; infinite where it has none yet.
fn half_width_pct(report: &Value, workload: &str) -> Result<f64, String> {
    let rows = report["results"].as_array().ok_or("weigh's JSON has no results")?;
    let row = rows.iter().find(|row| row["workload"] == workload);
    let row = row.ok_or_else(|| format!("`{workload}` has no result"))?;
    let ends = row["low_pct"].as_f64().zip(row["high_pct"].as_f64());
    Ok(ends.map_or(f64::INFINITY, |(low, high)| (high - low) / 2.0))
}

/// The median of the rounds; a dash where one of them had not the pairs for an interval.
fn cell(half_widths: &[f64]) -> String {
    match median(half_widths) {
        Some(half_width) if half_widths.iter().all(|half| half.is_finite()) => {
            format!("±{half_width:.1} %")
        }
        _ => "–".into(),
    }
}

fn provenance(options: &Options) -> String {
    format!(
        "{}. {} s for the {} workloads together; the median of {} rounds, in turns.\n",
        here::line(),
        options.seconds,
        WORKLOADS.len(),
        options.rounds,
    )
}
