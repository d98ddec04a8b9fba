//! Overhead of the harness: a workload's loop compared with the same loop by hand, the time until
//! the first operation, samples per second, and the time until the first verdict.
//! `docs/fidelity.md` explains.
//!
//! ```text
//! cargo bench -p benches --bench overhead -- [--seconds N] [--write docs/fidelity.md]
//! cargo bench -p benches --bench overhead -- --first-verdict [--rounds N] [--weigh PROGRAM]...
//! ```
//!
//! The second form prints the time until the first verdict alone: of this tree's program, or of
//! those that are named, such as one from before a change and one from after it.

use std::path::PathBuf;
use std::process::ExitCode;
use support::{duel, machine as here, role, table};

mod first_verdict;
mod loops;
mod start;
mod throughput;

/// Options of the command line.
struct Options {
    /// The document whose table is to be replaced.
    write: Option<PathBuf>,
    /// Most seconds per loop.
    seconds: f64,
    /// True if only the time until the first verdict is measured.
    is_first_verdict: bool,
    /// Verdicts of each program.
    rounds: usize,
    /// Programs to measure until their first verdict; this tree's if none is named.
    programs: Vec<PathBuf>,
}

impl Options {
    fn parse(mut arguments: impl Iterator<Item = String>) -> Result<Options, String> {
        let mut options = Options {
            write: None,
            seconds: 20.0,
            is_first_verdict: false,
            rounds: 10,
            programs: Vec::new(),
        };
        while let Some(argument) = arguments.next() {
            let mut value = || arguments.next().ok_or(format!("{argument} needs a value"));
            match argument.as_str() {
                "--bench" => {} // cargo says so
                "--write" => options.write = Some(value()?.into()),
                "--first-verdict" => options.is_first_verdict = true,
                "--weigh" => options.programs.push(value()?.into()),
                "--rounds" => {
                    options.rounds = value()?.parse().map_err(|_| "--rounds needs a number")?;
                }
                "--seconds" => {
                    let seconds: f64 = value()?.parse().map_err(|_| "--seconds needs a number")?;
                    options.seconds = seconds.clamp(1.0, 1e6);
                }
                other => return Err(format!("`{other}` is no option")),
            }
        }
        Ok(options)
    }
}

fn main() -> ExitCode {
    role::play("overhead", |arguments| {
        Options::parse(arguments).and_then(|options| measure(&options))
    })
}

fn measure(options: &Options) -> Result<(), String> {
    let mut programs = options.programs.clone();
    if programs.is_empty() {
        programs.push(support::program().to_owned());
    }
    let first_verdict = || first_verdict::table(&programs, options.rounds);
    if options.is_first_verdict {
        println!("{}", table::text(&first_verdict()?));
        return Ok(());
    }
    let tables =
        [loops::table(options.seconds)?, start::table()?, throughput::table()?, first_verdict()?];
    for one in &tables {
        println!("{}", table::text(one));
    }
    if let Some(path) = &options.write {
        let generated: Vec<String> = tables.iter().map(table::markdown).collect();
        let machine = here::line();
        table::write(path, "overhead", &format!("{machine}.\n\n{}", generated.join("\n")))?;
    }
    Ok(())
}

/// Compiles one of the C files beside this one into `directory`, as the workloads are compiled.
fn compile(source: &str, options: &[&str], directory: &std::path::Path) -> Result<PathBuf, String> {
    let from = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("overhead").join(source);
    let to = directory.join(source).with_extension("out");
    let mut command = std::process::Command::new("cc");
    command.args(["-std=gnu11", "-O2", "-D_GNU_SOURCE", "-o"]).arg(&to).arg(&from).args(options);
    match command.status() {
        Ok(status) if status.success() => Ok(to),
        Ok(status) => Err(format!("cc ended with {status} for {}", from.display())),
        Err(error) => Err(format!("cannot run cc: {error}")),
    }
}
