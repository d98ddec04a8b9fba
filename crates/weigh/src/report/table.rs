//! A table that every format can show: text in cells, and which side they lean to.

use crate::format;

/// How a column is aligned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Align {
    Left,
    Right,
}

/// A title row and rows of cells; every row has as many cells as there are columns.
#[derive(Clone, Debug, PartialEq)]
pub struct Table {
    pub columns: Vec<(String, Align)>,
    pub rows: Vec<Vec<String>>,
}

/// Between two columns of text.
const GAP: &str = "  ";

impl Table {
    /// Makes a table, leaving out the columns that are empty in every row.
    pub fn new(columns: Vec<(&str, Align)>, rows: Vec<Vec<String>>) -> Table {
        let used: Vec<bool> = (0..columns.len())
            .map(|i| rows.iter().any(|row| row.get(i).is_some_and(|c| !c.is_empty())))
            .collect();
        let keep = |cells: Vec<String>| -> Vec<String> {
            let kept = cells.into_iter().zip(&used).filter(|(_, used)| **used);
            kept.map(|(cell, _)| cell).collect()
        };
        Table {
            columns: columns
                .iter()
                .zip(&used)
                .filter(|(_, used)| **used)
                .map(|((title, align), _)| ((*title).to_owned(), *align))
                .collect(),
            rows: rows.into_iter().map(keep).collect(),
        }
    }

    /// Lines of at most `width` characters: the last columns go first when there is no room.
    pub fn to_lines(&self, width: usize) -> Vec<String> {
        let titles: Vec<String> = self.columns.iter().map(|(title, _)| title.clone()).collect();
        let all = || std::iter::once(&titles).chain(&self.rows);
        let mut widths = Vec::new();
        let mut used = 0;
        for i in 0..self.columns.len() {
            let widest = all().filter_map(|row| row.get(i)).map(|cell| cell.chars().count());
            let widest = widest.max().unwrap_or(0);
            used += widest + if i == 0 { 0 } else { GAP.len() };
            if used > width && i > 0 {
                break;
            }
            widths.push(widest.min(width));
        }
        let line = |row: &Vec<String>| {
            let cells = row.iter().zip(&self.columns).zip(&widths);
            let cells: Vec<String> =
                cells.map(|((cell, (_, align)), width)| pad(cell, *width, *align)).collect();
            cells.join(GAP).trim_end().to_owned()
        };
        all().map(line).collect()
    }

    /// A GitHub table; a bar or a line break in a cell would end it.
    pub fn to_markdown(&self) -> String {
        let escape = |cell: &str| {
            format::label(cell).replace('\\', "\\\\").replace('|', "\\|").replace('<', "&lt;")
        };
        let line = |cells: Vec<String>| format!("| {} |\n", cells.join(" | "));
        let mut text = line(self.columns.iter().map(|(title, _)| escape(title)).collect());
        let rules = self.columns.iter().map(|(_, align)| match align {
            Align::Left => "---".to_owned(),
            Align::Right => "---:".to_owned(),
        });
        text += &line(rules.collect());
        for row in &self.rows {
            text += &line(row.iter().map(|cell| escape(cell)).collect());
        }
        text
    }
}

/// Fills to a number of characters, or cuts to it.
pub fn pad(text: &str, width: usize, align: Align) -> String {
    let text = format::shorten(text, width);
    match align {
        Align::Left => format!("{text:<width$}"),
        Align::Right => format!("{text:>width$}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> Table {
        Table::new(
            vec![("name", Align::Left), ("empty", Align::Right), ("n", Align::Right)],
            vec![
                vec!["a|b".into(), String::new(), "1".into()],
                vec!["c".into(), String::new(), "1,000".into()],
            ],
        )
    }

    #[test]
    fn empty_columns_go_and_numbers_lean_right() {
        assert_eq!(table().to_lines(80), ["name      n", "a|b       1", "c     1,000"]);
    }

    #[test]
    fn columns_without_room_go() {
        assert_eq!(table().to_lines(8), ["name", "a|b", "c"]);
        assert_eq!(table().to_lines(2), ["n…", "a…", "c"]);
    }

    #[test]
    fn markdown_escapes_what_would_break_the_row() {
        let text = table().to_markdown();
        assert_eq!(text.lines().nth(1), Some("| --- | ---: |"));
        assert_eq!(text.lines().nth(2), Some("| a\\|b | 1 |"));
    }

    #[test]
    fn a_table_without_rows_has_no_columns() {
        assert!(Table::new(vec![("a", Align::Left)], vec![]).columns.is_empty());
    }
}
