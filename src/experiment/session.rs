//! An experiment from its request to its last sample: the store and the guard opened first, the
//! treatments applied and taken back around every set, and nothing left behind on any way out.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use super::calibration::{RECENT, history, planned_pairs, start_scales};
use super::earlier::Earlier;
use super::fitness;
use super::length::{sets_in_late, start_ms};
use super::measure::Session;
use super::origin::{Origin, check_machine};
use super::pairs::gather;
use super::platform::Stop;
use super::request::{Audience, Request, build_treatments};
use super::resolve::resolve;
use super::work::Work;
use crate::machine::Facts;
use crate::machine::file_system::file_system;
use crate::report::format;
use crate::report::summary::State;
use crate::shell::command_line;
use crate::stats::betting::DEFAULT_SCALE;
use crate::store::Store;
use crate::store::record::{self, Header, Stored};
use crate::treatment::Named;
use crate::treatment::claim::{Claim, claim, only_one_at_a_time};
use crate::treatment::guard::{Guard, restore_left_behind};
use crate::workload::kernels::{Kernels, VARIABLE};

/// An experiment that was begun; whatever became of it is in the store.
#[derive(Debug)]
pub struct Done {
    pub id: String,
    pub state: State,
    /// What could not be put back.
    pub left: Option<String>,
    /// Why nothing more could be kept; what was kept before stands.
    pub not_kept: Option<String>,
}

impl Done {
    /// What the store has of it. Where its disk is full, the end of the experiment is missing there.
    ///
    /// # Errors
    /// A sentence, where it cannot be read.
    pub fn load(&self, store: &Store) -> Result<Stored, String> {
        let mut stored = store.load(&self.id).map_err(|error| error.to_string())?;
        stored.state = self.state;
        if let Some(problem) = &self.not_kept {
            stored.warnings.push(format!("It ended early: {problem}."));
        }
        Ok(stored)
    }
}

/// Runs an experiment.
///
/// # Errors
/// A sentence, where it could not even begin: nothing was changed and nothing is stored.
pub fn execute(
    request: &Request,
    store: &Store,
    audience: &mut dyn Audience,
    interrupted: &Arc<AtomicBool>,
) -> Result<Done, String> {
    conduct(request, None, store, audience, interrupted)
}

/// Another session of a stored experiment, with so much more time: its pairs are added to those that are
/// there, and judged with them. The interval is valid at any time, so also when one goes on because it
/// is still too wide.
///
/// # Errors
/// A sentence, where it cannot be gone on with, or is not as it was: nothing was changed, and the
/// experiment is as before.
pub fn go_on(
    stored: &Stored,
    budget: Duration,
    store: &Store,
    audience: &mut dyn Audience,
    interrupted: &Arc<AtomicBool>,
) -> Result<Done, String> {
    let origin = Origin::of(stored)?;
    let request = Request { budget, ..origin.request.clone() };
    conduct(&request, Some((stored, &origin)), store, audience, interrupted)
}

fn conduct(
    request: &Request,
    resumed: Option<(&Stored, &Origin)>,
    store: &Store,
    audience: &mut dyn Audience,
    interrupted: &Arc<AtomicBool>,
) -> Result<Done, String> {
    let treatments = build_treatments(&request.arms)?;
    put_back_what_was_left(audience)?;
    let _alone = only_one_at_a_time()?;
    let claims = claim_resources(&treatments)?;
    let mut guard = Guard::arm(claims).map_err(|error| error.to_string())?;
    let begun = unpack(request, resumed.map(|(_, origin)| origin), &mut guard).and_then(|place| {
        match resumed {
            None => begin(request, &treatments, &place, store).map(|begun| (place, begun)),
            Some((stored, origin)) => {
                resume((stored, origin), request, &treatments, &place, store, audience)
                    .map(|begun| (place, begun))
            }
        }
    });
    let (Place { kernels, scratch, works, .. }, begun) = match begun {
        Ok(begun) => begun,
        Err(problem) => {
            let left = guard.disarm().err().map(|left| format!("\n{left}")).unwrap_or_default();
            return Err(problem + &left);
        }
    };
    let Begun { id, start_scales, planned_pairs, earlier } = begun;
    let mut session = Session {
        request,
        store,
        id: &id,
        works: &works,
        start_scales: &start_scales,
        planned_pairs,
        kernels: &kernels,
        scratch: &scratch,
        interrupted,
        started: Instant::now(),
        earlier: &earlier,
    };
    let result = session.measure(treatments, &mut guard, audience);
    let left = guard.disarm().err();
    let (mut state, failure, mut not_kept) = match result {
        Ok(()) => (State::Complete, None, None),
        Err(Stop::Interrupted) => (State::Interrupted, None, None),
        Err(Stop::Failed(reason)) => (State::Failed, Some(reason), None),
        Err(Stop::NotKept(reason)) => (State::Interrupted, None, Some(reason)),
    };
    let closed = store
        .set_elapsed(&id, (earlier.elapsed + session.started.elapsed()).as_secs_f64())
        .and_then(|()| store.finish(&id, state, failure.as_deref()));
    if let Err(error) = closed {
        if let Some(failure) = failure {
            return Err([Some(failure), left].into_iter().flatten().collect::<Vec<_>>().join("\n"));
        }
        state = State::Interrupted;
        not_kept.get_or_insert(error.to_string());
    }
    Ok(Done { id, state, left, not_kept })
}

fn put_back_what_was_left(audience: &mut dyn Audience) -> Result<(), String> {
    let restored = restore_left_behind(Path::new("/"))
        .map_err(|error| format!("the state directory: {error}"))?;
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
pub fn claim_resources(treatments: &[Named]) -> Result<Vec<Claim>, String> {
    let occupied = treatments.iter().filter_map(|named| named.treatment.occupies());
    occupied.collect::<BTreeSet<_>>().into_iter().map(claim).collect()
}

/// Where it is measured, and what.
struct Place {
    kernels: Kernels,
    scratch: PathBuf,
    /// Where a command is executed.
    directory: PathBuf,
    works: Vec<Work>,
}

fn unpack(request: &Request, origin: Option<&Origin>, guard: &mut Guard) -> Result<Place, String> {
    let scratch = guard.scratch_directory().map_err(|error| error.to_string())?;
    let kernels = Kernels::unpack(&scratch)?;
    let directory = match origin {
        Some(origin) => origin.directory.clone(),
        None => {
            std::env::current_dir().map_err(|error| format!("the current directory: {error}"))?
        }
    };
    let works = match &request.command {
        Some(argv) => {
            vec![Work::Command { argv: argv.clone(), directory: directory.clone() }]
        }
        None => resolve(&request.workloads, &request.suites, &kernels)?
            .iter()
            .flat_map(|work| request.copies.iter().map(|&copies| work.clone().with_copies(copies)))
            .collect(),
    };
    Ok(Place { kernels, scratch, directory, works })
}

/// The machine as it is now, and what a reader must know of it.
fn look(place: &Place, store: &Store) -> (Facts, Vec<String>) {
    let scratch = &place.scratch;
    let at = format!("{} ({})", file_system(scratch), std::env::temp_dir().display());
    let (machine, mut warnings) = fitness::look(Some(at), store.directory());
    warnings.extend(about_build(&place.kernels));
    (machine, warnings)
}

struct Begun {
    id: String,
    /// Per work.
    start_scales: Vec<f64>,
    /// n*, where it can be known.
    planned_pairs: Option<f64>,
    earlier: Earlier,
}

fn begin(
    request: &Request,
    treatments: &[Named],
    place: &Place,
    store: &Store,
) -> Result<Begun, String> {
    let start_ms = start_ms(sets_in_late(treatments));
    let Place { kernels, directory, works, .. } = place;
    let (machine, warnings) = look(place, store);
    let calibrations = history(store, &machine, Some(RECENT))?;
    let scales = start_scales(&calibrations);
    let planned_pairs = planned_pairs(request, works, &calibrations, start_ms);
    let header = Header {
        kind: request.kind,
        command: again(request, kernels),
        seed: request.seed,
        budget_s: request.budget.as_secs_f64(),
        alpha: request.design.alpha,
        margin: request.margin,
        fixed_pairs: request.design.fixed_pairs,
        multiplicity: request.design.multiplicity,
        planned_pairs,
        sets: request.plan.sets(),
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
        origin: Some(to_json(&Origin::new(request, directory, treatments, kernels))),
    };
    let id = store.begin(&header).map_err(|error| error.to_string())?;
    store.set_naming(&id, &request.naming).map_err(|error| error.to_string())?;
    if let Some(limit) = request.fail_above {
        store.set_fail_above(&id, limit).map_err(|error| error.to_string())?;
    }
    for warning in &warnings {
        store.add_warning(&id, warning).map_err(|error| error.to_string())?;
    }
    let start_scales = header.works.iter().map(|work| work.start_scale).collect();
    let earlier = Earlier::none(request.plan.sets());
    Ok(Begun { id, start_scales, planned_pairs, earlier })
}

fn to_json(origin: &Origin) -> String {
    serde_json::to_string(origin).expect("plain data with text keys")
}

/// Opens a stored experiment again, if all is as it was.
fn resume(
    (stored, origin): (&Stored, &Origin),
    request: &Request,
    treatments: &[Named],
    place: &Place,
    store: &Store,
    audience: &mut dyn Audience,
) -> Result<Begun, String> {
    let header = &stored.header;
    let (machine, mut warnings) = look(place, store);
    let differences = check_machine(&header.machine, &machine)?;
    origin.check_contents(treatments, &place.kernels)?;
    if !header.works.iter().map(|work| work.name.clone()).eq(place.works.iter().map(Work::name)) {
        return Err("its suites have other workloads in this weigh".into());
    }
    let earlier = Earlier::of(stored);
    if earlier.is_done(stored, request) {
        return Err(
            "every row has its verdict, and an interval that is narrow enough: there is nothing \
                    left to measure"
                .into(),
        );
    }
    let budget_s = (earlier.elapsed + request.budget).as_secs_f64();
    let session = store
        .reopen(&stored.id, budget_s, header.sets.max(earlier.sets.end))
        .map_err(|error| error.to_string())?;
    audience.announce(&format!(
        "Going on with {}: session {session}, after {}.",
        stored.id,
        format::plural(gather(stored).iter().map(|row| row.series.len()).sum(), "pair")
    ));
    warnings.retain(|warning| !stored.warnings.contains(warning));
    for difference in &differences {
        audience.announce(&format!("Different now: {difference}."));
    }
    warnings.extend(differences.into_iter().map(|different| format!("different: {different}.")));
    for warning in warnings {
        let warning = format!("Session {session}: {warning}");
        store.add_warning(&stored.id, &warning).map_err(|error| error.to_string())?;
    }
    let start_scales = header.works.iter().map(|work| work.start_scale).collect();
    let planned_pairs = header.planned_pairs;
    Ok(Begun { id: stored.id.clone(), start_scales, planned_pairs, earlier })
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
