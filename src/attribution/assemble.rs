//! The report, from what was measured.

use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;

use super::attribute::{Attribution, mix as mixed};
use super::keys;
use super::levels::Levels;
use super::mix::Mix;
use super::operation::Operation;
use super::run::Request;
use super::scale::{sum, times};
use crate::audit::rule::Rule;
use crate::audit::rule_fields::Decoded;
use crate::audit::rule_set::{self, Outcome};
use crate::machine::Facts;
use crate::machine::file_system::file_system;
use crate::report::format;
use crate::report::rules::{
    self as report, Class, Cost, Fate, Line, LineCost, Matched, Metric, Rewrite, RuleReport,
    SCHEMA, Standing,
};

/// What was measured, rules in the order of weighing.
pub struct Measured {
    pub levels: Levels,
    /// The same by the clock, where the metric is another.
    pub elapsed: Option<Levels>,
    pub attribution: Attribution,
    pub mix: Mix,
    /// The system calls of one `exec`.
    pub exec: Mix,
    /// By rule.
    pub weights: Vec<Vec<f64>>,
    pub rules: Vec<Rule>,
    pub decoded: Vec<Decoded>,
    pub matches: Vec<Vec<Operation>>,
    /// Empty where it was not measured any more.
    pub matched: Vec<Option<Matched>>,
    pub rewrites: Vec<Rewrite>,
    pub lines: Vec<rule_set::Line>,
    pub host: String,
    /// How many rules the host has of its own, which stay in force.
    pub host_rules: usize,
    pub metric: Metric,
    pub scratch: PathBuf,
    pub is_cut_short: bool,
    pub elapsed_s: f64,
}

pub(super) fn assemble(request: &Request, measured: Measured) -> RuleReport {
    let weights = measured.mix.weights();
    let attribution = &measured.attribution;
    let everything = 0..measured.rules.len();
    let sum_of_lines = attribution.costs.total(everything.clone(), &measured.weights);
    // A host that audits already has paid for the first rule.
    let is_armed_anyway = measured.host_rules > 0;
    let of_armed = match is_armed_anyway {
        true => Cost::default(),
        false => measured.levels.armed(&weights),
    };
    // Of a profile, calls that a rule treats otherwise than the operation they are like are corrected
    // by what the lines say.
    let alike = vec![weights.clone(); measured.rules.len()];
    let correction = sum_of_lines.value - attribution.costs.total(everything, &alike).value;
    let of_rules = mixed(&attribution.total, &weights);
    let total = plus(sum([of_rules, of_armed]), correction);
    let total_ns = match &measured.elapsed {
        None => total,
        Some(elapsed) => {
            let all = match is_armed_anyway {
                true => elapsed.rules(&weights),
                false => elapsed.full(&weights),
            };
            plus(all, correction * all.value / (total.value - correction))
        }
    };
    let (titles, classes) = classes(&measured, &sum_of_lines);
    let profile_cpu_pct = request.profile.as_ref().and_then(|profile| {
        let calls_per_ns = profile.calls_per_cpu_s()? / 1e9;
        Some(times(total_ns, 100.0 * calls_per_ns))
    });
    RuleReport {
        schema: SCHEMA,
        command: request.command.clone(),
        metric: measured.metric,
        machine: Facts { scratch: Some(file_system(&measured.scratch)), ..Facts::read() },
        operations: operations(&measured, &weights),
        mix: measured.mix.phrase.clone(),
        lines: lines(&measured, &titles),
        classes,
        total,
        total_ns,
        armed: of_armed,
        sum_of_lines,
        sum_of_confirmed: attribution.costs.total(
            (0..measured.rules.len())
                .filter(|rule| attribution.standing[*rule] == Standing::Confirmed),
            &measured.weights,
        ),
        profile_cpu_pct,
        notes: notes(&measured, of_rules.value + correction, sum_of_lines.value),
        elapsed_s: measured.elapsed_s,
        rewrites: measured.rewrites,
    }
}

/// The cost and its interval, both shifted.
fn plus(cost: Cost, shift: f64) -> Cost {
    Cost { value: cost.value + shift, low: cost.low + shift, high: cost.high + shift }
}

fn operations(measured: &Measured, weights: &[f64]) -> Vec<report::Operation> {
    let operation = |(place, operation): (usize, &Operation)| {
        let [clean, armed, full] = measured.levels.of_operation(place);
        let elapsed_ns = measured.elapsed.as_ref().map(|elapsed| {
            let [clean, armed, full] = elapsed.of_operation(place);
            report::Elapsed { clean, armed, full }
        });
        report::Operation {
            name: operation.name().into(),
            syscalls_per_op: match operation {
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

/// By rule, its class; and the classes, the dearest first.
fn classes(measured: &Measured, all: &Cost) -> (Vec<usize>, Vec<Class>) {
    let mut members: BTreeMap<String, Vec<usize>> = BTreeMap::new();
    for (rule, decoded) in measured.decoded.iter().enumerate() {
        members.entry(keys::title(decoded)).or_default().push(rule);
    }
    let mut classes: Vec<(Class, Vec<usize>)> = members
        .into_iter()
        .map(|(title, rules)| {
            let per_syscall =
                measured.attribution.costs.total(rules.iter().copied(), &measured.weights);
            let share_pct = 100.0 * per_syscall.value / all.value;
            (Class { title, rules: rules.len(), per_syscall, share_pct }, rules)
        })
        .collect();
    classes.sort_by(|(a, _), (b, _)| b.per_syscall.value.total_cmp(&a.per_syscall.value));
    let mut class_of = vec![0; measured.rules.len()];
    for (class, (_, rules)) in classes.iter().enumerate() {
        rules.iter().for_each(|rule| class_of[*rule] = class);
    }
    (class_of, classes.into_iter().map(|(class, _)| class).collect())
}

fn lines(measured: &Measured, class_of: &[usize]) -> Vec<Line> {
    let place: HashMap<&Rule, usize> =
        measured.rules.iter().enumerate().map(|(place, rule)| (rule, place)).collect();
    let fate = |line: &rule_set::Line| match &line.outcome {
        Outcome::Present => Fate::Present,
        Outcome::Refused(reason) => Fate::Refused(reason.clone()),
        Outcome::Skipped(reason) => Fate::Skipped(reason.clone()),
        Outcome::Loaded => {
            let rules: Vec<usize> =
                line.rules.iter().filter_map(|rule| place.get(rule).copied()).collect();
            match rules.first() {
                Some(rule) => Fate::Loaded(Box::new(line_cost(measured, *rule, class_of[*rule]))),
                None => Fate::Refused("the kernel did not keep it".into()),
            }
        }
    };
    let to_line = |line: &rule_set::Line| {
        let mut warnings = line.warnings.clone();
        let matched = line.rules.first().and_then(|rule| place.get(rule));
        if let Some(operations) = matched.map(|rule| &measured.matches[*rule])
            && operations.len() > 1
        {
            let names: Vec<&str> = operations.iter().map(|o| o.name()).collect();
            warnings.push(format!("it matches {}", names.join(", ")));
        }
        Line {
            file: line.file.clone(),
            number: line.number,
            text: line.text.clone(),
            fate: fate(line),
            warnings,
        }
    };
    measured.lines.iter().map(to_line).collect()
}

fn line_cost(measured: &Measured, rule: usize, class: usize) -> LineCost {
    let costs = &measured.attribution.costs;
    let mut per_operation = costs.of_rule(rule);
    per_operation.push(mixed(&per_operation, &measured.exec.weights_for(&measured.decoded[rule])));
    LineCost {
        per_operation,
        per_syscall: measured.attribution.per_syscall(rule, &measured.weights),
        standing: measured.attribution.standing[rule],
        class,
        matched: measured.matched.get(rule).cloned().flatten(),
    }
}

fn notes(measured: &Measured, of_rules: f64, sum_of_lines: f64) -> Vec<String> {
    const TOLERANCE: f64 = 0.1;
    let mut notes = vec![measured.host.clone()];
    if measured.host_rules > 0 {
        notes.push(format!(
            "{} of this host stay in force throughout, which also exempt or watch what they say. What \
             they cost is in no figure but those of `one rule` and `all rules`. The changes that \
             weighing makes to the list of rules are not written to the log.",
            format::plural(measured.host_rules, "rule")
        ));
    }
    if measured.is_cut_short {
        notes.push("It was ended early: what is missing was not measured any more.".into());
    }
    if (sum_of_lines - of_rules).abs() > TOLERANCE * of_rules.abs() {
        notes.push(format!(
            "The lines by themselves add up to {:.0} % of what all of them cost together: take single \
             figures with caution, or measure again on a quieter machine.",
            100.0 * sum_of_lines / of_rules
        ));
    }
    let matching = measured.matches.iter().filter(|operations| !operations.is_empty()).count();
    if matching > 0 {
        notes.push(format!(
            "{} of the rules match operations that are weighed here. What they cost others was \
             measured with one more condition in them that nobody meets.",
            matching
        ));
    }
    let gaps = measured.decoded.iter().filter(|rule| measured.mix.has_gap(rule)).count();
    if gaps > 0 {
        notes.push(format!(
            "{gaps} of the rules concern calls of the profile that no operation here makes; for those \
             calls they are priced as for the operation that is most alike."
        ));
    }
    let unseen = |standing: &&Standing| **standing == Standing::BelowResolution;
    let unseen = measured.attribution.standing.iter().filter(unseen).count();
    notes.push("What a rule adds to exec is added up from the system calls of one.".into());
    if unseen > 0 && measured.metric == Metric::Nanoseconds {
        notes.push(
            "This machine has no PMU that counts, so costs are times, and those of a single rule are \
             shown only where they stand out of the noise."
                .into(),
        );
    }
    notes
}
