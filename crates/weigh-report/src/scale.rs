//! The axis that all intervals of a report share.
//!
//! Log-ratios, because halving and doubling are the same distance; and of those the inverse
//! hyperbolic sine, which is linear within the margin and logarithmic beyond it. So −85 % and −1 %
//! can be read in the same picture, and zero is a place like any other.
//!
//! A wide axis ends its asinh part at half and double the rate, and is logarithmic in the factor beyond.
//! Otherwise ×20 and ×100 would be as close as −80 % and −90 %.

use weigh_model::format;
use weigh_model::result::preliminary::Preliminary;
use weigh_model::result::summary::Row;

/// Nothing beyond a thousandfold is drawn to scale.
const FARTHEST: f64 = 6.91;

/// An interval may widen the axis to so many times the farthest estimate; more is off the scale,
/// or one undecided row would squeeze all others.
const WIDENING: f64 = 3.0;

/// Effects that an axis may label after zero and the margin, the most useful first.
const LABELS: [f64; 24] = [
    -90.0, -50.0, -10.0, 10.0, 100.0, -99.0, 900.0, -99.9, -5.0, 5.0, -20.0, 20.0, -2.0, 2.0, 50.0,
    -1.0, 1.0, 200.0, -75.0, 400.0, -0.5, 0.5, -0.1, 0.1,
];

/// Factors by which an operation takes longer, as labels beyond half the rate; the most useful first.
const FACTORS: [f64; 9] = [10.0, 100.0, 1000.0, 2.0, 5.0, 20.0, 50.0, 200.0, 500.0];

/// Effect at which the part of factors begins: half the rate, ×2.
const HALF_PCT: f64 = -50.0;

/// An effect, as a picture needs it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Span {
    pub effect_pct: f64,
    pub low_pct: Option<f64>,
    pub high_pct: Option<f64>,
}

impl From<Preliminary> for Span {
    fn from(few: Preliminary) -> Span {
        let Preliminary { effect_pct, low_pct, high_pct } = few;
        Span { effect_pct, low_pct: Some(low_pct), high_pct: Some(high_pct) }
    }
}

impl From<&Row> for Span {
    fn from(row: &Row) -> Span {
        if let Some(few) = row.preliminary {
            return few.into();
        }
        Span { effect_pct: row.effect_pct, low_pct: row.low_pct, high_pct: row.high_pct }
    }
}

/// Maps effects to 0..1.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct EffectScale {
    low: f64,
    high: f64,
    /// Where linear ends and logarithmic begins: the margin, as a log-ratio.
    knee: f64,
    margin_pct: f64,
    /// From this log-ratio on, equal factors are equally far apart.
    factors_from: f64,
}

impl EffectScale {
    /// An axis on which zero, the margin and all estimates lie, and most intervals.
    pub fn of(spans: impl IntoIterator<Item = Span>, margin_pct: f64) -> EffectScale {
        EffectScale::new(spans, margin_pct, f64::INFINITY)
    }

    /// An axis for a wide picture: from −50 % on, it is the factor.
    pub fn with_factors(spans: impl IntoIterator<Item = Span>, margin_pct: f64) -> EffectScale {
        EffectScale::new(spans, margin_pct, -log_ratio(HALF_PCT))
    }

    fn new(
        spans: impl IntoIterator<Item = Span>,
        margin_pct: f64,
        factors_from: f64,
    ) -> EffectScale {
        let spans: Vec<Span> = spans.into_iter().collect();
        let margin = if margin_pct.is_finite() { margin_pct.abs() } else { 1.0 };
        let knee = log_ratio(margin.max(0.01));
        let estimates = || {
            let all = spans.iter().map(|span| log_ratio(span.effect_pct));
            all.filter(|x| x.is_finite())
        };
        let farthest = estimates().map(f64::abs).fold(2.0 * knee, f64::max) * WIDENING;
        let ends = spans.iter().flat_map(|span| [span.low_pct, span.high_pct]);
        let ends = ends.flatten().map(log_ratio).filter(|x| x.is_finite());
        let ends = ends.map(|x| x.clamp(-farthest, farthest));
        let (mut low, mut high) = (-2.0 * knee, 2.0 * knee);
        for x in estimates().chain(ends) {
            low = low.min(x);
            high = high.max(x);
        }
        let unbounded = EffectScale { low: 0.0, high: 1.0, knee, margin_pct: margin, factors_from };
        let (low, high) = (unbounded.stretch(low), unbounded.stretch(high));
        EffectScale { low: low - 0.15, high: high + 0.15, ..unbounded }
    }

    /// Where a log-ratio lies on an endless axis, on which the margin is about 1 from zero.
    fn stretch(&self, x: f64) -> f64 {
        let near = x.clamp(-self.factors_from, self.factors_from);
        // As steep as what comes before.
        let beyond = (x - near) / self.factors_from.hypot(self.knee);
        (near / self.knee).asinh() + beyond
    }

    /// True if factors have a place on this axis.
    pub fn has_factors(&self) -> bool {
        self.low < self.stretch(-self.factors_from)
    }

    /// Where an effect lies; outside 0..1 when it is off the scale.
    pub fn at(&self, pct: f64) -> f64 {
        (self.stretch(log_ratio(pct)) - self.low) / (self.high - self.low)
    }

    /// An axis for what is not known yet, from a thousandth of the rate to its double, so that a view that
    /// changes keeps its places. What lies beyond is off the scale.
    pub fn fixed(margin_pct: f64) -> EffectScale {
        let ends = [-99.9, 100.0];
        let spans = ends.map(|effect_pct| Span { effect_pct, low_pct: None, high_pct: None });
        EffectScale::of(spans, margin_pct)
    }

    /// Returns the possible labels of an axis with their places, the most useful first.
    pub fn labels(&self) -> impl Iterator<Item = (f64, String)> {
        let percent = |pct: f64| (pct, tick_text(pct));
        let margin = [0.0, -self.margin_pct, self.margin_pct].map(percent);
        // A label near the margin would be taken for the margin's.
        let least = 2.5 * self.margin_pct;
        let has_factors = self.factors_from.is_finite();
        let is_percent = move |pct: &f64| pct.abs() > least && !(has_factors && *pct <= HALF_PCT);
        let percents = LABELS.into_iter().filter(is_percent).map(percent);
        let factors = FACTORS.into_iter().filter(move |_| has_factors);
        let factors = factors.map(|factor| ((1.0 / factor - 1.0) * 100.0, format!("×{factor}")));
        let all = margin.into_iter().chain(factors).chain(percents);
        let placed = all.map(|(pct, text)| (self.at(pct), text));
        placed.filter(|(at, _)| (0.0..=1.0).contains(at))
    }

    /// Labels and their places, as many as do not collide; `room` is the width of one character.
    pub fn ticks(&self, room: f64) -> Vec<(f64, String)> {
        without_collisions(self.labels(), room)
    }
}

/// The labels that do not collide with an earlier one, in the order of their places.
pub fn without_collisions(
    labels: impl Iterator<Item = (f64, String)>,
    room: f64,
) -> Vec<(f64, String)> {
    let length = |text: &str| text.chars().count() as f64;
    let mut free: Vec<(f64, String)> = Vec::new();
    for (at, text) in labels {
        // Half of each label, and a blank between them.
        let apart = |taken: &str| ((length(&text) + length(taken)) / 2.0 + 1.0) * room;
        if free.iter().all(|(other, taken)| (at - other).abs() >= apart(taken)) {
            free.push((at, text));
        }
    }
    free.sort_by(|a, b| a.0.total_cmp(&b.0));
    free
}

fn tick_text(pct: f64) -> String {
    match pct {
        0.0 => "0".to_owned(),
        _ => format!("{}{}%", if pct < 0.0 { "−" } else { "+" }, format::per_op(pct.abs())),
    }
}

/// The log-ratio of an effect, no farther out than can be drawn.
fn log_ratio(pct: f64) -> f64 {
    if pct.is_nan() {
        return pct;
    }
    (1.0 + pct / 100.0).max(1e-9).ln().clamp(-FARTHEST, FARTHEST)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn span(effect_pct: f64, low: f64, high: f64) -> Span {
        Span { effect_pct, low_pct: Some(low), high_pct: Some(high) }
    }

    #[test]
    fn large_and_small_effects_can_both_be_read() {
        let scale = EffectScale::of([span(-85.0, -85.5, -84.5), span(-1.0, -1.2, -0.8)], 1.0);
        let places = [-85.0, -15.0, -1.0, 0.0, 1.0].map(|pct| scale.at(pct));
        assert!(places.windows(2).all(|pair| pair[1] - pair[0] > 0.08), "{places:?}");
        assert!(places[0] > 0.0 && places[4] < 1.0);
    }

    #[test]
    fn halving_and_doubling_are_equally_far() {
        let scale = EffectScale::of([span(-50.0, -50.0, 100.0)], 1.0);
        assert!((scale.at(-50.0) + scale.at(100.0) - 2.0 * scale.at(0.0)).abs() < 1e-12);
    }

    #[test]
    fn beyond_half_the_rate_equal_factors_are_equally_far() {
        let spans =
            [span(-99.138, -99.2, -99.1), span(-95.24, -95.3, -95.2), span(-1.0, -1.2, -0.8)];
        let scale = EffectScale::with_factors(spans, 1.0);
        let pct = |factor: f64| (1.0 / factor - 1.0) * 100.0;
        let between = |a: f64, b: f64| scale.at(pct(a)) - scale.at(pct(b));
        assert!((between(10.0, 100.0) - between(2.0, 20.0)).abs() < 1e-12);
        assert!(between(21.0, 116.0) > 0.15, "{}", between(21.0, 116.0));
        let without = EffectScale::of(spans, 1.0);
        assert!(without.at(pct(21.0)) - without.at(pct(116.0)) < 0.07);
        let ticks: Vec<String> = scale.ticks(0.013).into_iter().map(|(_, text)| text).collect();
        for label in ["×100", "×10", "×2", "−10%", "0"] {
            assert!(ticks.iter().any(|text| text == label), "{label}: {ticks:?}");
        }
        assert!(
            scale.has_factors() && !ticks.iter().any(|text| text.starts_with("−9")),
            "{ticks:?}"
        );
        let small = EffectScale::with_factors([span(-20.0, -21.0, -19.0)], 1.0);
        assert!(
            !small.has_factors() && small.ticks(0.013).iter().all(|(_, text)| !text.contains('×'))
        );
    }

    #[test]
    fn one_wide_interval_does_not_squeeze_the_rest() {
        let scale = EffectScale::of([span(0.1, -99.9, 5000.0), span(-2.0, -2.5, -1.5)], 1.0);
        assert!(scale.at(-99.9) < 0.0 && scale.at(5000.0) > 1.0);
    }

    #[test]
    fn any_number_has_a_scale() {
        for pct in [f64::NAN, f64::INFINITY, -100.0, -200.0, 1e300] {
            let scale = EffectScale::of([span(pct, pct, pct)], pct);
            assert!(scale.at(0.0).is_finite() && scale.at(-85.0).is_finite());
            assert!(scale.ticks(0.05).iter().any(|(_, text)| text == "0"));
        }
    }

    #[test]
    fn labels_do_not_collide() {
        let scale = EffectScale::of([span(-85.0, -86.0, -84.0), span(3.0, 1.0, 5.0)], 1.0);
        for cells in [10.0, 20.0, 60.0] {
            let ticks = scale.ticks(1.0 / cells);
            for pair in ticks.windows(2) {
                let widths = (pair[0].1.chars().count() + pair[1].1.chars().count()) as f64 / 2.0;
                assert!((pair[1].0 - pair[0].0) * cells >= widths, "{ticks:?}");
            }
        }
    }
}
