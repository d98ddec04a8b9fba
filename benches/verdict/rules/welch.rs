//! Welch's t test at α = 0.05, two-sided, once all is measured: what many scripts do, hyperfine's
//! `scripts/welch_ttest.py` among them.
//!
//! Source: Welch, "The generalization of 'Student's' problem when several different population
//! variances are involved", Biometrika 34, 1947.

use std::cmp::Ordering;

use super::student::student_p;
use super::{mean, variance};

const ALPHA: f64 = 0.05;

/// t, positive where `b` is larger, and its degrees of freedom.
pub fn statistic(a: &[f64], b: &[f64]) -> (f64, f64) {
    let (n, m) = (a.len() as f64, b.len() as f64);
    let (of_a, of_b) = (variance(a) / n, variance(b) / m);
    let degrees = (of_a + of_b).powi(2) / (of_a * of_a / (n - 1.0) + of_b * of_b / (m - 1.0));
    ((mean(b) - mean(a)) / (of_a + of_b).sqrt(), degrees)
}

/// See [`super::Rule`].
pub fn differs(a: &[f64], b: &[f64]) -> Option<Ordering> {
    let (t, degrees) = statistic(a, b);
    (student_p(t, degrees) <= ALPHA).then(|| t.total_cmp(&0.0))
}
