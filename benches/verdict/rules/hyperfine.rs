//! hyperfine: "B ran 1.02 ± 0.01 times slower than A". A reader takes a difference for real when
//! the ± leaves 1 out.
//!
//! Source: hyperfine 1.19, `src/benchmark/relative_speed.rs`: the ratio of the mean times, with the
//! standard *deviations* (not errors of the means) propagated as of independent quantities.

use std::cmp::Ordering;

use super::{mean, variance};

/// The ratio of mean times B over A, and its ±.
pub fn ratio(a_times: &[f64], b_times: &[f64]) -> (f64, f64) {
    let relative = |times: &[f64]| variance(times) / mean(times).powi(2);
    let ratio = mean(b_times) / mean(a_times);
    (ratio, ratio * (relative(a_times) + relative(b_times)).sqrt())
}

/// See [`super::Rule`].
pub fn differs(a: &[f64], b: &[f64]) -> Option<Ordering> {
    let times = |rates: &[f64]| rates.iter().map(|rate| 1.0 / rate).collect::<Vec<_>>();
    let (ratio, deviation) = ratio(&times(a), &times(b));
    ((ratio - 1.0).abs() > deviation).then(|| 1.0_f64.total_cmp(&ratio))
}
