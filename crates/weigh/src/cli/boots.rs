//! `weigh compare boot:…`: this machine is booted again and again, and this program goes on after each boot
//! where the samples that are stored say that it was.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use clap::Args;

use super::ask::ask;
use super::progress_sink::Terminal;
use super::{Context, ERROR, INTERRUPTED, exit_status, output};
use paired::judge::MIN_PAIRS;
use weigh_engine::boots::{due, in_next_boot};
use weigh_engine::provenance::Provenance;
use weigh_engine::request::Request;
use weigh_engine::session::{Done, execute};
use weigh_host::interruption::listen_for_signals;
use weigh_host::machine::{self, watchdog};
use weigh_model::format;
use weigh_model::ids::ExperimentId;
use weigh_model::printable;
use weigh_model::record::Stored;
use weigh_model::result::summary::State;
use weigh_model::result::warning::{BOOT_FAILED, Warning};
use weigh_model::result::work_name::{NET, WorkName};
use weigh_store::Store;
use weigh_treatment::boot::hook::Hook;
use weigh_treatment::boot::reboot::{WayDown, go_down};
use weigh_treatment::boot::state::{is_in_one, seconds_now};
use weigh_treatment::boot::{
    BootEntry, BootState, Mechanism, NAME, NormalBoot, end, entry_of, may_boot, normal::here,
    other, other_system, services_stop_within,
};
use weigh_treatment::digest::digest_of_bytes;
use weigh_workload::executable;

/// A boot that comes up otherwise so often, one after the other, ends the experiment. A power cut is no fault
/// of the arm, and cannot be told from one.
const MOST_FAILURES: usize = 2;

/// Begins an experiment of boots: says what it does, asks, and has the machine go down for the first.
///
/// # Errors
/// A sentence, where it cannot be, or is not wanted: nothing was changed.
pub fn begin(
    request: &Request,
    mechanism: Mechanism,
    is_meant: bool,
    context: &Context,
) -> Result<u8, String> {
    check(request)?;
    may_boot()?;
    if let Some(state) = BootState::read()? {
        return Err(format!(
            "experiment {} boots this machine already: `weigh restore` ends it",
            state.experiment
        ));
    }
    if is_in_one() {
        return Err("this boot was made for an experiment that is over: reboot first".into());
    }
    let begun = bring_other(request, mechanism, context)
        .and_then(|device| set_out(request, mechanism, is_meant, context, device));
    // Where the machine goes down, nothing comes back to here.
    let forgotten = other::forget();
    begun.and_then(|code| forgotten.map(|()| code))
}

/// Copies the kernel of the other system, if an arm boots one. Gives its device.
fn bring_other(
    request: &Request,
    mechanism: Mechanism,
    context: &Context,
) -> Result<Option<String>, String> {
    let Some(options) = other_system(&request.common.arms)? else { return Ok(None) };
    if mechanism != Mechanism::Kexec {
        return Err("another system (root=) boots by kexec: leave out --reboot-by".into());
    }
    other::bring(&options, &context.database()?)?;
    Ok(options.root)
}

/// Says what it does, asks, and has the machine go down.
fn set_out(
    request: &Request,
    mechanism: Mechanism,
    is_meant: bool,
    context: &Context,
    device: Option<String>,
) -> Result<u8, String> {
    let normal = NormalBoot::read()?;
    for label in &request.common.arms {
        mechanism.try_out(&entry_of(label, &normal)?)?;
    }
    let hook = Hook::find()?;
    output::note(&plan(request, &normal, mechanism, &hook)?);
    if !is_meant {
        ask(
            "this machine reboots many times, and services and sessions on it end each time",
            "--yes",
        )?;
    }
    let store = context.open_store()?;
    if store.is_of_another_user() {
        return Err(
            "after a boot, root opens only a database of its own: name one in a directory of \
                    root's with --database FILE"
                .into(),
        );
    }
    let interrupted = listen_for_signals()?;
    let mut progress_sink = terminal(context, request.plan.margin());
    let done = execute(request, &store, &mut progress_sink, &interrupted)?;
    if done.state != State::Running {
        return tell(&done, &store);
    }
    let stored = done.load(&store)?;
    let began_s = seconds_now();
    let due = due(&stored, std::time::Duration::ZERO)?.ok_or("no boot is due")?;
    let state = BootState {
        experiment: done.id.clone(),
        database: std::path::absolute(context.database()?).map_err(|error| error.to_string())?,
        origin: digest_of_bytes(stored.header.origin.as_deref().unwrap_or_default()),
        normal,
        mechanism,
        other: device,
        began_s,
        due,
        boots: 1,
        failures: 0,
        boot_id: boot_id()?,
    };
    let gone = state
        .write()
        .and_then(|()| hook.install(&state.database))
        .and_then(|()| match &state.other {
            Some(device) => other::install(device, &state.normal),
            None => Ok(()),
        })
        .and_then(|()| boot(&state, request));
    gone.map(|()| 0).map_err(|problem| given_up(&store, &done.id, problem))
}

fn terminal(context: &Context, margin: f64) -> Terminal {
    Terminal::of_pairs(context.color, margin * 100.0, 1)
}

/// Refuses a request that boots cannot compare.
fn check(request: &Request) -> Result<(), String> {
    let only = |what: &str| Err(format!("with boots of this machine there is only {what}"));
    if request.common.arms.len() != 2 {
        return only(
            "one treatment and its baseline: run one experiment per treatment, or compare two boots \
             (`weigh compare boot:ONE --base boot:OTHER`)",
        );
    }
    let plan = &request.plan;
    let has_lines = plan.comparison().is_some_and(|comparison| comparison.around.has_lines());
    if plan.command().is_some() || has_lines || plan.profiler().is_some() {
        return only(
            "what -w names: a command, --setup, --profiler and their like are not started by a boot",
        );
    }
    let names = plan.workloads().map_or(&[][..], |workloads| &workloads.names);
    if WorkName::names_of(names)?.iter().any(|name| name.starts_with(NET)) {
        return only(
            "workloads that one boot measures: a pair of grids measures each cell in both arms, back to back",
        );
    }
    let has_beside = plan.workloads().is_some_and(|workloads| !workloads.beside.is_empty());
    if !plan.fixtures().is_empty() || plan.far_hosts().is_some() || has_beside {
        return only("what this machine has by itself: no --fixture, --beside, --active");
    }
    if let Some((variable, file)) = executable::named_by_user() {
        return Err(format!(
            "the workloads of {} are not in a boot that comes later: unset {variable}",
            file.display()
        ));
    }
    match request.plan.sets() {
        1 => request.treatments().map(drop),
        _ => only("one set"),
    }
}

/// Describes the coming steps, for the person who has to agree.
fn plan(
    request: &Request,
    normal: &NormalBoot,
    mechanism: Mechanism,
    hook: &Hook,
) -> Result<String, String> {
    let entries = request.common.arms.iter().map(|label| {
        let BootEntry { kernel, line, .. } = entry_of(label, normal)?;
        Ok(format!("  {label}: {} with `{line}`\n", kernel.image.display()))
    });
    let entries: String = entries.collect::<Result<_, String>>()?;
    let rounds = request.plan.design().fixed_pairs.unwrap_or(MIN_PAIRS);
    let pairs = format::plural(rounds, "pair");
    let budget = format::clock(request.common.budget.as_secs_f64());
    Ok(format!(
        "This machine is to boot {}:\n{entries}\
         Two boots are a pair, in an order by chance. A verdict takes {pairs} or more, {} boots; \
         after {budget} no other pair is begun. At the end the normal entry is booted.\n\
         After each boot {} has weigh go on; it is removed at the end.\n\
         A boot that panics resets the machine after 10 s, and the normal entry comes up. {} Where a boot \
         comes up otherwise, it is tried once more, and then the experiment ends; the report says so.\n\
         To end it: `sudo weigh restore`, in any of these boots. The report: `weigh show`.",
        mechanism.sentence(),
        2 * rounds,
        hook.shown(),
        watchdog::sentences(mechanism.keeps_watchdog().then(services_stop_within), hook.is_early()),
    ))
}

/// Has the machine go down into the boot that is due, or into one that leads there: the kernel of now may
/// stop the watchdog as it goes down, and that of the next boot does not.
fn boot(state: &BootState, request: &Request) -> Result<(), String> {
    let label = &request.common.arms[state.due.arm];
    let is_guarded = state.mechanism.keeps_watchdog();
    if is_guarded && watchdog::stops_with_the_kernel() && !state.is_on_the_way() {
        let entry = entry_of(NAME, &state.normal)?;
        state.mechanism.load(&entry, &state.mark_of_way())?;
        output::note(&format!(
            "Going down: the normal kernel, which then leaves the watchdog on for boot {}.",
            state.boots
        ));
        return go_down(state.mechanism.way_down());
    }
    let entry = entry_of(label, &state.normal)?;
    state.mechanism.load(&entry, &state.mark())?;
    output::note(&format!(
        "Going down: boot {} of {}, `{label}`, for pair {}.",
        state.boots,
        state.experiment,
        state.due.round.0 + 1
    ));
    let _watchdog = is_guarded.then(|| watchdog::set(services_stop_within()));
    go_down(state.mechanism.way_down())
}

/// Nothing boots any more; the experiment has failed for this reason.
fn given_up(store: &Store, id: &ExperimentId, problem: String) -> String {
    let stored = store.finish(id, State::Failed, Some(&problem)).map_err(|error| error.to_string());
    let ended = end().map(drop);
    [Err(problem), stored, ended].into_iter().filter_map(Result::err).collect::<Vec<_>>().join("\n")
}

fn tell(done: &Done, store: &Store) -> Result<u8, String> {
    let is_as_before = output::tell_what_is_left(done.left.as_deref());
    let stored = done.load(store)?;
    if let Some(reason) = &stored.failure {
        output::problem(&format!("the experiment failed: {}", printable::line(reason)));
    }
    if done.is_stored() {
        output::note(&format!("Experiment {} is over: weigh show {}", done.id, done.id));
    }
    let status = match done.state {
        State::Failed => ERROR,
        State::Interrupted => INTERRUPTED,
        _ => 0,
    };
    Ok(exit_status(is_as_before, status))
}

/// Go on with an experiment of boots, after one
#[derive(Debug, Args)]
pub struct BootArgs {
    /// Only sets the watchdog: what goes on is started when all else is up.
    #[arg(long = "early")]
    is_early: bool,
}

impl BootArgs {
    pub fn run(self, context: &Context) -> Result<u8, String> {
        if self.is_early {
            if is_in_one() {
                watchdog::set_early();
            }
            return Ok(0);
        }
        let state = BootState::read();
        if let Ok(Some(state)) = &state
            && state.boot_id == boot_id()?
        {
            // Its watchdog may be set for the way down.
            return Err(format!(
                "this is the boot in which boot {} was to begin, and the machine did not go down",
                state.boots
            ));
        }
        watchdog::take_over();
        // From here on nobody else brings the machine back.
        let done = match state {
            Ok(None) => return Ok(0),
            Ok(Some(state)) => after_boot(&state, context),
            Err(problem) => Err(problem),
        };
        match done {
            Ok(Some(code)) => go_back(code),
            Ok(None) => Ok(INTERRUPTED),
            Err(problem) => {
                output::problem(&problem);
                go_back(ERROR)
            }
        }
    }
}

/// Goes on with an experiment whose machine has booted. Gives the exit status where no other boot is due, and
/// none where `weigh restore` has ended it.
fn after_boot(state: &BootState, context: &Context) -> Result<Option<u8>, String> {
    let store = existing(&here(&state.database))?;
    let gone_on = listen_for_signals()
        .and_then(|interrupted| go_on(state, &store, context, &interrupted).map(Some));
    gone_on.or_else(|problem| {
        // Where it was taken back meanwhile, what was missed then is no failure.
        if state.is_due() != Ok(false) {
            return Err(given_up(&store, &state.experiment, problem));
        }
        if let Err(error) = store.finish(&state.experiment, State::Interrupted, None) {
            output::problem(&error.to_string());
        }
        output::note("weigh restore has ended the experiment: this boot stays as it is.");
        Ok(None)
    })
}

/// The database that an experiment began in. A new one in its place would say nothing of it, and hide it
/// where its file system is mounted later.
fn existing(database: &Path) -> Result<Store, String> {
    let found = Store::read(database).map_err(|error| error.to_string())?;
    found.ok_or_else(|| {
        format!("the database {} is not there in this boot: is it mounted?", database.display())
    })
}

/// Loads the stored experiment, and checks that it is the one that measuring began with.
fn its_own(state: &BootState, store: &Store) -> Result<Stored, String> {
    let stored = store.load(&state.experiment).map_err(|error| error.to_string())?;
    match digest_of_bytes(stored.header.origin.as_deref().unwrap_or_default()) == state.origin {
        true => Ok(stored),
        false => Err(format!(
            "what experiment {} measures was changed in {} since it began",
            state.experiment,
            state.database.display()
        )),
    }
}

/// No other boot is due, or none can be: the machine goes back to its normal entry.
fn go_back(code: u8) -> Result<u8, String> {
    let ended = end();
    if is_in_one() {
        if let Err(left) = &ended {
            output::problem(left);
        }
        output::note("Going down: the normal entry.");
        go_down(WayDown::Reset)?;
    }
    ended.map(|_| code)
}

/// Measures in this boot what it is for, and has the machine go down for the next. Gives the exit status
/// where none is due.
fn go_on(
    state: &BootState,
    store: &Store,
    context: &Context,
    interrupted: &Arc<AtomicBool>,
) -> Result<u8, String> {
    let request = Provenance::stored(&its_own(state, store)?)?.request;
    if state.is_on_the_way() {
        let here = BootState { boot_id: boot_id()?, ..state.clone() };
        here.write()?;
        return boot(&here, &request).map(|()| 0);
    }
    let failures = match state.here() {
        Some(_) => 0,
        None => {
            tell_failure(state, &request, store)?;
            state.failures + 1
        }
    };
    let mut progress_sink = terminal(context, request.plan.margin());
    // Time goes by: a boot that was due may be none any more, and then it is over.
    let due = loop {
        let stored = its_own(state, store)?;
        let done = in_next_boot(&stored, store, &mut progress_sink, interrupted)?;
        if done.state != State::Running {
            return tell(&done, store);
        }
        if !state.is_due()? {
            return Err("nothing is due any more".into());
        }
        let stored = done.load(store)?;
        if let Some(due) = due(&stored, state.elapsed())? {
            break due;
        }
    };
    let boot_id = boot_id()?;
    let next = BootState { due, boots: state.boots + 1, failures, boot_id, ..state.clone() };
    next.write()?;
    boot(&next, &request).map(|()| 0)
}

fn boot_id() -> Result<String, String> {
    machine::boot_id().map_err(|error| error.to_string())
}

/// Reports that a boot other than the due one came up.
fn tell_failure(state: &BootState, request: &Request, store: &Store) -> Result<(), String> {
    let label = &request.common.arms[state.due.arm];
    let what = format!("boot {} (`{label}`) {BOOT_FAILED}", state.boots);
    output::problem(&what);
    if state.failures + 1 >= MOST_FAILURES {
        return Err(format!(
            "{what}. This happened {MOST_FAILURES} times in succession: check that the kernel boots \
             on this machine"
        ));
    }
    let warning = Warning::BootFailed { boot: state.boots, arm: label.clone() };
    store.add_warning(&state.experiment, &warning).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_database_that_is_not_there_after_a_boot_is_not_made_anew() {
        let directory = tempfile::tempdir().unwrap();
        let database = directory.path().join("data/weigh.db");
        let problem = existing(&database).err().unwrap();
        assert!(problem.contains("data/weigh.db is not there in this boot"), "{problem}");
        assert!(!directory.path().join("data").exists());
        Store::open(&database).unwrap();
        assert!(existing(&database).is_ok());
    }
}
