//! Which audit rule costs what: `weigh rules` from the files to the figures.
//!
//! Rules are put on and taken off while a process of ours does the same operations over and over.
//! Everything is additive: the rules that a host had stay, and only processes of ours are measured. A rule
//! that would match them is measured by a non-matching clone, which asks for a login uid that nobody has,
//! besides; what it takes where it does match is measured by itself.

mod assemble;
mod attribute;
mod baseline_levels;
mod cost_class;
mod cost_meter;
mod loaded_rules;
mod match_cost;
mod match_detection;
mod measurements;
mod mix;
mod operation;
mod outliers;
pub mod prober;
pub mod prober_process;
mod rewrites;
mod rig;
mod session;

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use assemble::assemble;
use attribute::{LEAVING_OUT_SHARE, attribute};
use baseline_levels::BaselineLevels;
use cost_class::{CostClasses, Weights, cost_classes};
use cost_meter::ProgressFn;
use loaded_rules::RuleId;
use match_cost::measure_matches;
use match_detection::{detect_matches, non_matching_clones};
use measurements::{MeasuredRule, Question, RuleMeasurements};
use mix::Mix;
use rewrites::measure_rewrites;
use rig::CostUnit;
use session::RulesSession;

use linux_audit::rule_fields::{Action, RuleList};
use linux_audit::rule_set::RuleSet;
use weigh_host::machine::pace::at_load;
use weigh_host::undo::claim::AUDIT;
use weigh_model::facts::Facts;
use weigh_model::format;
use weigh_model::profile::SyscallProfile;
use weigh_model::result::rules::{CostMetric, NotMeasured, RuleReport};
use weigh_model::result::warning::Warning;
use weigh_station::{OpeningNews, Station};
use weigh_treatment::audit::system;
use weigh_treatment::{ApplyContext, TreatmentError};

/// Each is left out in turn, which takes the longer the more there are: 350 take 40 s.
const MOST_RULES: usize = 2000;
/// Counts are nearly the same each time.
const TIME_TO_COUNT: Duration = Duration::from_secs(15);
const TIME_BY_THE_CLOCK: Duration = Duration::from_secs(50);

/// Loading the rules, finding those that match, and rewrites take at most this and a time for each rule on an
/// idle machine.
const BESIDES: Duration = Duration::from_secs(10);
const BESIDES_PER_RULE: Duration = Duration::from_millis(30);

/// So many rules are named that have no second measurement.
const MOST_NAMED: usize = 8;

pub struct RulesRequest {
    pub paths: Vec<PathBuf>,
    pub top: usize,
    pub profile: Option<SyscallProfile>,
    /// The command line that asks it again.
    pub command: String,
    /// About how long attributing may take; by default as long as the metric needs.
    pub time: Option<Duration>,
    /// How long to wait for another experiment on this host; not at all without.
    pub wait: Option<Duration>,
}

#[derive(Default)]
pub struct RulesOutcome {
    /// `None` where it was ended before there was anything to tell.
    pub report: Option<RuleReport>,
    pub is_cut_short: bool,
    /// Description of anything that could not be restored.
    pub left: Option<String>,
}

/// Reads the rules to measure.
///
/// # Errors
/// A sentence about a file that cannot be read or has too many rules.
pub fn read_rules(request: &RulesRequest) -> Result<RuleSet, String> {
    let set = RuleSet::read(&request.paths)?;
    refuse_too_many(&set)?;
    Ok(set)
}

/// Measures every rule of these files. `announce` is told what was put back, and who is waited for.
///
/// # Errors
/// A sentence; the system is as it was before.
pub fn measure_rules(
    request: &RulesRequest,
    interrupted: &Arc<AtomicBool>,
    announce: &mut dyn FnMut(&str),
    progress: ProgressFn,
) -> Result<RulesOutcome, String> {
    let set = read_rules(request)?;
    let mut tell = |news: OpeningNews| announce(news.sentence());
    let mut station = Station::open([AUDIT], request.wait, &mut tell, |_| Ok(()))?;
    let besides = at_load(BESIDES + BESIDES_PER_RULE * set.rules() as u32);
    announce(&format!(
        "Loading {}, finding those that match and trying cheaper rewrites take up to {} at the present load, \
         in addition to --budget.",
        format::plural(set.rules(), "rule"),
        format::clock(besides.as_secs_f64())
    ));
    match measure_in_session(request, (&set, besides), interrupted, &mut station, progress) {
        Ok(measured) => {
            let is_cut_short = measured.is_cut_short;
            let mut report = assemble(&request.command, request.profile.as_ref(), measured);
            report.warnings.extend(station.changed_meanwhile());
            Ok(RulesOutcome { report: Some(report), is_cut_short, left: station.close() })
        }
        Err(TreatmentError::Interrupted) => {
            Ok(RulesOutcome { report: None, is_cut_short: true, left: station.close() })
        }
        Err(error) => Err(station.close_after(error.to_string())),
    }
}

/// When measuring began, and how much longer than its budget it may take.
struct Clock {
    started: Instant,
    besides: Duration,
}

/// The kernel goes through all that are loaded for each one that comes or goes.
fn refuse_too_many(set: &RuleSet) -> Result<(), String> {
    if set.rules() <= MOST_RULES {
        return Ok(());
    }
    Err(format!(
        "these files have {} rules, and the time to weigh them grows with the square of their number: give \
         at most {} at a time; `weigh compare audit:rules=FILE` measures what all of them cost together",
        format::integer(set.rules() as u64),
        format::integer(MOST_RULES as u64)
    ))
}

fn measure_in_session(
    request: &RulesRequest,
    (set, besides): (&RuleSet, Duration),
    interrupted: &Arc<AtomicBool>,
    station: &mut Station,
    progress: ProgressFn,
) -> Result<RuleMeasurements, TreatmentError> {
    let clock = Clock { started: Instant::now(), besides };
    let machine = station.look(&std::env::temp_dir());
    let (context, guard) = station.context(interrupted);
    let mut session = RulesSession::begin(&context, guard, set, progress)?;
    let result = measure_set(request, &mut session, &context, machine, clock, progress);
    let ended = session.end();
    result.and_then(|measured| ended.map(|()| measured))
}

/// The rules in the order in which they are measured.
struct Prepared {
    rules: Vec<MeasuredRule>,
    classes: CostClasses,
    /// True if the rules are in the order of the files, as that order matters to the kernel.
    order_matters: bool,
}

fn prepare(session: &mut RulesSession, progress: ProgressFn) -> Result<Prepared, TreatmentError> {
    let rules = session.rules();
    if rules.is_empty() {
        return Err(TreatmentError::Unavailable(session.why_no_rule()));
    }
    let ids = session.rig.rules.admit(rules.clone());
    session.rig.calibrate()?;
    session.rig.prove_clean()?;
    let mut matches = detect_matches(&mut session.rig, &ids, progress)?;
    let clones = non_matching_clones(session, &matches)?;
    let mut measured = Vec::with_capacity(rules.len());
    for (rule, id) in rules.into_iter().zip(ids) {
        let measured_as = clones.get(&id).copied().unwrap_or(id);
        let decoded = session.rig.rules.rule(measured_as).decode();
        let matches = matches.remove(&id).unwrap_or_default();
        measured.push(MeasuredRule { rule, id, measured_as, decoded, matches, matched: None });
    }
    let classes = measured.iter().map(|rule| (rule.measured_as, cost_classes(&rule.decoded)));
    let classes = CostClasses::new(classes);
    let is_exemption = |rule: &MeasuredRule| {
        rule.decoded.list == RuleList::Exit && rule.decoded.action == Action::Never
    };
    let order_matters = measured.iter().any(is_exemption);
    if !order_matters {
        // By block, so that one is loaded and unloaded at the end of the list.
        measured.sort_by_key(|rule| classes.block_of(rule.measured_as));
    }
    Ok(Prepared { rules: measured, classes, order_matters })
}

fn measure_set(
    request: &RulesRequest,
    session: &mut RulesSession,
    context: &ApplyContext,
    (machine, warnings): (Facts, Vec<Warning>),
    clock: Clock,
    progress: ProgressFn,
) -> Result<RuleMeasurements, TreatmentError> {
    let Prepared { rules, classes, order_matters } = prepare(session, progress)?;
    let all: Vec<RuleId> = rules.iter().map(|rule| rule.measured_as).collect();
    session.rig.rules.load(&all)?;
    session.rig.calibrate()?;
    let exec = Mix::of_calls(prober::count_exec_calls(context).map_err(system)?);
    let time = request.time.unwrap_or(match session.metric {
        CostMetric::Instructions => TIME_TO_COUNT,
        CostMetric::Nanoseconds => TIME_BY_THE_CLOCK,
    });
    let mix = request.profile.as_ref().map_or_else(Mix::plain, Mix::of_profile);
    let weights: Weights =
        rules.iter().map(|rule| (rule.measured_as, mix.weights_for(&rule.decoded))).collect();
    let levels = BaselineLevels::measure(&mut session.rig, &all, CostUnit::Metric, progress)?;
    let elapsed = match session.metric {
        CostMetric::Instructions => {
            Some(BaselineLevels::measure(&mut session.rig, &all, CostUnit::Nanoseconds, progress)?)
        }
        CostMetric::Nanoseconds => None,
    };
    let grace = clock.besides / 2;
    let top = request.top;
    let question = Question { rules: all, order_matters, classes, weights, top, time, grace };
    let attribution = attribute(&mut session.rig, &question, progress)?;
    let mut measured = RuleMeasurements {
        rules,
        levels,
        elapsed,
        attribution,
        mix,
        exec,
        weights: question.weights,
        rewrites: Vec::new(),
        not_measured: Vec::new(),
        lines: session.lines.clone(),
        host: session.host.sentence(),
        host_rules: session.host_rules().len(),
        metric: session.metric,
        machine,
        warnings,
        is_cut_short: false,
        elapsed_s: 0.0,
    };
    if let Some(error) = measured.attribution.failure.take() {
        measured.missing("the savings from leaving out more of the rules", Err::<(), _>(error))?;
    }
    name_unchecked(&mut measured);
    let until = clock.started + time + clock.besides;
    let rest = prove(session)
        .and_then(|()| finish(session, context, &mut measured, (time, until), progress));
    match rest {
        Err(TreatmentError::Interrupted) => measured.is_cut_short = true,
        other => {
            other?;
            measured.is_cut_short = measured.attribution.is_cut_short;
        }
    }
    measured.elapsed_s = clock.started.elapsed().as_secs_f64();
    Ok(measured)
}

/// Nothing is reported about rules that were not in force, or with a baseline that was audited.
fn prove(session: &mut RulesSession) -> Result<(), TreatmentError> {
    session.rig.verify()?;
    session.rig.rules.load(&[])?;
    session.rig.prove_clean()
}

/// Measures the parts that may be missing if they fail, or if the user loses patience.
fn finish(
    session: &mut RulesSession,
    context: &ApplyContext,
    measured: &mut RuleMeasurements,
    (time, until): (Duration, Instant),
    progress: ProgressFn,
) -> Result<(), TreatmentError> {
    let result = measure_matches(session, &mut measured.rules, until, progress);
    measured.missing("the cost of a match for more of the rules", result)?;
    measure_rewrites(session, context, measured, (time, until), progress)
}

/// Reports which rules have no second measurement, since the budget is too short for it.
fn name_unchecked(measured: &mut RuleMeasurements) {
    let Some(unchecked) = &measured.attribution.unchecked else { return };
    let is_unchecked = |rule: &&MeasuredRule| unchecked.rules.contains(&rule.measured_as);
    let place = |rule: &MeasuredRule| {
        let line = measured.lines.iter().find(|line| line.rules.contains(&rule.rule))?;
        Some(format!("{}:{}", line.file.display(), line.number))
    };
    let mut places: Vec<String> =
        measured.rules.iter().filter(is_unchecked).filter_map(place).collect();
    let others = places.len().saturating_sub(MOST_NAMED);
    if others > 0 {
        places.truncate(MOST_NAMED);
        places.push(format!("{others} more"));
    }
    let what = format!("second measurement of the rules at {}", places.join(", "));
    // Leaving out begins when the other parts have had their share of the time.
    let needed = unchecked.takes.as_secs_f64() / LEAVING_OUT_SHARE;
    let why = format!(
        "all expensive rules together need at least {} for it; use --budget {}",
        format::seconds(unchecked.takes.as_secs_f64()),
        format::budget(needed)
    );
    measured.not_measured.push(NotMeasured { what, why });
}
