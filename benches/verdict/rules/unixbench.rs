//! UnixBench: passes sorted, the lowest third dropped, the rest averaged geometrically; no test.
//!
//! Source: UnixBench 6.0.0, `UnixBench/Run`, `combinePassResults`. It prints two scores and leaves
//! the rest to the reader, who is taken here to believe a gap of more than 1 %.

use std::cmp::Ordering;

/// The gap of scores that a reader believes.
const BELIEVED: f64 = 0.01;

/// The score of some passes, in the unit of their rates.
pub fn score(passes: &[f64]) -> f64 {
    let mut passes = passes.to_vec();
    passes.sort_by(f64::total_cmp);
    let kept = &passes[passes.len() / 3..];
    let logs: f64 = kept.iter().map(|rate| rate.ln()).sum();
    (logs / kept.len() as f64).exp()
}

/// See [`super::Rule`].
pub fn differs(a: &[f64], b: &[f64]) -> Option<Ordering> {
    let ratio = score(b) / score(a);
    ((ratio - 1.0).abs() > BELIEVED).then(|| ratio.total_cmp(&1.0))
}
