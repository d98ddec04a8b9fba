//! The other tables of a rule report: sums, operations, kinds, and lines with a remark.

use super::words;
use crate::table::{Table, columns};
use weigh_model::format;
use weigh_model::format::number;
use weigh_model::result::rules::{
    CostInterval, CostMetric, Fate, LineReport, OperationCosts, RuleReport,
};

/// Builds the table of sums: the totals of single measurements, and the part that the lines
/// explain.
pub fn sums(r: &RuleReport) -> Table {
    let rows = [
        ("all rules, measured together", r.total),
        ("  cost of having any rule", r.armed),
        ("sum of the lines", r.sum_of_lines),
        ("  lines confirmed one by one", r.sum_of_confirmed),
    ];
    let mut rows = rows
        .map(|(what, cost)| {
            let less_armed = |end: f64| end - r.armed.value;
            let [value, low, high] = [r.total.value, r.total.low, r.total.high].map(less_armed);
            let share = CostInterval { value, low, high }.share_pct(r.sum_of_lines.value);
            let is_sum = what.starts_with("sum of the lines") && share.is_some();
            let remark = format!("{} of the difference above", words::share(share));
            let remark = if is_sum { remark } else { String::new() };
            vec![what.to_owned(), number(cost.value), words::interval(cost), remark]
        })
        .to_vec();
    if r.metric == CostMetric::Instructions {
        rows.push(vec![
            "all rules, in nanoseconds of wall-clock time".to_owned(),
            number(r.total_ns.value),
            words::interval(r.total_ns),
            String::new(),
        ]);
    }
    let (unit, interval) = (words::short_unit(r.metric), words::interval_title(r));
    Table::new(columns(&format!("|>{unit}|{interval}|")), rows)
}

/// Builds the table of each operation's cost in the metric: without auditing, with one rule, and
/// with all rules.
pub fn operations(r: &RuleReport) -> Table {
    let rows = r.operations.iter().map(|operation| {
        let mut row = levels(operation, [operation.clean, operation.armed, operation.full]);
        row.push(format::per_op(operation.syscalls_per_op));
        row.push(format::rare(operation.weight));
        row
    });
    Table::new(columns(&format!("{LEVELS}|>calls/op|>weight")), rows.collect())
}

/// Builds the table of each operation's clock time; `None` if the metric is clock time.
pub fn elapsed(r: &RuleReport) -> Option<Table> {
    let rows: Option<Vec<Vec<String>>> = r
        .operations
        .iter()
        .map(|operation| {
            let by_clock = operation.elapsed_ns?;
            Some(levels(operation, [by_clock.clean, by_clock.armed, by_clock.full]))
        })
        .collect();
    let rows = rows.filter(|rows| !rows.is_empty())?;
    Some(Table::new(columns(LEVELS), rows))
}

const LEVELS: &str = "operation|>no auditing|>one rule|>all rules|95 %|>";

fn levels(operation: &OperationCosts, [clean, armed, full]: [CostInterval; 3]) -> Vec<String> {
    let times = words::times(clean, full).map(|times| format!("×{times}"));
    let mut row = vec![format::label(&operation.name)];
    row.extend([clean, armed, full].map(|cost| number(cost.value)));
    row.extend([words::interval(full), times.unwrap_or_default()]);
    row
}

/// Kinds of rules, most expensive first; the last column is for a bar.
pub fn classes(r: &RuleReport) -> Table {
    let mut classes: Vec<_> = r.classes.iter().collect();
    classes.sort_by(|a, b| b.per_syscall.value.total_cmp(&a.per_syscall.value));
    let rows = classes.into_iter().map(|class| {
        vec![
            format::label(&class.title),
            format::integer(class.rules as u64),
            words::share(class.share_pct),
            number(class.per_syscall.value),
            words::interval(class.per_syscall),
        ]
    });
    let titles = format!("kind of rule|>rules|>share|>per call|{}", words::interval_title(r));
    Table::new(columns(&titles), rows.collect())
}

/// Lines that were not loaded, with the reason.
pub fn left_out(r: &RuleReport) -> Vec<(String, &LineReport)> {
    let reason = |line: &LineReport| match &line.fate {
        Fate::Refused(reason) => Some(format!("refused: {}", format::label(reason))),
        Fate::Skipped(reason) => Some(format!("skipped: {}", format::label(reason))),
        Fate::Present => Some("already in force on this host; not measured".to_owned()),
        Fate::Loaded(_) => None,
    };
    r.lines.iter().filter_map(|line| Some((reason(line)?, line))).collect()
}

/// Lines with warnings, such as a path that does not exist.
pub fn warned(r: &RuleReport) -> Vec<(String, &LineReport)> {
    let lines = r.lines.iter();
    lines
        .flat_map(|line| line.warnings.iter().map(move |warning| (format::label(warning), line)))
        .collect()
}
