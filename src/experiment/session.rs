//! An experiment from its request to its last sample: the store and the guard opened first, the
//! treatments applied and taken back around every set, and nothing left behind on any way out.

use std::collections::BTreeSet;
use std::os::unix::net::UnixListener;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use super::calibration::{RECENT, history, start_scales};
use super::fitness;
use super::length::{sets_in_late, start_ms};
use super::measure::Session;
use super::platform::Stop;
use super::request::{Audience, Plan, Request, build_treatments};
use super::resolve::resolve;
use super::work::Work;
use crate::machine::file_system::file_system;
use crate::report::summary::State;
use crate::shell::command_line;
use crate::stats::betting::DEFAULT_SCALE;
use crate::store::Store;
use crate::store::record::{self, Header};
use crate::treatment::Named;
use crate::treatment::claim::{claim, only_one_at_a_time};
use crate::treatment::guard::{Guard, restore_left_behind};
use crate::workload::kernels::{Kernels, VARIABLE};

/// An experiment that was begun; whatever became of it is in the store.
#[derive(Debug)]
pub struct Done {
    pub id: String,
    pub state: State,
    /// What could not be put back.
    pub left: Option<String>,
}

/// Runs an experiment.
///
/// # Errors
/// A sentence, where it could not even begin: nothing was changed and nothing is stored.
pub fn execute(
    request: &Request,
    store: &Store,
    audience: &mut dyn Audience,
    interrupted: &AtomicBool,
) -> Result<Done, String> {
    let treatments = build_treatments(&request.arms)?;
    put_back_what_was_left(audience)?;
    let _alone = only_one_at_a_time()?;
    let claims = claim_resources(&treatments)?;
    let mut guard =
        Guard::arm(claims).map_err(|error| format!("cannot start the guard process: {error}"))?;
    let Begun { id, kernels, scratch, works, start_scales } =
        match begin(request, &treatments, store, &mut guard) {
            Ok(begun) => begun,
            Err(problem) => {
                let left = guard.disarm().err().map(|left| format!("\n{left}")).unwrap_or_default();
                return Err(problem + &left);
            }
        };
    let mut session = Session {
        request,
        store,
        id: &id,
        works: &works,
        start_scales: &start_scales,
        kernels: &kernels,
        scratch: &scratch,
        interrupted,
        started: Instant::now(),
    };
    let result = session.measure(treatments, &mut guard, audience);
    let left = guard.disarm().err();
    let (state, failure) = match result {
        Ok(()) => (State::Complete, None),
        Err(Stop::Interrupted) => (State::Interrupted, None),
        Err(Stop::Failed(reason)) => (State::Failed, Some(reason)),
    };
    let closed = store
        .set_elapsed(&id, session.started.elapsed().as_secs_f64())
        .and_then(|()| store.finish(&id, state, failure.as_deref()));
    match closed {
        Ok(()) => Ok(Done { id, state, left }),
        Err(error) => {
            let problems = [failure.or_else(|| Some(error.to_string())), left];
            Err(problems.into_iter().flatten().collect::<Vec<_>>().join("\n"))
        }
    }
}

fn put_back_what_was_left(audience: &mut dyn Audience) -> Result<(), String> {
    let restored =
        restore_left_behind().map_err(|error| format!("the state directory: {error}"))?;
    for one in restored {
        match one.result {
            Ok(()) => {
                audience.announce("Put back what an earlier experiment, now dead, had changed.")
            }
            Err(problem) => {
                return Err(format!("an earlier experiment left this behind: {problem}"));
            }
        }
    }
    Ok(())
}

/// Claims what the treatments occupy in the kernel.
///
/// # Errors
/// A sentence, where another process holds it.
pub fn claim_resources(treatments: &[Named]) -> Result<Vec<UnixListener>, String> {
    let occupied = treatments.iter().filter_map(|named| named.treatment.occupies());
    occupied.collect::<BTreeSet<_>>().into_iter().map(claim).collect()
}

struct Begun {
    id: String,
    kernels: Kernels,
    scratch: PathBuf,
    works: Vec<Work>,
    /// Per work.
    start_scales: Vec<f64>,
}

fn begin(
    request: &Request,
    treatments: &[Named],
    store: &Store,
    guard: &mut Guard,
) -> Result<Begun, String> {
    let start_ms = start_ms(sets_in_late(treatments));
    let scratch = guard.scratch_directory().map_err(|error| {
        format!(
            "cannot create a directory in {}: {error}; set TMPDIR",
            std::env::temp_dir().display()
        )
    })?;
    let kernels = Kernels::unpack(&scratch)?;
    let works = match &request.command {
        Some(argv) => {
            let directory = std::env::current_dir()
                .map_err(|error| format!("the current directory: {error}"))?;
            vec![Work::Command { argv: argv.clone(), directory }]
        }
        None => resolve(&request.workloads, &request.suites, &kernels)?
            .iter()
            .flat_map(|work| request.copies.iter().map(|&copies| work.clone().with_copies(copies)))
            .collect(),
    };
    let place = format!("{} ({})", file_system(&scratch), std::env::temp_dir().display());
    let (machine, mut warnings) = fitness::look(Some(place), store.directory());
    warnings.extend(about_build(&kernels));
    let scales = start_scales(&history(store, &machine, Some(RECENT))?);
    let header = Header {
        kind: request.kind,
        command: again(request, &kernels),
        seed: request.seed,
        budget_s: request.budget.as_secs_f64(),
        alpha: request.design.alpha,
        margin: request.margin,
        fixed_pairs: request.design.fixed_pairs,
        multiplicity: request.design.multiplicity,
        sets: match request.plan {
            Plan::Compare { sets } => sets,
            Plan::Run { .. } | Plan::Classic => 1,
        },
        machine,
        arms: request.arms.clone(),
        suites: request.suites.clone(),
        works: works
            .iter()
            .map(|work| record::Work {
                name: work.name(),
                unit: work.unit(),
                syscalls_per_op: work.syscalls_per_op(),
                sample_ms: match work {
                    Work::Kernel { .. } => Some(request.sample_ms.unwrap_or(start_ms)),
                    Work::Command { .. } => None,
                },
                start_scale: scales.get(&work.name()).copied().unwrap_or(DEFAULT_SCALE),
                on_curve: work.on_curve(request.copies.len() > 1),
            })
            .collect(),
    };
    let id = store.begin(&header).map_err(|error| error.to_string())?;
    for warning in &warnings {
        store.add_warning(&id, warning).map_err(|error| error.to_string())?;
    }
    let start_scales = header.works.iter().map(|work| work.start_scale).collect();
    Ok(Begun { id, kernels, scratch, works, start_scales })
}

/// A number is only as good as what was measured, so it says whose build that was.
fn about_build(kernels: &Kernels) -> Option<String> {
    match &kernels.foreign {
        Some(file) => {
            Some(format!("The workloads are those of {}, not weigh's own.", file.display()))
        }
        None if kernels.is_static => Some(
            "The workloads are linked statically: this system lacks the loader for the others."
                .into(),
        ),
        None => None,
    }
}

/// The command line that measures the same again, by the same build.
fn again(request: &Request, kernels: &Kernels) -> String {
    match &kernels.foreign {
        Some(file) => {
            let file = command_line([&*file.to_string_lossy()]);
            format!("{VARIABLE}={file} {}", request.again)
        }
        None => request.again.clone(),
    }
}
