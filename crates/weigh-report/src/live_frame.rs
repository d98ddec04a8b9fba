//! State of the live view at one moment: lines for a terminal, or one line for a log.

use std::time::Duration;

use anstyle::Style;

use super::bar::Bars;
use super::display::Size;
use super::live_view::{LiveRow, Stage, View};
use super::paint::{self, FAINT, WARNING, paint};
use super::scale::{EffectScale, Span};
use super::table::{Align, BarRoom, Layout, TextCell};
use paired::Verdict;
use weigh_model::format;
use weigh_model::result::versus::WORK;

const LONGEST_NAME: usize = 28;
/// It stands behind name and effect.
const BAR: BarRoom = BarRoom { before: 2, useful: 0, least: 8, most: 60 };
/// `inconclusive`, and `slower, <0.5 %`.
const STAGE: usize = 14;
const EFFECT: usize = 9;
const PAIRS: usize = 7;
const ALIGN: [Align; 4] = [Align::Left, Align::Right, Align::Left, Align::Right];

/// So long a page of the rows stands, where not all fit.
const PAGE_S: u64 = 4;

/// The frame, in no more lines and columns than the terminal has. Rows keep their places; where not all fit,
/// they are on pages, which come in turn while any of their rows is open.
pub fn lines(view: &View, size: Size) -> Vec<String> {
    // One line is the axis, one the status, and the cursor stands on one below.
    let room = size.rows.saturating_sub(3).max(1);
    let rooms = if view.rows.len() <= room { room } else { room.max(2) - 1 };
    let page = page(view, rooms);
    let frame = Frame::new(view, size.columns);
    let mut lines = vec![paint(&frame.head(), FAINT, view.colour)];
    let first = page * rooms;
    let shown = view.rows.iter().skip(first).take(rooms);
    lines.extend(shown.map(|row| frame.row(row)));
    if view.rows.len() > rooms && room > 1 {
        let (last, all) = ((first + rooms).min(view.rows.len()), view.rows.len());
        let which = format!("… rows {} to {last} of {all}; the pages alternate", first + 1);
        lines.push(paint(&format::shorten(&which, size.columns), FAINT, view.colour));
    }
    let elapsed = format::clock(view.elapsed.as_secs_f64());
    let budget = format::seconds(view.budget.as_secs_f64());
    let current = view.current.and_then(|row| view.rows.get(row));
    let current = current.map(|row| format!(" · {}", format::label(&row.workload)));
    let status =
        format!("{} · {elapsed} of at most {budget}{}", status(view), current.unwrap_or_default());
    lines.push(format::shorten(&status, size.columns));
    lines
}

/// Which page is due: pages of decided rows alone are left out while there are others.
fn page(view: &View, rows: usize) -> usize {
    let pages = view.rows.chunks(rows.max(1)).enumerate();
    let is_open = |row: &LiveRow| row.progress.stage == Stage::Measuring;
    let open: Vec<usize> =
        pages.filter(|(_, page)| page.iter().any(is_open)).map(|(number, _)| number).collect();
    let turn = view.elapsed.as_secs() / PAGE_S;
    match open.len() {
        0 => 0,
        count => open[turn as usize % count],
    }
}

/// How far the experiment is, and how long it will take.
pub fn status(view: &View) -> String {
    let open = view.rows.iter().filter(|row| row.progress.stage == Stage::Measuring).count();
    let narrowing = view.rows.iter().filter(|row| row.progress.is_narrowing).count();
    let rest = match narrowing {
        0 => format!("{open} open"),
        some if open == 0 => format!("narrowing {}", format::plural(some, "interval")),
        some => format!("{open} open, {some} still wide"),
    };
    let done = format!("{} done, {rest}", view.rows.len() - open);
    match view.left {
        Some(left) => format!("{done}, about {} left", format::clock(left.as_secs_f64())),
        None => done,
    }
}

/// Returns the line for a finished row, which is written once if nothing can be redrawn.
pub fn verdict_line(row: &LiveRow, elapsed: Duration, margin_pct: f64) -> String {
    let now = &row.progress;
    let elapsed = format::seconds(elapsed.as_secs_f64());
    let name = match row.treatment == WORK {
        true => format::label(&row.workload),
        false => format::label(&format!("{} under {}", row.workload, row.treatment)),
    };
    if let Stage::Failed(reason) = &now.stage {
        return format!("[{elapsed}] {name}: no result: {}", format::label(reason));
    }
    format!(
        "[{elapsed}] {name}: {} {}, {}, {}",
        format::percent(now.effect_pct.unwrap_or(f64::NAN)),
        format::interval(now.low_pct, now.high_pct),
        stage(&now.stage, margin_pct),
        format::plural(now.pairs, "pair")
    )
}

fn stage(stage: &Stage, margin_pct: f64) -> String {
    match stage {
        Stage::Measuring => "measuring".to_owned(),
        Stage::Decided { verdict, within_margin } => {
            format::verdict(*verdict, *within_margin, margin_pct)
        }
        Stage::Failed(_) => "no result".to_owned(),
    }
}

/// The rows of a frame, laid out for a width.
struct Frame<'a> {
    view: &'a View,
    bars: Bars,
    layout: Layout,
    several: bool,
}

impl<'a> Frame<'a> {
    fn new(view: &'a View, columns: usize) -> Frame<'a> {
        let treatment = view.rows.first().map(|row| &row.treatment);
        let several = view.rows.iter().any(|row| Some(&row.treatment) != treatment);
        let names = view.rows.iter().map(|row| name(row, several).chars().count());
        let longest = names.max().unwrap_or(0).max("workload".len());
        let name = longest.min(LONGEST_NAME).min(columns / 3);
        let expendable: [&[usize]; 3] = [&[3], &[2], &[1]];
        let layout = Layout::new(vec![name, EFFECT, STAGE, PAIRS], expendable, Some(BAR), columns);
        let scale = EffectScale::fixed(view.margin_pct);
        let bars = Bars { scale, margin_pct: view.margin_pct, cells: layout.bar() };
        Frame { view, bars, layout, several }
    }

    fn head(&self) -> String {
        let is_command = self.view.rows.first().is_some_and(|row| row.treatment == WORK);
        let first = if is_command { WORK } else { "workload" };
        let plain = Style::new();
        self.line([first, "effect", "", "pairs"], [plain; 4], (&self.bars.axis(), plain), false)
    }

    fn row(&self, row: &LiveRow) -> String {
        let now = &row.progress;
        let (style, decided) = match &now.stage {
            Stage::Decided { verdict, .. } => {
                (paint::of(*verdict), *verdict != Verdict::Inconclusive)
            }
            Stage::Measuring => (FAINT, false),
            Stage::Failed(_) => (WARNING, false),
        };
        let bounded = now.effect_pct.filter(|_| now.low_pct.is_some() || now.high_pct.is_some());
        let is_open = now.stage == Stage::Measuring;
        let preliminary = now.preliminary.filter(|_| is_open);
        // One pair has no range, so its estimate is not shown.
        let effect = match (bounded, preliminary) {
            (Some(effect_pct), _) => format::percent(effect_pct),
            (None, Some(few)) => format::preliminary(few.effect_pct),
            (None, None) => format::NONE.to_owned(),
        };
        let bar = match (bounded, preliminary) {
            (Some(_), _) => self.bars.draw(span(row), decided),
            (None, Some(few)) => self.bars.draw(Span::from(few), false),
            (None, None) => " ".repeat(self.bars.cells),
        };
        let stage = match preliminary {
            Some(_) => format::PRELIMINARY.to_owned(),
            None => stage(&now.stage, self.view.margin_pct),
        };
        let name = name(row, self.several);
        let plain = Style::new();
        let texts = [&name, &effect, &stage, &*format::integer(now.pairs as u64)];
        self.line(texts, [plain, style, style, plain], (&bar, style), self.view.colour)
    }

    fn line(
        &self,
        texts: [&str; 4],
        styles: [Style; 4],
        bar: (&str, Style),
        colour: bool,
    ) -> String {
        let cells = texts.into_iter().zip(ALIGN).zip(styles);
        let cells: Vec<TextCell> =
            cells.map(|((text, align), style)| (text, align, style)).collect();
        self.layout.line(&cells, Some(bar), colour)
    }
}

fn name(row: &LiveRow, several: bool) -> String {
    if several {
        format::label(&format!("{} {}", row.workload, row.treatment))
    } else {
        format::label(&row.workload)
    }
}

fn span(row: &LiveRow) -> Span {
    Span {
        effect_pct: row.progress.effect_pct.unwrap_or(f64::NAN),
        low_pct: row.progress.low_pct,
        high_pct: row.progress.high_pct,
    }
}

#[cfg(test)]
mod tests {
    use super::super::live_view::RowProgress;
    use super::*;
    use weigh_model::result::preliminary::Preliminary;

    fn view(count: usize, decided: usize) -> View {
        let stage = |i| match i {
            _ if i >= decided => Stage::Measuring,
            0 => Stage::Failed("It crashed.".to_owned()),
            _ => Stage::Decided { verdict: Verdict::Slower, within_margin: i % 2 == 0 },
        };
        let row = |i: usize| LiveRow {
            workload: format!("workload-{i}"),
            treatment: "audit".to_owned(),
            unit: "ops/s".to_owned(),
            progress: RowProgress {
                is_narrowing: false,
                effect_pct: (!i.is_multiple_of(5)).then_some(-(i as f64)),
                low_pct: (!i.is_multiple_of(3)).then_some(-2.0 * i as f64),
                high_pct: Some(2.0),
                preliminary: None,
                pairs: i,
                stage: stage(i),
            },
            ..LiveRow::default()
        };
        View {
            rows: (0..count).map(row).collect(),
            margin_pct: 1.0,
            budget: Duration::from_secs(300),
            elapsed: Duration::from_secs(80),
            left: Some(Duration::from_secs(40)),
            current: None,
            colour: false,
        }
    }

    #[test]
    fn rows_stay_where_they_are_when_decided() {
        let size = Size { columns: 80, rows: 24 };
        let names = |view: &View| -> Vec<String> {
            let rows = lines(view, size).into_iter().skip(1).take(12);
            rows.map(|line| line.split(' ').next().unwrap().to_owned()).collect()
        };
        assert_eq!(names(&view(12, 0)), names(&view(12, 7)));
        assert_eq!(names(&view(12, 0))[11], "workload-11");
    }

    #[test]
    fn more_rows_than_fit_come_page_by_page() {
        let size = Size { columns: 80, rows: 10 };
        let mut view = view(14, 8);
        view.current = Some(13);
        let frame = lines(&view, size);
        assert!(
            frame[1].starts_with("workload-6 ") && frame[6].starts_with("workload-11"),
            "{frame:#?}"
        );
        assert_eq!(frame[7], "… rows 7 to 12 of 14; the pages alternate");
        assert_eq!(
            frame[8],
            "8 done, 6 open, about 40 s left · 1 min 20 s of at most 5 min 00 s · workload-13"
        );
        view.elapsed += Duration::from_secs(PAGE_S);
        assert!(lines(&view, size)[1].starts_with("workload-12"), "the first page is decided");
        view.elapsed += Duration::from_secs(PAGE_S);
        assert!(lines(&view, size)[1].starts_with("workload-6 "));
    }

    #[test]
    fn the_axis_stays_as_it_is() {
        let size = Size { columns: 80, rows: 24 };
        let mut wide = view(9, 0);
        wide.rows[1].progress.low_pct = Some(-99.9);
        wide.rows[2].progress.effect_pct = Some(600.0);
        let heads = [view(9, 0), view(9, 7), wide].map(|view| lines(&view, size).remove(0));
        assert!(heads.iter().all(|head| *head == heads[0]), "{heads:#?}");
        assert!(["−90%", " 0 ", "+10%"].iter().all(|label| heads[0].contains(label)), "{heads:?}");
    }

    #[test]
    fn a_pair_that_nothing_bounds_has_no_number() {
        let mut view = view(3, 0);
        let now = &mut view.rows[1].progress;
        (now.effect_pct, now.low_pct, now.high_pct, now.pairs) = (Some(-17.6), None, None, 1);
        let line = lines(&view, Size { columns: 80, rows: 24 }).remove(2);
        assert!(line.contains('–') && !line.contains("17.6") && !line.contains('○'), "{line}");
    }

    #[test]
    fn a_few_pairs_have_a_number_that_is_marked() {
        let mut view = view(3, 0);
        let now = &mut view.rows[1].progress;
        (now.effect_pct, now.low_pct, now.high_pct, now.pairs) = (Some(-17.6), None, None, 3);
        now.preliminary = Some(Preliminary { effect_pct: -17.6, low_pct: -21.0, high_pct: -12.0 });
        let line = lines(&view, Size { columns: 80, rows: 24 }).remove(2);
        assert!(line.contains("~−17.6 %") && line.contains("preliminary"), "{line}");
        assert!(line.contains('○') && !line.contains("measuring"), "{line}");
    }

    #[test]
    fn a_frame_fits_any_terminal() {
        for (columns, rows) in [(1, 1), (10, 4), (40, 5), (80, 24), (200, 60)] {
            for count in [0, 1, 12, 300] {
                let frame = lines(&view(count, count / 2), Size { columns, rows });
                let widest = frame.iter().map(|line| line.chars().count()).max();
                assert!(widest <= Some(columns), "{columns}x{rows}: {frame:#?}");
                assert!(frame.len() < rows.max(4), "{columns}x{rows}: {frame:#?}");
            }
        }
    }

    #[test]
    fn a_failure_says_why_and_has_no_number() {
        let line = verdict_line(&view(3, 3).rows[0], Duration::from_secs(3), 1.0);
        assert_eq!(line, "[3.0 s] workload-0 under audit: no result: It crashed.");
    }
}
