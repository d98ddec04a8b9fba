//! Results that other programs wrote, and weigh's own, as figures: one file per format.
//!
//! A format is known by its content, so that a file may have any name. What is read here is never
//! trusted: an error names the file and the line.

use std::str::FromStr;

use weigh_model::result::cost::unit_name;
use weigh_model::result::imported::{Better, Figure, per_second};
use weigh_model::result::summary::Summary;

pub mod compare;
mod hyperfine;
pub mod labels;
mod lmbench;
mod own;
mod perf;
mod reaim;
mod table;
#[cfg(test)]
mod tests;
mod unixbench;
mod unixbench_log;

/// Limit on figures: one takes about a thousand times its file size in memory. UnixBench has 20.
const MOST_FIGURES: usize = 50_000;

fn too_many_figures() -> String {
    format!("the file has more than {MOST_FIGURES} figures: import it in parts")
}

/// What can be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ForeignFormat {
    UnixBench,
    UnixBenchLog,
    UnixBenchCsv,
    Lmbench,
    Hyperfine,
    Perf,
    Reaim,
    Weigh,
    Table,
}

/// Each with its name on the command line, and what it is.
pub const FORMATS: [(ForeignFormat, &str, &str); 9] = [
    (ForeignFormat::UnixBench, "unixbench", "a report of UnixBench"),
    (ForeignFormat::UnixBenchLog, "unixbench-log", "UnixBench's .log"),
    (ForeignFormat::UnixBenchCsv, "unixbench-csv", "UnixBench's .csv"),
    (ForeignFormat::Lmbench, "lmbench", "lmbench's summary"),
    (ForeignFormat::Hyperfine, "hyperfine", "hyperfine --export-json"),
    (ForeignFormat::Perf, "perf", "perf stat -x,"),
    (ForeignFormat::Reaim, "reaim", "re-aim's table, .csv or .ss"),
    (ForeignFormat::Weigh, "weigh", "weigh compare --json or weigh run --json"),
    (ForeignFormat::Table, "table", "a CSV of test,unit,LABEL,…"),
];

impl FromStr for ForeignFormat {
    type Err = String;

    fn from_str(name: &str) -> Result<ForeignFormat, String> {
        let known = FORMATS.iter().find(|(_, known, _)| *known == name);
        known.map(|(format, ..)| *format).ok_or_else(|| {
            let names: Vec<&str> = FORMATS.iter().map(|(_, name, _)| *name).collect();
            format!("it is one of {}", names.join(", "))
        })
    }
}

/// One file, read.
pub struct Document {
    pub content: Content,
    /// What in it does not add up; whole sentences.
    pub warnings: Vec<String>,
}

/// What was in it.
pub enum Content {
    /// Results of one or several machines, states or commands.
    Results(Vec<ImportedResults>),
    /// A whole experiment of weigh.
    Experiment(Box<Summary>),
}

/// The figures of one result.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ImportedResults {
    /// Whose format, e.g. `UnixBench 4.1.0`.
    pub format: String,
    /// What the file itself calls them.
    pub label: Option<String>,
    pub figures: Vec<Figure>,
}

/// Why a file cannot be read.
#[derive(Debug, PartialEq, thiserror::Error)]
#[error("{}{}: {problem}", .file, .line.map(|line| format!(":{line}")).unwrap_or_default())]
pub struct ImportError {
    file: String,
    /// From 1.
    line: Option<usize>,
    problem: String,
}

/// A problem on a line (from 1), as the readers report it.
type Problem = (Option<usize>, String);

/// Reads a file of the given format, or of the one that it looks like.
///
/// # Errors
/// What is wrong, with the file and the line.
pub fn read(
    file: &str,
    bytes: &[u8],
    forced: Option<ForeignFormat>,
) -> Result<Document, ImportError> {
    let text = String::from_utf8_lossy(bytes);
    // An editor on another system leaves a mark at the beginning and a return on each line.
    let text = text.trim_start_matches('\u{feff}').replace("\r\n", "\n");
    let said = |(line, problem): Problem| ImportError { file: file.into(), line, problem };
    let format = match forced {
        Some(format) => format,
        None => detect(&text).map_err(|problem| said((None, problem)))?,
    };
    let document = match format {
        ForeignFormat::UnixBench => unixbench::read(&text),
        ForeignFormat::UnixBenchLog => unixbench_log::read(&text).map(Document::of),
        ForeignFormat::UnixBenchCsv => unixbench::read_csv(&text).map(Document::of),
        ForeignFormat::Lmbench => lmbench::read(&text).map(Document::of),
        ForeignFormat::Hyperfine => hyperfine::read(&text).map(Document::of),
        ForeignFormat::Perf => perf::read(&text).map(Document::of),
        ForeignFormat::Reaim => reaim::read(&text),
        ForeignFormat::Weigh => own::read(&text),
        ForeignFormat::Table => table::read(&text).map(Document::of),
    };
    let document = document.map_err(said)?;
    if let Content::Results(results) = &document.content
        && results.iter().map(|results| results.figures.len()).sum::<usize>() > MOST_FIGURES
    {
        return Err(said((None, too_many_figures())));
    }
    if let Content::Results(results) = &document.content
        && results.iter().all(|results| results.figures.is_empty())
    {
        return Err(said((None, format!("it has no result in it. {}", reads()))));
    }
    Ok(document)
}

impl Document {
    /// Whether it is a whole experiment of weigh.
    pub fn is_experiment(&self) -> bool {
        matches!(self.content, Content::Experiment(_))
    }

    fn of(results: Vec<ImportedResults>) -> Document {
        Document { content: Content::Results(results), warnings: Vec::new() }
    }
}

/// The format that a text looks like.
fn detect(text: &str) -> Result<ForeignFormat, String> {
    let first = text.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
    let said = |line: &&str| !line.is_empty() && !line.starts_with('#');
    let uncommented = text.lines().map(str::trim).find(said).unwrap_or_default();
    let has = |part: &str| text.contains(part);
    if first.is_empty() {
        return Err(format!("it is empty. {}", reads()));
    }
    if first.starts_with(['{', '[']) {
        return own::is_own(text)
            .map(|()| ForeignFormat::Weigh)
            .or_else(|problem| {
                if hyperfine::is_it(text) { Ok(ForeignFormat::Hyperfine) } else { Err(problem) }
            })
            .map_err(|problem| format!("{problem}. {}", reads()));
    }
    let found = if has("BYTE UNIX Benchmarks") {
        ForeignFormat::UnixBench
    } else if has("#### Pass ") {
        ForeignFormat::UnixBenchLog
    } else if first.starts_with("Concurrency,") {
        ForeignFormat::UnixBenchCsv
    } else if has("smaller is better") || has("L M B E N C H") {
        ForeignFormat::Lmbench
    } else if reaim::is_it(text) {
        ForeignFormat::Reaim
    } else if table::is_it(uncommented) {
        ForeignFormat::Table
    } else if perf::is_it(text) {
        ForeignFormat::Perf
    } else {
        return Err(format!("unrecognised format{}. {}", guess(first), reads()));
    };
    Ok(found)
}

/// What else it may be, for the person who gave the wrong file.
fn guess(first: &str) -> &'static str {
    if first.to_ascii_lowercase().starts_with("<!doctype") || first.starts_with('<') {
        ": it looks like HTML or XML (UnixBench writes a text beside its .html)"
    } else if first.contains("Performance counter stats") {
        ": it looks like what perf stat writes for people (for programs: perf stat -x, -o FILE)"
    } else if first.starts_with("Benchmark ") {
        ": it looks like what hyperfine prints (to be read, it writes --export-json FILE)"
    } else if first.contains(',') {
        ": it looks like a CSV of another kind"
    } else {
        ""
    }
}

fn reads() -> String {
    let formats: Vec<&str> = FORMATS.iter().map(|(.., what)| *what).collect();
    format!("weigh import reads: {}; --format NAME says which", formats.join("; "))
}

/// A figure of one number; a time is better short, and a rate is better high.
fn figure(test: &str, value: f64, unit: &str) -> Figure {
    let unit = unit_name(unit);
    Figure {
        test: test.into(),
        value,
        unit: unit.into(),
        better: if per_second(unit).is_some() { Better::Less } else { Better::More },
        copies: None,
        runs: Vec::new(),
        baseline: None,
    }
}

/// A number that can be one of a result: finite, and not below 0.
fn number(text: &str) -> Option<f64> {
    text.trim().parse().ok().filter(|value: &f64| value.is_finite() && *value >= 0.0)
}

/// One blank between words.
fn words(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
