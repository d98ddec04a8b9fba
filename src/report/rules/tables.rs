//! The tables of a rule report, each as wide as it may be.

use super::places::Files;
use super::rows::Row;
use super::words::{self, number};
use super::{Cost, Fate, Line, Matched, Metric, Operation, RuleReport, Standing};
use crate::report::format;
use crate::report::table::{Align, Table};

/// A shorter rule is not recognised.
const SHORTEST_RULE: usize = 34;
/// Between two columns.
const GAP: usize = 2;

/// What was put together from single measurements, and what of it the lines explain.
pub fn sums(r: &RuleReport) -> Table {
    let rows = [
        ("all rules, measured together", r.total),
        ("  of that, because there is any rule at all", r.armed),
        ("the lines by themselves, added up", r.sum_of_lines),
        ("  of that, confirmed one by one", r.sum_of_confirmed),
    ];
    let mut rows = rows
        .map(|(what, cost)| {
            let of_rules = r.total.value - r.armed.value;
            let share = 100.0 * r.sum_of_lines.value / of_rules;
            let is_sum = what.starts_with("the lines") && of_rules > 0.0 && share.is_finite();
            let remark = format!("{} of the rest", words::share(share));
            let remark = if is_sum { remark } else { String::new() };
            vec![what.to_owned(), number(cost.value), words::interval(cost), remark]
        })
        .to_vec();
    if r.metric == Metric::Instructions {
        rows.push(vec![
            "all rules, in nanoseconds by the clock".to_owned(),
            number(r.total_ns.value),
            words::interval(r.total_ns),
            String::new(),
        ]);
    }
    let [left, right] = [Align::Left, Align::Right];
    let columns =
        vec![("", left), (words::short_unit(r.metric), right), ("95 %", left), ("", left)];
    Table::new(columns, rows)
}

/// What each operation takes without auditing, with one rule, and with all, in the metric.
pub fn operations(r: &RuleReport) -> Table {
    let rows = r.operations.iter().map(|operation| {
        let mut row = levels(operation, [operation.clean, operation.armed, operation.full]);
        row.push(format::per_op(operation.syscalls_per_op));
        row.push(format::rare(operation.weight));
        row
    });
    let mut columns = LEVELS.to_vec();
    columns.extend([("calls/op", Align::Right), ("weight", Align::Right)]);
    Table::new(columns, rows.collect())
}

/// The same by the clock; `None` where that is the metric.
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
    Some(Table::new(LEVELS.to_vec(), rows))
}

const LEVELS: [(&str, Align); 6] = [
    ("operation", Align::Left),
    ("no auditing", Align::Right),
    ("one rule", Align::Right),
    ("all rules", Align::Right),
    ("95 %", Align::Left),
    ("", Align::Right),
];

fn levels(operation: &Operation, [clean, armed, full]: [Cost; 3]) -> Vec<String> {
    let times = words::times(clean, full).map(|times| format!("×{times}"));
    let mut row = vec![format::label(&operation.name)];
    row.extend([clean, armed, full].map(|cost| number(cost.value)));
    row.extend([words::interval(full), times.unwrap_or_default()]);
    row
}

/// Kinds of rules, the most expensive first; the last column is for a bar.
pub fn classes(r: &RuleReport) -> Table {
    let mut classes: Vec<_> = r.classes.iter().collect();
    classes.sort_by(|a, b| b.share_pct.total_cmp(&a.share_pct));
    let rows = classes.into_iter().map(|class| {
        vec![
            format::label(&class.title),
            format::integer(class.rules as u64),
            number(class.per_syscall.value),
            words::interval(class.per_syscall),
            words::share(class.share_pct),
        ]
    });
    let [left, right] = [Align::Left, Align::Right];
    let columns = vec![
        ("rules that the kernel treats alike", left),
        ("rules", right),
        ("per call", right),
        ("95 %", left),
        ("share", right),
    ];
    Table::new(columns, rows.collect())
}

/// A column of the table of lines; the less it is `needed`, the sooner it gives way.
struct Column {
    needed: u8,
    title: String,
    align: Align,
    cells: Vec<String>,
}

impl Column {
    fn width(&self) -> usize {
        let cells = std::iter::once(&self.title).chain(&self.cells);
        cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
    }
}

/// The first of the rows by cost. With less `width`, columns give way, so that rules can be read.
pub fn most_expensive(r: &RuleReport, rows: &[Row], width: usize) -> Table {
    let longest = rows.iter().map(|row| row.first().0.text.chars().count()).max().unwrap_or(0);
    let mut columns = costs(r, rows);
    columns.extend(matched(rows));
    let files = Files::of(r);
    let places = rows.iter().map(|row| files.place(row.first().0)).collect();
    columns.push(Column { needed: 9, title: "line".into(), align: Align::Left, cells: places });
    columns.retain(|column| column.cells.iter().any(|cell| !cell.is_empty()));
    let used =
        |columns: &[Column]| columns.iter().map(|column| column.width() + GAP).sum::<usize>();
    while used(&columns) + SHORTEST_RULE.min(longest) > width {
        let least = columns.iter().map(|column| column.needed).min().filter(|needed| *needed < 8);
        let Some(least) = least else { break };
        columns.retain(|column| column.needed > least);
    }
    let room = width.saturating_sub(used(&columns)).max(1);
    let rules = rows.iter().map(|row| {
        let times = row.times();
        let room = room.saturating_sub(times.chars().count());
        times + &words::shorten(&row.first().0.text, room)
    });
    let rules = rules.collect();
    columns.push(Column { needed: 9, title: "rule".into(), align: Align::Left, cells: rules });
    let cells =
        (0..rows.len()).map(|row| columns.iter().map(|column| column.cells[row].clone()).collect());
    let cells = cells.collect();
    let titles = columns.iter().map(|column| (column.title.as_str(), column.align)).collect();
    Table::new(titles, cells)
}

fn costs(r: &RuleReport, rows: &[Row]) -> Vec<Column> {
    let cells = |cell: &dyn Fn(&Row) -> String| -> Vec<String> { rows.iter().map(cell).collect() };
    let right = |needed, title: &str, cells| Column {
        needed,
        title: title.to_owned(),
        align: Align::Right,
        cells,
    };
    let interval = |row: &Row| match row.standing() {
        Standing::Confirmed | Standing::Contradicted => words::interval(row.per_syscall()),
        _ => String::new(),
    };
    let share = |row: &Row| match row.standing().has_figure() {
        false => String::new(),
        true => words::share(100.0 * row.per_syscall().value / r.sum_of_lines.value),
    };
    let mut columns = vec![
        right(9, "per call", cells(&|row| per_call(r, row))),
        Column { align: Align::Left, ..right(1, "95 %", cells(&interval)) },
        right(7, "share", cells(&share)),
    ];
    for (i, operation) in r.operations.iter().enumerate() {
        let needed = match operation.name.as_str() {
            "getppid" => 6,
            "exec" => 5,
            "open-close" => 4,
            _ => 0,
        };
        let cell = |row: &Row| match row.on_operation(i) {
            Some(on_it) if row.standing().has_figure() => number(on_it.value),
            _ => String::new(),
        };
        columns.push(right(needed, &format::label(&operation.name), cells(&cell)));
    }
    columns
}

/// A row's cost, or how well it is known in place of it.
pub fn per_call(r: &RuleReport, row: &Row) -> String {
    let value = number(row.per_syscall().value);
    match row.standing() {
        Standing::Confirmed if r.is_estimate => format!("≈ {value}"),
        Standing::Confirmed => value,
        Standing::OfItsClass if r.is_estimate => format!("≈ ({value})"),
        Standing::OfItsClass => format!("≈ {value}"),
        Standing::Contradicted => format!("{value} ?"),
        Standing::BelowResolution => "below".to_owned(),
        Standing::Nothing => "0".to_owned(),
    }
}

/// What it takes when a rule matches: of several rules, of the first.
fn matched(rows: &[Row]) -> [Column; 3] {
    let column = |needed, title: &str, cell: &dyn Fn(&Matched) -> String| Column {
        needed,
        title: title.to_owned(),
        align: Align::Right,
        cells: rows
            .iter()
            .map(|row| row.first().1.matched.as_ref().map_or_else(String::new, cell))
            .collect(),
    };
    let about = |matched: &Matched| if matched.is_estimate { "≈ " } else { "" };
    [
        column(3, "if it matches", &|m| format!("{}{}", about(m), format::time_ns(m.elapsed_ns))),
        column(2, "records", &|m| format::per_op(m.records)),
        column(2, "log B", &|m| number_of_bytes(m.log_bytes)),
    ]
}

/// Bytes of a few records: no unit, as it is in the title.
fn number_of_bytes(bytes: f64) -> String {
    match bytes {
        b if b.is_finite() && b >= 0.0 => format::integer(b.round() as u64),
        _ => format::NONE.to_owned(),
    }
}

/// How to read the table of lines.
pub fn legend(r: &RuleReport) -> String {
    let marks = match r.is_estimate {
        true => {
            "≈: an estimate, as this machine has no PMU; confirmed by leaving out the one rule, or in \
                 brackets that of the rules that the kernel treats alike."
        }
        false => {
            "≈ that of the rules that the kernel treats alike; all others were confirmed by \
                  leaving out the one rule. 0: counted, and nothing."
        }
    };
    format!(
        "In {}. per call: added to each system call of {}, whatever it is. A row of several rules (20 ×) has \
         what they add together; each adds its part. {marks} ?: leaving out this one gave back something \
         else, and not the same twice; the interval has both. below: below what can be told apart. share: of \
         all lines together. if it matches: on top, with its records (≈ by a rule of ours that matches). A \
         rule that does not fit is shown without -a always,exit -F arch=b64.",
        words::unit(r.metric),
        format::label(&r.mix)
    )
}

/// Lines that were not loaded, with the reason.
pub fn left_out(r: &RuleReport) -> Vec<(String, &Line)> {
    let reason = |line: &Line| match &line.fate {
        Fate::Refused(reason) => Some(format!("refused: {}", format::label(reason))),
        Fate::Skipped(reason) => Some(format!("skipped: {}", format::label(reason))),
        Fate::Present => Some("was in force before, and was left alone".to_owned()),
        Fate::Loaded(_) => None,
    };
    r.lines.iter().filter_map(|line| Some((reason(line)?, line))).collect()
}

/// Lines that something is to be said about, as that their path does not exist.
pub fn warned(r: &RuleReport) -> Vec<(String, &Line)> {
    let lines = r.lines.iter();
    lines
        .flat_map(|line| line.warnings.iter().map(move |warning| (format::label(warning), line)))
        .collect()
}

/// What all rows cost that come after the first of them; `None` where there are none.
pub fn rest(r: &RuleReport, rows: &[Row], top: usize) -> Option<String> {
    let rest = rows.get(top..).filter(|rest| !rest.is_empty())?;
    let known = rest.iter().filter(|row| row.standing().has_figure());
    let sum: f64 = known.map(|row| row.per_syscall().value).sum();
    let share = words::share(100.0 * sum / r.sum_of_lines.value);
    Some(format!(
        "{} more: {} per call together, {share} of all lines.",
        format::plural(rest.iter().map(Row::rules).sum(), "line"),
        words::amount(sum, r.metric)
    ))
}
