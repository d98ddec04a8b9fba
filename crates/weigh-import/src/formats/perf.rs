//! `perf stat -x,`: a line per event, `VALUE,UNIT,EVENT,…` (perf-stat(1), "CSV FORMAT"); `;` and tabs
//! separate as well.

use crate::{Document, ForeignFormat, ImportedResults, Problem, figure, number, per_second};
use weigh_model::result::imported::{Better, Figure};

pub static IMPORT: ForeignFormat = ForeignFormat {
    name: "perf",
    what: "perf stat -x,",
    rank: 0,
    is_json: false,
    is_it,
    read: |text| read(text).map(Document::of),
};

const SEPARATORS: [char; 3] = [',', ';', '\t'];

/// Returns true if every line with content has the shape of an event.
fn is_it(text: &str) -> bool {
    let mut lines = said(text).peekable();
    lines.peek().is_some() && lines.all(|(_, line)| event(line).is_some())
}

fn read(text: &str) -> Result<Vec<ImportedResults>, Problem> {
    let mut figures: Vec<Figure> = Vec::new();
    for (at, line) in said(text) {
        let problem = || {
            let shape = "expected an event of perf stat -x, such as `VALUE,UNIT,EVENT,…`";
            (Some(at + 1), format!("{shape}; found {line:?}"))
        };
        let (value, unit, name) = event(line).ok_or_else(problem)?;
        // What the machine cannot count is no figure: `<not supported>`, `<not counted>`.
        let Some(value) = value else {
            continue;
        };
        let is_time = per_second(unit).is_some() || is_clock(name);
        let unit = match unit {
            "" if is_time => "ns",
            "" => "events",
            unit => unit,
        };
        let better = if is_time { Better::Less } else { Better::Neither };
        figures.push(Figure { better, ..figure(name, value, unit) });
    }
    Ok(vec![ImportedResults {
        format: "perf stat".into(),
        label: None,
        figures,
        ..Default::default()
    }])
}

/// Events that count nanoseconds and say no unit.
fn is_clock(event: &str) -> bool {
    matches!(event, "duration_time" | "user_time" | "system_time")
}

/// The lines that are no comment.
fn said(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let lines = text.lines().enumerate();
    lines.filter(|(_, line)| !line.trim().is_empty() && !line.trim_start().starts_with('#'))
}

/// Value, unit and name; the value is `None` for an event that was not counted.
fn event(line: &str) -> Option<(Option<f64>, &str, &str)> {
    let separator = SEPARATORS.into_iter().find(|separator| line.contains(*separator))?;
    let mut cells = line.split(separator).map(str::trim);
    let (value, unit, name) = (cells.next()?, cells.next()?, cells.next()?);
    let value = match value.starts_with("<not ") {
        true => None,
        false => Some(number(value)?),
    };
    let is_name = name.starts_with(|c: char| c.is_ascii_alphabetic());
    // fio's terse output has its version there.
    let is_unit = !unit.contains(|c: char| c.is_ascii_digit());
    (is_name && is_unit).then_some((value, unit, name))
}
