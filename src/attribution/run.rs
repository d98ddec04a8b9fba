//! `weigh rules` from the files to the figures: which steps there are, and in which order.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use super::assemble::{Measured, assemble};
use super::attribute::{Question, attribute};
use super::bridge::Unit;
use super::levels::Levels;
use super::matched;
use super::matching::matches;
use super::mix::Mix;
use super::operation::Operation;
use super::pools::Pools;
use super::session::Session;
use super::{exec_calls, keys, refused, rewritten};
use crate::audit::rule::Rule;
use crate::audit::rule_fields::{Action, Decoded, List};
use crate::audit::rule_set::RuleSet;
use crate::experiment::fitness;
use crate::machine::Facts;
use crate::machine::file_system::file_system;
use crate::profile::record::Profile;
use crate::report::rules::{Metric, RuleReport};
use crate::treatment::audit::configuration::Shared;
use crate::treatment::audit::{BASELINE_LOGINUID, system};
use crate::treatment::claim::{AUDIT, claim, only_one_at_a_time};
use crate::treatment::guard::{Guard, restore_left_behind};
use crate::treatment::{Bench, Error};
use crate::workload::kernels::Kernels;

/// Counts are nearly the same each time.
const TIME_TO_COUNT: Duration = Duration::from_secs(15);
const TIME_BY_THE_CLOCK: Duration = Duration::from_secs(50);

/// What is asked.
pub struct Request {
    pub paths: Vec<PathBuf>,
    pub top: usize,
    pub profile: Option<Profile>,
    /// The command line that asks it again.
    pub command: String,
    /// About how long attributing may take; by default as long as the metric needs.
    pub time: Option<Duration>,
}

/// What came of it.
#[derive(Default)]
pub struct Done {
    /// `None` where it was ended before there was anything to tell.
    pub report: Option<RuleReport>,
    pub is_cut_short: bool,
    /// What could not be put back.
    pub left: Option<String>,
}

pub type Progress<'a> = &'a mut dyn FnMut(&str, f64);

/// Weighs every rule of these files.
///
/// # Errors
/// A sentence; the system is as it was before.
pub fn weigh(
    request: &Request,
    interrupted: &Arc<AtomicBool>,
    progress: Progress,
) -> Result<Done, String> {
    let set = RuleSet::read(&request.paths)?;
    refused::too_many(&set)?;
    put_back_what_was_left(progress)?;
    let _alone: File = only_one_at_a_time()?;
    let claims = vec![claim(AUDIT)?];
    let mut guard = Guard::arm(claims).map_err(|error| error.to_string())?;
    let measured = measure(request, &set, interrupted, &mut guard, progress);
    let left = guard.disarm().err();
    match measured {
        Ok(measured) => {
            let is_cut_short = measured.is_cut_short;
            Ok(Done { report: Some(assemble(request, measured)), is_cut_short, left })
        }
        Err(Error::Interrupted) => Ok(Done { report: None, is_cut_short: true, left }),
        Err(error) => Err([Some(error.to_string()), left]
            .into_iter()
            .flatten()
            .collect::<Vec<_>>()
            .join("\n")),
    }
}

fn put_back_what_was_left(progress: Progress) -> Result<(), String> {
    for one in restore_left_behind(Path::new("/"))
        .map_err(|error| format!("the state directory: {error}"))?
    {
        one.result
            .map_err(|problem| format!("an earlier experiment left this behind: {problem}"))?;
        progress("putting back what an earlier experiment, now dead, had changed", 0.0);
    }
    Ok(())
}

fn measure(
    request: &Request,
    set: &RuleSet,
    interrupted: &Arc<AtomicBool>,
    guard: &mut Guard,
    progress: Progress,
) -> Result<Measured, Error> {
    let started = Instant::now();
    let scratch = guard.scratch_directory().map_err(system)?;
    let kernels = Kernels::unpack(&scratch).map_err(Error::Unavailable)?;
    let bench =
        Bench { kernels: &kernels, scratch: &scratch, interrupted, audit: Shared::default() };
    let machine = fitness::look(Some(file_system(&scratch)), &std::env::temp_dir());
    let mut session = Session::begin(&bench, guard, set, progress)?;
    let result = with(request, &mut session, &bench, machine, started, progress);
    let ended = session.end();
    result.and_then(|measured| ended.map(|()| measured))
}

/// The rules in the order in which they are weighed.
struct Ready {
    rules: Vec<Rule>,
    /// Copies that match nobody in the place of those that match.
    weighed: Vec<Rule>,
    /// Of these.
    decoded: Vec<Decoded>,
    matches: Vec<Vec<Operation>>,
    /// Whether the order is that of the files, as it matters to the kernel.
    order_matters: bool,
}

fn prepare(session: &mut Session, progress: Progress) -> Result<Ready, Error> {
    let rules = session.rules();
    if rules.is_empty() {
        return Err(Error::Unavailable(refused::no_rule(session)));
    }
    session.bridge.ledger.take(rules.clone())?;
    session.bridge.calibrate()?;
    session.bridge.prove_clean()?;
    let decoded: Vec<Decoded> = rules.iter().map(Rule::decode).collect();
    let matches = matches(&mut session.bridge, &decoded, progress)?;
    let weighed = with_copies(session, &rules, &matches)?;
    let decoded: Vec<Decoded> = weighed.iter().map(Rule::decode).collect();
    let order_matters =
        decoded.iter().any(|rule| rule.list == List::Exit && rule.action == Action::Never);
    let order = order(&decoded, order_matters);
    let in_order = |rules: &[Rule]| order.iter().map(|&rule| rules[rule].clone()).collect();
    Ok(Ready {
        rules: in_order(&rules),
        weighed: in_order(&weighed),
        decoded: order.iter().map(|&rule| decoded[rule].clone()).collect(),
        matches: order.iter().map(|&rule| matches[rule].clone()).collect(),
        order_matters,
    })
}

fn with(
    request: &Request,
    session: &mut Session,
    bench: &Bench,
    (machine, warnings): (Facts, Vec<String>),
    started: Instant,
    progress: Progress,
) -> Result<Measured, Error> {
    let Ready { rules, weighed, decoded, matches, order_matters } = prepare(session, progress)?;
    session.bridge.ledger.take(weighed.clone())?;
    let all: Vec<usize> = (0..rules.len()).collect();
    session.bridge.ledger.load(&all)?;
    session.bridge.calibrate()?;
    let exec = Mix::of_calls(exec_calls::count(bench).map_err(system)?);
    let time = request.time.unwrap_or(match session.metric {
        Metric::Instructions => TIME_TO_COUNT,
        Metric::Nanoseconds => TIME_BY_THE_CLOCK,
    });
    let mix = request.profile.as_ref().map_or_else(Mix::plain, Mix::of_profile);
    let question = Question {
        pools: Pools::new(decoded.iter().map(keys::keys).collect()),
        order_matters,
        weights: decoded.iter().map(|rule| mix.weights_for(rule)).collect(),
        top: request.top,
        time,
    };
    let levels = Levels::weigh(&mut session.bridge, &all, Unit::Metric)?;
    let elapsed = match session.metric {
        Metric::Instructions => Some(Levels::weigh(&mut session.bridge, &all, Unit::Nanoseconds)?),
        Metric::Nanoseconds => None,
    };
    let attribution = attribute(&mut session.bridge, &question, progress)?;
    let mut measured = Measured {
        levels,
        elapsed,
        attribution,
        mix,
        exec,
        weights: question.weights,
        rules,
        decoded,
        matches,
        matched: Vec::new(),
        rewrites: Vec::new(),
        not_measured: Vec::new(),
        lines: session.lines.clone(),
        host: session.host.sentence(),
        host_rules: session.host_rules(),
        metric: session.metric,
        machine,
        warnings,
        is_cut_short: false,
        elapsed_s: 0.0,
    };
    if let Some(error) = measured.attribution.failure.take() {
        measured.missing("what leaving out more of the rules tells", Err::<(), _>(error))?;
    }
    let rest = prove(session)
        .and_then(|()| finish(session, bench, &weighed, &mut measured, time, progress));
    match rest {
        Err(Error::Interrupted) => measured.is_cut_short = true,
        other => {
            other?;
            measured.is_cut_short = measured.attribution.is_cut_short;
        }
    }
    measured.elapsed_s = started.elapsed().as_secs_f64();
    Ok(measured)
}

/// Nothing is told of rules that were not in force, or of a baseline that was audited.
fn prove(session: &mut Session) -> Result<(), Error> {
    session.bridge.verify()?;
    session.bridge.ledger.load(&[])?;
    session.bridge.prove_clean()
}

/// What can be left out where the user has no more patience, and where it goes wrong.
///
/// # Errors
/// [`Error::Interrupted`] alone.
fn finish(
    session: &mut Session,
    bench: &Bench,
    weighed: &[Rule],
    measured: &mut Measured,
    time: Duration,
    progress: Progress,
) -> Result<(), Error> {
    let mut matched = Vec::new();
    let result = matched::weigh(session, measured, &mut matched, progress);
    measured.matched = matched;
    measured.missing("what more of the rules cost where they match", result)?;
    rewritten::weigh(session, bench, weighed, measured, time, progress)
}

/// A rule that matches an operation is weighed by a copy, which evaluates all that it does and makes
/// no record.
pub(super) fn with_copies(
    session: &mut Session,
    rules: &[Rule],
    matches: &[Vec<Operation>],
) -> Result<Vec<Rule>, Error> {
    let places: Vec<usize> = (0..rules.len()).filter(|rule| !matches[*rule].is_empty()).collect();
    let copies: Option<Vec<Rule>> =
        places.iter().map(|rule| rules[*rule].for_nobody(BASELINE_LOGINUID)).collect();
    let copies = copies.ok_or_else(|| {
        Error::Unavailable("a rule with 64 conditions cannot be weighed: it matches us".into())
    })?;
    let mut weighed = rules.to_vec();
    for (place, copy) in places.iter().zip(session.admit(&copies)?) {
        weighed[*place] = copy;
    }
    Ok(weighed)
}

/// By block, so that one is loaded and unloaded at the end of the list, where the order does not
/// matter to the kernel.
fn order(decoded: &[Decoded], matters: bool) -> Vec<usize> {
    if matters {
        return (0..decoded.len()).collect();
    }
    Pools::new(decoded.iter().map(keys::keys).collect()).blocks.into_iter().flatten().collect()
}
