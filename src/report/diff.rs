//! Two experiments side by side, as text and as JSON (`docs/diff.md`).

use serde::Serialize;

use super::format;
use super::machine;
use super::paint::{BOLD, FAINT, paint};
use super::table::{Align, Table};
use super::text::wrap;
use crate::machine::Facts;
use crate::stats::estimate::median;

/// The version of the JSON document; it changes when a field changes its meaning or goes.
pub const SCHEMA: &str = "weighbridge/diff/1";

/// Facts that change by themselves, and so explain nothing.
const RESTLESS: [&str; 6] =
    ["uptime", "load 1min", "psi cpu avg10", "steal ticks", "thermal throttles", "swap free"];

/// How a later experiment differs from an earlier one.
#[derive(Clone, Debug, Serialize)]
pub struct Diff {
    /// Always [`SCHEMA`].
    pub schema: &'static str,
    pub before: Side,
    pub after: Side,
    /// Error rate of each interval by itself, e.g. 0.05.
    pub alpha: f64,
    /// What was not decided by pairs, and how wide that makes the answer; one sentence.
    pub caveat: String,
    /// Facts of the machine that are not the same.
    pub machine: Vec<FactChange>,
    pub results: Vec<Row>,
    /// Workloads with their treatments that only one of the two has.
    pub only_in_one: Vec<String>,
}

/// One of the two experiments.
#[derive(Clone, Debug, Serialize)]
pub struct Side {
    pub id: String,
    pub started: String,
    pub command: String,
}

/// A fact of the machine; an empty text is one that is not known.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FactChange {
    pub fact: String,
    pub before: String,
    pub after: String,
}

/// A workload, under a treatment, in both.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    pub workload: String,
    /// The treatment, or that of the only arm of a run.
    pub treatment: String,
    pub unit: String,
    /// Of the baseline, or of the only arm.
    pub rate: Change,
    /// Of the treated rate over the baseline's; absent for runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub effect: Option<Change>,
}

/// A number before and after.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Change {
    /// A rate in the row's unit, or an effect in per cent.
    pub before: f64,
    pub after: f64,
    /// The later ratio or rate over the earlier, less 1, in per cent.
    pub change_pct: f64,
    /// Of the noise within both experiments; `None` where that side is not bounded.
    pub low_pct: Option<f64>,
    pub high_pct: Option<f64>,
    /// Whether the interval leaves out 0.
    pub is_beyond_noise: bool,
}

impl Change {
    /// Half the width of the interval, in per cent.
    fn half_width_pct(&self) -> Option<f64> {
        Some((self.high_pct? - self.low_pct?) / 2.0)
    }

    /// Whether it got worse by more than `limit_pct`, beyond the noise within the experiments.
    pub fn is_worse_by(&self, limit_pct: f64) -> bool {
        self.is_beyond_noise && self.change_pct < -limit_pct
    }
}

/// The one sentence that no reader of such a comparison may miss.
pub fn caveat(rows: &[Row]) -> String {
    let middle = |changes: Vec<Option<f64>>| -> String {
        let known: Vec<f64> = changes.into_iter().flatten().collect();
        match median(&known) {
            Some(pct) => format!("±{} %", format::unsigned(pct)),
            None => "any size".to_owned(),
        }
    };
    let rates = middle(rows.iter().map(|row| row.rate.half_width_pct()).collect());
    let effects: Vec<&Change> = rows.iter().filter_map(|row| row.effect.as_ref()).collect();
    let effects = match effects.is_empty() {
        true => String::new(),
        false => {
            let width = middle(effects.iter().map(|effect| effect.half_width_pct()).collect());
            format!(" and {width} of an effect")
        }
    };
    format!(
        "They were not paired: the noise within the two hides {rates} of a rate{effects} (medians over the \
         rows), and what differs from one experiment to the next (boot, memory layout, heat, neighbours) \
         comes on top; two experiments cannot tell how much that is."
    )
}

/// What is not the same in two machines, or in one at two times.
pub fn machine_changes(before: &Facts, after: &Facts) -> Vec<FactChange> {
    let (before, after) = (machine::facts(before), machine::facts(after));
    let value = |facts: &[(String, String)], name: &str| {
        facts
            .iter()
            .find(|(key, _)| key == name)
            .map(|(_, value)| value.clone())
            .unwrap_or_default()
    };
    let added = after.iter().filter(|(key, _)| before.iter().all(|(known, _)| known != key));
    let names = before.iter().chain(added).map(|(key, _)| key.as_str());
    names
        .filter(|name| !RESTLESS.contains(name))
        .map(|name| FactChange {
            fact: name.to_owned(),
            before: value(&before, name),
            after: value(&after, name),
        })
        .filter(|change| change.before != change.after)
        .collect()
}

/// The whole document, indented, with a newline at its end.
///
/// # Errors
/// None today; as for the other formats.
pub fn json(diff: &Diff) -> Result<String, serde_json::Error> {
    Ok(serde_json::to_string_pretty(diff)? + "\n")
}

/// The report in lines of at most `width` characters.
pub fn text(diff: &Diff, width: usize, colour: bool) -> String {
    let mut lines = wrap(&format!("{} {}", sentence(diff), diff.caveat), width, 0);
    lines.push(String::new());
    for (number, line) in table(diff).to_lines(width).iter().enumerate() {
        let style = if number == 0 { FAINT } else { anstyle::Style::new() };
        lines.push(paint(line, style, colour));
    }
    let mut list = |title: &str, items: Vec<String>| {
        if !items.is_empty() {
            lines.extend([String::new(), paint(title, BOLD, colour)]);
            lines.extend(items.iter().flat_map(|item| wrap(&format!("- {item}"), width, 2)));
        }
    };
    let known = |text: &str| if text.is_empty() { "not known".into() } else { format::label(text) };
    let changes = diff.machine.iter();
    let changes =
        changes.map(|c| format!("{}: {}, then {}", c.fact, known(&c.before), known(&c.after)));
    list("What else was not the same", changes.collect());
    list("Only in one of them", diff.only_in_one.iter().map(|name| format::label(name)).collect());
    lines.push(String::new());
    for (word, side) in [("before", &diff.before), ("after ", &diff.after)] {
        let command = format::label(&side.command);
        lines.push(paint(
            &format!("{word}: {} of {}: {command}", side.id, side.started),
            FAINT,
            colour,
        ));
    }
    lines.join("\n") + "\n"
}

fn sentence(diff: &Diff) -> String {
    let rates = diff.results.iter().filter(|row| row.rate.is_beyond_noise).count();
    let effects = diff.results.iter().filter_map(|row| row.effect);
    let differing = effects.clone().filter(|effect| effect.is_beyond_noise).count();
    let rows = format::plural(diff.results.len(), "row");
    let effects = match effects.count() {
        0 => String::new(),
        _ => format!(", and the effect in {differing}"),
    };
    format!(
        "From {} to {} the rate of the baseline changed by more than the noise within the two in {rates} of \
         {rows}{effects}.",
        diff.before.id, diff.after.id
    )
}

fn table(diff: &Diff) -> Table {
    let changes = |change: &Change| {
        let mark = if change.is_beyond_noise { "" } else { " ~" };
        [
            format!("{}{mark}", format::percent(change.change_pct)),
            format::interval(change.low_pct, change.high_pct),
        ]
    };
    let cells = |row: &Row| {
        let [change, interval] = changes(&row.rate);
        let mut cells = vec![
            format::label(&row.workload),
            format::label(&row.treatment),
            format::rate(row.rate.before, &row.unit),
            format::rate(row.rate.after, &row.unit),
            format::label(&row.unit),
            change,
            interval,
        ];
        let of_effect = |effect: &Change| {
            let [change, interval] = changes(effect);
            vec![format::percent(effect.before), format::percent(effect.after), change, interval]
        };
        cells.extend(row.effect.as_ref().map_or_else(|| vec![String::new(); 4], of_effect));
        cells
    };
    let columns = vec![
        ("workload", Align::Left),
        ("treatment", Align::Left),
        ("before", Align::Right),
        ("after", Align::Right),
        ("unit", Align::Left),
        ("rate", Align::Right),
        ("interval", Align::Left),
        ("effect before", Align::Right),
        ("after", Align::Right),
        ("change", Align::Right),
        ("interval", Align::Left),
    ];
    Table::new(columns, diff.results.iter().map(cells).collect())
}
