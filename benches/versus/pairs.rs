//! The pairs of commands: of what the second does against the first, all is known.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use support::spin::Spin;
use tempfile::TempDir;

/// How much more the second command of a pair does, as a share.
const DIFFERENCES: [(&str, f64); 4] =
    [("the same", 0.0), ("1 % more", 0.01), ("3 % more", 0.03), ("10 % more", 0.1)];
/// Sizes of the work of the first command: 20 to 100 ms each.
const GZIP_LINES: f64 = 25_000.0;
const SORT_LINES: f64 = 20_000.0;
const C_FUNCTIONS: f64 = 60.0;
const DD_BLOCKS: f64 = 60_000.0;
const THREADS: usize = 4;
const WAIT_US: f64 = 20_000.0;
const WALK_KIB: usize = 1024;
const WALK_STEPS: f64 = 3_000_000.0;

/// Two commands.
pub struct Pair {
    /// Their work, and how much more of it the second does.
    pub work: &'static str,
    pub difference: &'static str,
    /// True if they do the same work.
    pub is_equal: bool,
    pub commands: [String; 2],
    /// True if the answer does not depend on chance.
    pub is_certain: bool,
    /// Options that the answer needs, of `weigh`.
    pub options: &'static [&'static str],
}

impl Pair {
    pub fn name(&self) -> String {
        format!("{}: {}", self.work, self.difference)
    }

    fn new(work: &'static str, difference: &'static str, more: f64, commands: [String; 2]) -> Pair {
        let is_equal = more == 0.0;
        Pair { work, difference, is_equal, commands, is_certain: false, options: &[] }
    }

    fn certain(
        difference: &'static str,
        commands: [String; 2],
        options: &'static [&'static str],
    ) -> Pair {
        Pair { options, is_certain: true, ..Pair::new("loop", difference, 1.0, commands) }
    }
}

/// Where the programs are that they run.
pub struct Commands {
    directory: TempDir,
    spin: Spin,
    python: Python,
}

impl Commands {
    /// Compiles them, and finds out how much they do in a run.
    pub fn new() -> Result<Commands, String> {
        let directory = tempfile::tempdir().map_err(|error| error.to_string())?;
        let spin = Spin::new(directory.path())?;
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("versus/work.c");
        let mut compiler = Command::new("cc");
        compiler.args(["-O2", "-pthread", "-o"]).arg(directory.path().join("work")).arg(&source);
        if !compiler.status().is_ok_and(|status| status.success()) {
            return Err(format!("cc does not compile {}", source.display()));
        }
        Ok(Commands { directory, spin, python: Python::find()? })
    }

    pub fn directory(&self) -> &Path {
        self.directory.path()
    }

    /// The pairs of each kind of work, the equal ones first.
    pub fn pairs(&self) -> Result<Vec<Pair>, String> {
        let spin = |more, skew| self.spin.command(more, skew);
        let work = |what: &str, size: usize, steps: f64| {
            format!("{} {what} {size} {steps:.0}", self.directory().join("work").display())
        };
        let mut pairs = Vec::new();
        for (difference, more) in DIFFERENCES {
            let mut add = |work, of: &dyn Fn(f64) -> Result<String, String>| {
                let commands = [of(0.0)?, of(more)?];
                pairs.push(Pair::new(work, difference, more, commands));
                Ok::<_, String>(())
            };
            add("loop", &|more| Ok(spin(more, 0)))?;
            add("gzip", &|more| Ok(format!("gzip -c {}", self.lines(GZIP_LINES, more)?)))?;
            add("python", &|more| Ok(self.python.command(more)))?;
            add("cc", &|more| Ok(format!("cc -O1 -S -o - {}", self.functions(more)?)))?;
            add("sort", &|more| Ok(format!("sort {}", self.lines(SORT_LINES, more)?)))?;
            add("dd", &|more| {
                let count = (DD_BLOCKS * (1.0 + more)).round();
                Ok(format!("dd if=/dev/zero of=/dev/null bs=512 count={count} status=none"))
            })?;
            let steps = self.spin.steps() as f64;
            add("4 threads", &|more| Ok(work("threads", THREADS, steps * (1.0 + more))))?;
            add("memory", &|more| Ok(work("walk", WALK_KIB, WALK_STEPS * (1.0 + more))))?;
            add("waits", &|more| {
                Ok(work("wait", (WAIT_US * (1.0 + more)) as usize, steps / 10.0))
            })?;
        }
        for (difference, more) in
            [("the same, skewed", 0.0), ("3 % more, skewed", 0.03), ("3 % less", -0.03)]
        {
            let skew = if more < 0.0 { 0 } else { 100 };
            pairs.push(Pair::new("loop", difference, more, [spin(0.0, skew), spin(more, skew)]));
        }
        // Stable: those of one kind of work stay in their order.
        pairs.sort_by_key(|pair| WORKS.iter().position(|work| *work == pair.work));
        let certain = |difference, second: &str, options| {
            Pair::certain(difference, [spin(0.0, 0), second.to_owned()], options)
        };
        pairs.extend([
            certain("fails", "false", &[]),
            certain("hangs", "sleep 3600", &["--timeout", "2s"]),
            certain("writes something else", "echo other", &["--same-output"]),
        ]);
        Ok(pairs)
    }

    /// A file of so many lines of words, and this share more.
    fn lines(&self, lines: f64, more: f64) -> Result<String, String> {
        let count = (lines * (1.0 + more)).round() as u64;
        let mut drawn = 1_u64;
        self.file(&format!("lines-{count}"), || {
            let line = |_| {
                drawn = drawn
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1_442_695_040_888_963_407);
                format!("{:x} word {}\n", drawn >> 24, (drawn >> 33) % 1000)
            };
            (0..count).map(line).collect()
        })
    }

    /// A source file of so many functions in C, and this share more.
    fn functions(&self, more: f64) -> Result<String, String> {
        let count = (C_FUNCTIONS * (1.0 + more)).round() as u64;
        self.file(&format!("functions-{count}.c"), || {
            let function = |number| {
                format!(
                    "int f{number}(int *a, int n) {{ int s = {number}; for (int i = 0; i < n; i++) \
                     s += a[i] * (i ^ s); return s; }}\n"
                )
            };
            (0..count).map(function).collect()
        })
    }

    fn file(&self, name: &str, text: impl FnOnce() -> String) -> Result<String, String> {
        let path = self.directory().join(name);
        if !path.exists() {
            fs::write(&path, text()).map_err(|error| format!("{}: {error}", path.display()))?;
        }
        Ok(path.display().to_string())
    }
}

/// The kinds of work, in the order of the table.
const WORKS: [&str; 9] =
    ["loop", "gzip", "python", "cc", "sort", "dd", "4 threads", "memory", "waits"];

/// The interpreter's start: a share more of it is so many turns of a loop.
struct Python {
    program: PathBuf,
    turns_per_start: f64,
}

impl Python {
    const TURNS: u32 = 1_000_000;

    fn find() -> Result<Python, String> {
        let find = "import sys; print(sys.executable)";
        let found = Command::new("python3").args(["-c", find]).output();
        let found = found.map_err(|error| format!("cannot run python3: {error}"))?;
        // Not what chooses an interpreter and starts it.
        let program = PathBuf::from(String::from_utf8_lossy(&found.stdout).trim());
        let python = Python { program, turns_per_start: 0.0 };
        let (start, with_turns) = (python.fastest(0)?, python.fastest(Python::TURNS)?);
        let turn_s = with_turns.saturating_sub(start).as_secs_f64() / f64::from(Python::TURNS);
        Ok(Python { turns_per_start: start.as_secs_f64() / turn_s.max(1e-9), ..python })
    }

    fn arguments(turns: u32) -> [String; 2] {
        ["-c".into(), format!("for turn in range({turns}): pass")]
    }

    /// The shortest of five runs: what the machine does beside it only makes them longer.
    fn fastest(&self, turns: u32) -> Result<Duration, String> {
        let mut shortest = Duration::MAX;
        for _ in 0..5 {
            let started = Instant::now();
            let ran = Command::new(&self.program).args(Python::arguments(turns)).status();
            match ran {
                Ok(status) if status.success() => shortest = shortest.min(started.elapsed()),
                other => return Err(format!("{}: {other:?}", self.program.display())),
            }
        }
        Ok(shortest)
    }

    fn command(&self, more: f64) -> String {
        let [option, script] = Python::arguments((more * self.turns_per_start) as u32);
        format!("{} {option} '{script}'", self.program.display())
    }
}
