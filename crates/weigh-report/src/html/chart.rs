//! Curves over a size or a number: points with their spread, joined, and named at their ends.
//!
//! As in the forest plot, horizontal places are percentages and vertical ones pixels. So a curve is
//! made of straight lines from point to point, which is all that is known of it.

use minijinja::{Value, context};

use super::axis::{Axis, round, tick_text};
use super::parts;
use crate::table::{Align, Table};
use weigh_model::format;
use weigh_model::result::curve::{Chart, ChartMark, Curve, CurvePoint, Quantity, x_text};

const TOP: f64 = 26.0;
const PANEL: f64 = 210.0;
/// Between two panels: the title of the lower one's vertical axis.
const GAP: f64 = 48.0;
/// Below the last panel: the labels of the horizontal axis, and its title.
const FOOT: f64 = 32.0;
/// Between the names of two curves.
const LINE_HEIGHT: f64 = 16.0;
/// A chart with more places than this on its x gets the width of the page.
const NARROW_POINTS: usize = 6;
/// The share of the axis that a character of a label takes: broad, narrow, and on a telephone.
const BROAD: f64 = 0.011;
const NARROW: f64 = 0.024;
const TELEPHONE: f64 = 0.045;
/// Curves stand beside each other, all within so many pixels, so that none hides the uncertainty of another.
const ASIDE: f64 = 8.0;
/// More curves than this in one picture hide each other, and their names collide.
const MOST_TOGETHER: usize = 4;
/// As many colours as the style sheet has.
const COLOURS: usize = 9;

/// Where a panel lies in its picture.
#[derive(Clone, Copy)]
struct Panel {
    top: f64,
    bottom: f64,
}

impl Panel {
    fn of(number: usize) -> Panel {
        let top = TOP + number as f64 * (PANEL + GAP);
        Panel { top, bottom: top + PANEL }
    }

    fn down(self, at: f64) -> f64 {
        round(self.bottom - at.clamp(0.0, 1.0) * (self.bottom - self.top))
    }
}

/// Subject of a picture: a chart's part by its name, or the owner of the effects.
#[derive(Clone, Copy, Default)]
struct PictureOf<'a> {
    part: Option<&'a str>,
    of: Option<&'a str>,
}

/// The pictures of a chart: one, or where there are too many curves to be told apart one for each, all on the
/// same axes. `of` says whose effects they are.
pub fn figures(chart: &Chart, of: Option<&str>) -> Vec<Value> {
    if chart.curves.len() <= MOST_TOGETHER {
        return vec![figure(&[(chart, chart)], PictureOf { part: None, of })];
    }
    let alone = |curve: &Curve| Chart { curves: vec![curve.clone()], ..chart.clone() };
    let panels = chart.curves.iter();
    let part = |curve| PictureOf { part: Some(chart.label(curve)), of };
    panels.map(|curve| figure(&[(&alone(curve), chart)], part(curve))).collect()
}

/// Charts of the same places in one picture, one below the other over one horizontal axis; what is marked on
/// the first one is marked through all of them. `None` of charts without a shape, for which [`table`] is.
pub fn stacked(charts: &[Chart]) -> Option<Value> {
    let panels: Vec<(&Chart, &Chart)> = charts.iter().map(|chart| (chart, chart)).collect();
    charts.iter().any(Chart::has_shape).then(|| figure(&panels, PictureOf::default()))
}

/// A table with the numbers of charts of the same places, for those without a shape.
pub fn table(charts: &[Chart]) -> Table {
    let of_curves = |chart: &Chart| -> Vec<String> {
        let title = chart.y_title();
        let labels = chart.curves.iter().map(|curve| format::label(chart.label(curve)));
        match chart.curves.len() {
            1 => vec![title],
            _ => labels.map(|label| format!("{title}, {label}")).collect(),
        }
    };
    let x_unit = charts.first().map_or("", |chart| chart.x_unit.as_str());
    let titles: Vec<String> = charts.iter().flat_map(of_curves).collect();
    let mut columns = vec![(x_unit, Align::Right)];
    columns.extend(titles.iter().map(|title| (title.as_str(), Align::Right)));
    columns.push(("", Align::Left));
    let mut xs: Vec<f64> = charts.iter().flat_map(Chart::points).map(|point| point.x).collect();
    xs.sort_by(f64::total_cmp);
    xs.dedup();
    let row = |x: f64| {
        let cell = |(chart, curve): (&Chart, &Curve)| {
            let point = curve.points.iter().find(|point| point.x == x);
            point.map(|point| value_text(point, &chart.quantity)).unwrap_or_default()
        };
        let curves = charts.iter().flat_map(|chart| chart.curves.iter().map(move |c| (chart, c)));
        let marks = charts.iter().flat_map(|chart| chart.marks.iter().map(move |m| (chart, m)));
        let marks: Vec<String> = marks
            .filter(|(_, mark)| mark.x == x)
            .map(|(chart, mark)| match mark.curve.and_then(|curve| chart.curves.get(curve)) {
                Some(curve) => format::label(&format!("{} ({})", mark.text, chart.label(curve))),
                None => format::label(&mark.text),
            })
            .collect();
        let cells = std::iter::once(x_text(x, x_unit)).chain(curves.map(cell));
        cells.chain([marks.join(", ")]).collect()
    };
    Table::new(columns, xs.into_iter().map(row).collect())
}

/// One picture: of each panel what it shows, and the whole chart whose axes it has.
fn figure(panels: &[(&Chart, &Chart)], PictureOf { part, of }: PictureOf) -> Value {
    let (chart, _) = panels[0];
    let wholes = || panels.iter().map(|(_, whole)| *whole);
    let mut xs: Vec<f64> = wholes().flat_map(Chart::points).map(|point| point.x).collect();
    xs.sort_by(f64::total_cmp);
    xs.dedup();
    let x = Axis::of_x(&xs, &chart.x_unit);
    let has_much = xs.len() > NARROW_POINTS || chart.curves.len() > 3 || panels.len() > 1;
    let is_broad = part.is_none() && has_much;
    let text = |value: f64| x_text(value, &chart.x_unit);
    let on_telephone = x.labels(&xs, TELEPHONE, text);
    let labels = x.labels(&xs, if is_broad { BROAD } else { NARROW }, text);
    let labels = labels.into_iter().map(|label| {
        context! { x => percent(label.0), minor => !on_telephone.contains(&label), text => label.1 }
    });
    let place = Panel::of(panels.len() - 1);
    let drawn = panels.iter().enumerate();
    let drawn =
        drawn.map(|(number, (chart, whole))| panel(chart, whole, &x, &xs, Panel::of(number)));
    context! {
        title => format::label(chart.title()),
        part => part.map(format::label),
        of => of.map(format::label),
        y_titles => panels.iter().map(|(chart, _)| chart.y_title()).collect::<Vec<_>>().join(", and "),
        x_title => axis_title(&chart.x_unit, &x),
        broad => is_broad,
        named => chart.curves.len() > 1,
        height => place.bottom + FOOT, top => TOP, bottom => place.bottom,
        labels => labels.collect::<Vec<Value>>(),
        panels => drawn.collect::<Vec<Value>>(),
        marks => marks(chart, &x),
        notes => notes(chart),
    }
}

fn panel(chart: &Chart, whole: &Chart, x: &Axis, xs: &[f64], place: Panel) -> Value {
    let ideal = ideal(chart, xs);
    let heights = heights(whole, &ideal);
    let y = Axis::of_y(&heights, &chart.quantity, chart.is_scaling().then_some(x));
    let at = Places { x: *x, y, panel: place };
    let ticks = y.ticks().into_iter().map(|tick| {
        context! { y => at.down(tick), zero => tick == 0.0, text => tick_text(tick, &chart.quantity) }
    });
    let curves = chart.curves.iter().enumerate().map(|(i, curve)| {
        let aside = aside(i, chart.curves.len());
        context! {
            class => i % COLOURS,
            aside,
            lines => segments(curve.points.iter().map(|point| (point.x, point.y)), &at),
            points => curve.points.iter().map(|p| dot(p, chart, &at)).collect::<Vec<Value>>(),
        }
    });
    context! {
        title => axis_title(&chart.y_title(), &y),
        top => place.top,
        bottom => place.bottom,
        ticks => ticks.collect::<Vec<Value>>(),
        curves => curves.collect::<Vec<Value>>(),
        ideal => segments(ideal.iter().copied(), &at),
        ends => ends(chart, &ideal, &at),
        spans => spans(chart, &at),
    }
}

/// So far a curve is moved from its places, in pixels.
fn aside(curve: usize, of: usize) -> f64 {
    round(ASIDE * ((curve as f64 + 0.5) / of as f64 - 0.5))
}

/// Where values lie in a panel.
struct Places {
    x: Axis,
    y: Axis,
    panel: Panel,
}

impl Places {
    fn along(&self, x: f64) -> String {
        percent(self.x.at(x))
    }

    fn down(&self, y: f64) -> f64 {
        self.panel.down(self.y.at(y))
    }
}

/// Returns the curve of ideal scaling: each copy does as much as one of the fewest copies.
fn ideal(chart: &Chart, xs: &[f64]) -> Vec<(f64, f64)> {
    let first = chart.curves.first().and_then(|curve| curve.points.first());
    match first {
        Some(first) if matches!(chart.quantity, Quantity::Rate(_)) && chart.is_scaling() => {
            xs.iter().map(|x| (*x, first.y * x / first.x)).collect()
        }
        _ => Vec::new(),
    }
}

/// Returns the values that the vertical axis must show. An interval that is much wider than all
/// estimates is cut off.
fn heights(chart: &Chart, ideal: &[(f64, f64)]) -> Vec<f64> {
    let ys: Vec<f64> =
        chart.points().map(|point| point.y).chain(ideal.iter().map(|(_, y)| *y)).collect();
    let least = ys.iter().copied().fold(f64::INFINITY, f64::min);
    let most = ys.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let ends = chart.points().flat_map(|point| [point.low, point.high]).flatten();
    let ends: Vec<f64> = match chart.quantity {
        Quantity::Effect | Quantity::Slowdown => {
            let beyond = (most.max(0.0) - least.min(0.0)).max(2.0);
            ends.map(|end| end.clamp(least - beyond, most + beyond)).collect()
        }
        _ => ends.filter(|end| *end > least / 2.0).map(|end| end.min(most * 1.5)).collect(),
    };
    ys.into_iter().chain(ends).collect()
}

fn segments(points: impl Iterator<Item = (f64, f64)>, at: &Places) -> Vec<Value> {
    let places: Vec<(String, f64)> = points.map(|(a, b)| (at.along(a), at.down(b))).collect();
    let pairs = places.windows(2);
    pairs
        .map(|pair| context! { x1 => &pair[0].0, y1 => pair[0].1, x2 => &pair[1].0, y2 => pair[1].1 })
        .collect()
}

fn dot(point: &CurvePoint, chart: &Chart, at: &Places) -> Value {
    let place = x_text(point.x, &chart.x_unit);
    let value = value_text(point, &chart.quantity);
    context! {
        x => at.along(point.x),
        y => at.down(point.y),
        low => point.low.map_or(at.panel.bottom, |low| at.down(low)),
        high => point.high.map_or(at.panel.top, |high| at.down(high)),
        title => format::label(&format!("{}: {value} at {place} {}", point.workload, chart.x_unit)),
    }
}

fn value_text(point: &CurvePoint, quantity: &Quantity) -> String {
    match quantity {
        Quantity::Time | Quantity::JobTime(_) => format::time_ns(point.y),
        Quantity::Rate(unit) => format!("{} {unit}", format::rate(point.y, unit)),
        Quantity::Effect | Quantity::Slowdown => {
            format!("{} {}", format::percent(point.y), format::interval(point.low, point.high))
        }
    }
}

/// Returns the interval of each mark, where it is on this panel's axis.
fn spans(chart: &Chart, at: &Places) -> Vec<Value> {
    let curves = chart.curves.len();
    let span = |mark: &ChartMark| {
        let [low, high] = mark.y?;
        Some(context! {
            x => at.along(mark.x), low => at.down(low), high => at.down(high), class => class(mark),
            aside => mark.curve.map_or(0.0, |curve| aside(curve, curves)),
        })
    };
    chart.marks.iter().filter_map(span).collect()
}

fn class(mark: &ChartMark) -> String {
    format!("c{}", mark.curve.unwrap_or_default() % COLOURS)
}

/// Returns the values of the marks in numbers.
fn notes(chart: &Chart) -> Vec<Value> {
    let note = |mark: &ChartMark| {
        context! { text => parts(&format::label(&mark.note)), class => class(mark) }
    };
    chart.marks.iter().map(note).collect()
}

/// Places with a name, one below the other, as those of two curves may be the same.
fn marks(chart: &Chart, x: &Axis) -> Vec<Value> {
    let place = |(row, mark): (usize, &ChartMark)| {
        let width = (x.at(mark.high) - x.at(mark.low)).max(0.0);
        context! {
            text => format::label(&mark.text),
            x => percent(x.at(mark.x)),
            low => percent(x.at(mark.low)),
            width => percent(width),
            y => TOP + PANEL - 8.0 - LINE_HEIGHT * row as f64,
            class => class(mark),
        }
    };
    chart.marks.iter().enumerate().map(place).collect()
}

/// The names of the curves at their right ends, moved apart where they would lie over each other.
fn ends(chart: &Chart, ideal: &[(f64, f64)], at: &Places) -> Vec<Value> {
    let named = chart.curves.len() > 1;
    let last = |curve: &Curve| curve.points.last().map_or(0.0, |point| at.down(point.y));
    let mut ends: Vec<(f64, String, String)> = chart
        .curves
        .iter()
        .enumerate()
        .filter(|_| named)
        .map(|(i, curve)| {
            (last(curve), format::label(chart.label(curve)), format!("c{}", i % COLOURS))
        })
        .collect();
    let perfect = ideal.last().map(|(_, rate)| at.down(*rate));
    ends.extend(perfect.map(|at| (at, "perfect".into(), "ideal".into())));
    ends.sort_by(|a, b| a.0.total_cmp(&b.0));
    let places = apart(&ends.iter().map(|end| end.0).collect::<Vec<f64>>(), at.panel.bottom);
    let ends = ends.into_iter().zip(places);
    ends.map(|((at, text, class), y)| context! { at, y, text, class }).collect()
}

/// Ascending places above the `lowest`, each moved as far as needed to be a line's height from the one
/// before.
fn apart(wanted: &[f64], mut lowest: f64) -> Vec<f64> {
    let mut places: Vec<f64> = Vec::new();
    for &at in wanted {
        places.push(places.last().map_or(at, |last| at.max(last + LINE_HEIGHT)));
    }
    for place in places.iter_mut().rev() {
        *place = round(place.min(lowest));
        lowest = *place - LINE_HEIGHT;
    }
    places
}

/// Returns the title of an axis, with a note if the axis is logarithmic.
fn axis_title(of: &str, axis: &Axis) -> String {
    format!("{}{}", format::label(of), if axis.is_log { " (log)" } else { "" })
}

fn percent(at: f64) -> String {
    format!("{:.2}%", 100.0 * at.clamp(0.0, 1.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chart(count: usize) -> Chart {
        let curve = |i: usize| Curve {
            series: format!("memory bandwidth, c{i}"),
            points: [16.0, 256.0]
                .map(|x| CurvePoint {
                    workload: (*format!("w{i}")).into(),
                    x,
                    y: x * (1.0 + i as f64),
                    low: None,
                    high: None,
                })
                .to_vec(),
        };
        let curves = (0..count).map(curve).collect();
        Chart {
            quantity: Quantity::Rate("MBps".into()),
            x_unit: "bytes".into(),
            curves,
            marks: Vec::new(),
        }
    }

    #[test]
    fn many_curves_are_small_multiples_on_the_same_axes() {
        assert_eq!(figures(&chart(4), None).len(), 1);
        let panels = figures(&chart(9), None);
        assert_eq!(panels.len(), 9);
        let of = |panel: &Value, name: &str| panel.get_attr(name).unwrap().to_string();
        assert_eq!(of(&panels[3], "part"), "c3");
        for panel in &panels {
            let inner = |panel: &Value, name: &str| {
                let only = panel.get_attr("panels").unwrap().get_item(&Value::from(0)).unwrap();
                only.get_attr(name).unwrap().to_string()
            };
            assert_eq!(inner(panel, "ticks"), inner(&panels[0], "ticks"));
            assert_eq!(inner(panel, "ends"), "[]", "one curve needs no name at its end");
        }
    }

    #[test]
    fn names_keep_apart_and_within_the_picture() {
        let apart = |wanted: &[f64]| super::apart(wanted, 236.0);
        assert_eq!(apart(&[50.0, 51.0, 52.0]), [50.0, 66.0, 82.0]);
        assert_eq!(apart(&[230.0, 232.0]), [220.0, 236.0]);
        assert_eq!(apart(&[30.0, 100.0]), [30.0, 100.0]);
        assert!(apart(&[]).is_empty());
    }

    fn with_third(mut chart: Chart) -> Chart {
        let points = &mut chart.curves[0].points;
        points.push(CurvePoint { x: 1024.0, ..points[0].clone() });
        chart
    }

    #[test]
    fn over_two_places_there_is_a_table_and_no_picture() {
        let times = Chart { quantity: Quantity::JobTime(99), ..chart(2) };
        let charts = [chart(2), times];
        assert!(stacked(&charts).is_none());
        let table = table(&charts);
        assert_eq!((table.columns.len(), table.rows.len()), (5, 2), "{table:?}");
        assert!(table.rows.iter().flatten().all(|cell| !cell.is_empty()), "{table:?}");
        let mut marked = charts;
        marked[0].marks.push(ChartMark {
            text: "peak".into(),
            note: String::new(),
            x: 16.0,
            low: 16.0,
            high: 16.0,
            y: None,
            curve: Some(1),
        });
        assert_eq!(self::table(&marked).rows[0].last().unwrap(), "peak (c1)");
    }

    #[test]
    fn stacked_charts_are_one_picture_over_the_same_places() {
        let rates = Chart {
            marks: vec![ChartMark {
                text: "peak".into(),
                note: "peak: 16 users".into(),
                x: 16.0,
                low: 16.0,
                high: 256.0,
                y: Some([15.0, 17.0]),
                curve: None,
            }],
            ..with_third(chart(1))
        };
        let times = Chart { quantity: Quantity::JobTime(99), ..with_third(chart(1)) };
        assert!(stacked(&[]).is_none());
        let figure = stacked(&[rates, times]).unwrap();
        let of = |value: &Value, name: &str| value.get_attr(name).unwrap();
        let panels: Vec<Value> = of(&figure, "panels").try_iter().unwrap().collect();
        assert_eq!(panels.len(), 2);
        let first_x = |panel: &Value| {
            let curve = of(panel, "curves").get_item(&Value::from(0)).unwrap();
            of(&of(&curve, "points").get_item(&Value::from(0)).unwrap(), "x").to_string()
        };
        assert_eq!(first_x(&panels[0]), first_x(&panels[1]));
        let number = |value: &Value, name: &str| f64::try_from(of(value, name)).unwrap();
        assert!(number(&panels[0], "bottom") < number(&panels[1], "top"));
        assert_eq!(number(&figure, "bottom"), number(&panels[1], "bottom"));
        assert_eq!(of(&figure, "marks").len(), Some(1));
        let spans = |panel: &Value| of(panel, "spans").len();
        assert_eq!((spans(&panels[0]), spans(&panels[1])), (Some(1), Some(0)));
    }
}
