//! A curve on a terminal: a table with a row per point, and a bar as long as its value.

use anstyle::Style;

use super::paint::{BOLD, FAINT, paint};
use super::table::{Align, BarRoom, Layout, TextCell};
use super::text::wrap;

const WIDEST_BAR: usize = 40;
/// A shorter bar shows no shape.
const SHORTEST_BAR: usize = 8;
const INDENT: usize = 2;
const EIGHTHS: [&str; 8] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];

/// A row: its cells, and its value as a share of the longest bar.
pub struct PlotRow {
    pub cells: Vec<String>,
    pub share: f64,
}

/// The lines; a column that is empty in every row is left out, and the bar where there is no room.
pub fn lines(
    title: &str,
    columns: &[&str],
    points: &[PlotRow],
    width: usize,
    colour: bool,
) -> Vec<String> {
    let bars = |point: usize, room: usize| bar(points[point].share, room);
    let rows: Vec<&PlotRow> = points.iter().collect();
    drawn(title, columns, &rows, &bars, (width, colour))
}

/// Draws the points with a second value in each row. Both values share one bar: the part that both
/// reach, and the part that only one reaches.
pub fn lines_with_bars(
    title: &str,
    columns: &[&str],
    points: &[(PlotRow, f64)],
    width: usize,
    colour: bool,
) -> Vec<String> {
    let cells = |share: f64, room: usize| (share.clamp(0.0, 1.0) * room as f64).round() as usize;
    let bars = |point: usize, room: usize| {
        let (row, other) = &points[point];
        let (one, other) = (cells(row.share, room), cells(*other, room));
        let both = "█".repeat(one.min(other));
        both + &"░".repeat(one.saturating_sub(other)) + &"▒".repeat(other.saturating_sub(one))
    };
    let rows: Vec<&PlotRow> = points.iter().map(|(row, _)| row).collect();
    drawn(title, columns, &rows, &bars, (width, colour))
}

fn drawn(
    title: &str,
    columns: &[&str],
    points: &[&PlotRow],
    bars: &dyn Fn(usize, usize) -> String,
    (width, colour): (usize, bool),
) -> Vec<String> {
    let widths: Vec<usize> = (0..columns.len())
        .map(|i| {
            let widest = points.iter().map(|point| point.cells[i].chars().count()).max();
            widest.filter(|widest| *widest > 0).map_or(0, |w| w.max(columns[i].chars().count()))
        })
        .collect();
    let bar = BarRoom { before: columns.len(), least: SHORTEST_BAR, most: WIDEST_BAR };
    let layout = Layout::new(widths, [], Some(bar), width.saturating_sub(INDENT));
    let line = |texts: &[&str], bar: &str| {
        let plain = Style::new();
        let cells: Vec<TextCell> = texts.iter().map(|text| (*text, Align::Right, plain)).collect();
        " ".repeat(INDENT) + &layout.line(&cells, Some((bar, plain)), false)
    };
    let mut lines: Vec<String> =
        wrap(title, width, 0).iter().map(|line| paint(line, BOLD, colour)).collect();
    lines.push(paint(&line(columns, ""), FAINT, colour));
    for (number, point) in points.iter().enumerate() {
        let texts: Vec<&str> = point.cells.iter().map(String::as_str).collect();
        lines.push(line(&texts, &bars(number, layout.bar())));
    }
    lines
}

/// As long as its value: a share of `room` cells.
pub(super) fn bar(share: f64, room: usize) -> String {
    let share = if share.is_finite() { share.clamp(0.0, 1.0) } else { 0.0 };
    let eighths = (share * room as f64 * 8.0).round() as usize;
    "█".repeat(eighths / 8) + EIGHTHS[eighths % 8]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bar_is_as_long_as_its_value() {
        let bars = [0.0, 0.5, 0.5625, 1.0, 7.0, f64::NAN].map(|share| bar(share, 8));
        assert_eq!(bars, ["", "████", "████▌", "████████", "████████", ""]);
    }

    #[test]
    fn bars_fill_the_room_and_go_where_there_is_none() {
        let point = |x: &str, share| PlotRow { cells: vec![x.into(), String::new()], share };
        let points = [point("4K", 0.5), point("64K", 1.0)];
        let shown = |width| lines("memory", &["bytes", "empty"], &points, width, false);
        assert_eq!(shown(19), ["memory", "  bytes", "     4K  █████", "    64K  ██████████"]);
        assert_eq!(shown(16)[3], "    64K");
    }
}
