//! The report, from what was measured: figures, and the sentences that a reader of them must know.

use std::collections::{BTreeMap, HashMap};

use super::cost_class::{RuleCosts, title};
use super::cost_meter::{times, weighted_sum};
use super::loaded_rules::RuleId;
use super::match_cost::guaranteed_records;
use super::measurements::{MeasuredRule, RuleMeasurements, Total};
use super::mix::fork_calls;
use super::operation::{CALLS_OF_FORK, Operation};
use linux_audit::rule::Rule;
use linux_audit::rule_set::{self, LineOutcome};
use weigh_model::format;
use weigh_model::profile::SyscallProfile;
use weigh_model::result::rules::{
    Class, CostInterval, CostMetric, Elapsed, Fate, LineCost, LineReport, OperationCosts,
    RuleReport, SCHEMA, Standing,
};

pub fn assemble(
    command: &str,
    profile: Option<&SyscallProfile>,
    measured: RuleMeasurements,
) -> RuleReport {
    let attribution = &measured.attribution;
    // A kind costs what its rules cost together; a line, what leaving it out gives back.
    let together = attribution.costs.together();
    let sum_of_lines = together.total(measured.measured_as(), &measured.weights);
    let total = Total::of(&measured);
    let (titles, classes) = classes(&measured, &together, &sum_of_lines);
    let profile_cpu_pct = profile.and_then(|profile| {
        let calls_per_ns = profile.calls_per_cpu_s()? / 1e9;
        Some(times(total.total_ns, 100.0 * calls_per_ns))
    });
    let profile_records = profile.and_then(|profile| guaranteed_records(profile, &measured));
    let is_confirmed = |rule: &RuleId| attribution.standing[rule] == Standing::Confirmed;
    let sum_of_confirmed =
        attribution.costs.total(measured.measured_as().filter(is_confirmed), &measured.weights);
    RuleReport {
        schema: SCHEMA.into(),
        id: String::new(),
        command: command.to_owned(),
        metric: measured.metric,
        is_estimate: measured.metric == CostMetric::Nanoseconds,
        operations: operations(&measured, &total.weights),
        mix: measured.mix.phrase.clone(),
        lines: lines(&measured, &titles),
        total: total.total,
        total_ns: total.total_ns,
        armed: total.armed,
        sum_of_lines,
        sum_of_confirmed,
        profile_cpu_pct,
        profile_records,
        notes: notes(profile, &measured, total.of_lines, sum_of_lines.value, &classes),
        classes,
        elapsed_s: measured.elapsed_s,
        machine: measured.machine,
        warnings: measured.warnings,
        rewrites: measured.rewrites,
        not_measured: measured.not_measured,
    }
}

fn operations(measured: &RuleMeasurements, weights: &[f64]) -> Vec<OperationCosts> {
    let operation = |(place, operation): (usize, &Operation)| {
        let [clean, armed, full] = measured.levels.of_operation(place);
        let elapsed_ns = measured.elapsed.as_ref().map(|elapsed| {
            let [clean, armed, full] = elapsed.of_operation(place);
            Elapsed { clean, armed, full }
        });
        OperationCosts {
            name: operation.name().into(),
            syscalls_per_op: match operation {
                Operation::Fork => CALLS_OF_FORK.len() as f64,
                Operation::Exec => measured.exec.calls(),
                _ => operation.calls().len() as f64,
            },
            weight: weights.get(place).copied().unwrap_or(0.0),
            clean,
            armed,
            full,
            elapsed_ns,
        }
    };
    Operation::ALL.iter().enumerate().map(operation).collect()
}

/// By rule, the place of its class; and the classes, the most expensive first.
fn classes(
    measured: &RuleMeasurements,
    together: &RuleCosts,
    all: &CostInterval,
) -> (BTreeMap<RuleId, usize>, Vec<Class>) {
    let mut members: BTreeMap<String, Vec<RuleId>> = BTreeMap::new();
    for rule in &measured.rules {
        members.entry(title(&rule.decoded)).or_default().push(rule.measured_as);
    }
    let mut classes: Vec<(Class, Vec<RuleId>)> = members
        .into_iter()
        .map(|(title, rules)| {
            let total = |costs: &RuleCosts| costs.total(rules.iter().copied(), &measured.weights);
            let costs = &measured.attribution.costs;
            let per_syscall = total(together);
            let one_by_one =
                rules.iter().any(|rule| costs.is_one_by_one(*rule)).then(|| total(costs));
            let share_pct = all.share_pct(per_syscall.value);
            (Class { title, rules: rules.len(), per_syscall, one_by_one, share_pct }, rules)
        })
        .collect();
    classes.sort_by(|(a, _), (b, _)| b.per_syscall.value.total_cmp(&a.per_syscall.value));
    let mut class_of = BTreeMap::new();
    for (class, (_, rules)) in classes.iter().enumerate() {
        class_of.extend(rules.iter().map(|rule| (*rule, class)));
    }
    (class_of, classes.into_iter().map(|(class, _)| class).collect())
}

fn lines(measured: &RuleMeasurements, class_of: &BTreeMap<RuleId, usize>) -> Vec<LineReport> {
    let by_rule: HashMap<&Rule, &MeasuredRule> =
        measured.rules.iter().map(|measured| (&measured.rule, measured)).collect();
    let fate = |line: &rule_set::RuleLine| match &line.outcome {
        LineOutcome::Present => Fate::Present,
        LineOutcome::Refused(reason) => Fate::Refused(reason.clone()),
        LineOutcome::Skipped(reason) => Fate::Skipped(reason.clone()),
        LineOutcome::Loaded => match line.rules.iter().find_map(|rule| by_rule.get(rule)) {
            Some(rule) => {
                let class = class_of[&rule.measured_as];
                Fate::Loaded(Box::new(line_cost(measured, rule, class)))
            }
            None => Fate::Refused("the kernel did not keep this rule".into()),
        },
    };
    let to_line = |line: &rule_set::RuleLine| {
        let mut warnings = line.warnings.clone();
        if let Some(rule) = line.rules.first().and_then(|rule| by_rule.get(rule))
            && rule.matches.len() > 1
        {
            let names: Vec<&str> = rule.matches.iter().map(|o| o.name()).collect();
            warnings.push(format!("it matches {}", names.join(", ")));
        }
        LineReport {
            file: line.file.clone(),
            number: line.number,
            text: line.text.clone(),
            fate: fate(line),
            warnings,
        }
    };
    measured.lines.iter().map(to_line).collect()
}

fn line_cost(measured: &RuleMeasurements, rule: &MeasuredRule, class: usize) -> LineCost {
    let attribution = &measured.attribution;
    let mut per_operation = attribution.costs.of_rule(rule.measured_as);
    let started = [fork_calls(), measured.exec.clone()];
    let started =
        started.map(|calls| weighted_sum(&per_operation, &calls.weights_for(&rule.decoded)));
    per_operation.extend(started);
    let mut per_syscall = measured.per_syscall(rule);
    if let Some(back) = attribution.gave_back.get(&rule.measured_as) {
        // Of the two, one is wrong: the interval has both.
        per_syscall.low = per_syscall.low.min(back.low);
        per_syscall.high = per_syscall.high.max(back.high);
    }
    LineCost {
        per_operation,
        per_syscall,
        standing: attribution.standing[&rule.measured_as],
        class,
        matched: rule.matched.clone(),
    }
}

/// Writes notes on the parts of a profile that the answer does not cover.
fn notes_of_profile(profile: &SyscallProfile) -> Vec<String> {
    let mut notes = Vec::new();
    if profile.calls_per_cpu_s().is_none() {
        notes.push(
            "The profile has no CPU time, so the rules' share of it is unknown: use a profile of `weigh \
             profile -o FILE -- COMMAND`."
                .into(),
        );
    }
    if profile.other_abi_calls > 0 {
        notes.push(format!(
            "{} by 32-bit programs are not in the profile, so their cost is not included.",
            format::plural(profile.other_abi_calls as usize, "more system call")
        ));
    }
    notes
}

/// Writes a note if leaving out a class's rules one by one saves less, or more, than leaving out
/// all of them.
fn one_by_one(class: &Class, metric: CostMetric) -> Option<String> {
    let one_by_one = class.one_by_one?.value;
    Some(format!(
        "{}: all {} together cost {}, but leaving them out one by one saves only {} in all. Each line shows \
         what leaving out that line saves, because a rule may cost less among others of its kind than alone.",
        class.title,
        class.rules,
        metric.amount(class.per_syscall.value),
        metric.amount(one_by_one)
    ))
}

fn rules_match(count: usize) -> String {
    let verb = if count == 1 { "matches" } else { "match" };
    format!("{} {verb}", format::plural(count, "rule"))
}

/// Writes the notes that a reader of the figures needs, in sentences.
fn notes(
    profile: Option<&SyscallProfile>,
    measured: &RuleMeasurements,
    of_rules: f64,
    sum_of_lines: f64,
    classes: &[Class],
) -> Vec<String> {
    const TOLERANCE: f64 = 0.1;
    let mut notes = vec![measured.host.clone()];
    notes.extend(profile.into_iter().flat_map(notes_of_profile));
    if measured.host_rules > 0 {
        notes.push(format!(
            "{} of this host stayed in force, with all watches and exemptions. This cost is included only \
             in `one rule` and `all rules`. Changes that weigh makes to the list of rules are not logged.",
            format::plural(measured.host_rules, "rule")
        ));
    }
    if measured.is_cut_short {
        notes.push("Stopped early: missing figures were not measured.".into());
    }
    if (sum_of_lines - of_rules).abs() > TOLERANCE * of_rules.abs() {
        notes.push(format!(
            "The lines add up to {:.0} % of the cost of all lines together: treat single figures with \
             caution, or measure again on a quieter machine.",
            100.0 * sum_of_lines / of_rules
        ));
    }
    notes.extend(classes.iter().filter_map(|class| one_by_one(class, measured.metric)));
    let matching = measured.rules.iter().filter(|rule| !rule.matches.is_empty()).count();
    if matching > 0 {
        notes.push(format!(
            "{} operations used here. The cost for other calls was measured with an added condition that is \
             never met.",
            rules_match(matching)
        ));
    }
    let gaps = measured.rules.iter().filter(|rule| measured.mix.has_gap(&rule.decoded)).count();
    if gaps > 0 {
        notes.push(format!(
            "{} calls of the profile that no operation here makes: the cost for these calls is taken from \
             the most similar operation.",
            rules_match(gaps)
        ));
    }
    let unseen = |standing: &&Standing| **standing == Standing::BelowResolution;
    let unseen = measured.attribution.standing.values().filter(unseen).count();
    notes.push(
        "The cost of a rule for fork and exec is the sum over the system calls that these make."
            .into(),
    );
    if unseen > 0 && measured.metric == CostMetric::Nanoseconds {
        notes.push(
            "This machine has no usable PMU, so costs are times. The cost of a single rule is shown only if \
             it exceeds the noise."
                .into(),
        );
    }
    notes
}
