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
use weigh_model::format::names::Names;
use weigh_model::result::versus::WORK;

const LONGEST_NAME: usize = 28;
/// It stands behind name and effect.
const BAR: BarRoom = BarRoom { before: 2, least: 8, most: 60 };
/// `inconclusive`, and `slower, <0.5 %`.
const STAGE: usize = 14;
const EFFECT: usize = 9;
const PAIRS: usize = 7;
const ALIGN: [Align; 4] = [Align::Left, Align::Right, Align::Left, Align::Right];

/// So long a page of the rows stands, where not all fit.
const PAGE_S: u64 = 4;

/// The frame, in no more lines and columns than the terminal has. Open rows stand above the decided ones;
/// where not all fit, they are on pages, and those with open rows alternate.
pub fn lines(view: &View, size: Size) -> Vec<String> {
    // One line is the axis, one the status, and the cursor stands on one below.
    let room = size.rows.saturating_sub(3).max(1);
    let rooms = if view.rows.len() <= room { room } else { room.max(2) - 1 };
    let rows = decided_last(view);
    let open = rows.iter().filter(|row| is_open(row)).count();
    let pages = open.div_ceil(rooms).max(1);
    let page = (view.elapsed.as_secs() / PAGE_S) as usize % pages;
    let frame = Frame::new(view, size.columns);
    let mut lines = vec![paint(&frame.head(), FAINT, view.colour)];
    let first = page * rooms;
    let shown = rows.iter().skip(first).take(rooms);
    lines.extend(shown.map(|row| frame.row(row)));
    if rows.len() > rooms && room > 1 {
        let (last, all) = ((first + rooms).min(rows.len()), rows.len());
        let others = if pages > 1 { "the pages alternate" } else { "the others are decided" };
        let which = format!("… rows {} to {last} of {all}; {others}", first + 1);
        lines.push(paint(&format::shorten(&which, size.columns), FAINT, view.colour));
    }
    lines.push(last_line(view, size.columns));
    lines
}

/// The rows in their order, but those with a verdict or a failure below the others.
fn decided_last(view: &View) -> Vec<&LiveRow> {
    let mut rows: Vec<&LiveRow> = view.rows.iter().collect();
    rows.sort_by_key(|row| !is_open(row));
    rows
}

fn is_open(row: &LiveRow) -> bool {
    row.progress.stage == Stage::Measuring
}

/// The status and the clock, and which row is measured if there is room for it.
fn last_line(view: &View, columns: usize) -> String {
    let elapsed = format::clock(view.elapsed.as_secs_f64());
    let budget = format::seconds(view.budget.as_secs_f64());
    let status = format!("{} · {elapsed} of at most {budget}", status(view));
    let current = view.current.and_then(|row| view.rows.get(row));
    let with_current = current.map(|row| format!("{status} · {}", format::label(&row.workload)));
    let fitting = with_current.filter(|line| line.chars().count() <= columns);
    fitting.unwrap_or_else(|| format::shorten(&status, columns))
}

/// How far the experiment is, and how long it will take.
pub fn status(view: &View) -> String {
    let open = view.rows.iter().filter(|row| is_open(row)).count();
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
    names: Names,
    bars: Bars,
    layout: Layout,
    several: bool,
}

impl<'a> Frame<'a> {
    fn new(view: &'a View, columns: usize) -> Frame<'a> {
        let treatment = view.rows.first().map(|row| &row.treatment);
        let several = view.rows.iter().any(|row| Some(&row.treatment) != treatment);
        let names: Vec<String> = view.rows.iter().map(|row| name(row, several)).collect();
        let longest = names.iter().map(|name| name.chars().count()).max().unwrap_or(0);
        let name = longest.max("workload".len()).min(LONGEST_NAME).min(columns / 3);
        // Where the bar has no room, the number of pairs goes.
        let expendable: [(&[usize], usize); 3] = [(&[3], BAR.least), (&[2], 0), (&[1], 0)];
        let layout = Layout::new(vec![name, EFFECT, STAGE, PAIRS], expendable, Some(BAR), columns);
        let names = Names::cut(names.iter().map(String::as_str), layout.column(0));
        let scale = EffectScale::fixed(view.margin_pct);
        let bars = Bars { scale, margin_pct: view.margin_pct, cells: layout.bar() };
        Frame { view, names, bars, layout, several }
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
        let preliminary = now.preliminary.filter(|_| is_open(row));
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
        let texts = [self.names.shown(&name), &effect, &stage, &*format::integer(now.pairs as u64)];
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
    use std::collections::BTreeSet;

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
    fn decided_rows_sink_below_those_that_are_measured() {
        let size = Size { columns: 80, rows: 24 };
        let names = |decided| -> Vec<String> {
            let rows = lines(&view(5, decided), size).into_iter().skip(1).take(5);
            rows.map(|line| line.split(' ').next().unwrap().replace("workload-", "")).collect()
        };
        assert_eq!(names(0), ["0", "1", "2", "3", "4"]);
        assert_eq!(names(2), ["2", "3", "4", "0", "1"]);
        assert_eq!(names(5), names(0));
    }

    #[test]
    fn in_60_columns_each_label_is_another_and_there_is_a_bar() {
        let mut view = view(6, 6);
        for (i, row) in view.rows.iter_mut().enumerate() {
            row.workload = ["getppid", "create-unlink", "stat"][i / 2].into();
            row.treatment = format!("seccomp:compares=5{}", "0".repeat(i % 2));
        }
        let frame = lines(&view, Size { columns: 60, rows: 24 });
        let labels: BTreeSet<String> =
            frame[1..7].iter().map(|line| line.chars().take(20).collect()).collect();
        assert_eq!(labels.len(), 6, "{frame:#?}");
        assert!(frame[0].contains("−90%") && frame[2].contains('●'), "{frame:#?}");
    }

    #[test]
    fn no_word_of_the_status_is_cut() {
        let mut view = view(6, 2);
        view.current = Some(0);
        let of_width = |columns| lines(&view, Size { columns, rows: 24 }).pop().unwrap();
        let status = "2 done, 4 open, about 40 s left · 1 min 20 s of at most 5 min 00 s";
        assert_eq!(of_width(70), status);
        assert_eq!(of_width(80), format!("{status} · workload-0"));
    }

    #[test]
    fn more_rows_than_fit_come_page_by_page() {
        let size = Size { columns: 80, rows: 10 };
        let mut view = view(14, 8);
        view.current = Some(13);
        let frame = lines(&view, size);
        assert!(
            frame[1].starts_with("workload-8 ") && frame[6].starts_with("workload-13"),
            "{frame:#?}"
        );
        assert_eq!(frame[7], "… rows 1 to 6 of 14; the others are decided");
        assert_eq!(
            frame[8],
            "8 done, 6 open, about 40 s left · 1 min 20 s of at most 5 min 00 s · workload-13"
        );
        let first_of = |elapsed: u64, decided| {
            let view =
                View { elapsed: Duration::from_secs(elapsed * PAGE_S), ..self::view(14, decided) };
            let frame = lines(&view, size);
            (frame[1].split(' ').next().unwrap().to_owned(), frame[7].clone())
        };
        let page = |name: &str, which: &str| (name.to_owned(), which.to_owned());
        let of_two = [
            "… rows 1 to 6 of 14; the pages alternate",
            "… rows 7 to 12 of 14; the pages alternate",
        ];
        assert_eq!(first_of(0, 7), page("workload-7", of_two[0]));
        assert_eq!(first_of(1, 7), page("workload-13", of_two[1]));
        assert_eq!(first_of(2, 7), page("workload-7", of_two[0]));
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
