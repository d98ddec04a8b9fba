//! The one table of a text report: a row per workload and treatment, its interval drawn.

use super::bar::Bars;
use super::paint::{self, BOLD, FAINT, paint};
use super::scale::{EffectScale, Span};
use super::table::{Align, pad};
use super::versus;
use crate::format;
use crate::result::summary::{Row, Summary};
use paired::Verdict;

/// A bar narrower than this says nothing, so other columns go first.
const USEFUL_BAR: usize = 18;
/// A bar wider than this says nothing more.
const WIDEST_BAR: usize = 48;
const SMALLEST_BAR: usize = 8;
const LONGEST_NAME: usize = 24;
/// What names of workloads that ask a server begin with.
const APP: &str = "app:";
const GAP: usize = 2;

const COUNT: usize = 10;
/// The columns but for the bar, which stands before the verdict.
const COLUMNS: [(&str, Align); COUNT] = [
    ("workload", Align::Left),
    ("baseline", Align::Right),
    ("treated", Align::Right),
    ("unit", Align::Left),
    ("effect", Align::Right),
    ("factor", Align::Right),
    ("added/op", Align::Right),
    ("interval", Align::Left),
    ("verdict", Align::Left),
    ("pairs", Align::Right),
];
const EFFECT: usize = 4;
const ADDED: usize = 6;
const VERDICT: usize = 8;
/// The columns that go when there is no room, the least needed first: what follows from others, then the
/// rest.
const EXPENDABLE: [&[usize]; 6] = [&[7], &[2], &[9], &[1, 3], &[5, 6], &[8]];

/// The table, laid out for a width.
pub struct Results<'a> {
    summary: &'a Summary,
    bars: Bars,
    /// The width of each column; 0 for one that was left out.
    widths: [usize; COUNT],
}

impl<'a> Results<'a> {
    pub fn new(summary: &'a Summary, width: usize) -> Results<'a> {
        let mut widths = COLUMNS.map(|(title, _)| title.len());
        let longest_name = longest_name(summary, width);
        for row in &summary.results {
            for (width, cell) in widths.iter_mut().zip(cells(row, summary.margin_pct, longest_name))
            {
                *width = (*width).max(cell.chars().count());
            }
        }
        widths[0] = widths[0].min(longest_name).min(width);
        // Nothing is added to an operation where the rates are of no operations.
        if summary.results.iter().all(|row| row.cost.added_ns_per_op.is_none()) {
            widths[ADDED] = 0;
        }
        let room = |widths: &[usize; COUNT]| {
            let used: usize = widths.iter().filter(|w| **w > 0).map(|w| w + GAP).sum();
            width.saturating_sub(used)
        };
        for columns in EXPENDABLE {
            if room(&widths) < USEFUL_BAR {
                columns.iter().for_each(|column| widths[*column] = 0);
            }
        }
        let bar = room(&widths).min(WIDEST_BAR);
        if widths[0] + GAP + widths[EFFECT] > width {
            widths[0] = width.saturating_sub(widths[EFFECT] + GAP);
        }
        Results {
            summary,
            bars: Bars {
                scale: EffectScale::of(summary.results.iter().map(Span::from), summary.margin_pct),
                margin_pct: summary.margin_pct,
                cells: if bar < SMALLEST_BAR { 0 } else { bar },
            },
            widths,
        }
    }

    /// The lines of the table; with several treatments, each under its own name.
    pub fn lines(&self, colour: bool) -> Vec<String> {
        let mut titles = COLUMNS.map(|(title, _)| title.to_owned());
        for (title, own) in titles.iter_mut().zip(versus::titles(self.summary)) {
            own.clone_into(title);
        }
        let plain = [anstyle::Style::new(); COUNT];
        let head = self.line(&titles, self.bars.axis(), plain, anstyle::Style::new(), false);
        let mut lines = vec![paint(&head, FAINT, colour)];
        let groups = super::by_treatment(self.summary);
        let several = groups.len() > 1;
        for (treatment, rows) in groups {
            if several {
                let name = format::shorten(&format::label(treatment), self.total());
                lines.push(paint(&name, BOLD, colour));
            }
            lines.extend(rows.into_iter().map(|row| self.row(row, colour)));
        }
        lines
    }

    fn row(&self, row: &Row, colour: bool) -> String {
        let style = paint::of(row.verdict);
        let mut styles = [anstyle::Style::new(); COUNT];
        styles[EFFECT] = style;
        styles[VERDICT] = style;
        let bar = match has_interval(row) {
            true => self.bars.draw(row.into(), row.verdict != Verdict::Inconclusive),
            false => " ".repeat(self.bars.cells),
        };
        self.line(&cells(row, self.summary.margin_pct, self.widths[0]), bar, styles, style, colour)
    }

    fn line(
        &self,
        cells: &[String; COUNT],
        bar: String,
        styles: [anstyle::Style; COUNT],
        bar_style: anstyle::Style,
        colour: bool,
    ) -> String {
        let mut parts = Vec::new();
        for (i, cell) in cells.iter().enumerate() {
            if i == VERDICT && !bar.is_empty() {
                parts.push(paint(&bar, bar_style, colour));
            }
            if self.widths[i] > 0 {
                let text = pad(cell, self.widths[i], COLUMNS[i].1);
                parts.push(paint(&text, styles[i], colour));
            }
        }
        parts.join(&" ".repeat(GAP)).trim_end().to_owned()
    }

    fn total(&self) -> usize {
        let columns: usize = self.widths.iter().filter(|w| **w > 0).map(|w| w + GAP).sum();
        (columns + self.bars.cells).saturating_sub(GAP)
    }
}

/// An estimate that nothing bounds is that of too few pairs, and no number to show.
pub(super) fn has_interval(row: &Row) -> bool {
    row.low_pct.is_some() || row.high_pct.is_some()
}

/// Names with a server are long, and commands against each other are all that tells rows apart.
fn longest_name(summary: &Summary, width: usize) -> usize {
    let has_server = |row: &Row| row.workload.name.starts_with(APP);
    match summary.versus {
        Some(_) => LONGEST_NAME.max(width * 2 / 5),
        None if summary.results.iter().any(has_server) => LONGEST_NAME.max(width / 3),
        None => LONGEST_NAME,
    }
}

/// What tells rows of one workload apart stands at the end, and must not be what is cut.
fn name(row: &Row, longest: usize) -> String {
    let whole = format::label(&row.workload);
    let load = whole.strip_prefix(&*format::label(&row.workload.name)).unwrap_or_default();
    match whole.chars().count() {
        length if length > longest && !row.workload.name.contains(' ') => {
            let room = longest.saturating_sub(load.chars().count());
            format::shorten_name(&format::label(&row.workload.name), room) + load
        }
        _ => whole,
    }
}

fn cells(row: &Row, margin_pct: f64, longest_name: usize) -> [String; COUNT] {
    let [effect, treated, factor, added] = measured(row);
    [
        name(row, longest_name),
        format::rate(row.baseline, &row.unit),
        treated,
        format::label(&row.unit),
        effect,
        factor,
        added,
        format::interval(row.low_pct, row.high_pct),
        format::verdict(row.verdict, row.within_margin, margin_pct),
        format::integer(row.pairs as u64),
    ]
}

/// The effect, the treated rate that follows from it, the factor, and the time added to an operation: in
/// words, each a dash where the pairs are too few for any bound.
pub(super) fn measured(row: &Row) -> [String; 4] {
    if !has_interval(row) {
        return [format::NONE, format::NONE, "", ""].map(str::to_owned);
    }
    let [factor, added] = row.cost.texts();
    [format::percent(row.effect_pct), format::rate(row.treated, &row.unit), factor, added]
}

#[cfg(test)]
mod tests {
    use super::super::sample;
    use super::*;

    #[test]
    fn what_an_operation_costs_stays_longer_than_what_follows_from_it() {
        let s = sample::audit();
        for (width, kept, gone) in [
            (80, &["effect", "factor", "added/op", "verdict"][..], &["treated", "interval"][..]),
            (100, &["baseline", "unit", "added/op", "verdict", "pairs"], &["treated"]),
            (160, &["baseline", "treated", "interval", "pairs"], &[]),
        ] {
            let head = Results::new(&s, width).lines(false).remove(0);
            assert!(kept.iter().all(|title| head.contains(title)), "{width}: {head}");
            assert!(gone.iter().all(|title| !head.contains(title)), "{width}: {head}");
        }
    }

    #[test]
    fn one_pair_has_no_number() {
        let mut s = sample::audit();
        s.results.truncate(1);
        let row = &mut s.results[0];
        (row.low_pct, row.high_pct, row.verdict) = (None, None, Verdict::Inconclusive);
        let lines = Results::new(&s, 160).lines(false);
        assert!(!lines[1].contains("85.2") && !lines[1].contains('○'), "{lines:#?}");
        assert!(lines[1].contains("469.0k") && lines[1].contains('–'), "{lines:#?}");
    }
}
