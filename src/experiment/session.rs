//! An experiment from its request to its last sample: the store and the guard opened first, the
//! treatments applied and taken back around every set, and nothing left behind on any way out.

use std::fs::File;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rustix::fs::{FlockOperation, flock};

use super::engine::{Observer, Platform, SampleError, Slot, Stop, Unit, run_set};
use super::host::{Host, Surroundings, describe_scratch};
use super::work::{Work, resolve};
use crate::machine::Facts;
use crate::report::summary::State;
use crate::stats::judge::Design;
use crate::store::Store;
use crate::store::record::{self, Header, Kind};
use crate::treatment::guard::{Guard, restore_left_behind};
use crate::treatment::{self, Bench, Named, state_dir};
use crate::workload::kernels::Kernels;

/// What is to be measured.
#[derive(Clone, Debug)]
pub struct Request {
    /// Labels of treatments, the baseline's first.
    pub arms: Vec<String>,
    /// Workloads, suites, files with suites.
    pub workloads: Vec<String>,
    /// A command to weigh as a whole.
    pub command: Option<Vec<String>>,
    /// The command line that measures the same again.
    pub again: String,
    pub seed: u64,
    pub budget: Duration,
    /// The margin of equivalence as a fraction.
    pub margin: f64,
    pub design: Design,
    /// Length of a sample of a kernel.
    pub target_ms: u64,
    pub plan: Plan,
}

/// How samples are taken.
#[derive(Clone, Debug, PartialEq)]
pub enum Plan {
    /// Pairs of arms, in this many complete and separate sets.
    Compare { sets: usize },
    /// One arm alone, this many passes over all workloads.
    Run { passes: usize },
    /// The same with the durations and passes of the suite's original.
    Classic,
}

/// What a person watches.
pub trait Audience {
    /// A sentence before the system is changed, or about what was put back.
    fn announce(&mut self, sentence: &str);
    /// The rows of a set that is about to be measured: workload, unit and treatment.
    fn set_begins(
        &mut self,
        set: usize,
        rows: &[(String, String, String)],
    ) -> Box<dyn Observer + '_>;
    /// A sample of a run without pairs.
    fn sampled(&mut self, work: &str, pass: usize, passes: usize);
}

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
    let mut guard =
        Guard::arm().map_err(|error| format!("cannot start the guard process: {error}"))?;
    let begun = begin(request, store, &mut guard);
    let (id, kernels, scratch, works) = match begun {
        Ok(begun) => begun,
        Err(problem) => {
            let _ = guard.disarm();
            return Err(problem);
        }
    };
    let mut session = Session {
        request,
        store,
        id: &id,
        works: &works,
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
    match (closed, failure) {
        (Ok(()), _) => Ok(Done { id, state, left }),
        (Err(_), Some(reason)) => Err(reason),
        (Err(error), None) => Err(error.to_string()),
    }
}

fn build_treatments(labels: &[String]) -> Result<Vec<Named>, String> {
    let named: Vec<Named> =
        labels.iter().map(|label| treatment::parse(label)).collect::<Result<_, _>>()?;
    for (index, one) in named.iter().enumerate() {
        let occupied = one.treatment.occupies();
        if let Some(other) = named[..index]
            .iter()
            .find(|other| occupied.is_some() && other.treatment.occupies() == occupied)
        {
            return Err(format!(
                "`{}` and `{}` both need {}: weigh them in two experiments",
                other.label,
                one.label,
                occupied.unwrap_or_default()
            ));
        }
        let kind = one.label.split(':').next().unwrap_or_default();
        if let Some(obstacle) =
            treatment::find(kind).and_then(|kind| kind.probe().obstacle().map(str::to_owned))
        {
            return Err(format!("cannot weigh `{}` here: {obstacle}", one.label));
        }
    }
    Ok(named)
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

/// Two experiments at once would measure each other, and undo each other's changes.
fn only_one_at_a_time() -> Result<File, String> {
    let path =
        state_dir::path().map(|directory| directory.join("lock")).map_err(|e| e.to_string())?;
    let lock = File::create(&path).map_err(|error| format!("{}: {error}", path.display()))?;
    match flock(&lock, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(lock),
        Err(_) => {
            Err("another experiment is running on this host; wait for it, or end it with Ctrl-C"
                .into())
        }
    }
}

type Begun = (String, Kernels, PathBuf, Vec<Work>);

fn begin(request: &Request, store: &Store, guard: &mut Guard) -> Result<Begun, String> {
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
        None => resolve(&request.workloads, &kernels)?,
    };
    let place = format!("{} ({})", describe_scratch(&scratch), std::env::temp_dir().display());
    let machine = Facts { scratch: Some(place), ..Facts::read() };
    let mut warnings = machine.warnings();
    if kernels.is_static {
        warnings.push("The workloads are linked statically, because this system lacks the loader for the others.".into());
    }
    let header = Header {
        kind: if matches!(request.plan, Plan::Compare { .. }) { Kind::Compare } else { Kind::Run },
        command: request.again.clone(),
        seed: request.seed,
        budget_s: request.budget.as_secs_f64(),
        alpha: request.design.alpha,
        margin: request.margin,
        fixed_pairs: request.design.fixed_pairs,
        machine,
        arms: request.arms.clone(),
        works: works
            .iter()
            .map(|work| record::Work {
                name: work.name(),
                unit: work.unit(),
                syscalls_per_op: work.syscalls_per_op(),
            })
            .collect(),
    };
    let id = store.begin(&header).map_err(|error| error.to_string())?;
    for warning in &warnings {
        store.add_warning(&id, warning).map_err(|error| error.to_string())?;
    }
    Ok((id, kernels, scratch, works))
}

struct Session<'a> {
    request: &'a Request,
    store: &'a Store,
    id: &'a str,
    works: &'a [Work],
    kernels: &'a Kernels,
    scratch: &'a std::path::Path,
    interrupted: &'a AtomicBool,
    started: Instant,
}

impl Session<'_> {
    /// All sets, one after the other, each with its own share of the budget.
    fn measure(
        &mut self,
        treatments: Vec<Named>,
        guard: &mut Guard,
        audience: &mut dyn Audience,
    ) -> Result<(), Stop> {
        let sets = match self.request.plan {
            Plan::Compare { sets } => sets,
            Plan::Run { .. } | Plan::Classic => 1,
        };
        let mut treatments = Some(treatments);
        for set in 0..sets {
            let treatments = match treatments.take() {
                Some(first) => first,
                None => build_treatments(&self.request.arms).map_err(Stop::Failed)?,
            };
            let surroundings = Surroundings {
                bench: Bench {
                    kernels: self.kernels,
                    scratch: self.scratch,
                    interrupted: self.interrupted,
                },
                store: self.store,
                id: self.id,
                works: self.works,
                started: self.started,
                target_ms: self.request.target_ms,
            };
            let mut announce = |sentence: &str| {
                if set == 0 {
                    audience.announce(sentence);
                }
            };
            let mut host = Host::set_up(surroundings, treatments, guard, &mut announce)?;
            let result = self.measure_set(&mut host, set, sets, audience);
            let restored = host.take_down(guard);
            result?;
            restored.map_err(Stop::Failed)?;
        }
        Ok(())
    }

    fn measure_set(
        &self,
        host: &mut Host,
        set: usize,
        sets: usize,
        audience: &mut dyn Audience,
    ) -> Result<(), Stop> {
        let broken: Vec<usize> = host.try_all()?.into_iter().map(|(work, _)| work).collect();
        let works: Vec<usize> =
            (0..self.works.len()).filter(|work| !broken.contains(work)).collect();
        if works.is_empty() {
            return Err(Stop::Failed("no workload ran; see the failures".into()));
        }
        match self.request.plan {
            Plan::Compare { .. } => self.compare(host, &works, set, sets, audience),
            Plan::Run { passes } => self.run(host, &works, |_| passes, |_| None, audience),
            Plan::Classic => self.run(host, &works, classic_passes, classic_ms, audience),
        }
    }

    fn compare(
        &self,
        host: &mut Host,
        works: &[usize],
        set: usize,
        sets: usize,
        audience: &mut dyn Audience,
    ) -> Result<(), Stop> {
        let units: Vec<Unit> = (1..self.request.arms.len())
            .flat_map(|treated_arm| works.iter().map(move |&work| Unit { work, treated_arm }))
            .collect();
        let rows: Vec<(String, String, String)> = units
            .iter()
            .map(|unit| {
                let work = &self.works[unit.work];
                (work.name(), work.unit(), self.request.arms[unit.treated_arm].clone())
            })
            .collect();
        // What an earlier set did not use is left to the later ones.
        let share = self.request.budget * (set as u32 + 1) / sets as u32;
        let mut observer = audience.set_begins(set, &rows);
        let design = &self.request.design;
        let (_, result) =
            run_set(&units, design, self.request.seed, set, share, host, &mut *observer);
        result
    }

    /// Passes over the workloads, so that a drift of the machine reaches all of them.
    fn run(
        &self,
        host: &mut Host,
        works: &[usize],
        passes: impl Fn(&Work) -> usize,
        target_ms: impl Fn(&Work) -> Option<u64>,
        audience: &mut dyn Audience,
    ) -> Result<(), Stop> {
        let most = works.iter().map(|&work| passes(&self.works[work])).max().unwrap_or(0);
        let mut failed = vec![false; self.works.len()];
        for pass in 0..most {
            for &work in works {
                let wanted = passes(&self.works[work]);
                if pass >= wanted || failed[work] {
                    continue;
                }
                if self.interrupted.load(Ordering::Relaxed) {
                    return Err(Stop::Interrupted);
                }
                host.target_ms = target_ms(&self.works[work]).unwrap_or(self.request.target_ms);
                let unit = Unit { work, treated_arm: 0 };
                let slot = Slot { unit, arm: 0, set: 0, pair: pass, position: 0 };
                match host.sample(&slot) {
                    Ok(_) => audience.sampled(&self.works[work].name(), pass + 1, wanted),
                    Err(SampleError::Stop(stop)) => return Err(stop),
                    Err(SampleError::Workload(reason)) => {
                        host.failed(&slot, &reason)?;
                        failed[work] = true;
                    }
                }
            }
        }
        Ok(())
    }
}

/// UnixBench's `-i` default for its short tests, where a suite says nothing.
fn classic_passes(work: &Work) -> usize {
    member(work).and_then(|member| member.classic_passes).unwrap_or(3)
}

fn classic_ms(work: &Work) -> Option<u64> {
    Some(member(work).and_then(|member| member.classic_seconds).unwrap_or(10) * 1000)
}

fn member(work: &Work) -> Option<&crate::workload::suite::Member> {
    match work {
        Work::Kernel { member, .. } => member.as_ref(),
        Work::Command { .. } => None,
    }
}
