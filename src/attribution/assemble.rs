//! The report, from what was measured.

use std::collections::{BTreeMap, HashMap};

use super::attribute::{Attribution, mix as mixed};
use super::levels::Levels;
use super::mix::Mix;
use super::operation::Operation;
use super::pools::Costs;
use super::run::Request;
use super::scale::times;
use super::whole::Whole;
use super::{certain, keys, notes, processes};
use crate::audit::rule::Rule;
use crate::audit::rule_fields::Decoded;
use crate::audit::rule_set::{self, Outcome};
use crate::machine::Facts;
use crate::report::rules::{
    self as report, Class, Cost, Fate, Line, LineCost, Matched, Metric, NotMeasured, Rewrite,
    RuleReport, SCHEMA, Standing,
};
use crate::treatment::Error;

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
    pub not_measured: Vec<NotMeasured>,
    pub lines: Vec<rule_set::Line>,
    pub host: String,
    /// How many rules the host has of its own, which stay in force.
    pub host_rules: usize,
    pub metric: Metric,
    pub machine: Facts,
    /// See [`RuleReport::warnings`].
    pub warnings: Vec<String>,
    pub is_cut_short: bool,
    pub elapsed_s: f64,
}

impl Measured {
    /// What came of one more measurement. What went wrong with it is told in the report, and takes nothing
    /// from what is known already.
    ///
    /// # Errors
    /// [`Error::Interrupted`] alone.
    pub fn missing<T>(&mut self, what: &str, result: Result<T, Error>) -> Result<Option<T>, Error> {
        match result {
            Ok(value) => Ok(Some(value)),
            Err(Error::Interrupted) => Err(Error::Interrupted),
            Err(error) => {
                self.not_measured.push(NotMeasured { what: what.into(), why: error.to_string() });
                Ok(None)
            }
        }
    }
}

pub(super) fn assemble(request: &Request, measured: Measured) -> RuleReport {
    let attribution = &measured.attribution;
    let everything = 0..measured.rules.len();
    // A kind costs what its rules cost together; a line, what leaving it out gives back.
    let together = attribution.costs.together();
    let sum_of_lines = together.total(everything, &measured.weights);
    let whole = Whole::of(&measured);
    let (titles, classes) = classes(&measured, &together, &sum_of_lines);
    let profile_cpu_pct = request.profile.as_ref().and_then(|profile| {
        let calls_per_ns = profile.calls_per_cpu_s()? / 1e9;
        Some(times(whole.total_ns, 100.0 * calls_per_ns))
    });
    let profile_records =
        request.profile.as_ref().and_then(|profile| certain::records(profile, &measured));
    RuleReport {
        schema: SCHEMA,
        command: request.command.clone(),
        metric: measured.metric,
        is_estimate: measured.metric == Metric::Nanoseconds,
        operations: operations(&measured, &whole.weights),
        mix: measured.mix.phrase.clone(),
        lines: lines(&measured, &titles),
        total: whole.total,
        total_ns: whole.total_ns,
        armed: whole.armed,
        sum_of_lines,
        sum_of_confirmed: attribution.costs.total(
            (0..measured.rules.len())
                .filter(|rule| attribution.standing[*rule] == Standing::Confirmed),
            &measured.weights,
        ),
        profile_cpu_pct,
        profile_records,
        notes: notes::notes(request, &measured, whole.of_lines, sum_of_lines.value, &classes),
        classes,
        elapsed_s: measured.elapsed_s,
        machine: measured.machine,
        warnings: measured.warnings,
        rewrites: measured.rewrites,
        not_measured: measured.not_measured,
    }
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
                Operation::Fork => processes::CALLS_OF_FORK.len() as f64,
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

/// By rule, its class; and the classes, the most expensive first.
fn classes(measured: &Measured, together: &Costs, all: &Cost) -> (Vec<usize>, Vec<Class>) {
    let mut members: BTreeMap<String, Vec<usize>> = BTreeMap::new();
    for (rule, decoded) in measured.decoded.iter().enumerate() {
        members.entry(keys::title(decoded)).or_default().push(rule);
    }
    let mut classes: Vec<(Class, Vec<usize>)> = members
        .into_iter()
        .map(|(title, rules)| {
            let total = |costs: &Costs| costs.total(rules.iter().copied(), &measured.weights);
            let costs = &measured.attribution.costs;
            let per_syscall = total(together);
            let one_by_one =
                rules.iter().any(|rule| costs.is_one_by_one(*rule)).then(|| total(costs));
            let share_pct = 100.0 * per_syscall.value / all.value;
            (Class { title, rules: rules.len(), per_syscall, one_by_one, share_pct }, rules)
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
    let decoded = &measured.decoded[rule];
    let started = [processes::fork_calls(), measured.exec.clone()];
    let started = started.map(|calls| mixed(&per_operation, &calls.weights_for(decoded)));
    per_operation.extend(started);
    let mut per_syscall = measured.attribution.per_syscall(rule, &measured.weights);
    if let Some(back) = measured.attribution.gave_back.get(&rule) {
        // Of the two, one is wrong: the interval has both.
        per_syscall.low = per_syscall.low.min(back.low);
        per_syscall.high = per_syscall.high.max(back.high);
    }
    LineCost {
        per_operation,
        per_syscall,
        standing: measured.attribution.standing[rule],
        class,
        matched: measured.matched.get(rule).cloned().flatten(),
    }
}
