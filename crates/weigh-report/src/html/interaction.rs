//! How the factors of a full factorial design act together: the effect of each arm, with the first factor
//! off and on, and a line for each setting of the others.
//!
//! The vertical axis is logarithmic, so factors that act independently have parallel lines. It is drawn by
//! the template of curves.

use minijinja::{Value, context};

use super::axis::tick_text;
use crate::factorial::{self, workloads};
use weigh_model::format;
use weigh_model::result::curve::Quantity;
use weigh_model::result::summary::{Row, Summary};
use weigh_model::result::work_name::WorkName;

const TOP: f64 = 26.0;
const BOTTOM: f64 = 236.0;
/// Below it: the labels of the horizontal axis, and its title.
const FOOT: f64 = 32.0;
/// Between two names of lines, and between two labels of the vertical axis.
const LINE_HEIGHT: f64 = 16.0;
/// Where the first factor is off, and where it is on.
const PLACES: [&str; 2] = ["18%", "82%"];
/// Distance in pixels between the intervals of two lines.
const ASIDE: f64 = 6.0;

/// Effects that the vertical axis may label, the most useful first.
const TICKS: [f64; 19] = [
    0.0, -50.0, 100.0, -10.0, -90.0, -99.0, -20.0, 50.0, 10.0, -5.0, 20.0, -75.0, -95.0, -2.0, 5.0,
    -1.0, 1.0, 300.0, 900.0,
];

/// An arm: its effect compared with the baseline, and its interval.
#[derive(Clone, Copy)]
struct Arm {
    pct: f64,
    low_pct: Option<f64>,
    high_pct: Option<f64>,
}

/// The arms with the same setting of the other factors.
struct Line {
    name: String,
    arms: [Arm; 2],
}

/// A picture for each workload whose arms are all measured.
pub fn figures(s: &Summary) -> Vec<Value> {
    let factors = factorial::factors(s);
    let Some((first, others)) = factors.split_first() else { return Vec::new() };
    let figure = |workload: &&WorkName| {
        let settings = subsets(others).into_iter();
        let lines: Option<Vec<Line>> =
            settings.map(|on| line(s, workload, first, (&on, others))).collect();
        Some(figure(workload, first, &lines?))
    };
    workloads(s).iter().filter_map(figure).collect()
}

/// All sets of these factors: none first.
fn subsets<'a>(factors: &[&'a str]) -> Vec<Vec<&'a str>> {
    let has = |mask: usize, i: usize| mask & (1 << i) != 0;
    let of_mask = |mask: usize| {
        factors
            .iter()
            .enumerate()
            .filter(|(i, _)| has(mask, *i))
            .map(|(_, factor)| *factor)
            .collect()
    };
    (0..1 << factors.len()).map(of_mask).collect()
}

fn line(
    s: &Summary,
    workload: &WorkName,
    first: &str,
    (on, others): (&[&str], &[&str]),
) -> Option<Line> {
    let with_first: Vec<&str> = std::iter::once(first).chain(on.iter().copied()).collect();
    let name = match (on, others) {
        ([], [other]) => format!("without {}", format::label(other)),
        ([], _) => "without the others".to_owned(),
        (on, _) => {
            let on: Vec<String> = on.iter().map(format::label).collect();
            format!("with {}", on.join(" + "))
        }
    };
    Some(Line { name, arms: [arm(s, workload, on)?, arm(s, workload, &with_first)?] })
}

/// The arm of these factors; the baseline has none.
fn arm(s: &Summary, workload: &WorkName, on: &[&str]) -> Option<Arm> {
    if on.is_empty() {
        return Some(Arm { pct: 0.0, low_pct: Some(0.0), high_pct: Some(0.0) });
    }
    let is_its = |row: &&Row| row.workload == *workload && is_of(&row.treatment, on);
    let Row { effect_pct, low_pct, high_pct, .. } = *s.results.iter().find(is_its)?;
    (effect_pct.is_finite() && effect_pct > -100.0).then_some(Arm {
        pct: effect_pct,
        low_pct,
        high_pct,
    })
}

/// Returns true if a label names these factors, in any order.
fn is_of(label: &str, factors: &[&str]) -> bool {
    let rest_is_of = |i: usize| {
        let rest = label.strip_prefix(factors[i]).and_then(|rest| rest.strip_prefix('+'));
        let others: Vec<&str> = [&factors[..i], &factors[i + 1..]].concat();
        rest.is_some_and(|rest| is_of(rest, &others))
    };
    match factors {
        [factor] => label == *factor,
        _ => (0..factors.len()).any(rest_is_of),
    }
}

/// A vertical axis of log-ratios.
struct Axis {
    low: f64,
    high: f64,
}

impl Axis {
    /// Axis with room for all estimates, and for intervals that are not much wider.
    fn of(lines: &[Line]) -> Axis {
        let arms = || lines.iter().flat_map(|line| line.arms);
        let estimates = || arms().map(|arm| log_ratio(arm.pct));
        let (low, high) = (estimates().fold(0.0, f64::min), estimates().fold(0.0, f64::max));
        let air = (high - low).max(0.02);
        let ends = arms().flat_map(|arm| [arm.low_pct, arm.high_pct]).flatten().map(log_ratio);
        let ends = ends.filter(|end| (low - air..=high + air).contains(end));
        let (low, high) = ends.fold((low, high), |(low, high), end| (low.min(end), high.max(end)));
        Axis { low: low - 0.06 * air, high: high + 0.06 * air }
    }

    fn down(&self, pct: f64) -> f64 {
        let at = (log_ratio(pct) - self.low) / (self.high - self.low);
        (BOTTOM - at.clamp(0.0, 1.0) * (BOTTOM - TOP)).round()
    }

    fn ticks(&self) -> Vec<f64> {
        let is_on = |pct: &f64| (self.low..=self.high).contains(&log_ratio(*pct));
        let mut ticks: Vec<f64> = Vec::new();
        for pct in TICKS.into_iter().filter(is_on) {
            let is_free = |other: &f64| (self.down(pct) - self.down(*other)).abs() >= LINE_HEIGHT;
            if ticks.iter().all(is_free) {
                ticks.push(pct);
            }
        }
        ticks
    }
}

fn log_ratio(pct: f64) -> f64 {
    (1.0 + pct / 100.0).max(1e-9).ln()
}

fn figure(workload: &WorkName, first: &str, lines: &[Line]) -> Value {
    let axis = Axis::of(lines);
    let first = format::label(first);
    let ticks = axis.ticks().into_iter().map(|tick| {
        let text = tick_text(tick, &Quantity::Effect);
        context! { y => axis.down(tick), zero => tick == 0.0, text }
    });
    let labels = PLACES.into_iter().zip(["without", "with"]);
    let labels =
        labels.map(|(x, word)| context! { x, minor => false, text => format!("{word} {first}") });
    let curves = lines.iter().enumerate().map(|(i, line)| {
        let aside = ASIDE * (i as f64 - (lines.len() - 1) as f64 / 2.0);
        let [off, on] = line.arms.map(|arm| axis.down(arm.pct));
        let points = PLACES.into_iter().zip(line.arms).zip(["without", "with"]);
        context! {
            class => i,
            aside,
            lines => [context! { x1 => PLACES[0], y1 => off, x2 => PLACES[1], y2 => on }],
            points => points
                .map(|((x, arm), word)| point(x, arm, &format!("{word} {first}, {}", line.name), &axis))
                .collect::<Vec<Value>>(),
        }
    });
    let panel = context! {
        title => "effect on the rate, compared with no factor",
        top => TOP,
        bottom => BOTTOM,
        ticks => ticks.collect::<Vec<Value>>(),
        curves => curves.collect::<Vec<Value>>(),
        ends => ends(lines, &axis),
    };
    context! {
        title => format::label(workload),
        y_titles => "effect of each arm",
        x_title => "",
        named => true,
        height => BOTTOM + FOOT, top => TOP, bottom => BOTTOM,
        labels => labels.collect::<Vec<Value>>(),
        panels => [panel],
    }
}

fn point(x: &str, arm: Arm, name: &str, axis: &Axis) -> Value {
    let interval = format::interval(arm.low_pct, arm.high_pct);
    context! {
        x,
        y => axis.down(arm.pct),
        low => arm.low_pct.map_or(BOTTOM, |pct| axis.down(pct)),
        high => arm.high_pct.map_or(TOP, |pct| axis.down(pct)),
        title => format!("{name}: {} {interval}", format::percent(arm.pct)),
    }
}

/// The names of the lines at their ends, moved down where two would collide.
fn ends(lines: &[Line], axis: &Axis) -> Vec<Value> {
    let mut order: Vec<usize> = (0..lines.len()).collect();
    let at = |line: usize| axis.down(lines[line].arms[1].pct);
    order.sort_by(|a, b| at(*a).total_cmp(&at(*b)));
    let mut last = f64::NEG_INFINITY;
    let ends = order.into_iter().map(|line| {
        let y = at(line).max(last + LINE_HEIGHT);
        last = y;
        context! { class => format!("c{line}"), at => at(line), y, text => &lines[line].name }
    });
    ends.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::html;
    use weigh_model::example;

    #[test]
    fn factors_come_first_with_a_picture_of_their_interaction() {
        let text = html::render(&example::factorial()).unwrap().replace("&#x2f;", "/");
        let at = |part: &str| text.find(part).unwrap_or_else(|| panic!("{part} is missing"));
        assert!(at("<h2>Effects of the factors</h2>") < at("class=\"forest\""));
        assert!(at("without nice:5") < at("class=\"forest\"") && at("with nice:5") > 0);
        assert!(text.contains("with seccomp, with nice:5: −40.0 % [−41.0, −39.0]"), "{text}");
        assert!(
            at("<code>seccomp</code> −20.0\u{a0}%") < at("</h1>"),
            "the headline has the factors"
        );
    }

    #[test]
    fn independent_factors_have_parallel_lines() {
        let arms = |pct: [f64; 2]| pct.map(|pct| Arm { pct, low_pct: Some(pct), high_pct: None });
        let line = |pct| Line { name: "a".into(), arms: arms(pct) };
        let lines = [line([0.0, -50.0]), line([-80.0, -90.0])];
        let axis = Axis::of(&lines);
        let falls = lines.map(|line| axis.down(line.arms[1].pct) - axis.down(line.arms[0].pct));
        assert!((falls[0] - falls[1]).abs() <= 1.0, "{falls:?}");
        assert!(axis.ticks().len() > 3, "{:?}", axis.ticks());
    }

    #[test]
    fn an_arm_is_found_in_any_order_of_its_factors() {
        assert!(is_of("a:x=1+b", &["b", "a:x=1"]) && is_of("a+b+c", &["c", "a", "b"]));
        assert!(!is_of("a+b", &["a"]) && !is_of("a", &["a", "b"]));
    }
}
