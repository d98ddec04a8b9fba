//! benchstat: the Mann–Whitney U test at α = 0.05, two-sided.
//!
//! Source: golang.org/x/perf, `benchmath/anone.go`, which uses `MannWhitneyUTest` of
//! `internal/stats/utest.go`: exact for at most 50 values each without ties, else the normal
//! approximation with corrections for ties and continuity.

use std::cmp::Ordering;

use super::student::student_p;

const ALPHA: f64 = 0.05;
const EXACT_VALUES: usize = 50;

/// U of `b`: how many pairs (x of a, y of b) have y > x, ties counting one half; and Σ(t³ − t) over
/// the groups of t ties.
pub fn u_statistic(a: &[f64], b: &[f64]) -> (f64, f64) {
    let mut all: Vec<(f64, bool)> = a.iter().map(|x| (*x, false)).collect();
    all.extend(b.iter().map(|y| (*y, true)));
    all.sort_by(|left, right| left.0.total_cmp(&right.0));
    let (mut rank_sum, mut ties, mut before) = (0.0, 0.0, 0.0);
    for group in all.chunk_by(|left, right| left.0 == right.0) {
        let size = group.len() as f64;
        let of_b = group.iter().filter(|(_, is_b)| *is_b).count() as f64;
        rank_sum += of_b * (before + (size + 1.0) / 2.0);
        ties += size.powi(3) - size;
        before += size;
    }
    let m = b.len() as f64;
    (rank_sum - m * (m + 1.0) / 2.0, ties)
}

/// The two-sided p-value of "both are of one distribution".
pub fn p_value(a: &[f64], b: &[f64]) -> f64 {
    let (u, ties) = u_statistic(a, b);
    let (n, m) = (a.len() as f64, b.len() as f64);
    if ties == 0.0 && a.len() <= EXACT_VALUES && b.len() <= EXACT_VALUES {
        let counts = counts(a.len(), b.len());
        let all: f64 = counts.iter().sum();
        let low = u.min(n * m - u) as usize;
        let tail: f64 = counts[..=low].iter().sum();
        return (2.0 * tail / all).min(1.0);
    }
    let total = n + m;
    let variance = n * m / 12.0 * (total + 1.0 - ties / (total * (total - 1.0)));
    let distance = ((u - n * m / 2.0).abs() - 0.5).max(0.0);
    if variance > 0.0 { normal_p(distance / variance.sqrt()) } else { 1.0 }
}

/// See [`super::Rule`].
pub fn differs(a: &[f64], b: &[f64]) -> Option<Ordering> {
    let middle = (a.len() * b.len()) as f64 / 2.0;
    (p_value(a, b) <= ALPHA).then(|| u_statistic(a, b).0.total_cmp(&middle))
}

/// In how many orders of n and m values U is 0, 1, … nm: coefficients of the Gaussian binomial.
pub fn counts(n: usize, m: usize) -> Vec<f64> {
    let mut counts = vec![0.0; n * m + 1];
    counts[0] = 1.0;
    for k in 1..=m {
        for u in (n + k..counts.len()).rev() {
            counts[u] -= counts[u - n - k];
        }
        for u in k..counts.len() {
            counts[u] += counts[u - k];
        }
    }
    counts
}

/// The two-sided p-value of a standard normal z: Student's, with so many degrees of freedom that it
/// differs by less than 10⁻⁵.
fn normal_p(z: f64) -> f64 {
    student_p(z, 1e6)
}
