//! Two experiments side by side, as text and as JSON (`docs/diff.md`).

use serde::Serialize;

use super::format;
pub use super::machine::{FactChange, machine_changes};
use super::paint::{BOLD, FAINT, paint};
use super::table::{Align, Table};
use super::text::wrap;
use crate::stats::estimate::median;

/// The version of the JSON document; it changes when a field changes its meaning or goes.
pub const SCHEMA: &str = "weighbridge/diff/1";

/// Longer names would not leave room for the numbers.
const LONGEST_NAME: usize = 24;

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

    /// Whether it is shown to have got worse by more than `limit_pct`: the whole interval, which holds
    /// the noise within the experiments, lies beyond it.
    pub fn is_worse_by(&self, limit_pct: f64) -> bool {
        self.high_pct.is_some_and(|high| high < -limit_pct)
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
    for (title, table) in [("Rate of the baseline", rates(diff)), ("Effect", effects(diff))] {
        if table.rows.is_empty() {
            continue;
        }
        lines.extend([String::new(), paint(title, BOLD, colour)]);
        for (number, line) in table.to_lines(width).iter().enumerate() {
            let style = if number == 0 { FAINT } else { anstyle::Style::new() };
            lines.push(paint(line, style, colour));
        }
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
    let rows = diff.results.len();
    let effects = match effects.count() {
        0 => String::new(),
        count => format!(", and {differing} of {count} effects"),
    };
    format!(
        "From {} to {}, {rates} of {rows} baseline rates changed beyond noise{effects}.",
        diff.before.id, diff.after.id
    )
}

/// A column of rates takes the unit; effects are per cent already.
fn rates(diff: &Diff) -> Table {
    let shown = |row: &Row, rate: f64| format::rate(rate, &row.unit);
    let cells = |row: &Row| {
        let [before, after] = [row.rate.before, row.rate.after].map(|rate| shown(row, rate));
        [names(row), vec![before, after, format::label(&row.unit)], change(&row.rate)].concat()
    };
    let unit = [("unit", Align::Left)];
    Table::new(columns(&unit), diff.results.iter().map(cells).collect())
}

/// The effects, without rows for runs.
fn effects(diff: &Diff) -> Table {
    let cells = |row: &Row| {
        let effect = row.effect?;
        let shown = [effect.before, effect.after].map(format::percent).to_vec();
        Some([names(row), shown, change(&effect)].concat())
    };
    Table::new(columns(&[]), diff.results.iter().filter_map(cells).collect())
}

fn columns(unit: &[(&'static str, Align)]) -> Vec<(&'static str, Align)> {
    let [left, right] = [Align::Left, Align::Right];
    let first = [("workload", left), ("treatment", left), ("before", right), ("after", right)];
    [&first[..], unit, &[("change", right), ("", left), ("interval", left)]].concat()
}

fn names(row: &Row) -> Vec<String> {
    let names = [&row.workload, &row.treatment];
    names.map(|name| format::shorten(&format::label(name), LONGEST_NAME)).to_vec()
}

/// A change that the noise within the experiments explains is marked.
fn change(change: &Change) -> Vec<String> {
    let mark = if change.is_beyond_noise { "" } else { "~" };
    let interval = format::interval(change.low_pct, change.high_pct);
    vec![format::percent(change.change_pct), mark.to_owned(), interval]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::Facts;

    fn diff() -> Diff {
        let side =
            |id: &str| Side { id: id.into(), started: "then".into(), command: "weigh".into() };
        let change = |before, after, change_pct, is_beyond_noise| Change {
            before,
            after,
            change_pct,
            low_pct: Some(change_pct - 2.0),
            high_pct: Some(change_pct + 2.0),
            is_beyond_noise,
        };
        let row = |effect| Row {
            workload: "getppid".into(),
            treatment: "seccomp".into(),
            unit: "lps".into(),
            rate: change(1000.0, 900.0, -10.0, true),
            effect,
        };
        let results = vec![row(None), row(Some(change(-20.0, -19.0, 1.25, false)))];
        let other = Facts { kernel: "6.6".into(), uptime_s: Some(5.0), ..Facts::default() };
        Diff {
            schema: SCHEMA,
            before: side("aaa"),
            after: side("bbb"),
            alpha: 0.05,
            caveat: caveat(&results),
            machine: machine_changes(&Facts::default(), &other),
            results,
            only_in_one: vec!["stat under none (lps): aaa".into()],
        }
    }

    #[test]
    fn the_caveat_is_said_before_any_number_and_tells_the_width() {
        let text = text(&diff(), 100, false);
        let place = |part| text.find(part).unwrap_or_else(|| panic!("`{part}` is missing: {text}"));
        assert!(place("They were not") < place("getppid"));
        assert!(place("2 of 2 baseline rates") < place("±2.00 % of a rate"), "{text}");
        assert!(place("−10.0 %") < place("+1.25 %  ~"), "{text}");
        assert!(place("kernel: not known, then 6.6") < place("stat under none"), "{text}");
        assert!(!text.contains("uptime") && !text.contains('\u{1b}'), "{text}");
    }

    #[test]
    fn only_commands_are_wider_than_the_terminal() {
        for width in [60, 80, 100] {
            let text = text(&diff(), width, false);
            let wide = text.lines().filter(|line| line.chars().count() > width);
            assert!(wide.clone().all(|line| line.contains(" of then: ")), "{text}");
        }
    }

    #[test]
    fn worse_is_what_fell_beyond_the_noise() {
        let rate = diff().results[0].rate;
        // −10 % is [−12 %, −8 %].
        assert!(rate.is_worse_by(7.9) && !rate.is_worse_by(8.1));
        assert!(!Change { high_pct: None, ..rate }.is_worse_by(1.0));
        assert!(!Change { high_pct: Some(-0.5), ..rate }.is_worse_by(1.0));
    }
}
