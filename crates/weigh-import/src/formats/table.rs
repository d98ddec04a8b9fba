//! A table out of a paper, as CSV: `test,unit,LABEL,…`, a column per state of the system.
//!
//! A label that comes again is another measurement of the same state: `off,on,off,on` is two sets.

use std::collections::HashSet;

use crate::{
    Document, ForeignFormat, ImportedResults, MOST_FIGURES, Problem, figure, number,
    too_many_figures, words,
};
use weigh_model::format;

pub static IMPORT: ForeignFormat = ForeignFormat {
    name: "table",
    what: "a CSV of test,unit,LABEL,…",
    rank: 1,
    is_json: false,
    is_it: |text| text.lines().map(str::trim).find(|line| is_said(line)).is_some_and(is_head),
    read: |text| read(text).map(Document::of),
};

/// Limit on columns: each becomes an experiment in memory.
const MOST_COLUMNS: usize = 10_000;

fn is_said(line: &str) -> bool {
    !line.trim().is_empty() && !line.starts_with('#')
}

/// Returns true if a first line is the head of such a table.
fn is_head(first: &str) -> bool {
    let cells: Vec<String> = split(first);
    cells.len() > 2
        && cells[0].eq_ignore_ascii_case("test")
        && cells[1].eq_ignore_ascii_case("unit")
}

/// Reads the table; a cell that is empty or `n/a` is a result that there is not.
fn read(text: &str) -> Result<Vec<ImportedResults>, Problem> {
    let mut lines = text.lines().enumerate().filter(|(_, line)| is_said(line));
    let head = lines.next().filter(|(_, line)| is_head(line)).ok_or_else(|| {
        (Some(1), "the first line is `test,unit,LABEL,…` with a label for each column".to_owned())
    })?;
    let column = |label: String| ImportedResults {
        format: "table".into(),
        label: Some(label),
        ..Default::default()
    };
    let labels = split(head.1);
    if labels.len() > MOST_COLUMNS + 2 {
        let count = labels.len() - 2;
        return Err((
            Some(head.0 + 1),
            format!(
                "the table has {count} columns, and the limit is {MOST_COLUMNS}: split the file"
            ),
        ));
    }
    let mut columns: Vec<ImportedResults> = labels.into_iter().skip(2).map(column).collect();
    let mut known: HashSet<(usize, String)> = HashSet::new();
    for (at, line) in lines {
        let said = |problem: String| (Some(at + 1), problem);
        let cells = split(line);
        if cells.len() != columns.len() + 2 {
            let wanted = columns.len() + 2;
            let cells = format::plural(cells.len(), "cell");
            return Err(said(format!("{cells}, but the first line has {wanted}")));
        }
        for (place, (column, cell)) in columns.iter_mut().zip(&cells[2..]).enumerate() {
            if cell.is_empty() || cell.eq_ignore_ascii_case("n/a") {
                continue;
            }
            let value = number(cell).ok_or_else(|| said(format!("{cell:?} is not a number")))?;
            if !known.insert((place, cells[0].clone())) {
                return Err(said(format!("{:?} appears twice", cells[0])));
            }
            if known.len() > MOST_FIGURES {
                return Err(said(too_many_figures()));
            }
            column.figures.push(figure(&cells[0], value, &cells[1]));
        }
    }
    Ok(columns)
}

/// The cells of a line; a comma may stand between quotes.
fn split(line: &str) -> Vec<String> {
    let mut cells = vec![String::new()];
    let mut is_quoted = false;
    for c in line.chars() {
        match c {
            '"' => is_quoted = !is_quoted,
            ',' if !is_quoted => cells.push(String::new()),
            c => cells.last_mut().expect("there is a first cell").push(c),
        }
    }
    cells.iter().map(|cell| words(cell)).collect()
}
