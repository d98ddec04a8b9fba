//! Drift over time, as a small picture per row: each pair's effect, and both arms' rates.
//!
//! Drift that both arms share cancels in the pairs; the picture lets readers check it. A stall, a
//! warm-up or a neighbour on the machine shows here and in no table.

use minijinja::{Value, context};

use super::axis::round;
use super::class;
use weigh_model::format;
use weigh_model::result::summary::{Pair, Row};

const WIDTH: f64 = 300.0;
const EFFECTS_HEIGHT: f64 = 60.0;
const RATES_HEIGHT: f64 = 36.0;
/// Dots on the edge of a picture would be cut in half.
const EDGE: f64 = 4.0;

/// When the last pair of any row began: the end of the time that all pictures share.
pub fn end_s(rows: &[Row]) -> f64 {
    let times = rows.iter().flat_map(|row| &row.series).map(|pair| pair.started_s);
    times.filter(|time| time.is_finite()).fold(0.0, f64::max)
}

/// The picture of one row, over the time from 0 to `end_s`; `None` when fewer than two pairs have a number.
pub fn figure(row: &Row, several: bool, end_s: f64) -> Option<Value> {
    let usable = |pair: &&Pair| pair.log_ratio().is_finite() && pair.started_s.is_finite();
    let pairs: Vec<&Pair> = row.series.iter().filter(usable).collect();
    let times = || pairs.iter().map(|pair| pair.started_s);
    let time = TimeAxis::of([0.0, end_s].into_iter(), WIDTH, false)?;
    let ratios: Vec<f64> = pairs.iter().map(|pair| pair.log_ratio()).collect();
    let effects = TimeAxis::of(ratios.iter().copied(), EFFECTS_HEIGHT, true)?;
    let arms = [
        relative(pairs.iter().map(|pair| pair.baseline_rate).collect()),
        relative(pairs.iter().map(|pair| pair.treated_rate).collect()),
    ];
    let rates = TimeAxis::of(arms.iter().flatten().copied(), RATES_HEIGHT, true)?;
    let line = |arm: &[f64]| -> String {
        let points =
            times().zip(arm).map(|(t, rate)| format!("{} {}", time.at(t), rates.at(*rate)));
        points.collect::<Vec<_>>().join(" ")
    };
    let dots = times().zip(&ratios).map(|(t, d)| format!("M{} {}h0", time.at(t), effects.at(*d)));
    let log = |pct: f64| (1.0 + pct / 100.0).ln();
    let (low, high) = (row.low_pct.map(log), row.high_pct.map(log));
    let band_top = effects.within(high.unwrap_or(f64::INFINITY));
    let band_bottom = effects.within(low.unwrap_or(f64::NEG_INFINITY));
    Some(context! {
        name => format::label(&row.workload),
        treatment => several.then(|| format::label(&row.treatment)),
        class => class(row.verdict),
        effect => format::percent(row.effect_pct),
        pairs => format::plural(pairs.len(), "pair"),
        effects_high => percent(effects.high),
        effects_low => percent(effects.low),
        dots => dots.collect::<String>(),
        zero => (effects.low..=effects.high).contains(&0.0).then(|| effects.at(0.0)),
        estimate => effects.at(log(row.effect_pct)),
        band_top => band_top,
        band_height => round((band_bottom - band_top).max(0.0)),
        rates_high => percent(rates.high),
        rates_low => percent(rates.low),
        baseline => line(&arms[0]),
        treated => line(&arms[1]),
        to => format::seconds(end_s),
    })
}

/// A range of values over a length of picture; `up` puts large values at the top.
struct TimeAxis {
    low: f64,
    high: f64,
    length: f64,
    up: bool,
}

impl TimeAxis {
    /// `None` when no picture can be made of the values.
    fn of(values: impl Iterator<Item = f64>, length: f64, up: bool) -> Option<TimeAxis> {
        let range = (f64::INFINITY, f64::NEG_INFINITY);
        let (low, high) = values.fold(range, |(low, high), x| (low.min(x), high.max(x)));
        let usable = low.is_finite() && high.is_finite() && high > low;
        usable.then_some(TimeAxis { low, high, length, up })
    }

    fn at(&self, value: f64) -> f64 {
        let share = ((value - self.low) / (self.high - self.low)).clamp(-10.0, 10.0);
        // Of a NaN the clamp makes a NaN, which has no place.
        let share = if share.is_nan() { 0.0 } else { share };
        let share = if self.up { 1.0 - share } else { share };
        round(EDGE + share * (self.length - 2.0 * EDGE))
    }

    /// Returns the place of a value, limited to the picture.
    fn within(&self, value: f64) -> f64 {
        self.at(value).clamp(0.0, self.length)
    }
}

/// Each rate's log-ratio to the median of its arm: so that both arms fit one picture.
fn relative(rates: Vec<f64>) -> Vec<f64> {
    let mut sorted = rates.clone();
    sorted.sort_by(f64::total_cmp);
    let median = sorted.get(sorted.len() / 2).copied().unwrap_or(1.0);
    rates.into_iter().map(|rate| (rate / median).ln()).collect()
}

fn percent(log_ratio: f64) -> String {
    format::percent(100.0 * log_ratio.exp_m1())
}

#[cfg(test)]
mod tests {
    use super::*;
    use weigh_model::example;

    #[test]
    fn a_picture_needs_two_pairs_that_differ() {
        let mut row = example::audit().results.remove(0);
        assert!(figure(&row, false, 60.0).is_some());
        row.series.truncate(1);
        assert!(figure(&row, false, 60.0).is_none());
        row.series.clear();
        assert!(figure(&row, false, 60.0).is_none());
    }

    #[test]
    fn all_pictures_are_over_the_same_time() {
        let results = example::audit().results;
        let end_s = end_s(&results);
        let last = |row: &Row| row.series.last().unwrap().started_s;
        assert!(last(&results[0]) < end_s && last(&results[11]) == end_s);
        // The last dot of a row that was done early lies where that was, not at the edge.
        let places = [0, 11].map(|row| {
            let figure = figure(&results[row], false, end_s).expect("a picture");
            let dots = figure.get_attr("dots").unwrap().to_string();
            dots.rsplit('M').next().unwrap().split(' ').next().unwrap().parse::<f64>().unwrap()
        });
        assert!(places[0] < 0.3 * WIDTH && places[1] == WIDTH - EDGE, "{places:?}");
    }

    #[test]
    fn an_axis_puts_large_values_on_top() {
        let axis = TimeAxis::of([1.0, 3.0].into_iter(), 108.0, true).expect("a range");
        assert_eq!([3.0, 2.0, 1.0].map(|x| axis.at(x)), [4.0, 54.0, 104.0]);
        assert_eq!(axis.within(f64::INFINITY), 0.0);
        assert!(axis.at(f64::NAN).is_finite());
    }

    #[test]
    fn arms_are_shown_relative_to_their_median() {
        assert_eq!(relative(vec![2.0, 4.0, 4.0])[1], 0.0);
        assert!(relative(Vec::new()).is_empty());
    }
}
