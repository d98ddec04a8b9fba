//! The cost of a treatment by pairs in turns and by pairs in sequence, in one run: what each scheme says, and
//! by how much they differ. `docs/evidence/statistics-interleaving.md` explains.
//!
//! ```text
//! cargo bench -p benches --bench schemes -- [--rounds N] [--pairs N] [--only TEXT] \
//!     [--write docs/evidence/statistics-interleaving.md]
//! ```
//!
//! As root, for the rules of auditing.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use rand::RngExt;
use rand::seq::SliceRandom;
use serde_json::Value;

use support::{end, machine as here, table};
use table::Table;

const WORKLOADS: [&str; 6] = ["getppid", "read", "stat", "open-close", "fsbuffer", "dhry2reg"];

/// So many rules, none of which matches: nobody has that user's number.
const RULES: usize = 20;

/// Options of `weigh compare` for each scheme.
const SCHEMES: [&str; 2] = ["--interleave=on", "--interleave=off"];

struct Options {
    /// How often all is measured. The interval is from the least to the greatest of them: the median is
    /// outside by a chance of 2 in 2ᴺ.
    rounds: usize,
    /// Number of pairs in each experiment.
    pairs: usize,
    only: Option<String>,
    /// The document whose table is to be replaced.
    write: Option<PathBuf>,
}

impl Options {
    fn parse(mut arguments: impl Iterator<Item = String>) -> Result<Options, String> {
        let mut options = Options { rounds: 8, pairs: 30, only: None, write: None };
        while let Some(argument) = arguments.next() {
            let mut value = || arguments.next().ok_or(format!("{argument} needs a value"));
            let number = |text: String| text.parse().map_err(|_| format!("`{text}` is no number"));
            match argument.as_str() {
                "--bench" => {} // cargo says so
                "--rounds" => options.rounds = number(value()?)?,
                "--pairs" => options.pairs = number(value()?)?,
                "--only" => options.only = Some(value()?),
                "--write" => options.write = Some(value()?.into()),
                other => return Err(format!("`{other}` is no option")),
            }
        }
        Ok(options)
    }
}

fn main() -> ExitCode {
    let options = Options::parse(std::env::args().skip(1));
    end::end("schemes", options.and_then(|options| compare(&options)))
}

/// Treatment with the name that reports use, and the labels that are compared.
struct Treatment {
    name: &'static str,
    labels: Vec<String>,
}

fn treatments(directory: &Path) -> Result<Vec<Treatment>, String> {
    let rules = directory.join("no-match.rules");
    let rule = |n: usize| format!("-a always,exit -F arch=b64 -S all -F uid=4000000 -k none-{n}\n");
    let text: String = (0..RULES).map(rule).collect();
    std::fs::write(&rules, text).map_err(|error| format!("{}: {error}", rules.display()))?;
    let build = ["build:cflags=-O3", "--base", "build:cflags=-O1"];
    Ok(vec![
        Treatment { name: "seccomp", labels: vec!["seccomp".into()] },
        Treatment {
            name: "20 rules, no match",
            labels: vec![format!("audit:rules={}", rules.display())],
        },
        Treatment { name: "-O3 against -O1", labels: build.map(str::to_owned).to_vec() },
        Treatment { name: "Landlock, 4 layers", labels: vec!["landlock:layers=4".into()] },
    ])
}

/// Effects in per cent by treatment, workload and scheme, one of each round.
type Effects = BTreeMap<(usize, String), [Vec<f64>; 2]>;

fn compare(options: &Options) -> Result<(), String> {
    let scratch = tempfile::tempdir().map_err(|error| error.to_string())?;
    let mut treatments = treatments(scratch.path())?;
    treatments.retain(|one| options.only.as_ref().is_none_or(|part| one.name.contains(part)));
    let mut effects = Effects::new();
    for round in 1..=options.rounds {
        let schemes = 0..SCHEMES.len();
        let mut all: Vec<(usize, usize)> =
            (0..treatments.len()).flat_map(|one| schemes.clone().map(move |s| (one, s))).collect();
        all.shuffle(&mut rand::rng());
        for (one, scheme) in all {
            let treatment = &treatments[one];
            eprintln!("{round} of {}: {} {}", options.rounds, treatment.name, SCHEMES[scheme]);
            let json = measure(treatment, SCHEMES[scheme], options.pairs, scratch.path())?;
            add(&mut effects, &json, one, scheme)?;
        }
    }
    let table = tabulate(options, &treatments, &effects);
    println!("{}\n{}", here::line(), table::text(&table));
    match &options.write {
        Some(path) => table::write(
            path,
            "schemes",
            &format!("{}\n\n{}", here::line(), table::markdown(&table)),
        ),
        None => Ok(()),
    }
}

/// One experiment, with a state and a store of its own.
fn measure(
    treatment: &Treatment,
    scheme: &str,
    pairs: usize,
    scratch: &Path,
) -> Result<Value, String> {
    let json = scratch.join("result.json");
    let mut command = Command::new(support::program());
    command.arg("compare").args(&treatment.labels).args([
        scheme,
        "--no-detail",
        "--inconclusive-ok",
    ]);
    command.args([
        "--pairs",
        &pairs.to_string(),
        "--seed",
        &rand::rng().random::<u32>().to_string(),
    ]);
    command.args(WORKLOADS.iter().flat_map(|name| ["-w", name])).arg("--json").arg(&json);
    command.env("XDG_DATA_HOME", scratch.join("data")).env("XDG_STATE_HOME", scratch.join("state"));
    let output = command.output().map_err(|error| error.to_string())?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        return Err(format!("{}: {}: {said}", treatment.name, output.status));
    }
    let text = std::fs::read_to_string(&json).map_err(|error| error.to_string())?;
    serde_json::from_str(&text).map_err(|error| error.to_string())
}

/// # Errors
/// Where a row is missing or was measured by the other scheme.
fn add(effects: &mut Effects, json: &Value, one: usize, scheme: usize) -> Result<(), String> {
    let wanted = ["interleaved", "sequential"][scheme];
    for workload in WORKLOADS {
        let rows = json["results"].as_array();
        let row = rows.and_then(|rows| rows.iter().find(|row| row["workload"] == workload));
        let row = row.ok_or(format!("{workload} has no result: {}", json["failures"]))?;
        if row["scheme"].as_str().unwrap_or("sequential") != wanted {
            return Err(format!("{workload} was measured {}, not {wanted}", row["scheme"]));
        }
        let effect = row["effect_pct"].as_f64().ok_or(format!("{workload} has no effect"))?;
        effects.entry((one, workload.to_owned())).or_default()[scheme].push(effect);
    }
    Ok(())
}

fn tabulate(options: &Options, treatments: &[Treatment], effects: &Effects) -> Table {
    let mut rows = Vec::new();
    for (one, treatment) in treatments.iter().enumerate() {
        for workload in WORKLOADS {
            let Some([turns, sequence]) = effects.get(&(one, workload.to_owned())) else {
                continue;
            };
            let differences: Vec<f64> = turns.iter().zip(sequence).map(|(a, b)| a - b).collect();
            let [low, _, high] = spread(&differences);
            let said = if low <= 0.0 && high >= 0.0 { "agree" } else { "differ" };
            let names = [treatment.name, workload].map(str::to_owned);
            let cells = [turns, sequence, &differences].map(|values| cell(values));
            rows.push(names.into_iter().chain(cells).chain([said.to_owned()]).collect());
        }
    }
    let head =
        ["treatment", "workload", "in turns [%]", "in sequence [%]", "difference [points]", ""];
    Table {
        title: format!(
            "Both schemes, {} experiments of {} pairs each",
            options.rounds, options.pairs
        ),
        head: head.map(str::to_owned).to_vec(),
        rows,
    }
}

fn cell(values: &[f64]) -> String {
    let [low, median, high] = spread(values);
    format!("{median:+.2} [{low:+.2}, {high:+.2}]").replace('-', "−")
}

/// The least, the median and the greatest.
fn spread(values: &[f64]) -> [f64; 3] {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let n = sorted.len();
    let median = (sorted[(n - 1) / 2] + sorted[n / 2]) / 2.0;
    [sorted[0], median, sorted[n - 1]]
}
