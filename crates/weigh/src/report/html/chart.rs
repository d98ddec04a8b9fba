//! Curves over a size or a number: points with their spread, joined, and named at their ends.
//!
//! As in the forest plot, horizontal places are percentages and vertical ones pixels. So a curve is
//! made of straight lines from point to point, which is all that is known of it.

use minijinja::{Value, context};

use super::axis::{Axis, tick_text};
use crate::format;
use crate::result::curve::{Chart, ChartMark, Curve, CurvePoint, Quantity, x_text};

const HEIGHT: f64 = 268.0;
const TOP: f64 = 26.0;
const BOTTOM: f64 = 236.0;
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

/// The pictures of a chart: one, or where there are too many curves to be told apart one for each, all on the
/// same axes. `of` says whose effects they are.
pub fn figures(chart: &Chart, of: Option<&str>) -> Vec<Value> {
    if chart.curves.len() <= MOST_TOGETHER {
        return vec![figure(chart, chart, None, of)];
    }
    let alone = |curve: &Curve| Chart { curves: vec![curve.clone()], ..chart.clone() };
    let panels = chart.curves.iter();
    panels.map(|curve| figure(&alone(curve), chart, Some(chart.label(curve)), of)).collect()
}

/// One picture, on the axes of the `whole` chart; `part` is what it shows of that.
fn figure(chart: &Chart, whole: &Chart, part: Option<&str>, of: Option<&str>) -> Value {
    let mut xs: Vec<f64> = whole.points().map(|point| point.x).collect();
    xs.sort_by(f64::total_cmp);
    xs.dedup();
    let ideal = ideal(chart, &xs);
    let x = Axis::of_x(&xs, &chart.x_unit);
    let heights = heights(whole, &ideal);
    let y = Axis::of_y(&heights, &chart.quantity, chart.is_scaling().then_some(&x));
    let is_broad = part.is_none() && (xs.len() > NARROW_POINTS || chart.curves.len() > 3);
    let text = |value: f64| x_text(value, &chart.x_unit);
    let on_telephone = x.labels(&xs, TELEPHONE, text);
    let labels = x.labels(&xs, if is_broad { BROAD } else { NARROW }, text);
    let labels = labels.into_iter().map(|label| {
        context! { x => percent(label.0), minor => !on_telephone.contains(&label), text => label.1 }
    });
    let ticks = y.ticks().into_iter().map(|tick| {
        context! { y => down(y.at(tick)), zero => tick == 0.0, text => tick_text(tick, &chart.quantity) }
    });
    let curves = chart.curves.iter().enumerate().map(|(i, curve)| {
        context! {
            class => i % COLOURS,
            aside => round(ASIDE * ((i as f64 + 0.5) / chart.curves.len() as f64 - 0.5)),
            lines => segments(curve.points.iter().map(|point| (point.x, point.y)), &x, &y),
            points => curve.points.iter().map(|p| dot(p, chart, &x, &y)).collect::<Vec<Value>>(),
        }
    });
    context! {
        title => format::label(chart.title()),
        part => part.map(format::label),
        of => of.map(format::label),
        y_title => chart.y_title(),
        x_title => format::label(&chart.x_unit),
        scale => scale_note(&x, &y),
        broad => is_broad,
        named => chart.curves.len() > 1,
        height => HEIGHT, top => TOP, bottom => BOTTOM,
        labels => labels.collect::<Vec<Value>>(),
        ticks => ticks.collect::<Vec<Value>>(),
        curves => curves.collect::<Vec<Value>>(),
        ideal => segments(ideal.iter().copied(), &x, &y),
        ends => ends(chart, &ideal, &y),
        marks => marks(chart, &x),
    }
}

/// What so many copies would do if each did as much as one of the fewest.
fn ideal(chart: &Chart, xs: &[f64]) -> Vec<(f64, f64)> {
    let first = chart.curves.first().and_then(|curve| curve.points.first());
    match first {
        Some(first) if matches!(chart.quantity, Quantity::Rate(_)) && chart.is_scaling() => {
            xs.iter().map(|x| (*x, first.y * x / first.x)).collect()
        }
        _ => Vec::new(),
    }
}

/// What the vertical axis must show. An interval that is much wider than all estimates is cut off.
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

fn segments(points: impl Iterator<Item = (f64, f64)>, x: &Axis, y: &Axis) -> Vec<Value> {
    let places: Vec<(String, f64)> =
        points.map(|(a, b)| (percent(x.at(a)), down(y.at(b)))).collect();
    let pairs = places.windows(2);
    pairs
        .map(|pair| context! { x1 => &pair[0].0, y1 => pair[0].1, x2 => &pair[1].0, y2 => pair[1].1 })
        .collect()
}

fn dot(point: &CurvePoint, chart: &Chart, x: &Axis, y: &Axis) -> Value {
    let place = x_text(point.x, &chart.x_unit);
    let value = match &chart.quantity {
        Quantity::Time | Quantity::JobTime(_) => format::time_ns(point.y),
        Quantity::Rate(unit) => format!("{} {unit}", format::rate(point.y, unit)),
        Quantity::Effect | Quantity::Slowdown => {
            format!("{} {}", format::percent(point.y), format::interval(point.low, point.high))
        }
    };
    context! {
        x => percent(x.at(point.x)),
        y => down(y.at(point.y)),
        low => point.low.map_or(BOTTOM, |low| down(y.at(low))),
        high => point.high.map_or(TOP, |high| down(y.at(high))),
        title => format::label(&format!("{}: {value} at {place} {}", point.workload, chart.x_unit)),
    }
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
            y => BOTTOM - 8.0 - LINE_HEIGHT * row as f64,
            class => mark.curve.map_or_else(|| "c0".into(), |curve| format!("c{}", curve % COLOURS)),
        }
    };
    chart.marks.iter().enumerate().map(place).collect()
}

/// The names of the curves at their right ends, moved apart where they would lie over each other.
fn ends(chart: &Chart, ideal: &[(f64, f64)], y: &Axis) -> Vec<Value> {
    let named = chart.curves.len() > 1;
    let last = |curve: &Curve| curve.points.last().map_or(0.0, |point| down(y.at(point.y)));
    let mut ends: Vec<(f64, String, String)> = chart
        .curves
        .iter()
        .enumerate()
        .filter(|_| named)
        .map(|(i, curve)| {
            (last(curve), format::label(chart.label(curve)), format!("c{}", i % COLOURS))
        })
        .collect();
    let perfect = ideal.last().map(|(_, rate)| down(y.at(*rate)));
    ends.extend(perfect.map(|at| (at, "perfect".into(), "ideal".into())));
    ends.sort_by(|a, b| a.0.total_cmp(&b.0));
    let places = apart(&ends.iter().map(|end| end.0).collect::<Vec<f64>>());
    let ends = ends.into_iter().zip(places);
    ends.map(|((at, text, class), y)| context! { at, y, text, class }).collect()
}

/// Ascending places, each moved as far as needed to be a line's height from the one before.
fn apart(wanted: &[f64]) -> Vec<f64> {
    let mut places: Vec<f64> = Vec::new();
    for &at in wanted {
        places.push(places.last().map_or(at, |last| at.max(last + LINE_HEIGHT)));
    }
    let mut lowest = BOTTOM;
    for place in places.iter_mut().rev() {
        *place = round(place.min(lowest));
        lowest = *place - LINE_HEIGHT;
    }
    places
}

fn scale_note(x: &Axis, y: &Axis) -> &'static str {
    match (x.is_log, y.is_log) {
        (true, true) => "both axes logarithmic",
        (true, false) => "horizontal axis logarithmic",
        (false, true) => "vertical axis logarithmic",
        (false, false) => "",
    }
}

fn percent(at: f64) -> String {
    format!("{:.2}%", 100.0 * at.clamp(0.0, 1.0))
}

fn down(at: f64) -> f64 {
    round(BOTTOM - at.clamp(0.0, 1.0) * (BOTTOM - TOP))
}

fn round(value: f64) -> f64 {
    (10.0 * value).round() / 10.0
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
            assert_eq!(of(panel, "ticks"), of(&panels[0], "ticks"));
            assert_eq!(of(panel, "ends"), "[]", "one curve needs no name at its end");
        }
    }

    #[test]
    fn names_keep_apart_and_within_the_picture() {
        assert_eq!(apart(&[50.0, 51.0, 52.0]), [50.0, 66.0, 82.0]);
        assert_eq!(apart(&[230.0, 232.0]), [220.0, 236.0]);
        assert_eq!(apart(&[30.0, 100.0]), [30.0, 100.0]);
        assert!(apart(&[]).is_empty());
    }
}
