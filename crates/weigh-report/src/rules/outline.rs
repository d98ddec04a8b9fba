//! Costs of rules, for formats without a layout of their own for them.

use super::rule_table::{self, FileNames};
use super::{tables, words};
use crate::outline::{Outline, OutlineTable};
use weigh_model::format;
use weigh_model::result::rules::{Rewrite, RuleReport};
use weigh_model::result::warning::Warning;

pub fn outline(r: &RuleReport) -> Outline {
    let files = FileNames::of(r);
    let lists = vec![
        ("Rewrites", r.rewrites.iter().map(|rewrite| described(r, rewrite, &files)).collect()),
        ("Not loaded", files.grouped(tables::left_out(r).into_iter())),
        ("Loaded with warnings", files.grouped(tables::warned(r).into_iter())),
        ("Not measured", words::not_measured(r)),
        ("Warnings", r.warnings.iter().map(Warning::to_string).collect()),
        ("Notes", words::notes(r)),
    ];
    Outline { sentences: words::sentences(r), tables: all_tables(r), lists }
}

fn all_tables(r: &RuleReport) -> Vec<OutlineTable> {
    let rows = rule_table::alike(r);
    if rows.is_empty() {
        return Vec::new();
    }
    let table = |title: &str, table, legend: &str| OutlineTable::new(title, table, legend);
    let (mix, unit) = (format::label(&r.mix), words::unit(r.metric));
    let most_expensive = rule_table::most_expensive(r, &rows, usize::MAX);
    let mut all = vec![
        table("The rules, most expensive first", most_expensive, &rule_table::legend(r)),
        table("By kind", tables::classes(r), ""),
        table(&format!("Per system call of {mix}"), tables::sums(r), ""),
        table(&format!("Cost of each operation, in {unit}"), tables::operations(r), ""),
    ];
    let elapsed = tables::elapsed(r);
    all.extend(elapsed.map(|elapsed| table("In nanoseconds of wall-clock time", elapsed, "")));
    all
}

/// Describes a rewrite: the lines that it removes and adds, its saving, and the records that it
/// loses.
fn described(r: &RuleReport, rewrite: &Rewrite, files: &FileNames) -> String {
    let lines: Vec<String> = rewrite.with.iter().map(|line| format!("`{line}`")).collect();
    let replaced = words::replaced(r, rewrite);
    let place = match replaced.is_empty() {
        true => "before all other rules".to_owned(),
        false => format!("in place of {}", files.places(&replaced)),
    };
    format!(
        "{}: {}. Put {} {place}; gives up: {}",
        format::label(&rewrite.title),
        words::saving(r, rewrite),
        lines.join(" "),
        words::given_up(rewrite)
    )
}
