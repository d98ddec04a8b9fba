//! The one table of a text report: a row per workload and treatment, its interval drawn.

use super::bar::Bars;
use super::paint::{self, BOLD, FAINT, paint};
use super::scale::{EffectScale, Span};
use super::table::{Align, BarRoom, Layout, TextCell};
use super::versus;
use paired::Verdict;
use weigh_model::format;
use weigh_model::result::summary::{Row, Summary};
use weigh_model::result::work_name::APP;

/// A bar narrower than `useful` says little, so other columns go first.
const BAR: BarRoom = BarRoom { before: VERDICT, useful: 18, least: 8, most: 48 };
const LONGEST_NAME: usize = 24;

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
    layout: Layout,
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
        widths[0] = widths[0].min(longest_name);
        // Nothing is added to an operation where the rates are of no operations.
        if !summary.results.iter().any(|row| row.cost.has_added()) {
            widths[ADDED] = 0;
        }
        let layout = Layout::new(widths.to_vec(), EXPENDABLE, Some(BAR), width);
        Results {
            summary,
            bars: Bars {
                scale: EffectScale::of(summary.results.iter().map(Span::from), summary.margin_pct),
                margin_pct: summary.margin_pct,
                cells: layout.bar(),
            },
            layout,
        }
    }

    /// The lines of the table; with several treatments, each under its own name.
    pub fn lines(&self, colour: bool) -> Vec<String> {
        let mut titles = COLUMNS.map(|(title, _)| title.to_owned());
        for (title, own) in titles.iter_mut().zip(versus::titles(self.summary)) {
            own.clone_into(title);
        }
        let plain = anstyle::Style::new();
        let head = self.line(&titles, (&self.bars.axis(), plain), [plain; COUNT], false);
        let mut lines = vec![paint(&head, FAINT, colour)];
        let groups = super::by_treatment(self.summary);
        let several = groups.len() > 1;
        for (treatment, rows) in groups {
            if several {
                let name = format::shorten(&format::label(treatment), self.layout.width());
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
        let bar = match has_interval(row) || row.preliminary.is_some() {
            true => self.bars.draw(row.into(), row.verdict != Verdict::Inconclusive),
            false => " ".repeat(self.bars.cells),
        };
        let cells = cells(row, self.summary.margin_pct, self.layout.column(0));
        self.line(&cells, (&bar, style), styles, colour)
    }

    fn line(
        &self,
        texts: &[String; COUNT],
        bar: (&str, anstyle::Style),
        styles: [anstyle::Style; COUNT],
        colour: bool,
    ) -> String {
        let cells = texts.iter().zip(COLUMNS).zip(styles);
        let cells: Vec<TextCell> =
            cells.map(|((text, (_, align)), style)| (text.as_str(), align, style)).collect();
        self.layout.line(&cells, Some(bar), colour)
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

/// Shortens the name of a row. The end tells rows of one workload apart, and must not be cut.
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
        interval(row),
        verdict(row, margin_pct),
        format::integer(row.pairs as u64),
    ]
}

/// The interval, or the range of a few pairs.
pub(super) fn interval(row: &Row) -> String {
    match row.preliminary {
        Some(few) => format::range(few.low_pct, few.high_pct),
        None => format::interval(row.low_pct, row.high_pct),
    }
}

/// The verdict, or the word for a preliminary estimate.
pub(super) fn verdict(row: &Row, margin_pct: f64) -> String {
    match row.preliminary {
        Some(_) => format::PRELIMINARY.to_owned(),
        None => format::verdict(row.verdict, row.within_margin, margin_pct),
    }
}

/// The effect, the treated rate that follows from it, the factor, and the time added to an operation: in
/// words, each a dash where the pairs are too few for any bound, but for a preliminary effect.
pub(super) fn measured(row: &Row) -> [String; 4] {
    if !has_interval(row) {
        let few = row.preliminary.map(|few| format::preliminary(few.effect_pct));
        let effect = few.unwrap_or_else(|| format::NONE.to_owned());
        return [effect, format::NONE.to_owned(), String::new(), String::new()];
    }
    let [factor, added] = row.cost.texts();
    [format::percent(row.effect_pct), format::rate(row.treated, &row.unit), factor, added]
}

#[cfg(test)]
mod tests {
    use super::*;
    use weigh_model::example;
    use weigh_model::result::preliminary::Preliminary;

    #[test]
    fn what_an_operation_costs_stays_longer_than_what_follows_from_it() {
        let s = example::audit();
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
        let mut s = example::audit();
        s.results.truncate(1);
        let row = &mut s.results[0];
        (row.low_pct, row.high_pct, row.verdict) = (None, None, Verdict::Inconclusive);
        let lines = Results::new(&s, 160).lines(false);
        assert!(!lines[1].contains("85.2") && !lines[1].contains('○'), "{lines:#?}");
        assert!(lines[1].contains("469.0k") && lines[1].contains('–'), "{lines:#?}");
    }

    #[test]
    fn a_few_pairs_have_a_number_and_a_range_that_are_marked() {
        let mut s = example::audit();
        s.results.truncate(1);
        let row = &mut s.results[0];
        (row.low_pct, row.high_pct, row.verdict) = (None, None, Verdict::Inconclusive);
        row.preliminary = Some(Preliminary { effect_pct: -85.2, low_pct: -86.0, high_pct: -80.0 });
        for width in [80, 160] {
            let line = Results::new(&s, width).lines(false).remove(1);
            assert!(line.contains("~−85.2 %") && line.contains("preliminary"), "{line}");
            assert!(!line.contains("inconclusive") && !line.contains('['), "{line}");
        }
        assert!(Results::new(&s, 160).lines(false)[1].contains("−86.0 to −80.0"));
    }
}
