//! Log-ratios as people read them.

/// A log-ratio as a change in per cent.
pub fn percent(log_ratio: f64) -> f64 {
    log_ratio.exp_m1() * 100.0
}

/// The same for an end of an interval, which may be infinite.
pub fn bound(log_ratio: f64) -> Option<f64> {
    log_ratio.is_finite().then(|| percent(log_ratio))
}
