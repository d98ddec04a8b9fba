//! The command line of `cargo bench -p benches --bench fidelity`.

use std::path::PathBuf;

/// Options of the command line.
#[derive(Clone, Debug, PartialEq)]
pub struct Options {
    /// A built tree of UnixBench: `pgms/` is below it.
    pub unixbench: Option<PathBuf>,
    /// A built tree of lmbench, or the directory of its programs.
    pub lmbench: Option<PathBuf>,
    /// Our workloads compiled in another way than the embedded ones.
    pub workloads: Option<PathBuf>,
    /// The document whose table is to be replaced.
    pub write: Option<PathBuf>,
    /// Most seconds per row.
    pub seconds: f64,
    /// Rows whose suite or name contains this.
    pub only: Option<String>,
}

impl Options {
    /// # Errors
    /// A sentence about the argument that is wrong.
    pub fn parse(mut arguments: impl Iterator<Item = String>) -> Result<Options, String> {
        let mut options = Options {
            unixbench: None,
            lmbench: None,
            workloads: None,
            write: None,
            seconds: 20.0,
            only: None,
        };
        while let Some(argument) = arguments.next() {
            let mut value = || arguments.next().ok_or(format!("{argument} needs a value"));
            match argument.as_str() {
                "--bench" => {} // cargo says so
                "--unixbench" => options.unixbench = Some(value()?.into()),
                "--lmbench" => options.lmbench = Some(value()?.into()),
                "--workloads" => options.workloads = Some(value()?.into()),
                "--write" => options.write = Some(value()?.into()),
                "--only" => options.only = Some(value()?),
                "--seconds" => options.seconds = positive(&value()?)?,
                other => return Err(format!("`{other}` is no option")),
            }
        }
        Ok(options)
    }
}

fn positive(text: &str) -> Result<f64, String> {
    let seconds = text.parse().ok().filter(|seconds: &f64| seconds.is_finite() && *seconds > 0.0);
    seconds.ok_or(format!("--seconds needs a positive number, not `{text}`"))
}
