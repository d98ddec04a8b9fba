//! A command that does a known amount of work, of about 20 ms.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

/// How long a run takes.
const RUN: Duration = Duration::from_millis(20);

/// The compiled program (`spin.c`), and how much it does in a run.
pub struct Spin {
    program: PathBuf,
    steps: u64,
}

impl Spin {
    /// Compiles the program into a directory, and finds out how much it does in a run.
    ///
    /// # Errors
    /// A sentence, where it cannot be compiled or run.
    pub fn new(directory: &Path) -> Result<Spin, String> {
        let program = directory.join("spin");
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("support/spin.c");
        let compiled = Command::new("cc").args(["-O2", "-o"]).arg(&program).arg(&source).status();
        if !compiled.is_ok_and(|status| status.success()) {
            return Err(format!("cc does not compile {}", source.display()));
        }
        let mut steps = 1_000_000;
        loop {
            let started = Instant::now();
            let ran = Command::new(&program).arg(u64::to_string(&steps)).status();
            ran.map_err(|error| format!("{}: {error}", program.display()))?;
            let took = started.elapsed();
            if took >= RUN {
                let share = RUN.as_secs_f64() / took.as_secs_f64();
                return Ok(Spin { program, steps: (steps as f64 * share) as u64 });
            }
            steps *= 2;
        }
    }

    /// How many steps take about 20 ms.
    pub fn steps(&self) -> u64 {
        self.steps
    }

    /// The command that does this share more; of so many in a thousand runs, 30 % more than that.
    pub fn command(&self, more: f64, per_mille: u32) -> String {
        let steps = (self.steps as f64 * (1.0 + more)).round();
        let skew = if per_mille > 0 { format!(" {per_mille}") } else { String::new() };
        format!("{} {steps}{skew}", self.program.display())
    }
}
