//! The table of rules: where each stands, and what it costs. Rules that are alike are in one row: twenty
//! equal rows tell no more than one.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};

use super::words::{self, loaded};
use crate::table::{Align, Table};
use weigh_model::format;
use weigh_model::format::number;
use weigh_model::result::rules::{
    CostInterval, LineCost, LineReport, Matched, RuleReport, Standing,
};

/// Usual beginnings of rules, in either order. They are left out if a whole rule does not fit.
const USUAL_ACTIONS: [&str; 4] =
    ["-a always,exit ", "-a exit,always ", "-A always,exit ", "-A exit,always "];
const USUAL_ABI: &str = "-F arch=b64 ";

/// A shorter rule is not recognised.
const SHORTEST_RULE: usize = 34;
/// Between two columns.
const GAP: usize = 2;

/// One rule, or several of a kind whose figures are the same. Never without a line.
pub struct RuleRow<'a>(Vec<(&'a LineReport, &'a LineCost)>);

impl<'a> RuleRow<'a> {
    pub fn first(&self) -> (&'a LineReport, &'a LineCost) {
        self.0[0]
    }

    pub fn rules(&self) -> usize {
        self.0.len()
    }

    /// `20 × ` where it is of twenty rules, nothing where it is of one.
    pub fn times(&self) -> String {
        match self.0.len() {
            1 => String::new(),
            several => format!("{} × ", format::integer(several as u64)),
        }
    }

    /// Returns the weakest standing of all its rules.
    pub fn standing(&self) -> Standing {
        let is_confirmed =
            |(_, cost): &(&LineReport, &LineCost)| cost.standing == Standing::Confirmed;
        let least = self.0.iter().find(|line| !is_confirmed(line));
        least.map_or(Standing::Confirmed, |(_, cost)| cost.standing)
    }

    /// Adds up the costs of its rules per system call of the mix. Rules of a kind are equally well
    /// known, so their intervals add as values do.
    pub fn per_syscall(&self) -> CostInterval {
        together(self.0.iter().map(|(_, cost)| cost.per_syscall))
    }

    /// Adds up the costs of its rules on an operation; `None` if the operation was not weighed.
    pub fn on_operation(&self, operation: usize) -> Option<CostInterval> {
        let costs = self.0.iter().map(|(_, cost)| cost.per_operation.get(operation).copied());
        costs.collect::<Option<Vec<CostInterval>>>().map(|costs| together(costs.into_iter()))
    }
}

fn together(costs: impl Iterator<Item = CostInterval>) -> CostInterval {
    costs.fold(CostInterval::default(), |sum, cost| CostInterval {
        value: sum.value + cost.value,
        low: sum.low + cost.low,
        high: sum.high + cost.high,
    })
}

/// All loaded rules, alike ones in one row: the most expensive row first, and those that nothing is known of
/// at the end.
pub fn alike(r: &RuleReport) -> Vec<RuleRow<'_>> {
    let mut rows: Vec<RuleRow> = Vec::new();
    let mut place_of = HashMap::new();
    for (_, line, cost) in loaded(r) {
        let place = *place_of.entry(key(cost)).or_insert(rows.len());
        match rows.get_mut(place) {
            Some(row) => row.0.push((line, cost)),
            None => rows.push(RuleRow(vec![(line, cost)])),
        }
    }
    sorted(rows)
}

pub fn one_by_one(r: &RuleReport) -> Vec<RuleRow<'_>> {
    sorted(loaded(r).map(|(_, line, cost)| RuleRow(vec![(line, cost)])).collect())
}

/// Returns the common properties of rules that are shown as one: kind, standing, and figures.
fn key(cost: &LineCost) -> (usize, Option<Standing>, Vec<String>) {
    let figures = cost.per_operation.iter().chain([&cost.per_syscall]);
    match cost.standing {
        Standing::Confirmed | Standing::OfItsClass => {
            (cost.class, None, figures.map(|cost| number(cost.value)).collect())
        }
        Standing::Contradicted => {
            let all = [cost.per_syscall.low, cost.per_syscall.high].map(number);
            let figures = figures.map(|cost| number(cost.value)).chain(all);
            (cost.class, Some(cost.standing), figures.collect())
        }
        other => (cost.class, Some(other), Vec::new()),
    }
}

fn sorted(mut rows: Vec<RuleRow>) -> Vec<RuleRow> {
    let is_known = |row: &RuleRow| row.standing().has_figure();
    rows.sort_by(|a, b| {
        let by_value = b.per_syscall().value.total_cmp(&a.per_syscall().value);
        is_known(b).cmp(&is_known(a)).then(by_value)
    });
    rows
}

/// A column of the table of lines; the less it is `needed`, the sooner it gives way.
struct CostColumn {
    needed: u8,
    title: String,
    align: Align,
    cells: Vec<String>,
}

impl CostColumn {
    fn width(&self) -> usize {
        let cells = std::iter::once(&self.title).chain(&self.cells);
        cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
    }
}

/// The first of the rows by cost. With less `width`, columns give way, so that rules can be read.
pub fn most_expensive(r: &RuleReport, rows: &[RuleRow], width: usize) -> Table {
    let longest = rows.iter().map(|row| row.first().0.text.chars().count()).max().unwrap_or(0);
    let mut columns = costs(r, rows);
    columns.extend(matched(rows));
    let files = FileNames::of(r);
    let places = rows.iter().map(|row| files.place(row.first().0)).collect();
    columns.push(CostColumn { needed: 9, title: "line".into(), align: Align::Left, cells: places });
    columns.retain(|column| column.cells.iter().any(|cell| !cell.is_empty()));
    let used =
        |columns: &[CostColumn]| columns.iter().map(|column| column.width() + GAP).sum::<usize>();
    while used(&columns) + SHORTEST_RULE.min(longest) > width {
        let least = columns.iter().map(|column| column.needed).min().filter(|needed| *needed < 8);
        let Some(least) = least else { break };
        columns.retain(|column| column.needed > least);
    }
    let room = width.saturating_sub(used(&columns)).max(1);
    let rules = rows.iter().map(|row| {
        let times = row.times();
        let room = room.saturating_sub(times.chars().count());
        times + &shorten(&row.first().0.text, room)
    });
    let rules = rules.collect();
    columns.push(CostColumn { needed: 9, title: "rule".into(), align: Align::Left, cells: rules });
    let cells =
        (0..rows.len()).map(|row| columns.iter().map(|column| column.cells[row].clone()).collect());
    let cells = cells.collect();
    let titles = columns.iter().map(|column| (column.title.as_str(), column.align)).collect();
    Table::new(titles, cells)
}

fn costs(r: &RuleReport, rows: &[RuleRow]) -> Vec<CostColumn> {
    let cells =
        |cell: &dyn Fn(&RuleRow) -> String| -> Vec<String> { rows.iter().map(cell).collect() };
    let right = |needed, title: &str, cells| CostColumn {
        needed,
        title: title.to_owned(),
        align: Align::Right,
        cells,
    };
    let interval = |row: &RuleRow| match row.standing() {
        Standing::Confirmed | Standing::Contradicted => words::interval(row.per_syscall()),
        _ => String::new(),
    };
    let share = |row: &RuleRow| match row.standing().has_figure() {
        false => String::new(),
        true => words::share(r.sum_of_lines.share_pct(row.per_syscall().value)),
    };
    let mut columns = vec![
        right(9, "share", cells(&share)),
        right(9, "per call", cells(&|row| per_call(r, row))),
        CostColumn { align: Align::Left, ..right(1, words::interval_title(r), cells(&interval)) },
    ];
    for (i, operation) in r.operations.iter().enumerate() {
        let needed = match operation.name.as_str() {
            "getppid" => 6,
            "exec" => 5,
            "open-close" => 4,
            _ => 0,
        };
        let cell = |row: &RuleRow| match row.on_operation(i) {
            Some(on_it) if row.standing().has_figure() => number(on_it.value),
            _ => String::new(),
        };
        columns.push(right(needed, &format::label(&operation.name), cells(&cell)));
    }
    columns
}

/// A row's cost, or how well it is known in place of it.
pub fn per_call(r: &RuleReport, row: &RuleRow) -> String {
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

/// Builds the columns of costs on a match; a row of several rules shows its first rule.
fn matched(rows: &[RuleRow]) -> [CostColumn; 3] {
    let column = |needed, title: &str, cell: &dyn Fn(&Matched) -> String| CostColumn {
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
            "≈: an estimate, as this machine has no PMU. Figures in brackets are the mean of the rule's \
             kind; the others were confirmed by leaving out the rule."
        }
        false => {
            "≈: the mean of the rule's kind, which are the rules that the kernel treats alike. Figures \
             without ≈ were confirmed by leaving out the rule. 0: counted as exactly nothing."
        }
    };
    format!(
        "Costs are in {}. per call: the cost that the rule adds to each system call of {}, even to calls \
         that it does not name. share: the rule's part of the cost of all lines; it varies less between \
         runs than the cost does. if it matches: the extra cost of a call that matches, with its records; \
         with ≈, of a similar rule of weigh's own. {marks} ?: two tries without the rule gave different \
         figures, and the interval covers both. below: too small to detect. 20 ×: a row of 20 similar \
         rules, with their sum. A long rule is shown without its usual beginning, -a always,exit -F \
         arch=b64.",
        words::unit(r.metric),
        format::label(&r.mix)
    )
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

/// Writes the cost of all rows after the first `top`; `None` if no rows are left.
pub fn rest(r: &RuleReport, rows: &[RuleRow], top: usize) -> Option<String> {
    let rest = rows.get(top..).filter(|rest| !rest.is_empty())?;
    let known = rest.iter().filter(|row| row.standing().has_figure());
    let sum: f64 = known.map(|row| row.per_syscall().value).sum();
    let share = r.sum_of_lines.share_pct(sum);
    Some(format!(
        "{}: {} per call together{}.",
        format::plural(rest.iter().map(RuleRow::rules).sum(), "more line"),
        r.metric.amount(sum),
        share.map_or(String::new(), |_| format!(", {} of all lines", words::share(share)))
    ))
}

/// How files are called in a report: by their names, or by their paths where two have one name.
pub struct FileNames<'a>(BTreeMap<&'a Path, String>);

impl<'a> FileNames<'a> {
    pub fn of(r: &'a RuleReport) -> FileNames<'a> {
        let name = |path: &Path| path.file_name().map_or_else(PathBuf::new, PathBuf::from);
        let mut paths: Vec<&Path> = r.lines.iter().map(|line| line.file.as_path()).collect();
        paths.sort_unstable();
        paths.dedup();
        let shown = paths.iter().map(|path| {
            let is_clear = paths.iter().filter(|other| name(other) == name(path)).count() == 1;
            let shown = if is_clear { name(path) } else { path.to_path_buf() };
            (*path, format::label(&shown.display().to_string()))
        });
        FileNames(shown.collect())
    }

    /// The names of all files, in the order of their paths.
    pub fn all(&self) -> Vec<String> {
        self.0.values().cloned().collect()
    }

    fn name(&self, line: &LineReport) -> &str {
        self.0.get(line.file.as_path()).map_or("", String::as_str)
    }

    /// As compilers write it, so that editors know it: `30-stig.rules:41`.
    pub fn place(&self, line: &LineReport) -> String {
        format!("{}:{}", self.name(line), line.number)
    }

    /// Lines with their common reason: `unknown field: a.rules:3, 7–9 (4 lines)`.
    pub fn grouped<'b>(&self, said: impl Iterator<Item = (String, &'b LineReport)>) -> Vec<String> {
        let mut groups: Vec<(String, Vec<&LineReport>)> = Vec::new();
        for (reason, line) in said {
            match groups.iter_mut().find(|(known, _)| *known == reason) {
                Some((_, lines)) => lines.push(line),
                None => groups.push((reason, vec![line])),
            }
        }
        groups.iter().map(|(reason, lines)| format!("{}: {reason}", self.places(lines))).collect()
    }

    /// The places of lines, neighbours joined: `a.rules:3, 7–9; b.rules:1`.
    pub fn places(&self, lines: &[&LineReport]) -> String {
        let mut text = String::new();
        let mut run: Option<(&LineReport, usize)> = None;
        for line in lines {
            match run {
                Some((first, last)) if first.file == line.file && last + 1 == line.number => {
                    run = Some((first, line.number));
                }
                Some((first, last)) => {
                    text += &ending(first, last);
                    let is_same = first.file == line.file;
                    let place = self.place(line);
                    text +=
                        &if is_same { format!(", {}", line.number) } else { format!("; {place}") };
                    run = Some((line, line.number));
                }
                None => {
                    text = self.place(line);
                    run = Some((line, line.number));
                }
            }
        }
        text + &run.map_or_else(String::new, |(first, last)| ending(first, last))
    }
}

/// The end of a run of lines, if it is more than its beginning.
fn ending(first: &LineReport, last: usize) -> String {
    if last > first.number { format!("–{last}") } else { String::new() }
}

#[cfg(test)]
mod tests {
    use super::super::sample;
    use super::*;

    #[test]
    fn alike_rules_are_one_row_and_every_rule_is_in_one() {
        let r = sample::stig();
        let (rows, single) = (alike(&r), one_by_one(&r));
        assert_eq!(rows.iter().map(RuleRow::rules).sum::<usize>(), single.len());
        // Four of the 21 with `exe=` were confirmed with figures of their own.
        let most = &rows[0];
        assert_eq!((most.rules(), most.standing()), (17, Standing::OfItsClass));
        assert_eq!((&*most.times(), &*single[0].times()), ("17 × ", ""));
        assert!((most.per_syscall().value - 17.0 * 80.2).abs() < 1e-6);
        let getppid = most.on_operation(0).unwrap();
        assert!((getppid.high - 17.0 * 80.2 * 1.02).abs() < 1e-6, "{getppid:?}");
        // What is below the resolution is one row for each kind, at the end.
        let is_below = |row: &&RuleRow| row.standing() == Standing::BelowResolution;
        let below: Vec<usize> = rows.iter().filter(is_below).map(RuleRow::rules).collect();
        assert_eq!((below, is_below(&rows.last().unwrap())), (vec![227, 1], true));
    }
}
