//! Rules written otherwise, and what that saves: both sets are loaded alternately.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use super::attribute::PAIRS_PER_VISIT;
use super::cost_meter::{Differences, MIN_PAIRS, ProgressFn, centre, pairs_in, weighted_sum};
use super::loaded_rules::RuleId;
use super::match_detection::{detect_matches, non_matching_clones};
use super::measurements::{MeasuredRule, RuleMeasurements};
use super::mix::fork_calls;
use super::session::RulesSession;
use linux_audit::rewrite::{Proposal, proposals};
use linux_audit::rule::Rule;
use linux_audit::rule_set::RuleLine;
use weigh_model::format;
use weigh_model::result::rules::Rewrite;
use weigh_treatment::{ApplyContext, TreatmentError};

/// To learn what a pair takes.
const FIRST_PAIRS: usize = 8;
/// Share of the time for attributing that each proposal takes.
const SHARE: f64 = 0.06;
/// Largest number of proposals: two limits, for those that replace rules and those that only add
/// exemptions.
const MOST: [usize; 2] = [4, 2];

/// Measures the most promising proposals and adds them to what was measured; also what could not be, such as
/// proposals that take longer than `until`.
pub fn measure_rewrites(
    session: &mut RulesSession,
    context: &ApplyContext,
    measured: &mut RuleMeasurements,
    (time, until): (Duration, Instant),
    progress: ProgressFn,
) -> Result<(), TreatmentError> {
    let chosen = choose(measured, &session.host_rules());
    // Both sets are loaded in each pair.
    let least = measured.attribution.pair * (FIRST_PAIRS + MIN_PAIRS) as u32 * 2;
    for (done, proposal) in chosen.iter().enumerate() {
        let what = format!("the rewrite \"{}\"", proposal.title);
        let left = until.saturating_duration_since(Instant::now());
        let rewrite = if left < least {
            Err(TreatmentError::Unavailable(format!(
                "it needs {}, more than the time left for rewrites: use fewer rules, or measure on an idle \
                 machine",
                format::seconds(least.as_secs_f64())
            )))
        } else {
            let share = time.mul_f64(SHARE).min(left / (chosen.len() - done) as u32);
            let mut tell =
                |part: f64| progress("rewrites", (done as f64 + part) / chosen.len() as f64);
            measure_rewrite(session, context, measured, (share, proposal), &mut tell)
        };
        let rewrite = measured.missing(&what, rewrite)?;
        measured.rewrites.extend(rewrite);
    }
    Ok(())
}

fn measure_rewrite(
    session: &mut RulesSession,
    context: &ApplyContext,
    measured: &RuleMeasurements,
    (time, proposal): (Duration, &Proposal),
    progress: &mut dyn FnMut(f64),
) -> Result<Rewrite, TreatmentError> {
    progress(0.0);
    let mut new = Vec::new();
    for line in session.admit_lines(context, &proposal.with)? {
        let ids = session.rig.rules.admit(line.rules);
        new.push(NewLine { is_prepended: line.is_prepended, rules: ids });
    }
    let ids: Vec<RuleId> = new.iter().flat_map(|line| line.rules.clone()).collect();
    // What they replace makes no records here either.
    let matches = detect_matches(&mut session.rig, &ids, &mut |_, _| progress(0.0))?;
    let clones = non_matching_clones(session, &matches)?;
    for rule in new.iter_mut().flat_map(|line| &mut line.rules) {
        *rule = clones.get(rule).copied().unwrap_or(*rule);
    }
    let old: Vec<RuleId> = measured.measured_as().collect();
    let rewritten = in_place(proposal, &new, &measured.lines, &measured.rules);
    let begun = Instant::now();
    let mut saving = Differences::default();
    let mut pairs = FIRST_PAIRS;
    while saving.pairs() < pairs {
        let (done, of) = (saving.pairs(), pairs.max(FIRST_PAIRS + MIN_PAIRS));
        progress(done as f64 / of as f64);
        let next = done..(done + PAIRS_PER_VISIT).min(pairs);
        saving.extend(Differences::measure_some(&mut session.rig, &rewritten, &old, next)?);
        if saving.pairs() == FIRST_PAIRS {
            pairs += pairs_in(time.as_secs_f64(), begun.elapsed() / FIRST_PAIRS as u32);
        }
    }
    session.rig.verify()?;
    let mut per_operation = saving.costs();
    let started = [fork_calls(), measured.exec.clone()];
    let started = started.map(|calls| weighted_sum(&per_operation, &calls.weights()));
    per_operation.extend(started);
    Ok(Rewrite {
        title: proposal.title.clone(),
        replaces: proposal.replaces.clone(),
        with_each: proposal.with_each.clone(),
        with: proposal.with.clone(),
        is_first: proposal.is_first,
        gives_up: proposal.gives_up.clone(),
        saving_per_operation: per_operation,
        saving_per_syscall: centre(&saving.mixed(&measured.mix.weights())),
    })
}

/// A line of a rewrite as it is measured.
struct NewLine {
    /// With `-A`.
    is_prepended: bool,
    rules: Vec<RuleId>,
}

/// The list with the new rules, each where the rule stood that it replaces. Behind an exemption, or before
/// it, it would have another cost, and another meaning.
fn in_place(
    proposal: &Proposal,
    new: &[NewLine],
    lines: &[RuleLine],
    rules: &[MeasuredRule],
) -> Vec<RuleId> {
    let kept = rules.iter().map(|rule| rule.measured_as);
    if proposal.is_first {
        return listed(new).into_iter().chain(kept).collect();
    }
    let mut left = new;
    let mut instead: HashMap<RuleId, Vec<RuleId>> = HashMap::new();
    for (line, each) in proposal.replaces.iter().zip(&proposal.with_each) {
        let (here, others) = left.split_at(*each);
        left = others;
        let mut stood = rules_of(&lines[*line], rules).map(|rule| rule.measured_as);
        instead.extend(stood.next().map(|first| (first, listed(here))));
        instead.extend(stood.map(|other| (other, Vec::new())));
    }
    kept.flat_map(|rule| instead.remove(&rule).unwrap_or_else(|| vec![rule])).collect()
}

/// Rules of neighbouring lines as the kernel lists them: with `-A`, the last stands first.
fn listed(lines: &[NewLine]) -> Vec<RuleId> {
    let prepended = lines.iter().rev().filter(|line| line.is_prepended);
    let appended = lines.iter().filter(|line| !line.is_prepended);
    prepended.chain(appended).flat_map(|line| line.rules.clone()).collect()
}

/// Chooses the merging of rules, the proposals that replace the most expensive rules, and the first
/// exemptions. `host` are the rules of the host, which stay in force.
fn choose(measured: &RuleMeasurements, host: &[Rule]) -> Vec<Proposal> {
    let hot: Vec<(&str, u32)> = measured.mix.hot_calls();
    let all = proposals(&measured.lines, host, &hot);
    let (mut replacing, mut adding): (Vec<_>, Vec<_>) =
        all.into_iter().partition(|proposal| !proposal.replaces.is_empty());
    let costs = |proposal: &Proposal| -> f64 {
        let lines = proposal.replaces.iter().map(|line| &measured.lines[*line]);
        let rules = lines.flat_map(|line| rules_of(line, &measured.rules));
        rules.map(|rule| measured.per_syscall(rule).value).sum()
    };
    // Many cheap rules may be worth merging where few expensive ones have more proposals.
    replacing.sort_by(|a, b| b.merges().cmp(&a.merges()).then(costs(b).total_cmp(&costs(a))));
    replacing.truncate(MOST[0]);
    adding.truncate(MOST[1]);
    replacing.extend(adding);
    replacing
}

/// The rules of a line among those that were measured.
fn rules_of<'a>(
    line: &'a RuleLine,
    rules: &'a [MeasuredRule],
) -> impl Iterator<Item = &'a MeasuredRule> {
    line.rules.iter().filter_map(|rule| rules.iter().find(|measured| measured.rule == *rule))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use linux_audit::rule_set::LineOutcome;

    fn line(rule: &Rule) -> RuleLine {
        RuleLine {
            file: Path::new("a.rules").into(),
            number: 1,
            text: "-a".into(),
            outcome: LineOutcome::Loaded,
            warnings: Vec::new(),
            rules: vec![rule.clone()],
            is_prepended: false,
            is_confined: false,
        }
    }

    #[test]
    fn what_is_written_otherwise_stands_where_the_old_line_stood() {
        let ids = RuleId::first(8);
        let rules: Vec<Rule> = (0..4).map(|call| Rule::always_exit_of(&[call], 7)).collect();
        let lines: Vec<RuleLine> = rules.iter().map(line).collect();
        let measured = |(rule, id): (Rule, &RuleId)| MeasuredRule {
            decoded: rule.decode(),
            rule,
            id: *id,
            measured_as: *id,
            matches: Vec::new(),
            matched: None,
        };
        let rules: Vec<MeasuredRule> = rules.into_iter().zip(&ids).map(measured).collect();
        let order = |is_prepended: bool, replaces: &[(usize, usize)], is_first| {
            let with: usize = replaces.iter().map(|(_, each)| each).sum();
            let with = if is_first { 4 } else { with };
            let new = ids[4..4 + with].iter().map(|id| NewLine { is_prepended, rules: vec![*id] });
            let proposal = Proposal {
                title: String::new(),
                replaces: replaces.iter().map(|(line, _)| *line).collect(),
                with_each: replaces.iter().map(|(_, each)| *each).collect(),
                with: vec![String::new(); with],
                is_first,
                gives_up: None,
            };
            let list = in_place(&proposal, &new.collect::<Vec<_>>(), &lines, &rules);
            let numbers = list.iter().map(|id| ids.iter().position(|other| other == id).unwrap());
            numbers.collect::<Vec<usize>>()
        };
        assert_eq!(order(false, &[(0, 2), (2, 2)], false), [4, 5, 1, 6, 7, 3]);
        assert_eq!(order(true, &[(0, 2), (2, 2)], false), [5, 4, 1, 7, 6, 3]);
        assert_eq!(order(false, &[(1, 4)], false), [0, 4, 5, 6, 7, 2, 3]);
        assert_eq!(order(false, &[(0, 1), (2, 0), (1, 1), (3, 0)], false), [4, 5], "merged");
        assert_eq!(order(false, &[], true), [4, 5, 6, 7, 0, 1, 2, 3]);
    }
}
