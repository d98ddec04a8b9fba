//! Verdicts of other tools' rules, and of ours, on the same noise. The tables show how often each
//! calls two identical systems different, and how long it takes to find 1 % and 3 %.
//! `docs/evidence/verdicts-quiet.md` explains.
//!
//! ```text
//! cargo bench -p benches --bench verdict -- [--seconds N] [--database FILE] [--quick] [--hogs] \
//!     [--write docs/evidence/verdicts-quiet.md]
//! ```
//!
//! With `--hogs` each CPU has a neighbour that calculates while the traces are recorded, and
//! nothing is simulated. The tables then go to docs/evidence/verdicts-neighbours.md.

use std::path::PathBuf;
use std::process::ExitCode;

mod in_time;
mod machine;
mod ours;
mod record;
mod rules;
mod sequential;
mod tables;

use support::{end, hogs, machine as here, table};
use tables::Repetitions;

/// Options of the command line.
struct Options {
    /// The document whose table is to be replaced.
    write: Option<PathBuf>,
    /// How long all workloads together are recorded.
    seconds: f64,
    /// Take the traces from here instead.
    database: Option<PathBuf>,
    /// True if neighbours keep all CPUs busy meanwhile.
    hogs: bool,
    repetitions: Repetitions,
}

impl Options {
    fn parse(mut arguments: impl Iterator<Item = String>) -> Result<Options, String> {
        let repetitions = Repetitions { per_cell: 300, suites: 20 };
        let mut options =
            Options { write: None, seconds: 300.0, database: None, hogs: false, repetitions };
        while let Some(argument) = arguments.next() {
            let mut value = || arguments.next().ok_or(format!("{argument} needs a value"));
            match argument.as_str() {
                "--bench" => {} // cargo says so
                "--hogs" => options.hogs = true,
                "--quick" => options.repetitions = Repetitions { per_cell: 30, suites: 2 },
                "--write" => options.write = Some(value()?.into()),
                "--database" => options.database = Some(value()?.into()),
                "--seconds" => {
                    let seconds: f64 = value()?.parse().map_err(|_| "--seconds needs a number")?;
                    options.seconds = seconds;
                }
                other => return Err(format!("`{other}` is no option")),
            }
        }
        Ok(options)
    }
}

fn main() -> ExitCode {
    let options = Options::parse(std::env::args().skip(1));
    end::end("verdict", options.and_then(|options| compare(&options)))
}

fn compare(options: &Options) -> Result<(), String> {
    let traces = match &options.database {
        Some(path) => record::stored(path)?,
        None => {
            let _hogs = options.hogs.then(hogs::Hogs::start);
            record::record(options.seconds)?
        }
    };
    let mut tables = match options.hogs {
        true => Vec::new(),
        false => vec![tables::simulated(options.repetitions), tables::in_time(options.repetitions)],
    };
    tables.extend([
        tables::recorded(&traces, options.repetitions),
        tables::suite(&traces, false, options.repetitions),
        tables::suite(&traces, true, options.repetitions),
    ]);
    for one in &tables {
        println!("{}", table::text(one));
    }
    if let Some(path) = &options.write {
        let generated: Vec<String> = tables.iter().map(table::markdown).collect();
        table::write(
            path,
            if options.hogs { "verdict -- --hogs" } else { "verdict" },
            &format!("{}\n{}", provenance(options), generated.join("\n")),
        )?;
    }
    Ok(())
}

/// Where, when and how much.
fn provenance(options: &Options) -> String {
    let traces = match &options.database {
        Some(_) => "traces from stored A/A experiments".to_owned(),
        None => format!("traces of {} s in all", options.seconds),
    };
    let beside = if options.hogs { ", beside one busy thread on each CPU" } else { "" };
    format!(
        "{}. {} repetitions of each cell, {} of the suite; {traces}{beside}.\n",
        here::line(),
        options.repetitions.per_cell,
        options.repetitions.suites,
    )
}
