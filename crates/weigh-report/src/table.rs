//! A table that every format can show: text in cells, and which side they lean to. And how columns of any
//! table of text share a line.

use anstyle::Style;

use super::markdown_text::Markdown;
use super::paint::paint;
use weigh_model::format;
use weigh_model::format::names::Names;

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

/// Columns of titles with a bar between them; `>` before a title leans it to the right.
pub fn columns(titles: &str) -> Vec<(&str, Align)> {
    let column = |title| match str::strip_prefix(title, '>') {
        Some(right) => (right, Align::Right),
        None => (title, Align::Left),
    };
    titles.split('|').map(column).collect()
}

/// Between two columns of text.
const GAP: usize = 2;
/// Names are cut to this before a column goes.
const LEAST_NAME: usize = 20;

impl Table {
    /// Makes a table, leaving out the columns that are empty in every row.
    pub fn new(columns: Vec<(&str, Align)>, rows: Vec<Vec<String>>) -> Table {
        // A cell without a column would stand below another one's title.
        debug_assert!(rows.iter().all(|row| row.len() <= columns.len()), "{columns:?}");
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

    /// Lines of at most `width` characters. When there is no room, long names in the first column are cut,
    /// but stay distinct; then the last columns go first.
    pub fn to_lines(&self, width: usize) -> Vec<String> {
        let titles: Vec<String> = self.columns.iter().map(|(title, _)| title.clone()).collect();
        let all = || std::iter::once(&titles).chain(&self.rows);
        let count = self.columns.len();
        let widest = |i: usize| all().filter_map(|row| row.get(i)).map(|c| c.chars().count()).max();
        let mut widths: Vec<usize> = (0..count).map(|i| widest(i).unwrap_or(0)).collect();
        let longest_name = widths.first().copied().unwrap_or(0);
        widths.iter_mut().take(1).for_each(|name| *name = longest_name.min(LEAST_NAME));
        let last_first: Vec<usize> = (1..count).rev().collect();
        let last_first = last_first.chunks(1).map(|column| (column, 0));
        let mut layout = Layout::new(widths, last_first, None, width);
        let room = width.saturating_sub(layout.width());
        layout.widths.iter_mut().take(1).for_each(|name| *name = longest_name.min(*name + room));
        let names = all().filter_map(|row| row.first()).map(String::as_str);
        let names = Names::cut(names, layout.widths.first().copied().unwrap_or(0));
        let line = |row: &Vec<String>| {
            let cells = row.iter().zip(&self.columns).enumerate();
            let cells: Vec<TextCell> = cells
                .map(|(i, (cell, (_, align)))| {
                    let text = if i == 0 { names.shown(cell) } else { cell.as_str() };
                    (text, *align, Style::new())
                })
                .collect();
            layout.line(&cells, None, false)
        };
        all().map(line).collect()
    }

    /// Returns true if a line of this width has room for all columns.
    pub fn fits(&self, width: usize) -> bool {
        let widest = |i: usize| {
            let cells =
                self.rows.iter().filter_map(|row| row.get(i)).map(|cell| cell.chars().count());
            cells.chain([self.columns[i].0.chars().count()]).max().unwrap_or(0)
        };
        let mut widths: Vec<usize> = (0..self.columns.len()).map(widest).collect();
        widths.iter_mut().take(1).for_each(|name| *name = LEAST_NAME.min(*name));
        used(&widths) <= width
    }

    /// A GitHub table; a bar or a line break in a cell would end it.
    pub fn to_markdown(&self) -> Markdown {
        let line = |cells: Vec<Markdown>| {
            Markdown::of(["| ".into(), Markdown::joined(cells, " | "), " |\n".into()])
        };
        let titles = self.columns.iter().map(|(title, _)| Markdown::cell(title));
        let rules = self.columns.iter().map(|(_, align)| match align {
            Align::Left => "---".into(),
            Align::Right => "---:".into(),
        });
        let rows = self.rows.iter().map(|row| row.iter().map(|cell| Markdown::cell(cell)));
        let head = [line(titles.collect()), line(rules.collect())];
        Markdown::of(head.into_iter().chain(rows.map(|row| line(row.collect()))))
    }
}

/// Text of a cell, its side of the column, and its style.
pub type TextCell<'a> = (&'a str, Align, Style);

/// Space that a column of bars needs.
#[derive(Clone, Copy, Debug)]
pub struct BarRoom {
    /// The column that the bar stands before; none, if it is the last one.
    pub before: usize,
    /// It goes itself if it is narrower than this.
    pub least: usize,
    /// A wider one says nothing more.
    pub most: usize,
}

/// How columns share a line.
#[derive(Clone, Debug)]
pub struct Layout {
    /// In characters; 0 for a column that was left out.
    widths: Vec<usize>,
    bar: Option<(usize, usize)>,
}

impl Layout {
    /// Fits columns and bar into `width`. `widths` has the wanted width of each column (0: empty column).
    /// `expendable` has the columns to drop, in order, each with the bar width that outranks it (0: the
    /// column outranks any bar). If all else is dropped, the first column is cut.
    pub fn new<'a>(
        mut widths: Vec<usize>,
        expendable: impl IntoIterator<Item = (&'a [usize], usize)>,
        bar: Option<BarRoom>,
        width: usize,
    ) -> Layout {
        // There may be thousands of columns: they are not added up again for each.
        let mut taken = used(&widths);
        for (columns, bar) in expendable {
            let bar = if bar > 0 { bar + GAP } else { 0 };
            if taken + bar > width {
                for column in columns {
                    let gap = if widths[*column] > 0 { GAP } else { 0 };
                    taken = taken.saturating_sub(widths[*column] + gap);
                    widths[*column] = 0;
                }
            }
        }
        if let Some(first) = widths.first().copied() {
            let others = used(&widths) - first;
            widths[0] = first.min(width.saturating_sub(others));
        }
        let bar = bar.and_then(|bar| {
            let cells = width.saturating_sub(used(&widths) + GAP).min(bar.most);
            (cells >= bar.least).then_some((bar.before, cells))
        });
        Layout { widths, bar }
    }

    /// The width of a column; 0 if it was left out.
    pub fn column(&self, column: usize) -> usize {
        self.widths[column]
    }

    /// The width of the bar; 0 if there is none.
    pub fn bar(&self) -> usize {
        self.bar.map_or(0, |(_, cells)| cells)
    }

    pub fn width(&self) -> usize {
        used(&self.widths) + self.bar.map_or(0, |(_, cells)| cells + GAP)
    }

    /// A line of cells, one for each column, and the bar with its style.
    pub fn line(&self, cells: &[TextCell], bar: Option<(&str, Style)>, colour: bool) -> String {
        let mut parts = Vec::new();
        let mut put = |column: usize| {
            if let (Some((before, _)), Some((bar, style))) = (self.bar, bar)
                && before == column
            {
                parts.push(paint(bar, style, colour));
            }
            if let (Some((text, align, style)), Some(width)) =
                (cells.get(column), self.widths.get(column).filter(|width| **width > 0))
            {
                parts.push(paint(&pad(text, *width, *align), *style, colour));
            }
        };
        (0..=cells.len()).for_each(&mut put);
        parts.join(&" ".repeat(GAP)).trim_end().to_owned()
    }
}

/// Returns the width of all columns, with the gaps between them.
fn used(widths: &[usize]) -> usize {
    let with_gaps: usize = widths.iter().filter(|w| **w > 0).map(|w| w + GAP).sum();
    with_gaps.saturating_sub(GAP)
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
    fn long_names_are_cut_before_a_column_goes_and_stay_distinct() {
        let [few, many] =
            ["getppid under seccomp:compares=50", "getppid under seccomp:compares=500"];
        let row = |name: &str| vec![name.to_owned(), "1,000".to_owned()];
        let columns = vec![("name", Align::Left), ("n", Align::Right)];
        let table = Table::new(columns, vec![row(few), row(many)]);
        let of_width = |width| table.to_lines(width)[1..].to_vec();
        assert_eq!(
            of_width(30),
            ["getppid und…compares=50  1,000", "getppid und…ompares=500  1,000"]
        );
        assert!(of_width(usize::MAX)[1].starts_with(many));
    }

    #[test]
    fn markdown_escapes_what_would_break_the_row() {
        let text = Markdown::document(vec![table().to_markdown()]);
        assert_eq!(text.lines().nth(1), Some("| --- | ---: |"));
        assert_eq!(text.lines().nth(2), Some("| a\\|b | 1 |"));
    }

    #[test]
    fn a_table_without_rows_has_no_columns() {
        assert!(Table::new(vec![("a", Align::Left)], vec![]).columns.is_empty());
    }
}
