//! Traces of this machine: identical launches of the `unixbench` suite's kernels, or the A/A
//! experiments of a database.

use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use weighbridge::experiment::length::START_MS;
use weighbridge::experiment::resolve::resolve;
use weighbridge::experiment::work::Work;
use weighbridge::store::Store;
use weighbridge::store::record::{Kind, Stored};
use weighbridge::workload::kernels::{Kernels, Length};
use weighbridge::workload::launcher::{Launcher, Setup};

use crate::machine::Trace;

/// Fewer samples than this show nothing of how a machine wanders.
const MIN_SAMPLES: usize = 40;

/// Records every workload of the suite for an equal part of `seconds`, one after the other.
///
/// # Errors
/// A sentence, where a workload cannot be launched or fails.
pub fn record(seconds: f64) -> Result<Vec<Trace>, String> {
    let scratch = tempfile::tempdir().map_err(|error| error.to_string())?;
    let kernels = Kernels::unpack(scratch.path())?;
    let works = resolve(&["unixbench".into()], &[], &kernels)?;
    let never = AtomicBool::new(false);
    let mut launcher = Launcher::start(&Setup::default(), &never).map_err(|e| e.to_string())?;
    let mut traces = Vec::new();
    for work in &works {
        eprintln!("recording {}", work.name());
        let job = work.job(&kernels, scratch.path(), Length::of_ms(START_MS));
        let mut launch = |work: &Work| {
            let launched = launcher.run(&job, &never).map_err(|error| error.to_string())?;
            work.read(&launched).map_err(|problem| format!("{}: {problem}", work.name()))
        };
        let started = Instant::now();
        let mut rates = Vec::new();
        while started.elapsed().as_secs_f64() < seconds / works.len() as f64
            || rates.len() < MIN_SAMPLES
        {
            rates.push(launch(work)?.rate());
        }
        let sample_s = started.elapsed().as_secs_f64() / rates.len() as f64;
        traces.push(Trace { workload: work.name(), rates, sample_s });
    }
    Ok(traces)
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
        if stored.header.kind == Kind::Compare && is_control {
            traces.extend(traces_of(&stored));
        }
    }
    match traces.is_empty() {
        true => Err(format!("{}: no A/A experiment with enough samples", path.display())),
        false => Ok(traces),
    }
}

fn traces_of(stored: &Stored) -> Vec<Trace> {
    let points_of = |number: usize| {
        let rows = stored.samples.iter().filter(move |((work, _), _)| *work == number);
        rows.flat_map(|(_, of_row)| &of_row.points)
    };
    let samples: usize = stored.samples.values().map(|of_row| of_row.points.len()).sum();
    let trace = |(number, work): (usize, &weighbridge::store::record::Work)| Trace {
        workload: format!("{} ({})", work.name, stored.id),
        rates: points_of(number).map(|point| point.rate).collect(),
        sample_s: stored.elapsed_s / samples.max(1) as f64,
    };
    let all = stored.header.works.iter().enumerate().map(trace);
    all.filter(|trace| trace.rates.len() >= MIN_SAMPLES).collect()
}
