//! Running `weigh` and reading what it found.

use std::path::PathBuf;
use std::process::Command;

use serde_json::Value;

/// The program, and a directory for what it writes.
pub struct Weigh {
    directory: tempfile::TempDir,
    is_quick: bool,
}

impl Weigh {
    /// # Errors
    /// Where there is no room for a directory.
    pub fn new(is_quick: bool) -> Result<Weigh, String> {
        let directory = tempfile::tempdir().map_err(|error| format!("cannot start: {error}"))?;
        Ok(Weigh { directory, is_quick })
    }

    /// A budget as `weigh compare` takes it; a quarter of it in a quick run.
    pub fn budget(&self, seconds: u64) -> String {
        format!("{}s", if self.is_quick { (seconds / 4).max(10) } else { seconds })
    }

    /// The length of samples where there are a hundred rows: each is to have its eight pairs.
    pub fn short_sample(&self) -> &'static str {
        if self.is_quick { "20ms" } else { "70ms" }
    }

    /// Runs `weigh ARGUMENTS --json FILE` and gives the JSON.
    ///
    /// # Errors
    /// Where it fails or a workload has no result: a study with holes is none. Inconclusive rows are
    /// no failure.
    pub fn json(&self, arguments: &[&str]) -> Result<Value, String> {
        let file: PathBuf = self.directory.path().join("result.json");
        let _ = std::fs::remove_file(&file);
        let database = self.directory.path().join("study.db");
        eprintln!("weigh {}", arguments.join(" "));
        let status = Command::new(support::program())
            .args(arguments)
            .arg("--json")
            .arg(&file)
            .arg("--database")
            .arg(&database)
            .env("XDG_DATA_HOME", self.directory.path())
            .stdout(std::process::Stdio::null())
            .status()
            .map_err(|error| format!("weigh: {error}"))?;
        if !matches!(status.code(), Some(0 | 3)) {
            return Err(format!("`weigh {}` failed", arguments.join(" ")));
        }
        let text = std::fs::read(&file).map_err(|error| format!("weigh's JSON: {error}"))?;
        serde_json::from_slice(&text).map_err(|error| format!("weigh's JSON: {error}"))
    }
}

/// A number below an object; `None` where it is absent or null.
pub fn number(value: &Value, path: &str) -> Option<f64> {
    value.pointer(path)?.as_f64()
}

/// A text below an object, or nothing.
pub fn text<'a>(value: &'a Value, path: &str) -> &'a str {
    value.pointer(path).and_then(Value::as_str).unwrap_or_default()
}

/// The elements of a list below an object.
pub fn list<'a>(value: &'a Value, path: &str) -> &'a [Value] {
    value.pointer(path).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// Nanoseconds of one operation at a rate per second.
pub fn ns_per_op(rate: f64) -> f64 {
    1e9 / rate
}

/// A time that a person can read.
pub fn time(ns: f64) -> String {
    match ns.abs() {
        size if size < 0.5 => "0 ns".into(),
        size if size < 1e3 => format!("{ns:.0} ns"),
        size if size < 1e6 => format!("{:.2} µs", ns / 1e3),
        size if size < 1e9 => format!("{:.2} ms", ns / 1e6),
        _ => format!("{:.2} s", ns / 1e9),
    }
}

/// Bytes that a person can read.
pub fn bytes(count: f64) -> String {
    const UNITS: [&str; 5] = ["B", "KiB", "MiB", "GiB", "TiB"];
    let (mut left, mut unit) = (count, 0);
    while left >= 1024.0 && unit + 1 < UNITS.len() {
        left /= 1024.0;
        unit += 1;
    }
    let digits = usize::from(unit > 0);
    format!("{left:.digits$} {}", UNITS[unit])
}

/// An effect in per cent with its interval.
pub fn effect(row: &Value) -> String {
    let percent =
        |path: &str| number(row, path).map_or("–".into(), |value| format!("{value:+.1}"));
    format!("{} [{}, {}]", percent("/effect_pct"), percent("/low_pct"), percent("/high_pct"))
}
