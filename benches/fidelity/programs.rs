//! Finding the programs, and running theirs and ours once.

use std::fs;
use std::io::{Read, Seek, SeekFrom};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use rustix::process::{Pid, Signal, kill_process_group};
use weigh_model::workload::sample::Sample;
use weigh_workload::executable::{Executable, Length};

use crate::options::Options;
use crate::rows::{Counterpart, Suite};

/// How long our samples are, and theirs that take a number of operations.
const TARGET_MS: u64 = 100;

/// No program of the table takes nearly as long; lmbench's ignore SIGTERM.
const TIMEOUT: [&str; 2] = ["--kill-after=1", "120"];

/// A file for those that want one, beside the files that programs make.
const FILE: &str = "file";

/// Where everything is.
pub struct Site<'a> {
    pub options: &'a Options,
    pub executable: &'a Executable,
    pub scratch: &'a Path,
}

impl<'a> Site<'a> {
    /// # Errors
    /// A sentence, where the scratch directory cannot be written to.
    pub fn new(
        options: &'a Options,
        executable: &'a Executable,
        scratch: &'a Path,
    ) -> Result<Site<'a>, String> {
        fs::write(scratch.join(FILE), [0; 1234]).map_err(|error| error.to_string())?;
        Ok(Site { options, executable, scratch })
    }

    /// Their program, where there is one.
    pub fn find(&self, counterpart: &Counterpart) -> Option<PathBuf> {
        let name = counterpart.theirs.split(' ').next()?;
        let in_path = || {
            let path = std::env::var_os("PATH")?;
            std::env::split_paths(&path)
                .map(|directory| directory.join(name))
                .find(|path| path.is_file())
        };
        match counterpart.suite {
            Suite::Definitions => self.compiled(name),
            Suite::UnixBench => Some(self.options.unixbench.as_ref()?.join("pgms").join(name)),
            Suite::Lmbench => in_lmbench(self.options.lmbench.as_ref()?, name),
            Suite::Perf => in_path(),
        }
        .filter(|path| path.is_file())
    }

    /// A program of `reference/`, compiled as UnixBench compiles its own; `None` where there is no compiler.
    fn compiled(&self, name: &str) -> Option<PathBuf> {
        let program = self.scratch.join(format!("reference-{name}"));
        if !program.is_file() {
            let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("fidelity/reference");
            let mut compiler = Command::new("cc");
            compiler.args([
                "-O3",
                "-ffast-math",
                "-march=native",
                "-mtune=native",
                "-D_GNU_SOURCE",
            ]);
            compiler.arg("-o").arg(&program).arg(sources.join(name).with_extension("c"));
            compiler.status().ok().filter(|status| status.success())?;
        }
        Some(program)
    }

    /// The rate of one run of theirs, in operations of ours.
    ///
    /// # Errors
    /// A sentence, where it fails or prints no rate.
    pub fn theirs(
        &self,
        counterpart: &Counterpart,
        program: &Path,
        operations: f64,
    ) -> Result<f64, String> {
        let n = (operations / counterpart.scale).round().max(1.0);
        let program = absolute(program)?;
        let binaries = program.parent().unwrap_or(Path::new("/"));
        let known = [
            ("{n}", n.to_string()),
            ("{dir}", self.scratch.display().to_string()),
            ("{bin}", binaries.display().to_string()),
        ];
        let fill = |argument: &str| {
            let replaced = |text: String, (name, value): &(&str, String)| text.replace(name, value);
            known.iter().fold(argument.to_owned(), replaced)
        };
        let mut command = Command::new("timeout");
        command.args(TIMEOUT).arg(&program).current_dir(self.scratch);
        command.args(counterpart.theirs.split(' ').skip(1).map(fill));
        match counterpart.suite {
            Suite::UnixBench => as_unixbench(&mut command, binaries, self.scratch),
            // Else it looks for as long as a second for the least time that it can believe.
            Suite::Lmbench => drop(command.env("ENOUGH", "100000")),
            Suite::Definitions | Suite::Perf => {}
        }
        let started = Instant::now();
        let output = run(&mut command)?;
        let wall_s = started.elapsed().as_secs_f64();
        Ok(counterpart.form.rate(&output, wall_s)? * counterpart.scale)
    }

    /// The operations and the rate of one run of ours: of so many operations, or of the usual length.
    ///
    /// # Errors
    /// A sentence, where it fails.
    pub fn ours(&self, workload: &str, operations: Option<f64>) -> Result<Sample, String> {
        let mut argv = match operations {
            Some(n) => self.executable.operations_argv(workload, 1, n as u64),
            None => self.executable.sample_argv(workload, 1, Length::of_ms(TARGET_MS)),
        };
        if let Some(workloads) = &self.options.workloads {
            argv[0] = absolute(workloads)?.display().to_string();
        }
        let output = run(Command::new(&argv[0]).args(&argv[1..]).current_dir(self.scratch))?;
        Sample::parse(&output).ok_or("it printed no result")?
    }
}

/// The environment and the directory that UnixBench's `Run` gives its programs.
fn as_unixbench(command: &mut Command, binaries: &Path, scratch: &Path) {
    let tests = binaries.with_file_name("testdir");
    command.env("UB_BINDIR", binaries).env("UB_TMPDIR", scratch).env("UB_RESULTDIR", scratch);
    if tests.is_dir() {
        command.env("UB_TESTDIR", &tests).current_dir(&tests);
    }
}

/// Runs a program and returns its output, from both streams. Kills all processes that it left
/// running.
fn run(command: &mut Command) -> Result<String, String> {
    let said = |error: std::io::Error| format!("cannot run it: {error}");
    let mut output = tempfile::tempfile().map_err(said)?;
    let copy = || output.try_clone().map(Stdio::from).map_err(said);
    let mut child = command
        // What cargo sets sends the loader of every program that is executed through more directories.
        .env_remove("LD_LIBRARY_PATH")
        .process_group(0)
        .stdin(Stdio::null())
        .stdout(copy()?)
        .stderr(copy()?)
        .spawn()
        .map_err(said)?;
    let status = child.wait().map_err(said)?;
    if let Some(group) = Pid::from_raw(child.id().cast_signed()) {
        // Mostly there is nobody.
        let _ = kill_process_group(group, Signal::KILL);
    }
    let mut bytes = Vec::new();
    output.seek(SeekFrom::Start(0)).and_then(|_| output.read_to_end(&mut bytes)).map_err(said)?;
    let text = String::from_utf8_lossy(&bytes).into_owned();
    match status.success() {
        true => Ok(text),
        false => Err(format!("it ended with {status}: {}", text.trim())),
    }
}

/// Among the programs of lmbench: in the directory itself, or as its Makefile puts them.
fn in_lmbench(directory: &Path, name: &str) -> Option<PathBuf> {
    let below = fs::read_dir(directory.join("bin")).into_iter().flatten().flatten();
    let places = std::iter::once(directory.to_owned()).chain(below.map(|entry| entry.path()));
    places.map(|place| place.join(name)).find(|path| path.is_file())
}

fn absolute(path: &Path) -> Result<PathBuf, String> {
    fs::canonicalize(path).map_err(|error| format!("{}: {error}", path.display()))
}
