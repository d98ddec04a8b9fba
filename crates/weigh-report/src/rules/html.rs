//! Costs of rules, as one HTML file. It has bars for the operations, the kinds and the most
//! expensive rules, then suggested rewrites, and a table of every line.

use std::fmt::Display;

use minijinja::{Value, context};

use super::rule_table::{self, FileNames, RuleRow};
use super::{tables, words};
use crate::html::{fill, machine_facts, parts, table, unbroken};
use crate::table::{Align, Table};
use weigh_model::format;
use weigh_model::format::number;
use weigh_model::result::rules::{CostInterval, LineReport, Rewrite, RuleReport, Standing};

/// As high as an item of the lists beside the bars: see the style sheet.
const ROW_HEIGHT: usize = 26;
/// Rules with a bar.
const BARS: usize = 20;
const LONGEST_NAME: usize = 72;

pub fn page(r: &RuleReport) -> Result<String, String> {
    let said = words::sentences(r);
    let (headline, rest) = said.split_first().map_or(("", &[][..]), |(a, b)| (a.as_str(), b));
    let lines = rule_table::one_by_one(r);
    let names = FileNames::of(r);
    let placed = |said: Vec<(String, &LineReport)>| {
        let rows = said
            .into_iter()
            .map(|(reason, line)| (names.place(line), reason.replace('`', ""), &line.text))
            .map(|(place, reason, text)| vec![place, reason, format::label(text)]);
        let columns = [("line", Align::Left), ("reason", Align::Left), ("text", Align::Left)];
        let table_of = Table::new(columns.to_vec(), rows.collect());
        (!table_of.rows.is_empty()).then(|| table(&table_of))
    };
    let filled = fill(
        "rules.html",
        context! {
            id => "weigh rules",
            plain => headline.replace('`', ""),
            files => format::shorten(&names.all().join(", "), LONGEST_NAME),
            headline => parts(headline),
            rest => parts(&rest.join(" ")),
            figures => figures(r, &rule_table::alike(r)),
            rewrites => r.rewrites.iter().map(|one| cheaper(r, one, &names)).collect::<Vec<Value>>(),
            left_out => placed(tables::left_out(r)),
            warned => placed(tables::warned(r)),
            not_measured => sentences(&words::not_measured(r)),
            warnings => sentences(&r.warnings),
            notes => sentences(&words::notes(r)),
            mix => format::label(&r.mix),
            unit => words::unit(r.metric),
            sums => (!lines.is_empty()).then(|| table(&tables::sums(r))),
            operations => table(&tables::operations(r)),
            by_the_clock => tables::elapsed(r).map(|elapsed| table(&elapsed)),
            classes => table(&tables::classes(r)),
            lines => table(&rule_table::most_expensive(r, &lines, usize::MAX)),
            legend => rule_table::legend(r).trim_end_matches('.'),
            machine => machine_facts(&r.machine),
            command => format::label(&r.command),
            elapsed => format::seconds(r.elapsed_s),
        },
    );
    filled.map_err(|error| format!("the HTML report could not be written: {error}"))
}

/// Each in pieces, with the names of which are between backticks.
fn sentences(all: &[impl Display]) -> Vec<Vec<Value>> {
    all.iter().map(|sentence| parts(&format::label(sentence))).collect()
}

/// Bars for what there is something to draw of.
fn figures(r: &RuleReport, rows: &[RuleRow]) -> Vec<Value> {
    if rows.is_empty() {
        return Vec::new();
    }
    let has_bar = |row: &&RuleRow| row.standing().has_figure() && row.per_syscall().value > 0.0;
    let shown: Vec<&RuleRow> = rows.iter().filter(has_bar).take(BARS).collect();
    let unit = words::unit(r.metric);
    let parts =
        [("before", "without auditing"), ("armed", "with any rule"), ("rules", "with your rules")];
    let operations = figure(
        "Cost of each operation with all rules,",
        &format!("in {unit}; each bar has its own scale."),
        &parts,
        operations(r),
    );
    let classes = figure(
        "Cost of each kind of rule per system call,",
        &format!("its share of all lines, and in {unit}."),
        &[],
        classes(r),
    );
    let most_expensive = figure(
        &format!(
            "The {} most expensive rules:",
            shown.iter().map(|row| row.rules()).sum::<usize>()
        ),
        &format!("the cost of each per system call, in {unit}; similar rules share a bar."),
        &[("known", "confirmed by leaving out the rule"), ("alike", "the mean of its kind")],
        most_expensive(r, &shown),
    );
    let figures = [
        (operations, r.operations.len()),
        (classes, r.classes.len()),
        (most_expensive, shown.len()),
    ];
    figures.into_iter().filter(|(_, rows)| *rows > 0).map(|(figure, _)| figure).collect()
}

fn figure(title: &str, note: &str, keys: &[(&str, &str)], rows: Vec<Value>) -> Value {
    let keys = keys.iter().map(|&(class, text)| context! { class, text }).collect::<Vec<Value>>();
    context! { title, note, keys, height => ROW_HEIGHT * rows.len(), rows }
}

/// A bar and what stands at its sides; `parts` are places from 0 to 1, each with a class.
struct Bar {
    name: String,
    parts: Vec<(&'static str, f64, f64)>,
    interval: Option<(f64, f64)>,
    value: String,
    remark: String,
}

impl Bar {
    fn draw(self, row: usize) -> Value {
        let parts = self.parts.into_iter().map(|(class, from, to)| {
            context! { class, x => place(from), width => place(place_of(to) - place_of(from)) }
        });
        context! {
            y => ROW_HEIGHT * row + ROW_HEIGHT / 2,
            name => rule_table::shorten(&self.name, LONGEST_NAME),
            whole => self.name,
            parts => parts.collect::<Vec<Value>>(),
            low => self.interval.map(|(low, _)| place(low)),
            high => self.interval.map(|(_, high)| place(high)),
            value => unbroken(&self.value),
            remark => unbroken(&self.remark),
        }
    }
}

fn draw(bars: impl Iterator<Item = Bar>) -> Vec<Value> {
    bars.enumerate().map(|(row, bar)| bar.draw(row)).collect()
}

fn operations(r: &RuleReport) -> Vec<Value> {
    draw(r.operations.iter().map(|operation| {
        let [clean, armed, full] =
            [operation.clean, operation.armed, operation.full].map(|cost| cost.value);
        let whole = clean.max(armed).max(full);
        let (before, any) = (clean / whole, armed.max(clean) / whole);
        Bar {
            name: format::label(&operation.name),
            parts: vec![
                ("before", 0.0, before),
                ("armed", before, any),
                ("rules", any, full / whole),
            ],
            interval: None,
            value: format!("{} → {}", number(clean), number(full)),
            remark: words::times(operation.clean, operation.full)
                .map(|times| format!("×{times}"))
                .unwrap_or_default(),
        }
    }))
}

fn classes(r: &RuleReport) -> Vec<Value> {
    let mut classes: Vec<_> = r.classes.iter().collect();
    classes.sort_by(|a, b| b.per_syscall.value.total_cmp(&a.per_syscall.value));
    let most = classes.iter().map(|class| class.per_syscall.high).fold(0.0, f64::max);
    draw(classes.into_iter().map(|class| Bar {
        name: format!("{} × {}", format::integer(class.rules as u64), format::label(&class.title)),
        parts: vec![("known", 0.0, class.per_syscall.value / most)],
        interval: Some((class.per_syscall.low / most, class.per_syscall.high / most)),
        value: words::share(class.share_pct),
        remark: number(class.per_syscall.value),
    }))
}

fn most_expensive(r: &RuleReport, shown: &[&RuleRow]) -> Vec<Value> {
    let most = shown.iter().map(|row| row.per_syscall().high).fold(0.0, f64::max);
    let names = FileNames::of(r);
    draw(shown.iter().map(|row| {
        let (line, _) = row.first();
        let is_confirmed = row.standing() == Standing::Confirmed;
        let has_interval = is_confirmed || row.standing() == Standing::Contradicted;
        let CostInterval { value, low, high } = row.per_syscall();
        Bar {
            name: row.times() + &format::label(&line.text),
            parts: vec![(if is_confirmed { "known" } else { "alike" }, 0.0, value / most)],
            interval: has_interval.then_some((low / most, high / most)),
            value: rule_table::per_call(r, row),
            remark: names.place(line),
        }
    }))
}

fn cheaper(r: &RuleReport, rewrite: &Rewrite, names: &FileNames) -> Value {
    let replaced = words::replaced(r, rewrite).into_iter();
    let replaced = replaced.map(|line| {
        context! { place => names.place(line), text => format::label(&line.text) }
    });
    context! {
        title => format::label(&rewrite.title),
        saving => unbroken(&words::saving(r, rewrite)),
        replaced => replaced.collect::<Vec<Value>>(),
        with => rewrite.with.iter().map(format::label).collect::<Vec<String>>(),
        first => rewrite.is_first,
        gives_up => words::given_up(rewrite),
    }
}

/// A place from 0 to 1; what is no number is at 0.
fn place_of(at: f64) -> f64 {
    if at.is_finite() { at.clamp(0.0, 1.0) } else { 0.0 }
}

fn place(at: f64) -> String {
    format!("{:.2}%", 100.0 * place_of(at))
}

#[cfg(test)]
mod tests {
    use super::super::sample;
    use super::*;
    use weigh_model::result::rules::Fate;

    #[test]
    fn every_line_is_on_the_page_once_in_a_table() {
        let r = sample::stig();
        let text = page(&r).expect("the template renders");
        let files = FileNames::of(&r);
        for line in &r.lines {
            let cell = format!("<td>{}</td>", files.place(line));
            let wanted = 1 + line.warnings.len();
            assert_eq!(text.matches(&cell).count(), wanted, "{cell}");
        }
        assert_eq!(
            text.matches("class=\"known\"").count(),
            11 + 5,
            "of eleven rules and five kinds"
        );
        // Seventeen with `exe=`, and 96 lists.
        assert_eq!(text.matches("class=\"alike\"").count(), 2);
        assert!(text.contains("gives up") && text.contains("No hardware counters"));
    }

    #[test]
    fn operations_are_timed_by_the_clock_too() {
        let text = page(&sample::nginx()).expect("the template renders");
        let (_, below) =
            text.split_once("In nanoseconds of wall-clock time").expect("the table's caption");
        let table = below.split("</table>").next().unwrap_or_default();
        assert_eq!(table.matches("<tr>").count(), 1 + sample::nginx().operations.len(), "{table}");
    }

    #[test]
    fn what_disturbed_the_machine_is_on_the_page() {
        let page = page(&sample::stig()).unwrap();
        assert!(page.contains("<li>Load: the load average is 1.1 on 2 CPUs.</li>"), "{page}");
    }

    #[test]
    fn a_file_of_which_nothing_was_loaded_is_a_page() {
        let mut r = sample::stig();
        r.lines.retain(|line| !matches!(line.fate, Fate::Loaded(_)));
        let text = page(&r).expect("the template renders");
        assert!(text.contains("Nothing was measured") && !text.contains("class=\"bars\""));
        assert!(text.contains("Unknown field: obj_uid"));
    }
}
