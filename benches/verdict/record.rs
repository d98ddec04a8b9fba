//! Traces of this machine: A/A experiments of the `unixbench` suite's workloads, or those of a database.

use std::path::Path;
use std::process::{Command, Stdio};

use paired::judge::MIN_PAIRS;
use weigh_engine::resolve::resolve;
use weigh_engine::selection::Selection;
use weigh_model::record::{ExperimentKind, Stored};
use weigh_model::result::scheme::Scheme;
use weigh_model::result::summary::Pair;
use weigh_model::workload::mix::JobSizes;
use weigh_store::Store;
use weigh_verdict::pairs::{Measurements, gather};
use weigh_workload::executable::Executable;

use crate::machine::Trace;

/// Fewer samples than this show nothing of how a machine wanders.
const MIN_SAMPLES: usize = 40;
/// The options of `weigh compare`.
const SCHEMES: [&str; 2] = ["--interleave=off", "--interleave=on"];
/// The pilot's samples are of another length than those after them.
const PILOT_PAIRS: usize = MIN_PAIRS;

/// Records every workload of the suite for an equal part of `seconds`, one after the other, half of it in
/// sequence and half in turns: weighs it against itself, so that a sample takes all that it takes.
///
/// # Errors
/// A sentence, where a workload fails or too few samples fit the time.
pub fn record(seconds: f64) -> Result<Vec<Trace>, String> {
    let scratch = tempfile::tempdir().map_err(|error| error.to_string())?;
    let works = resolve(
        &Selection::of(&["unixbench".into()], &JobSizes::default()),
        &Executable::unpack(scratch.path())?,
    )?;
    let mut traces = Vec::new();
    for work in &works {
        let name = work.name().to_string();
        for scheme in SCHEMES
            .into_iter()
            .filter(|scheme| *scheme != "--interleave=on" || work.can_interleave())
        {
            eprintln!("recording {name} {scheme}");
            let database = scratch.path().join(format!("{name}{scheme}.db"));
            weigh(&name, scheme, seconds / (2 * works.len()) as f64, &database)?;
            match stored(&database).map(|mut traces| traces.pop()) {
                Ok(Some(trace)) => traces.push(Trace { workload: name.clone(), ..trace }),
                _ => eprintln!("{name} {scheme}: too few samples in its time, and left out"),
            }
        }
    }
    Ok(traces)
}

fn weigh(workload: &str, scheme: &str, seconds: f64, database: &Path) -> Result<(), String> {
    // With so narrow a margin identical arms are never called equivalent, and the rest left unmeasured.
    let budget = format!("{seconds:.0}s");
    let status = Command::new(support::program())
        .args(["compare", "none", "-w", workload, scheme, "--no-detail", "--margin", "0.0001%"])
        .args(["--budget", &budget, "--database"])
        .arg(database)
        .env("XDG_DATA_HOME", database.parent().unwrap_or(Path::new("/")))
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .map_err(|error| format!("weigh: {error}"))?;
    match status.code() {
        Some(0 | 3) => Ok(()),
        _ => Err(format!("`weigh compare none -w {workload} {scheme} --budget {budget}` failed")),
    }
}

/// The samples of all experiments of a database whose arms are all `none`, per workload. Between two
/// samples of a row others were measured, so these wander more than recorded ones.
///
/// # Errors
/// A sentence, where the database cannot be read or holds no such experiment.
pub fn stored(path: &Path) -> Result<Vec<Trace>, String> {
    let store = Store::open(path).map_err(|error| error.to_string())?;
    let mut traces = Vec::new();
    for entry in store.history().map_err(|error| error.to_string())? {
        let stored = store.load(&entry.id).map_err(|error| error.to_string())?;
        let is_control = stored.header.arms.iter().all(|arm| arm == "none");
        if stored.header.kind == ExperimentKind::Compare && is_control {
            traces.extend(traces_of(&stored));
        }
    }
    match traces.is_empty() {
        true => Err(format!("{}: no A/A experiment with enough samples", path.display())),
        false => Ok(traces),
    }
}

fn traces_of(stored: &Stored) -> Vec<Trace> {
    let samples: usize = stored.samples.values().map(|of_row| of_row.points.len()).sum();
    let trace = |row: Measurements| Trace {
        workload: format!("{} ({})", stored.header.works[row.work].name, stored.id),
        rates: row.series.iter().skip(PILOT_PAIRS).flat_map(in_order).collect(),
        sample_s: stored.elapsed_s / samples.max(1) as f64,
        interleaved: row.schedule.main() == Scheme::Interleaved,
    };
    let all = gather(stored).into_iter().map(trace);
    all.filter(|trace| trace.rates.len() >= MIN_SAMPLES).collect()
}

fn in_order(pair: &Pair) -> [f64; 2] {
    match pair.baseline_first {
        true => [pair.baseline_rate, pair.treated_rate],
        false => [pair.treated_rate, pair.baseline_rate],
    }
}
