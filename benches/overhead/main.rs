//! Overhead of the harness: a workload's loop compared with the same loop by hand, the time until
//! the first operation, and samples per second. `docs/fidelity.md` explains.
//!
//! ```text
//! cargo bench -p benches --bench overhead -- [--seconds N] [--write docs/fidelity.md]
//! ```

use std::path::PathBuf;
use std::process::ExitCode;
use support::{duel, machine as here, role, table};

mod loops;
mod start;
mod throughput;

/// Options of the command line.
struct Options {
    /// The document whose table is to be replaced.
    write: Option<PathBuf>,
    /// Most seconds per loop.
    seconds: f64,
}

impl Options {
    fn parse(mut arguments: impl Iterator<Item = String>) -> Result<Options, String> {
        let mut options = Options { write: None, seconds: 20.0 };
        while let Some(argument) = arguments.next() {
            let mut value = || arguments.next().ok_or(format!("{argument} needs a value"));
            match argument.as_str() {
                "--bench" => {} // cargo says so
                "--write" => options.write = Some(value()?.into()),
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
    let tables = [loops::table(options.seconds)?, start::table()?, throughput::table()?];
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
