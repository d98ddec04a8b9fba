//! The pairs of commands: of what the second does against the first, all is known.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use tempfile::TempDir;

/// How long a run of the first command takes.
const RUN: Duration = Duration::from_millis(20);

/// Two commands.
pub struct Pair {
    /// Work of the second command.
    pub name: &'static str,
    pub commands: [String; 2],
    /// True if the answer does not depend on chance.
    pub is_certain: bool,
    /// Options that the answer needs, of `weigh`.
    pub options: &'static [&'static str],
}

/// Where the program is that they run.
pub struct Commands {
    directory: TempDir,
    spin: PathBuf,
    /// Steps of a run.
    steps: u64,
}

impl Commands {
    /// Compiles it, and finds out how much it does in a run.
    pub fn new() -> Result<Commands, String> {
        let directory = tempfile::tempdir().map_err(|error| error.to_string())?;
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("versus/spin.c");
        let spin = directory.path().join("spin");
        let compiled = Command::new("cc").args(["-O2", "-o"]).arg(&spin).arg(&source).status();
        if !compiled.is_ok_and(|status| status.success()) {
            return Err(format!("cc does not compile {}", source.display()));
        }
        let mut steps = 1_000_000;
        loop {
            let started = Instant::now();
            let ran = Command::new(&spin).arg(u64::to_string(&steps)).status();
            ran.map_err(|error| format!("{}: {error}", spin.display()))?;
            let took = started.elapsed();
            if took >= RUN {
                let share = RUN.as_secs_f64() / took.as_secs_f64();
                return Ok(Commands { directory, spin, steps: (steps as f64 * share) as u64 });
            }
            steps *= 2;
        }
    }

    pub fn directory(&self) -> &Path {
        self.directory.path()
    }

    /// Does this share more; of so many in a thousand runs, 30 % more than that.
    fn spin(&self, more: f64, per_mille: u32) -> String {
        let steps = (self.steps as f64 * (1.0 + more)).round();
        let skew = if per_mille > 0 { format!(" {per_mille}") } else { String::new() };
        format!("{} {steps}{skew}", self.spin.display())
    }

    /// The pairs, the equal ones first.
    pub fn pairs(&self) -> Vec<Pair> {
        let chance = |name, commands| Pair { name, commands, is_certain: false, options: &[] };
        let differs = |name, more| chance(name, [self.spin(0.0, 0), self.spin(more, 0)]);
        let skewed = |name, more| chance(name, [self.spin(0.0, 100), self.spin(more, 100)]);
        let certain = |name, second: &str, options| {
            let commands = [self.spin(0.0, 0), second.to_owned()];
            Pair { name, commands, is_certain: true, options }
        };
        vec![
            differs("equal", 0.0),
            skewed("equal, skewed", 0.0),
            differs("1 % more", 0.01),
            differs("3 % more", 0.03),
            differs("3 % less", -0.03),
            skewed("3 % more, skewed", 0.03),
            differs("10 % more", 0.1),
            certain("fails", "false", &[]),
            certain("hangs", "sleep 3600", &["--timeout", "2s"]),
            certain("writes something else", "echo other", &["--same-output"]),
        ]
    }
}
