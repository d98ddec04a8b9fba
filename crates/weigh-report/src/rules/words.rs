//! Costs and rewrites in words, the same in every format.

use weigh_model::format;
use weigh_model::format::{number, number_with, quoted};
use weigh_model::result::rules::{
    Class, CostInterval, CostMetric, Fate, LineCost, LineReport, NotMeasured, OperationCosts,
    Rewrite, RuleReport,
};

/// The first thing a person reads: what the rules cost, in a few sentences.
pub fn sentences(r: &RuleReport) -> Vec<String> {
    let loaded = loaded(r).count();
    let mut said = Vec::new();
    if loaded == 0 {
        let all = format::plural(r.lines.len(), "line");
        said.push(format!("Nothing was measured: no rule was loaded from {all}."));
    } else {
        said.push(overhead(r, loaded));
        said.extend(r.profile_cpu_pct.map(|cpu| of_profile(r, cpu)));
        said.extend(most_expensive_class(r));
        said.extend(best_rewrite(r));
    }
    let left_out = |line: &&LineReport| matches!(line.fate, Fate::Refused(_) | Fate::Skipped(_));
    let left_out = r.lines.iter().filter(left_out).count();
    if left_out > 0 && loaded > 0 {
        said.push(format!("{} not loaded.", were(left_out, "line")));
    }
    let present = r.lines.iter().filter(|line| matches!(line.fate, Fate::Present)).count();
    if present > 0 {
        said.push(format!(
            "{} already in force on this host and not measured.",
            were(present, "rule")
        ));
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
            "{these} {verb} no detectable cost to a system call that no rule matches: {} {}.",
            r.metric.amount(r.total.value),
            interval(r.total)
        );
    }
    let verb = if loaded == 1 { "adds" } else { "add" };
    let shortest = r.operations.iter().find(|o| o.name == "getppid").or(r.operations.first());
    let longer =
        shortest.and_then(|o| Some(format!(": {} {}", quoted(&o.name), longer(o, r.metric)?)));
    let by_clock = match r.metric {
        CostMetric::Nanoseconds => " (an estimate: this machine has no PMU)".to_owned(),
        CostMetric::Instructions => {
            format!(" ({})", CostMetric::Nanoseconds.amount(r.total_ns.value))
        }
    };
    format!(
        "{these} {verb} {}{by_clock} to every system call that no rule matches{}.",
        r.metric.amount(r.total.value),
        longer.unwrap_or_default()
    )
}

/// How many times as long an operation takes with all rules; `None` where that is no number.
fn longer(operation: &OperationCosts, metric: CostMetric) -> Option<String> {
    let times = times(operation.clean, operation.full)?;
    Some(match metric {
        CostMetric::Nanoseconds => format!("takes {times} times as long"),
        CostMetric::Instructions => format!("takes {times} times as many instructions"),
    })
}

/// The cost with all rules over that without auditing: `3.4`.
pub fn times(clean: CostInterval, full: CostInterval) -> Option<String> {
    let times = full.value / clean.value;
    let decimals = if times < 1.1 { 2 } else { 1 };
    (times.is_finite() && times >= 0.0).then(|| match times {
        t if t < 99.95 => format!("{t:.decimals$}"),
        t => format::integer(t.round() as u64),
    })
}

/// Writes the cost for the profile's program. The text states it if records are not included.
fn of_profile(r: &RuleReport, cpu: CostInterval) -> String {
    const ALL: &str = "`weigh compare audit:rules=FILE -- COMMAND` includes everything";
    let interval = format::interval(Some(cpu.low), Some(cpu.high));
    let about = if r.is_estimate { "≈ " } else { "" };
    let (who, rules) = (quoted(&r.mix), format!("{about}{}", format::percent(cpu.value)));
    match &r.profile_records {
        None => format!(
            "For {who}: {rules} CPU {interval} for evaluating the rules. Records are not included, because a \
             list of calls does not show which rules match ({ALL})."
        ),
        Some(records) => format!(
            "For {who}: at least {} CPU: {rules} {interval} for evaluating the rules, and ≈ {} for the \
             records of {}, which every caller makes. Records of rules with conditions are not included \
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
    let names: Vec<String> = calls.iter().take(NAMED).map(quoted).collect();
    match calls.len().saturating_sub(NAMED) {
        0 => names.join(", "),
        more => format!("{} and {}", names.join(", "), format::plural(more, "more call")),
    }
}

/// Names the most expensive class; `None` if there is only one class.
fn most_expensive_class(r: &RuleReport) -> Option<String> {
    let by_cost = |a: &&Class, b: &&Class| a.per_syscall.value.total_cmp(&b.per_syscall.value);
    let most = r.classes.iter().max_by(by_cost)?;
    if r.classes.len() < 2 || most.share_pct.is_none_or(|share| share.is_nan() || share <= 0.0) {
        return None;
    }
    Some(format!(
        "{} of the sum of all lines comes from {}: {}.",
        share(most.share_pct),
        format::plural(most.rules, "line"),
        format::label(&most.title)
    ))
}

/// A saving that surely is a smaller share of the total matters to nobody: as `--margin`, in per cent.
const LEAST_SAVING_PCT: f64 = 1.0;

/// Names the rewrite that saves most, if its saving surely matters.
fn best_rewrite(r: &RuleReport) -> Option<String> {
    let matters = |rewrite: &&Rewrite| {
        let least = r.total.share_pct(rewrite.saving_per_syscall.low);
        least.is_some_and(|least| least >= LEAST_SAVING_PCT)
    };
    let rewrites = r.rewrites.iter().filter(matters);
    let best = rewrites
        .max_by(|a, b| a.saving_per_syscall.value.total_cmp(&b.saving_per_syscall.value))?;
    Some(format!(
        "The best rewrite saves {} per call (measured): {}.",
        r.metric.amount(best.saving_per_syscall.value),
        format::label(&best.title)
    ))
}

fn were(count: usize, noun: &str) -> String {
    let verb = if count == 1 { "was" } else { "were" };
    format!("{} {verb}", format::plural(count, noun))
}

/// Lines that were loaded, with their places in the list of lines.
pub fn loaded(r: &RuleReport) -> impl Iterator<Item = (usize, &LineReport, &LineCost)> {
    r.lines.iter().enumerate().filter_map(|(i, line)| match &line.fate {
        Fate::Loaded(cost) => Some((i, line, &**cost)),
        _ => None,
    })
}

/// A share in per cent, without digits that nobody needs: `73 %`, `0.4 %`.
pub fn share(pct: Option<f64>) -> String {
    match pct.unwrap_or(f64::NAN) {
        p if !p.is_finite() => format::NONE.to_owned(),
        p if p.abs() < 9.95 => format!("{} %", number_with(p, 1)),
        p => format!("{} %", number_with(p, 0)),
    }
}

/// Returns the notes that a reader needs. A missing PMU comes first.
pub fn notes(r: &RuleReport) -> Vec<String> {
    const NO_PMU: &str = "No hardware counters: costs are wall-clock estimates, which other programs, the \
                          CPU's clock and its caches change. The intervals are for this run. In a second \
                          run, all costs can be some per cent higher or lower; the shares stay about the \
                          same.";
    let own = matches!(r.metric, CostMetric::Nanoseconds).then(|| NO_PMU.to_owned());
    own.into_iter().chain(r.notes.iter().cloned()).collect()
}

/// Returns the measurements that failed, with the reasons.
pub fn not_measured(r: &RuleReport) -> Vec<String> {
    let said =
        |one: &NotMeasured| format!("{}: {}", format::label(&one.what), format::label(&one.why));
    r.not_measured.iter().map(said).collect()
}

/// The unit at the head of a column.
pub fn short_unit(metric: CostMetric) -> &'static str {
    match metric {
        CostMetric::Instructions => "instructions",
        CostMetric::Nanoseconds => "ns",
    }
}

pub fn unit(metric: CostMetric) -> &'static str {
    match metric {
        CostMetric::Instructions => "kernel instructions",
        CostMetric::Nanoseconds => "nanoseconds, estimated",
    }
}

/// Title of a column of intervals. Intervals of times are for one run: a clock or a neighbour that scales the
/// whole run is not in them.
pub fn interval_title(r: &RuleReport) -> &'static str {
    if r.is_estimate { "95 % within this run" } else { "95 %" }
}

/// `[34.8, 35.6]`, in the unit of the column.
pub fn interval(cost: CostInterval) -> String {
    format!("[{}, {}]", number(cost.low), number(cost.high))
}

/// Writes the saving of a rewrite, with its interval and per operation.
pub fn saving(r: &RuleReport, rewrite: &Rewrite) -> String {
    let saving = rewrite.saving_per_syscall;
    let per_operation = r.operations.iter().zip(&rewrite.saving_per_operation);
    let per_operation: Vec<String> = per_operation
        .map(|(operation, saved)| {
            format!("{} {}", format::label(&operation.name), number(saved.value))
        })
        .collect();
    let per_operation = match per_operation.is_empty() {
        true => String::new(),
        false => format!(" ({})", per_operation.join(", ")),
    };
    let saved = r.metric.amount(saving.value);
    let bounds = interval(saving);
    match (saving.low, saving.high) {
        (low, _) if low > 0.0 => {
            let of_total = r.total.share_pct(saving.value);
            let of_total = of_total.map_or(String::new(), |pct| {
                format!(", {} of the cost of all rules", share(Some(pct)))
            });
            format!("saves {saved} per call {bounds}{of_total}{per_operation}")
        }
        (_, high) if high < 0.0 => {
            let more = r.metric.amount(-saving.value);
            format!("saves nothing, but costs {more} more per call{per_operation}")
        }
        _ => format!("no detectable saving: {saved} per call {bounds}"),
    }
}

/// The lines that it takes the place of.
pub fn replaced<'a>(r: &'a RuleReport, rewrite: &Rewrite) -> Vec<&'a LineReport> {
    rewrite.replaces.iter().filter_map(|&i| r.lines.get(i)).collect()
}

/// Names the records that are no longer made, as a phrase.
pub fn given_up(rewrite: &Rewrite) -> String {
    rewrite.gives_up.as_deref().map_or_else(|| "nothing".to_owned(), format::label)
}
