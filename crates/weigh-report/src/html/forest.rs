//! The forest plot: every interval against zero and the margin, the most expensive first.
//!
//! Horizontal places are percentages of the plot and vertical ones pixels, so that the figure fits
//! any width without its text getting smaller. Names and values are lists beside it, in step.

use minijinja::{Value, context};

use super::class;
use crate::results::{has_interval, interval, measured, verdict};
use crate::scale::EffectScale;
use paired::Verdict;
use weigh_model::format;
use weigh_model::result::summary::Row;

/// As high as an item of the lists beside the plot, and as room at its top: see the style sheet.
pub const ROW_HEIGHT: usize = 26;
pub const TOP: usize = 30;
/// The share of the plot that a character of a tick label takes on a wide page, and on a telephone.
pub const CHARACTER: f64 = 0.013;
pub const WIDE_CHARACTER: f64 = 0.075;
pub const LONGEST_NAME: usize = 28;

/// The figure of one treatment's rows; `scale` is that of the whole page.
pub fn figure(rows: &[&Row], scale: &EffectScale, margin_pct: f64) -> Value {
    let rows = ordered(rows.to_vec());
    let bottom = TOP + ROW_HEIGHT * rows.len();
    let major = scale.ticks(WIDE_CHARACTER);
    let ticks = scale.ticks(CHARACTER).into_iter().map(|tick| {
        context! { x => place(tick.0), minor => !major.contains(&tick), text => tick.1 }
    });
    let from = scale.at(-margin_pct.abs()).clamp(0.0, 1.0);
    let to = scale.at(margin_pct.abs()).clamp(0.0, 1.0);
    context! {
        height => bottom + 6,
        top => TOP,
        bottom,
        ticks => ticks.collect::<Vec<Value>>(),
        zero => place(scale.at(0.0)),
        margin_x => place(from),
        margin_width => place(to - from),
        rows => rows
            .iter()
            .enumerate()
            .map(|(i, row)| line(row, TOP + ROW_HEIGHT * i + ROW_HEIGHT / 2, scale, margin_pct))
            .collect::<Vec<Value>>(),
    }
}

/// The most expensive first: the order of the plot and of the table beneath it.
pub fn ordered(mut rows: Vec<&Row>) -> Vec<&Row> {
    rows.sort_by(|a, b| a.effect_pct.total_cmp(&b.effect_pct));
    rows
}

fn line(row: &Row, y: usize, scale: &EffectScale, margin_pct: f64) -> Value {
    let [effect, ..] = measured(row);
    let verdict = verdict(row, margin_pct);
    let name = format::label(&row.workload);
    let end = |pct: Option<f64>| pct.filter(|pct| !pct.is_nan()).map(|pct| scale.at(pct));
    let (low, high) = (end(row.low_pct), end(row.high_pct));
    let estimate = scale.at(row.effect_pct);
    let on_scale = |at: Option<f64>| at.is_some_and(|at| (0.0..=1.0).contains(&at));
    let interval = interval(row);
    let pairs = format::plural(row.pairs, "pair");
    context! {
        y,
        class => class(row.verdict),
        hollow => row.verdict == Verdict::Inconclusive,
        measured => !row.effect_pct.is_nan() && has_interval(row),
        x => on_scale(Some(estimate)).then(|| place(estimate)),
        low => place(low.unwrap_or(0.0)),
        high => place(high.unwrap_or(1.0)),
        low_open => !on_scale(low),
        high_open => !on_scale(high),
        title => format!("{name}: {effect} {interval}, {verdict}, {pairs}"),
        name => format::shorten_name(&name, LONGEST_NAME),
        effect,
        verdict,
    }
}

/// A place between 0 and 1 as a percentage for an attribute.
pub fn place(at: f64) -> String {
    let at = if at.is_finite() { at.clamp(0.0, 1.0) } else { 0.0 };
    format!("{:.2}%", 100.0 * at)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_stay_within_the_plot() {
        let places = [f64::NAN, -3.0, 0.5, 7.0].map(place);
        assert_eq!(places, ["0.00%", "0.00%", "50.00%", "100.00%"]);
    }
}
