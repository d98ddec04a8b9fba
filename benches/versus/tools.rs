//! Asking each tool about a pair of commands.

use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group};
use serde_json::Value;

use crate::pairs::Pair;

/// Time limit for a tool that does not end by itself.
const PATIENCE: Duration = Duration::from_secs(60);

pub enum Tool {
    Hyperfine,
    Weigh { budget_s: u32 },
}

/// Claim of a tool about the second command.
#[derive(Clone, Debug, PartialEq)]
pub enum Claim {
    Slower,
    Faster,
    NoDifference,
    Undecided,
    /// It has no result, and says so in these words.
    NoResult(String),
}

impl Claim {
    pub fn said(&self) -> String {
        match self {
            Claim::Slower => "slower".into(),
            Claim::Faster => "faster".into(),
            Claim::NoDifference => "no difference".into(),
            Claim::Undecided => "undecided".into(),
            Claim::NoResult(why) => format!("no result: {why}"),
        }
    }
}

pub struct Answer {
    pub claim: Claim,
    /// True if it is one about CPU time.
    pub is_of_cpu_time: bool,
    pub seconds: f64,
}

impl Tool {
    pub fn name(&self) -> &'static str {
        match self {
            Tool::Hyperfine => "hyperfine",
            Tool::Weigh { .. } => "weigh versus",
        }
    }

    /// Has it compare the two, in a directory of its own.
    pub fn ask(&self, pair: &Pair, directory: &Path) -> Result<Answer, String> {
        let result = directory.join("result.json");
        let _ = std::fs::remove_file(&result);
        let mut command = match self {
            Tool::Hyperfine => {
                let mut command = Command::new("hyperfine");
                command.args(["-N", "--warmup", "3", "--style", "none", "--export-json"]);
                command.arg(&result);
                command
            }
            Tool::Weigh { budget_s } => {
                let mut command = Command::new(support::program());
                command.env("XDG_DATA_HOME", directory).env("XDG_STATE_HOME", directory);
                command.args(["versus", "-N", "--budget", &format!("{budget_s}s")]);
                command.args(pair.options).arg("--json").arg(&result);
                command
            }
        };
        command.args(&pair.commands).stdin(Stdio::null()).stdout(Stdio::null());
        let started = Instant::now();
        let ended = run(command.stderr(Stdio::null()))?;
        let seconds = started.elapsed().as_secs_f64();
        let document = std::fs::read_to_string(&result).ok();
        let document: Option<Value> = document.and_then(|text| serde_json::from_str(&text).ok());
        let scheme = document.as_ref().map(|document| &document["results"][0]["scheme"]);
        let is_of_cpu_time = scheme.is_some_and(|scheme| scheme == "interleaved");
        let claim = match (self, ended, document) {
            (_, None, _) => Claim::NoResult(format!("it was ended after {} s", PATIENCE.as_secs())),
            (Tool::Hyperfine, Some(status), _) if !status.success() => {
                Claim::NoResult("a run failed".into())
            }
            (Tool::Hyperfine, _, Some(document)) => of_hyperfine(&document)?,
            (Tool::Weigh { .. }, _, Some(document)) => of_weigh(&document)?,
            (_, Some(status), None) => Claim::NoResult(format!("it ended with {status}")),
        };
        let of_here = format!("{}/", directory.display());
        let claim = match claim {
            Claim::NoResult(why) => Claim::NoResult(why.replace(&of_here, "")),
            other => other,
        };
        Ok(Answer { claim, is_of_cpu_time, seconds })
    }
}

/// `None` where it had to be ended, with all that it had started.
fn run(command: &mut Command) -> Result<Option<ExitStatus>, String> {
    let mut child = command
        .process_group(0)
        .spawn()
        .map_err(|error| format!("cannot run {command:?}: {error}"))?;
    let deadline = Instant::now() + PATIENCE;
    loop {
        if let Some(status) = child.try_wait().map_err(|error| error.to_string())? {
            return Ok(Some(status));
        }
        if Instant::now() > deadline {
            let _ = kill_process_group(Pid::from_child(&child), Signal::KILL);
            let _ = child.wait();
            return Ok(None);
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// The rule of those who read what it prints: the ratio of the means, less its deviation, leaves 1 out.
fn of_hyperfine(document: &Value) -> Result<Claim, String> {
    let number = |command: usize, field: &str| {
        let number = document["results"][command][field].as_f64();
        number.ok_or_else(|| format!("hyperfine's JSON has no `{field}` of command {command}"))
    };
    let [mean, other] = [number(0, "mean")?, number(1, "mean")?];
    let relative = [number(0, "stddev")? / mean, number(1, "stddev")? / other];
    let ratio = other / mean;
    let deviation = ratio * relative[0].hypot(relative[1]);
    Ok(match () {
        () if ratio - deviation > 1.0 => Claim::Slower,
        () if ratio + deviation < 1.0 => Claim::Faster,
        () => Claim::NoDifference,
    })
}

fn of_weigh(document: &Value) -> Result<Claim, String> {
    if let Some(reason) = document["failures"][0]["reason"].as_str() {
        return Ok(Claim::NoResult(reason.to_owned()));
    }
    match document["results"][0]["verdict"].as_str() {
        Some("slower") => Ok(Claim::Slower),
        Some("faster") => Ok(Claim::Faster),
        Some("equivalent") => Ok(Claim::NoDifference),
        Some("inconclusive") => Ok(Claim::Undecided),
        other => Err(format!("weigh's JSON has the verdict {other:?}")),
    }
}

/// Its version; `None` if it is not installed.
pub fn hyperfine_version() -> Option<String> {
    let output = Command::new("hyperfine").arg("--version").output().ok()?;
    Some(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}
