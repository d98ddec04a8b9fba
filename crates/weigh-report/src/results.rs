//! The one table of a text report: a row per workload and treatment, its interval drawn.

use super::bar::Bars;
use super::paint::{self, BOLD, FAINT, paint};
use super::scale::{EffectScale, Span};
use super::table::{Align, BarRoom, Layout, TextCell};
use super::versus;
use paired::Verdict;
use weigh_model::format;
use weigh_model::format::names::Names;
use weigh_model::result::summary::{Row, Summary};
use weigh_model::result::work_name::APP;

const BAR: BarRoom = BarRoom { before: VERDICT, least: SHORTEST, most: 48 };
/// A narrower bar shows no shape.
const SHORTEST: usize = 8;
/// From here on a bar shows what the numbers say; in a file no bar is longer.
const USEFUL: usize = 18;
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
/// Columns to drop in order, each with the bar width that outranks it. Columns that follow from others go
/// first, then the bar gets shorter; the baseline, its unit and the effect stay longer than the bar.
const EXPENDABLE: [(&[usize], usize); 7] = [
    (&[7], USEFUL),
    (&[2], USEFUL),
    (&[9], USEFUL),
    (&[5], SHORTEST),
    (&[6], SHORTEST),
    (&[8], 0),
    (&[1, 3], 0),
];

/// The table, laid out for a width.
pub struct Results<'a> {
    summary: &'a Summary,
    names: Names,
    bars: Bars,
    layout: Layout,
    width: usize,
}

impl<'a> Results<'a> {
    /// In at most `width` characters; in a file that is as many as it takes.
    pub fn new(summary: &'a Summary, width: usize) -> Results<'a> {
        let mut widths = COLUMNS.map(|(title, _)| title.len());
        for row in &summary.results {
            for (width, cell) in widths.iter_mut().zip(cells(row, summary.margin_pct)) {
                *width = (*width).max(cell.chars().count());
            }
        }
        widths[0] = widths[0].min(longest_name(summary, width));
        // Nothing is added to an operation where the rates are of no operations.
        if !summary.results.iter().any(|row| row.cost.has_added()) {
            widths[ADDED] = 0;
        }
        let longest_bar = if width == usize::MAX { USEFUL } else { BAR.most };
        let bar = BarRoom { most: longest_bar, ..BAR };
        let layout = Layout::new(widths.to_vec(), EXPENDABLE, Some(bar), width);
        Results {
            summary,
            names: names(summary, layout.column(0)),
            bars: Bars {
                scale: EffectScale::of(summary.results.iter().map(Span::from), summary.margin_pct),
                margin_pct: summary.margin_pct,
                cells: layout.bar(),
            },
            layout,
            width,
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
        let treatments: Vec<String> = groups.iter().map(|(name, _)| format::label(name)).collect();
        let shown = Names::cut(treatments.iter().map(String::as_str), self.width);
        for ((_, rows), treatment) in groups.into_iter().zip(&treatments) {
            if several {
                lines.push(paint(shown.shown(treatment), BOLD, colour));
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
        let mut cells = cells(row, self.summary.margin_pct);
        cells[0] = self.names.shown(&cells[0]).to_owned();
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
        _ if width == usize::MAX => width,
        Some(_) => LONGEST_NAME.max(width * 2 / 5),
        None if summary.results.iter().any(has_server) => LONGEST_NAME.max(width / 3),
        None => LONGEST_NAME,
    }
}

fn names(summary: &Summary, longest: usize) -> Names {
    let cut = |row: &Row| (format::label(&row.workload), name(row, longest));
    Names::of(summary.results.iter().map(cut), longest)
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
        _ => format::shorten(&whole, longest),
    }
}

fn cells(row: &Row, margin_pct: f64) -> [String; COUNT] {
    let [effect, treated, factor, added] = measured(row);
    [
        format::label(&row.workload),
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

/// Explains the word and the mark of preliminary rows, where there are any.
pub(super) fn about_preliminary(summary: &Summary) -> Option<&'static str> {
    let is_any = summary.results.iter().any(|row| row.preliminary.is_some());
    is_any.then_some(
        "~ and preliminary: an estimate from too few pairs, or too few starts of servers, for a verdict. Its \
         range is from the lowest to the highest pair, and is no confidence interval.",
    )
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
    use std::collections::BTreeSet;

    use super::*;
    use weigh_model::example;
    use weigh_model::result::preliminary::Preliminary;

    #[test]
    fn the_baseline_and_the_effect_stay_longest() {
        let s = example::audit();
        let of_80 = ["baseline", "unit", "effect", "factor", "added/op", "verdict"];
        let of_60 = ["baseline", "unit", "effect", "verdict"];
        for (width, kept, gone) in [
            (60, &of_60[..], &["treated", "interval", "pairs", "added/op"][..]),
            (80, &of_80, &["treated", "interval", "pairs"]),
            (100, &["baseline", "unit", "added/op", "verdict", "pairs"], &["treated"]),
            (160, &["baseline", "treated", "interval", "pairs"], &[]),
        ] {
            let lines = Results::new(&s, width).lines(false);
            let head = &lines[0];
            assert!(lines[1].contains('●'), "{width}: {lines:#?}");
            assert!(kept.iter().all(|title| head.contains(title)), "{width}: {head}");
            assert!(gone.iter().all(|title| !head.contains(title)), "{width}: {head}");
        }
    }

    #[test]
    fn labels_stay_distinct_in_60_columns_and_whole_in_a_file() {
        let mut s = example::audit();
        let ends = ["=50", "=500", "=5000"];
        let long =
            |start: &str, end: &str| format!("{start}-of-a-long-name-that-is-cut:compares{end}");
        s.results.truncate(9);
        for (i, row) in s.results.iter_mut().enumerate() {
            row.workload = long("create-unlink", ends[i % 3]).as_str().into();
            row.treatment = long("seccomp:profile-of-a-container-for", ends[i / 3]);
        }
        let lines = Results::new(&s, 60).lines(false);
        let (head, lines) = lines.split_first().unwrap();
        assert!(head.contains("baseline") && lines.iter().all(|line| line.chars().count() <= 60));
        let (treatments, rows): (Vec<&String>, Vec<&String>) =
            lines.iter().partition(|line| line.starts_with("seccomp"));
        let distinct = |texts: &[&str]| texts.iter().collect::<BTreeSet<_>>().len();
        let names: Vec<&str> = rows.iter().map(|row| row.split(' ').next().unwrap()).collect();
        let treatments: Vec<&str> = treatments.into_iter().map(String::as_str).collect();
        assert_eq!((distinct(&treatments), distinct(&names)), (3, 3), "{lines:#?}");
        let whole = Results::new(&s, usize::MAX).lines(false).join("\n");
        for row in &s.results {
            assert!(
                whole.contains(&row.workload.name) && whole.contains(&row.treatment),
                "{whole}"
            );
        }
        assert!(!whole.contains('…') && whole.contains("treated") && whole.contains("pairs"));
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
        assert!(about_preliminary(&s).unwrap().starts_with("~ and preliminary: "));
        assert_eq!(about_preliminary(&example::audit()), None);
        for width in [80, 160] {
            let line = Results::new(&s, width).lines(false).remove(1);
            assert!(line.contains("~−85.2 %") && line.contains("preliminary"), "{line}");
            assert!(!line.contains("inconclusive") && !line.contains('['), "{line}");
        }
        assert!(Results::new(&s, 160).lines(false)[1].contains("−86.0 to −80.0"));
    }
}
