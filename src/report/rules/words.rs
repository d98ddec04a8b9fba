//! Costs and rules in words, the same in every format.

use super::{Class, Cost, Fate, Line, LineCost, Metric, NotMeasured, Operation, RuleReport};
use crate::report::format;
use crate::report::sentence::quoted;

/// What most rules begin with, in either order; where there is no room for a whole rule, it is not missed.
const USUAL_ACTIONS: [&str; 4] =
    ["-a always,exit ", "-a exit,always ", "-A always,exit ", "-A exit,always "];
const USUAL_ABI: &str = "-F arch=b64 ";

/// The first thing a person reads: what the rules cost, in a few sentences.
pub fn sentences(r: &RuleReport) -> Vec<String> {
    let loaded = loaded(r).count();
    let mut said = Vec::new();
    if loaded == 0 {
        let all = format::plural(r.lines.len(), "line");
        said.push(format!("No rule of {all} was loaded, so there is nothing to weigh."));
    } else {
        said.push(overhead(r, loaded));
        said.extend(r.profile_cpu_pct.map(|cpu| of_profile(r, cpu)));
        said.extend(most_expensive_class(r));
        said.extend(best_rewrite(r));
    }
    let left_out = |line: &&Line| matches!(line.fate, Fate::Refused(_) | Fate::Skipped(_));
    let left_out = r.lines.iter().filter(left_out).count();
    if left_out > 0 && loaded > 0 {
        said.push(format!("{} not loaded.", were(left_out, "line")));
    }
    let present = r.lines.iter().filter(|line| matches!(line.fate, Fate::Present)).count();
    if present > 0 {
        said.push(format!("{} in force here before, and not weighed.", were(present, "rule")));
    }
    said
}

fn overhead(r: &RuleReport, loaded: usize) -> String {
    let these = match loaded {
        1 => "This rule".to_owned(),
        many => format!("These {} rules", format::integer(many as u64)),
    };
    // An interval that is not a number bounds nothing.
    if r.total.low.is_nan() || r.total.low <= 0.0 {
        let verb = if loaded == 1 { "adds" } else { "add" };
        return format!(
            "What {} {verb} to a system call of a process that no rule concerns cannot be told from nothing: \
             {} {}.",
            these.to_lowercase(),
            amount(r.total.value, r.metric),
            interval(r.total)
        );
    }
    let (verb, they) = if loaded == 1 { ("adds", "it does") } else { ("add", "they do") };
    let shortest = r.operations.iter().find(|o| o.name == "getppid").or(r.operations.first());
    let longer =
        shortest.and_then(|o| Some(format!(": {} {}", quoted(&o.name), longer(o, r.metric)?)));
    let by_clock = match r.metric {
        Metric::Nanoseconds => " (an estimate: this machine has no PMU)".to_owned(),
        Metric::Instructions => format!(" ({})", amount(r.total_ns.value, Metric::Nanoseconds)),
    };
    format!(
        "{these} {verb} {}{by_clock} to every system call of a process that {they} not concern{}.",
        amount(r.total.value, r.metric),
        longer.unwrap_or_default()
    )
}

/// How many times as long an operation takes with all rules; `None` where that is no number.
fn longer(operation: &Operation, metric: Metric) -> Option<String> {
    let times = times(operation.clean, operation.full)?;
    Some(match metric {
        Metric::Nanoseconds => format!("takes {times} times as long"),
        Metric::Instructions => format!("takes {times} times as many instructions"),
    })
}

/// The cost with all rules over that without auditing: `3.4`.
pub fn times(clean: Cost, full: Cost) -> Option<String> {
    let times = full.value / clean.value;
    let decimals = if times < 1.1 { 2 } else { 1 };
    (times.is_finite() && times >= 0.0).then(|| match times {
        t if t < 99.95 => format!("{t:.decimals$}"),
        t => format::integer(t.round() as u64),
    })
}

/// What the profile's program pays; where records are no part of it, that is said.
fn of_profile(r: &RuleReport, cpu: Cost) -> String {
    const ALL: &str = "`weigh compare audit:rules=FILE -- COMMAND` weighs all of it";
    let interval = format::interval(Some(cpu.low), Some(cpu.high));
    let about = if r.is_estimate { "≈ " } else { "" };
    let (who, rules) = (quoted(&r.mix), format!("{about}{}", format::percent(cpu.value)));
    match &r.profile_records {
        None => format!(
            "For {who}: {rules} CPU {interval} for going through the rules, and for its records more: when a \
             rule matches, a list of calls does not tell ({ALL})."
        ),
        Some(records) => format!(
            "For {who}: at least {} CPU: {rules} {interval} for going through the rules, and ≈ {} for the \
             records of {}, which are made whoever calls. What rules with conditions record is not in it \
             ({ALL}).",
            format::percent(cpu.low + records.cpu_pct),
            format::percent(records.cpu_pct),
            named(&records.calls)
        ),
    }
}

/// The first of some calls, and how many more there are.
fn named(calls: &[String]) -> String {
    const NAMED: usize = 3;
    let names: Vec<String> = calls.iter().take(NAMED).map(|call| quoted(call)).collect();
    match calls.len().saturating_sub(NAMED) {
        0 => names.join(", "),
        more => format!("{} and {}", names.join(", "), format::plural(more, "more call")),
    }
}

/// Of one class alone there is nothing to tell.
fn most_expensive_class(r: &RuleReport) -> Option<String> {
    let by_share = |a: &&Class, b: &&Class| a.share_pct.total_cmp(&b.share_pct);
    let classes = r.classes.iter().filter(|class| class.share_pct.is_finite());
    let most = classes.max_by(by_share).filter(|class| class.share_pct > 0.0)?;
    if r.classes.len() < 2 {
        return None;
    }
    Some(format!(
        "{} of what the lines cost by themselves comes from {} of them: {}.",
        share(most.share_pct),
        format::integer(most.rules as u64),
        format::label(&most.title)
    ))
}

fn best_rewrite(r: &RuleReport) -> Option<String> {
    let rewrites = r.rewrites.iter().filter(|rewrite| rewrite.saving_per_syscall.low > 0.0);
    let best = rewrites
        .max_by(|a, b| a.saving_per_syscall.value.total_cmp(&b.saving_per_syscall.value))?;
    Some(format!(
        "One rewrite, measured, saves {} of that: {}.",
        amount(best.saving_per_syscall.value, r.metric),
        format::label(&best.title)
    ))
}

fn were(count: usize, noun: &str) -> String {
    let verb = if count == 1 { "was" } else { "were" };
    format!("{} {verb}", format::plural(count, noun))
}

/// Lines that were loaded, with their places in the list of lines.
pub fn loaded(r: &RuleReport) -> impl Iterator<Item = (usize, &Line, &LineCost)> {
    r.lines.iter().enumerate().filter_map(|(i, line)| match &line.fate {
        Fate::Loaded(cost) => Some((i, line, &**cost)),
        _ => None,
    })
}

/// A share in per cent, without digits that nobody needs: `73 %`, `0.4 %`.
pub fn share(pct: f64) -> String {
    match pct {
        p if !p.is_finite() => format::NONE.to_owned(),
        p if p.abs() < 9.95 => format!("{} %", number_with(p, 1)),
        p => format!("{} %", number_with(p, 0)),
    }
}

/// What a reader must know; without a PMU first of all that.
pub fn notes(r: &RuleReport) -> Vec<String> {
    const NO_PMU: &str = "No hardware counters: costs are wall-clock estimates, which other programs, \
                          the CPU's clock and its caches move. Small ones differ from one run to the \
                          next.";
    let own = matches!(r.metric, Metric::Nanoseconds).then(|| NO_PMU.to_owned());
    own.into_iter().chain(r.notes.iter().cloned()).collect()
}

/// What could not be had, and why.
pub fn not_measured(r: &RuleReport) -> Vec<String> {
    let said =
        |one: &NotMeasured| format!("{}: {}", format::label(&one.what), format::label(&one.why));
    r.not_measured.iter().map(said).collect()
}

/// The unit at the head of a column.
pub fn short_unit(metric: Metric) -> &'static str {
    match metric {
        Metric::Instructions => "instructions",
        Metric::Nanoseconds => "ns",
    }
}

/// What costs are counted in, for a sentence.
pub fn unit(metric: Metric) -> &'static str {
    match metric {
        Metric::Instructions => "instructions of the kernel",
        Metric::Nanoseconds => "nanoseconds, estimated",
    }
}

/// A cost with its unit, for a sentence: `≈ 1.02 µs`, `3,120 instructions`. What the clock tells of
/// nanoseconds is an estimate.
pub fn amount(value: f64, metric: Metric) -> String {
    match metric {
        Metric::Instructions => format!("{} instructions", number(value)),
        Metric::Nanoseconds if value < 0.0 => format!("≈ −{}", format::time_ns(-value)),
        Metric::Nanoseconds => format!("≈ {}", format::time_ns(value)),
    }
}

/// A cost without its unit, with three digits: `1,024`, `35.2`, `1.83`, `−0.31`.
pub fn number(value: f64) -> String {
    match value.abs() {
        size if !size.is_finite() => format::NONE.to_owned(),
        size if size < 9.995 => number_with(value, 2),
        size if size < 99.95 => number_with(value, 1),
        _ => number_with(value, 0),
    }
}

fn number_with(value: f64, decimals: usize) -> String {
    // Nobody reads more digits.
    if value.abs() >= 1e15 {
        return format!("{value:.2e}");
    }
    let digits = format!("{:.decimals$}", value.abs());
    let (whole, fraction) = digits.split_once('.').unwrap_or((&digits, ""));
    let whole = whole.parse().map_or_else(|_| whole.to_owned(), format::integer);
    let point = if fraction.is_empty() { "" } else { "." };
    let is_zero = !digits.contains(|c: char| ('1'..='9').contains(&c));
    format!("{}{whole}{point}{fraction}", if value < 0.0 && !is_zero { "−" } else { "" })
}

/// `[34.8, 35.6]`, in the unit of the column.
pub fn interval(cost: Cost) -> String {
    format!("[{}, {}]", number(cost.low), number(cost.high))
}

/// A rule in at most `width` characters: without what most begin with, rather than without its end.
pub fn shorten(rule: &str, width: usize) -> String {
    let rule = format::label(rule);
    if rule.chars().count() <= width {
        return rule;
    }
    let rest = USUAL_ACTIONS.iter().find_map(|usual| rule.strip_prefix(usual)).unwrap_or(&rule);
    format::shorten(rest.strip_prefix(USUAL_ABI).unwrap_or(rest), width)
}
