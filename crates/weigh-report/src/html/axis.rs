//! An axis of a chart: where a value lies between its ends, and which values are labelled.

use crate::scale::without_collisions;
use weigh_model::format;
use weigh_model::result::curve::Quantity;

/// A range of more than this is shown by its logarithm, or its smaller values could not be told apart.
const WIDEST_LINEAR: f64 = 10.0;
/// Copies and the like are counted: up to this they stand evenly, as people count.
const WIDEST_COUNT: f64 = 16.0;
/// Logarithmic axes have 1, 2 and 5 labelled up to so many decades, and 1 alone beyond.
const DENSE_DECADES: f64 = 2.5;
const LINEAR_TICKS: f64 = 5.0;

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Axis {
    low: f64,
    high: f64,
    pub is_log: bool,
}

impl Axis {
    /// The horizontal one: from the first to the last value.
    pub fn of_x(values: &[f64], unit: &str) -> Axis {
        let (low, high) = extent(values);
        Axis { low, high, is_log: low > 0.0 && (unit == "bytes" || high / low > WIDEST_COUNT) }
    }

    /// The vertical one: from 0, or logarithmic, with some air above. Where what is proportional to x must be
    /// a straight line, it is as the horizontal one is.
    pub fn of_y(values: &[f64], quantity: &Quantity, proportional_to: Option<&Axis>) -> Axis {
        let (low, high) = extent(values);
        if matches!(quantity, Quantity::Effect | Quantity::Slowdown) {
            let (low, high) = (low.min(0.0), high.max(0.0));
            let air = 0.06 * (high - low).max(0.1);
            return Axis { low: low - air, high: high + air, is_log: false };
        }
        let is_wide = proportional_to.map_or(high / low > WIDEST_LINEAR, |x| x.is_log);
        let is_log = low > 0.0 && is_wide;
        let low = if is_log { low / 1.2 } else { 0.0 };
        Axis { low, high: high * if is_log { 1.2 } else { 1.06 }, is_log }
    }

    /// The horizontal one of times that are read from one another, not from 0: with some air at both ends.
    pub fn of_times(values: &[f64]) -> Axis {
        let (low, high) = extent(values);
        let is_log = low > 0.0 && high / low > WIDEST_LINEAR;
        let air = 0.04 * (high - low).max(0.01 * high);
        match is_log {
            true => Axis { low: low / 1.2, high: high * 1.2, is_log },
            false => Axis { low: low - air, high: high + air, is_log },
        }
    }

    /// Where a value lies: 0 is the lower end, 1 the upper; 0.5 where there is no range.
    pub fn at(&self, value: f64) -> f64 {
        let map = |value: f64| if self.is_log { value.max(f64::MIN_POSITIVE).ln() } else { value };
        let at = (map(value) - map(self.low)) / (map(self.high) - map(self.low));
        if at.is_finite() { at } else { 0.5 }
    }

    /// Round values on a vertical axis, ascending.
    pub fn ticks(&self) -> Vec<f64> {
        if !self.low.is_finite() || !self.high.is_finite() || self.high <= self.low {
            return Vec::new();
        }
        let mut ticks = Vec::new();
        if self.is_log {
            let steps: &[f64] = if (self.high / self.low).log10() > DENSE_DECADES {
                &[1.0]
            } else {
                &[1.0, 2.0, 5.0]
            };
            for decade in self.low.log10().floor() as i32..=self.high.log10().ceil() as i32 {
                ticks.extend(steps.iter().map(|step| step * 10_f64.powi(decade)));
            }
        } else {
            let step = round_step((self.high - self.low) / LINEAR_TICKS);
            let (first, last) =
                ((self.low / step).ceil() as i64, (self.high / step).floor() as i64);
            ticks.extend((first..=last).map(|i| i as f64 * step));
        }
        ticks.retain(|tick| (self.low..=self.high).contains(tick));
        ticks
    }

    /// Labels the values whose labels do not collide. The ends come first, then values at whole
    /// powers of 4 or 10 of the first. `room` is the share of the axis that a character takes.
    pub fn labels(
        &self,
        values: &[f64],
        room: f64,
        text: impl Fn(f64) -> String,
    ) -> Vec<(f64, String)> {
        let mut sorted = values.to_vec();
        sorted.sort_by(f64::total_cmp);
        sorted.dedup();
        let (Some(&first), Some(&last)) = (sorted.first(), sorted.last()) else {
            return Vec::new();
        };
        let is_round = |x: &f64| {
            [4.0_f64, 10.0].into_iter().any(|base| {
                let power = (x / first).log(base);
                (power - power.round()).abs() < 1e-9
            })
        };
        let (round, others): (Vec<f64>, Vec<f64>) = sorted.iter().partition(|x| is_round(x));
        let values = [first, last].into_iter().chain(round).chain(others);
        without_collisions(values.map(|value| (self.at(value), text(value))), room)
    }
}

/// A tick of a vertical axis in words.
pub fn tick_text(value: f64, quantity: &Quantity) -> String {
    match quantity {
        _ if value == 0.0 => "0".into(),
        Quantity::Effect | Quantity::Slowdown => {
            let sign = if value < 0.0 { "−" } else { "+" };
            format!("{sign}{}\u{a0}%", format::per_op(value.abs()))
        }
        Quantity::Time | Quantity::JobTime(_) => {
            scaled(value, &[(1e9, "\u{a0}s"), (1e6, "\u{a0}ms"), (1e3, "\u{a0}µs")], "\u{a0}ns")
        }
        // `20M MBps` would be hard to read.
        Quantity::Rate(unit) if unit.ends_with("Bps") => format::per_op(value),
        Quantity::Rate(_) => scaled(value, &[(1e9, "G"), (1e6, "M"), (1e3, "k")], ""),
    }
}

fn scaled(value: f64, steps: &[(f64, &str)], smallest: &str) -> String {
    let step = steps.iter().find(|(scale, _)| value >= scale * 0.9999);
    let (scale, suffix) = step.copied().unwrap_or((1.0, smallest));
    format!("{}{suffix}", format::per_op(value / scale))
}

/// Pixels to a tenth, as a picture needs no more.
pub fn round(value: f64) -> f64 {
    (10.0 * value).round() / 10.0
}

fn extent(values: &[f64]) -> (f64, f64) {
    let finite = values.iter().copied().filter(|value| value.is_finite());
    finite.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), x| (low.min(x), high.max(x)))
}

/// The next of 1, 2 and 5 times a power of ten.
fn round_step(step: f64) -> f64 {
    let power = 10_f64.powf(step.log10().floor());
    let steps = [1.0, 2.0, 5.0].map(|digit| digit * power);
    steps.into_iter().find(|rounded| *rounded >= step * 0.9999).unwrap_or(10.0 * power)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use weigh_model::result::curve::x_text;

    const KIB: f64 = 1024.0;

    #[test]
    fn sizes_are_logarithmic_and_labelled_at_powers_of_4() {
        let sizes: Vec<f64> =
            (2..=16).map(|power| KIB * f64::from(1 << power)).chain([48.0 * KIB]).collect();
        let axis = Axis::of_x(&sizes, "bytes");
        let labels = axis.labels(&sizes, 0.03, |x| x_text(x, "bytes"));
        let texts: Vec<&str> = labels.iter().map(|(_, text)| text.as_str()).collect();
        assert_eq!(texts, ["4K", "16K", "64K", "256K", "1M", "4M", "16M", "64M"]);
        assert!((axis.at(512.0 * KIB) - 0.5).abs() < 1e-9, "half-way from 4K to 64M");
    }

    #[test]
    fn few_copies_stand_evenly_and_many_by_their_logarithm() {
        assert!((Axis::of_x(&[1.0, 2.0, 3.0], "copies").at(2.0) - 0.5).abs() < 1e-12);
        assert!(!Axis::of_x(&[1.0, 16.0], "copies").is_log);
        assert!(Axis::of_x(&[1.0, 64.0], "copies").is_log);
    }

    #[test]
    fn vertical_axes_start_at_0_or_are_logarithmic() {
        let rate = Quantity::Rate("ops/s".into());
        let ticks = |values: &[f64], quantity| Axis::of_y(values, quantity, None).ticks();
        assert_eq!(ticks(&[4.0, 9.7], &rate), [0.0, 5.0, 10.0]);
        assert_eq!(ticks(&[1.1, 90.0], &rate), [1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0]);
        assert_eq!(ticks(&[1.1, 9000.0], &rate), [1.0, 10.0, 100.0, 1000.0, 10000.0]);
        assert_eq!(ticks(&[-38.0, -20.0], &Quantity::Effect), [-40.0, -30.0, -20.0, -10.0, 0.0]);
    }

    #[test]
    fn times_begin_near_the_shortest() {
        let axis = Axis::of_times(&[100.0, 110.0]);
        assert_eq!(axis.ticks(), [100.0, 105.0, 110.0]);
        assert!(axis.at(100.0) > 0.0 && axis.at(110.0) < 1.0);
        assert!(Axis::of_times(&[1.0, 11.0]).is_log);
        let of_one = Axis::of_times(&[5.0]);
        assert!((of_one.at(5.0) - 0.5).abs() < 1e-9 && !of_one.ticks().is_empty());
    }

    #[test]
    fn perfect_scaling_is_a_straight_line() {
        let rate = Quantity::Rate("ops/s".into());
        for copies in [[1.0, 8.0, 15.0], [1.0, 16.0, 256.0]] {
            let x = Axis::of_x(&copies, "copies");
            let y = Axis::of_y(&copies, &rate, Some(&x));
            let middle = (y.at(copies[0]) + y.at(copies[2])) / 2.0;
            assert!(
                (y.at(copies[1]) - middle).abs() < 1e-9 && (x.at(copies[1]) - 0.5).abs() < 1e-9
            );
        }
    }

    #[test]
    fn ticks_have_units() {
        let times = [5.0, 1000.0, 2e7].map(|ns| tick_text(ns, &Quantity::Time));
        assert_eq!(times, ["5\u{a0}ns", "1\u{a0}µs", "20\u{a0}ms"]);
        assert_eq!(tick_text(2.5e6, &Quantity::Rate("ops/s".into())), "2.50M");
        assert_eq!(tick_text(20_000.0, &Quantity::Rate("MBps".into())), "20,000");
        assert_eq!(tick_text(-20.0, &Quantity::Effect), "−20\u{a0}%");
    }

    proptest! {
        #[test]
        fn any_values_have_places_and_few_ticks(
            values in prop::collection::vec(prop::num::f64::POSITIVE | prop::num::f64::ZERO, 0..8)
        ) {
            for quantity in [Quantity::Time, Quantity::Effect, Quantity::Slowdown] {
                let axis = Axis::of_y(&values, &quantity, None);
                prop_assert!(values.iter().all(|value| axis.at(*value).is_finite()));
                prop_assert!(axis.ticks().len() < 700);
            }
        }

        #[test]
        fn labels_do_not_collide(
            values in prop::collection::vec(1.0..1e9_f64, 1..20), room in 0.005..0.05_f64
        ) {
            let labels = Axis::of_x(&values, "bytes").labels(&values, room, |x| format!("{x:.0}"));
            for pair in labels.windows(2) {
                let widths = (pair[0].1.len() + pair[1].1.len()) as f64 / 2.0;
                prop_assert!(pair[1].0 - pair[0].0 >= widths * room);
            }
        }
    }
}
