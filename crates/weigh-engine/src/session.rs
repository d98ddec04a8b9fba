//! An experiment from its request to its last sample: the store and the guard opened first, the
//! treatments applied and taken back around every set, and nothing left behind on any way out.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use super::calibration::{KnownNoise, RECENT, history, planned_pairs};
use super::command_template::{check_filled, check_interpreters};
use super::host::turns::obstacle;
use super::job_options::check_disks;
use super::length::{sets_in_late, start_ms};
use super::measure::Session;
use super::nothing_left::nothing_left;
use super::platform::Stop;
use super::prior_sessions::PriorSessions;
use super::programs::check_programs;
use super::provenance::{Provenance, check_machine};
use super::request::{Common, Compared, Interleave, Passes, Plan, ProgressSink, Request, of_arm};
use super::resolve::{cells_of, load_points, resolve};
use super::sweep::sweeps_of;
use super::time_limit::{check_budget, no_verdict_within};
use super::unused_options::{check_asking, check_used};
use super::work::{LoadRole, Work, make_disk_directories};
use weigh_host::address_space;
use weigh_host::interruption;
use weigh_host::machine::check;
use weigh_host::machine::swapping::moved_bytes;
use weigh_host::undo::queue::Refused;
use weigh_model::format;
use weigh_model::ids::ExperimentId;
use weigh_model::printable;
use weigh_model::record;
use weigh_model::record::{Header, Stored};
use weigh_model::result::scheme::StartScales;
use weigh_model::result::summary::State;
use weigh_model::result::warning::Warning;
use weigh_model::shell::command_line;
use weigh_station::{OpeningNews, Station, with_workloads};
use weigh_store::Store;
use weigh_treatment::boot::are_boots;
use weigh_treatment::{Named, Reach, not_elsewhere};
use weigh_verdict::pairs::gather;
use weigh_workload::executable::{Executable, VARIABLE};

/// An experiment that was begun; whatever became of it is in the store.
#[derive(Debug)]
pub struct Done {
    pub id: ExperimentId,
    pub state: State,
    /// Changes that could not be undone.
    pub left: Option<String>,
    /// Why nothing more could be kept; what was kept before stands.
    pub not_kept: Option<String>,
    /// The experiment itself, if it has no sample and so is not in the store.
    removed: Option<Box<Stored>>,
}

impl Done {
    /// Returns true if the store has the experiment: it has samples, or is not over.
    pub fn is_stored(&self) -> bool {
        self.removed.is_none()
    }

    /// Loads the experiment from the store. If the disk was full, the stored experiment lacks its
    /// end.
    ///
    /// # Errors
    /// A sentence, if it cannot be read.
    pub fn load(&self, store: &Store) -> Result<Stored, String> {
        let mut stored = match &self.removed {
            Some(removed) => (**removed).clone(),
            None => store.load(&self.id).map_err(|error| error.to_string())?,
        };
        stored.state = self.state;
        if let Some(problem) = &self.not_kept {
            stored.warnings.push(Warning::EndedEarly { problem: problem.clone() });
        }
        Ok(stored)
    }
}

/// Runs an experiment.
///
/// # Errors
/// A sentence, and whether another experiment is the reason, where it could not even begin: nothing was
/// changed and nothing is stored.
pub fn execute(
    request: &Request,
    store: &Store,
    progress_sink: &mut dyn ProgressSink,
    interrupted: &Arc<AtomicBool>,
) -> Result<Done, Refused> {
    conduct(request, None, store, progress_sink, interrupted)
}

/// Budget, limit and precision of another session.
#[derive(Clone, Copy, Debug)]
pub struct More {
    pub budget: Duration,
    /// As [`Comparison::budget_per_row`](super::request::Comparison::budget_per_row).
    pub budget_per_row: Duration,
    /// The limit of the gate, where that is given anew.
    pub fail_above: Option<f64>,
    /// As narrow as an interval of a grid is to be, where that is given anew.
    pub precision: Option<f64>,
    /// As [`Common::wait`].
    pub wait: Option<Duration>,
}

/// Another session of a stored experiment, with so much more time: its pairs are added to those that are
/// there, and judged with them. The interval is valid at any time, so also when one goes on because it
/// is still too wide. If nothing is left to measure, that is announced, and the experiment is as before.
///
/// # Errors
/// A sentence, where it cannot be continued, or is not as it was: nothing was changed, and the
/// experiment is as before.
pub fn go_on(
    stored: &Stored,
    more: More,
    store: &Store,
    progress_sink: &mut dyn ProgressSink,
    interrupted: &Arc<AtomicBool>,
) -> Result<Done, Refused> {
    let origin = Provenance::of(stored)?;
    let More { budget, budget_per_row, fail_above, precision, wait } = more;
    let mut request = origin.request.clone();
    (request.common.budget, request.common.wait) = (budget, wait);
    match &mut request.plan {
        Plan::Compare(comparison) => {
            comparison.budget_per_row = budget_per_row;
            comparison.fail_above = fail_above.or(stored.fail_above);
        }
        Plan::Net(sweeps) => sweeps.precision = precision.unwrap_or(sweeps.precision),
        Plan::Run(_) | Plan::Ramp(_) => {}
    }
    if let Some(why) = nothing_left(stored, &request) {
        progress_sink
            .announce(&format!("There is nothing left to measure of {}: {why}.", stored.id));
        let (id, state) = (stored.id.clone(), stored.state);
        return Ok(Done { id, state, left: None, not_kept: None, removed: None });
    }
    conduct(&request, Some((stored, &origin)), store, progress_sink, interrupted)
}

/// Where an arm is on another machine, all that is done has to be had there.
fn check_reach(request: &Request, treatments: &[Named]) -> Result<(), String> {
    let of = |reach| treatments.iter().find(|named| named.treatment.reach() == reach);
    let is_guest = |named: &Named| named.treatment.reach() == Reach::Guest;
    if let (Some(guest), Some(other)) =
        (of(Reach::Guest), treatments.iter().find(|named| !is_guest(named)))
    {
        return Err(format!(
            "`{}` is a virtual machine, and `{}` is not, so most of the difference would come from the \
             virtual machine. Compare guests with guests: --base vm",
            guest.label, other.label
        ));
    }
    let Some(elsewhere) = of(Reach::Guest).or_else(|| of(Reach::Elsewhere)) else {
        return Ok(());
    };
    if let Some(named) = of(Reach::System) {
        return Err(not_elsewhere(&elsewhere.label, &named.label));
    }
    let comparison = request.plan.comparison();
    match comparison.is_some_and(|comparison| comparison.around.has_lines()) {
        true => Err(format!(
            "--setup, --prepare and --cleanup run on this machine, but the processes of `{}` run on a \
             different machine: remove these options",
            elsewhere.label
        )),
        false => Ok(()),
    }
}

/// Checks that no treatment of weigh's own workloads is applied to another program, on which it has
/// no effect.
fn check_workloads(works: &[Work], treatments: &[Named]) -> Result<(), String> {
    let is_other = |work: &&Work| work.is_command() || matches!(work, Work::Interpreted(_));
    let mut kinds = treatments.iter().flat_map(Named::treatment_kinds);
    match (works.iter().find(is_other), kinds.find(|kind| kind.needs_workload)) {
        (Some(work), Some(kind)) => Err(format!(
            "`{}` changes only weigh's own workloads, and `{}` is not one of them: choose one with -w",
            kind.kind.name,
            work.name()
        )),
        _ => Ok(()),
    }
}

/// Checks commands, as far as possible before anything is begun.
fn check_commands(request: &Request, treatments: &[Named], is_resumed: bool) -> Result<(), String> {
    if let Some(command) = request.plan.command() {
        check_filled(command, treatments)?;
    }
    match is_resumed {
        true => Ok(()),
        false => check_programs(request, treatments, &current_directory()?),
    }
}

/// Checks the treatments and commands of a request, without looking at the rest of this system.
///
/// # Errors
/// A sentence about what was typed.
pub fn check_arms(request: &Request) -> Result<(), String> {
    let treatments = request.treatments()?;
    check_commands(request, &treatments, false)?;
    check_reach(request, &treatments)
}

/// Checks the workloads of a request, which are unpacked for that. Returns how many there are, those of
/// suites included.
///
/// # Errors
/// A sentence about what was typed.
pub fn check_works(request: &Request) -> Result<usize, String> {
    let treatments = request.treatments()?;
    let mut works = 0;
    with_workloads(|executable| {
        works = find_works(request, None, &treatments, executable)?.works.len();
        Ok(())
    })?;
    Ok(works)
}

/// Finds the works of a request, and checks that they suit the treatments.
fn find_works(
    request: &Request,
    origin: Option<&Provenance>,
    treatments: &[Named],
    executable: &Executable,
) -> Result<WhatIsMeasured, String> {
    let place = works_of(request, origin, executable)?;
    check_workloads(&place.works, treatments)?;
    check_disks(&place.works, treatments)?;
    if request.plan.command().is_none() {
        check_interpreters(&place.works, treatments)?;
    }
    Ok(place)
}

/// Checks what the treatments need of this system. apt alone may take a minute for that, and there is nothing
/// to put back if the user gives up meanwhile. Labels with parameters come first: a slip is in what was
/// typed.
fn check_inputs(
    treatments: &mut [Named],
    progress_sink: &mut dyn ProgressSink,
) -> Result<(), String> {
    progress_sink.begins("checking what the treatments need");
    let mut in_order: Vec<&mut Named> = treatments.iter_mut().collect();
    in_order.sort_by_key(|named| !named.label.contains(':'));
    let checked = in_order.into_iter().try_for_each(|named| {
        named.treatment.check_inputs().map_err(|problem| of_arm(&named.label, problem))
    });
    if interruption::has_come() {
        progress_sink.ends();
        interruption::end_by_signal();
    }
    progress_sink.begins("preparing");
    checked
}

/// Runs a session, during which something is always under way for whoever watches it.
///
/// # Errors
/// As [`execute`] and [`go_on`].
pub(super) fn conduct(
    request: &Request,
    resumed: Option<(&Stored, &Provenance)>,
    store: &Store,
    progress_sink: &mut dyn ProgressSink,
    interrupted: &Arc<AtomicBool>,
) -> Result<Done, Refused> {
    progress_sink.begins("preparing");
    let done = conduct_watched(request, resumed, store, progress_sink, interrupted);
    progress_sink.ends();
    done
}

fn conduct_watched(
    request: &Request,
    resumed: Option<(&Stored, &Provenance)>,
    store: &Store,
    progress_sink: &mut dyn ProgressSink,
    interrupted: &Arc<AtomicBool>,
) -> Result<Done, Refused> {
    address_space::check()?;
    let mut treatments = request.treatments()?;
    check_commands(request, &treatments, resumed.is_some())?;
    check_reach(request, &treatments)?;
    check_inputs(&mut treatments, progress_sink)?;
    let origin = resumed.map(|(_, origin)| origin);
    let found = |executable: &Executable| find_works(request, origin, &treatments, executable);
    let mut waits = false;
    let mut tell = |news: OpeningNews| {
        progress_sink.announce(news.sentence());
        if matches!(news, OpeningNews::Waits(_)) && !waits {
            waits = true;
            progress_sink.waits();
        }
    };
    // Before the wait, if there is one; else afterwards, when the workloads are unpacked.
    let affordable = |executable: &Executable| {
        let place = found(executable)?;
        let request = request.clone().with_time_for(rows(&place.works, request.common.arms.len()));
        if resumed.is_none() {
            check_budget(&request, &place.works)?;
        }
        Ok((request, place))
    };
    let (occupied, wait) = (Station::occupied_by(&treatments), request.common.wait);
    let mut station = Station::open(occupied, wait, &mut tell, |it| affordable(it).map(drop))?;
    if waits {
        progress_sink.begins("preparing");
    }
    let begun = affordable(&station.place.executable).and_then(|(request, mut place)| {
        make_disk_directories(&mut place.works, &mut station.guard)?;
        let begun = match resumed {
            None => begin(request, &treatments, &place, &station, store),
            Some(earlier) => {
                resume(earlier, request, &treatments, &place, &station, store, progress_sink)
            }
        };
        begun.map(|begun| (place, begun))
    });
    let (WhatIsMeasured { works, .. }, begun) = match begun {
        Ok(begun) => begun,
        Err(problem) => return Err(station.close_after(problem).into()),
    };
    let Begun { id, request, start_scales, planned_pairs, earlier, origin } = begun;
    let is_announced = request.plan.comparison().is_some_and(|plan| plan.is_announced);
    if resumed.is_none() && planned_pairs.is_none() && !is_announced {
        no_verdict_within(&request, &works).iter().for_each(|said| progress_sink.announce(said));
    }
    let mut session = Session {
        request: &request,
        store,
        id: &id,
        works: &works,
        start_scales: &start_scales,
        planned_pairs,
        interrupted,
        started: Instant::now(),
        earlier: &earlier,
        origin: &origin,
        peaks: earlier.peaks.clone(),
        schedules: earlier.schedules.clone(),
        plans: earlier.plans.clone(),
        pair_costs: BTreeMap::new(),
    };
    let swapped_before = moved_bytes();
    let result = session.measure(treatments, &mut station, progress_sink);
    let elapsed = earlier.elapsed + session.started.elapsed();
    let changed = station.changed_meanwhile().filter(|warning| request.is_affected_by(warning));
    let warnings = changed.into_iter().chain(swapped_since(swapped_before)).collect();
    let ended = Ended { result, elapsed, warnings, left: station.close() };
    Ok(ended.keep(id, store, resumed.is_none())?)
}

/// Returns a warning if swap was used since this reading.
fn swapped_since(before: Option<u64>) -> Option<Warning> {
    let bytes = moved_bytes()?.saturating_sub(before?);
    (bytes > 0).then_some(Warning::Swapped { bytes })
}

/// How measuring ended, and how long it took.
struct Ended {
    result: Result<(), Stop>,
    elapsed: Duration,
    /// About changes meanwhile that affect every baseline.
    warnings: Vec<Warning>,
    /// Changes that could not be undone.
    left: Option<String>,
}

impl Ended {
    /// Stores it. A new experiment that has no sample does not stay in the store: it would hide the latest
    /// result, and say no more than what is shown now.
    ///
    /// # Errors
    /// Why the experiment failed, where no report could say more.
    fn keep(self, id: ExperimentId, store: &Store, is_new: bool) -> Result<Done, String> {
        let Ended { result, elapsed, warnings, left } = self;
        let (mut state, failure, mut not_kept) = ending(result);
        let warned = warnings.iter().try_for_each(|warning| store.add_warning(&id, warning));
        let timed = warned.and_then(|()| store.set_elapsed(&id, elapsed.as_secs_f64()));
        let is_over = state != State::Running;
        let closed = timed.and_then(|()| match is_over {
            true => store.finish(&id, state, failure.as_deref()),
            false => Ok(()),
        });
        let removed = closed.and_then(|()| match is_new && is_over {
            true => without_sample(&id, store),
            false => Ok(None),
        });
        let has_report = removed.as_ref().is_ok_and(|removed| {
            removed.as_ref().is_none_or(|removed| !removed.failures.is_empty())
        });
        if let Some(failure) = failure.filter(|_| !has_report) {
            let failure = format!("the experiment failed: {}", printable::line(&failure));
            return Err([Some(failure), left].into_iter().flatten().collect::<Vec<_>>().join("\n"));
        }
        let removed = removed.unwrap_or_else(|error| {
            state = State::Interrupted;
            not_kept.get_or_insert(error.to_string());
            None
        });
        Ok(Done { id, state, left, not_kept, removed })
    }
}

/// Removes an experiment from the store if it has no sample, and returns it.
fn without_sample(
    id: &ExperimentId,
    store: &Store,
) -> Result<Option<Box<Stored>>, weigh_store::Error> {
    if store.has_samples(id)? {
        return Ok(None);
    }
    let stored = store.load(id)?;
    store.forget(std::slice::from_ref(id))?;
    Ok(Some(Box::new(stored)))
}

/// Returns the experiment's state, why it failed, and why nothing more could be stored.
fn ending(result: Result<(), Stop>) -> (State, Option<String>, Option<String>) {
    match result {
        Ok(()) => (State::Complete, None, None),
        Err(Stop::NextBoot) => (State::Running, None, None),
        Err(Stop::Interrupted) => (State::Interrupted, None, None),
        Err(Stop::Failed(reason)) => (State::Failed, Some(reason), None),
        Err(Stop::OutOfTime) => (State::Failed, Some("the budget was spent".to_owned()), None),
        Err(Stop::NotKept(reason)) => (State::Interrupted, None, Some(reason)),
    }
}

/// How many may have a verdict, but for those by which a peak is chosen. Where servers are started for each
/// pair, which takes as long again, one counts for two.
fn rows(works: &[Work], arms: usize) -> usize {
    let judged = works.iter().filter(|work| work.role() != LoadRole::Candidate);
    judged.map(|work| 1 + usize::from(work.asks())).sum::<usize>() * (arms - 1).max(1)
}

/// Returns true if pairs of any row can be interleaved, as far as treatments and workloads declare.
/// A build of the user's may be too old for it.
fn can_interleave(treatments: &[Named], works: &[Work], station: &Station) -> bool {
    station.place.executable.foreign.is_none()
        && obstacle(treatments.iter()).is_none()
        && works.iter().any(Work::can_interleave)
}

/// Where it is measured, and what.
struct WhatIsMeasured {
    /// Where a command is executed.
    directory: PathBuf,
    works: Vec<Work>,
}

fn works_of(
    request: &Request,
    origin: Option<&Provenance>,
    executable: &Executable,
) -> Result<WhatIsMeasured, String> {
    let directory = match origin {
        Some(origin) => origin.directory.clone(),
        None => current_directory()?,
    };
    let works = match &request.plan {
        Plan::Compare(comparison) => match &comparison.compared {
            Compared::Workloads(workloads) => resolve(&request.asked_for(workloads), executable)?,
            Compared::Command(argv) => {
                vec![Work::Command { argv: argv.clone(), directory: directory.clone() }]
            }
            Compared::CommandComparison(contest) => {
                let (argvs, contest) = (contest.argvs()?, Box::new(contest.clone()));
                vec![Work::CommandComparison { contest, argvs, directory: directory.clone() }]
            }
        },
        Plan::Run(run) => resolve(&request.asked_for(&run.workloads), executable)?,
        Plan::Ramp(ramp) => load_points(ramp, request.surroundings(), executable)?,
        Plan::Net(sweeps) => cells_of(&sweeps.label(), &sweeps.grid, executable)?,
    };
    check_asking(&request.plan, &works)?;
    // What was stored is measured as it was.
    if origin.is_none() {
        check_used(&request.plan, &works)?;
    }
    Ok(WhatIsMeasured { directory, works })
}

fn current_directory() -> Result<PathBuf, String> {
    std::env::current_dir().map_err(|error| format!("cannot find the current directory: {error}"))
}

struct Begun {
    id: ExperimentId,
    /// With what treatments and workloads leave open of it.
    request: Request,
    /// Per work.
    start_scales: Vec<StartScales>,
    /// n*, where it can be known.
    planned_pairs: Option<f64>,
    earlier: PriorSessions,
    origin: Provenance,
}

fn begin(
    request: Request,
    treatments: &[Named],
    place: &WhatIsMeasured,
    station: &Station,
    store: &Store,
) -> Result<Begun, String> {
    let start_ms = start_ms(sets_in_late(treatments.iter()));
    let WhatIsMeasured { directory, works } = place;
    let request = request
        .with_choice_of_scheme(can_interleave(treatments, works, station))
        .with_old_pairs_where_they_tell();
    let executable = &station.place.executable;
    let (machine, mut warnings) = station.look(store.directory());
    warnings.retain(|warning| is_affected_by(&request, treatments, warning));
    let calibrations = history(store, &machine, Some(RECENT))?;
    let noise = KnownNoise::of(&calibrations);
    let planned_pairs = planned_pairs(&request, works, &calibrations, start_ms);
    let origin = Provenance::new(&request, directory, treatments, executable);
    let Request { common, plan } = &request;
    let design = plan.design();
    let comparison = request.plan.comparison();
    let header = Header {
        kind: plan.kind(),
        command: again(common, executable),
        seed: common.seed,
        budget_s: common.budget.as_secs_f64(),
        alpha: design.alpha,
        margin: plan.margin(),
        fixed_pairs: design.fixed_pairs,
        multiplicity: design.multiplicity,
        metrics: request.metrics(),
        planned_pairs,
        sets: plan.sets(),
        machine,
        arms: common.arms.clone(),
        asked_for: plan.names(),
        is_classic: matches!(plan, Plan::Run(run) if run.passes == Passes::Classic),
        suites: plan.workloads().map(|workloads| workloads.suites.clone()).unwrap_or_default(),
        works: works
            .iter()
            .map(|work| record::StoredWork {
                name: work.name(),
                unit: work.unit(),
                syscalls_per_op: work.syscalls_per_op(),
                sample_ms: work.has_length().then(|| plan.sample_ms().unwrap_or(start_ms)),
                start_scale: noise.start_scales(&work.name()),
                on_curve: work.on_curve(),
            })
            .collect(),
        pilot_chooses_scheme: plan.interleave() == Interleave::PilotChooses,
        takes_old_pairs: comparison.is_some_and(|plan| plan.takes_old_pairs),
        origin: Some(to_json(&origin)),
    };
    let begun = store.in_one_commit(|| {
        let id = store.begin(&header)?;
        store.set_naming(&id, &common.naming)?;
        if let Some(limit) = comparison.and_then(|comparison| comparison.fail_above) {
            store.set_fail_above(&id, limit)?;
        }
        let mut all = common.warnings.iter().chain(&warnings);
        all.try_for_each(|warning| store.add_warning(&id, warning))?;
        Ok(id)
    });
    let id = begun.map_err(|error: weigh_store::Error| error.to_string())?;
    let start_scales = header.works.iter().map(|work| work.start_scale).collect();
    let earlier = PriorSessions::none(plan.sets());
    Ok(Begun { id, request, start_scales, planned_pairs, earlier, origin })
}

fn to_json(origin: &Provenance) -> String {
    serde_json::to_string(origin).expect("plain data with text keys")
}

/// Returns true if a warning about the machine concerns these arms. A warning about auditing does not if an
/// arm is audited: the report then states the audit state of the baseline.
fn is_affected_by(request: &Request, treatments: &[Named], warning: &Warning) -> bool {
    let is_audit = |named: &Named| named.kinds.iter().any(|kind| kind.name == "audit");
    let knows = check::is_about_auditing(warning) && treatments.iter().any(is_audit);
    request.is_affected_by(warning) && !knows
}

/// Opens a stored experiment again, if all is as it was.
fn resume(
    (stored, origin): (&Stored, &Provenance),
    mut request: Request,
    treatments: &[Named],
    place: &WhatIsMeasured,
    station: &Station,
    store: &Store,
    progress_sink: &mut dyn ProgressSink,
) -> Result<Begun, String> {
    let header = &stored.header;
    let (machine, mut warnings) = station.look(store.directory());
    // Where arms are boots, they prove what is the same.
    let are_boots = are_boots(&request.common.arms);
    let differences = match are_boots {
        true => Vec::new(),
        false => check_machine(&header.machine, &machine)?,
    };
    origin.check_contents(treatments, &station.place.executable)?;
    if !header.works.iter().map(|work| work.name.clone()).eq(place.works.iter().map(Work::name)) {
        return Err("its suites have different workloads in this version of weigh".into());
    }
    let earlier = PriorSessions::of(stored);
    let budget_s = match are_boots {
        true => header.budget_s,
        false => (earlier.elapsed + request.common.budget).as_secs_f64(),
    };
    let session = store
        .reopen(&stored.id, budget_s, header.sets.max(earlier.sets.end))
        .map_err(|error| error.to_string())?;
    let so_far = match request.plan {
        Plan::Net(_) => format::plural(sweeps_of(stored), "sweep"),
        _ => format::plural(gather(stored).iter().map(|row| row.series.len()).sum(), "pair"),
    };
    progress_sink
        .announce(&format!("Continuing {}: session {session}, after {so_far}.", stored.id));
    warnings.retain(|warning| {
        let is_new = !are_boots && !stored.warnings.contains(warning);
        is_new && is_affected_by(&request, treatments, warning)
    });
    for difference in &differences {
        progress_sink.announce(&format!("Changed since the experiment began: {difference}."));
    }
    warnings.extend(differences.into_iter().map(|what| Warning::MachineDiffers { what }));
    let warned = store.in_one_commit(|| {
        let mut all = warnings.into_iter().map(|warning| warning.in_session(session));
        all.try_for_each(|warning| store.add_warning(&stored.id, &warning))
    });
    warned.map_err(|error: weigh_store::Error| error.to_string())?;
    let start_scales = header.works.iter().map(|work| work.start_scale).collect();
    let planned_pairs = header.planned_pairs;
    if let Plan::Compare(comparison) = &mut request.plan {
        comparison.fail_above = comparison.fail_above.or(stored.fail_above);
    }
    let (id, origin) = (stored.id.clone(), origin.clone());
    Ok(Begun { id, request, start_scales, planned_pairs, earlier, origin })
}

/// Returns the command line that measures the same again, by the same build.
fn again(common: &Common, executable: &Executable) -> String {
    match &executable.foreign {
        Some(file) => {
            let file = command_line([&*file.to_string_lossy()]);
            format!("{VARIABLE}={file} {}", common.again)
        }
        None => common.again.clone(),
    }
}
