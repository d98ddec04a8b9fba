//! Where a monotone condition changes: the end of an interval.

/// The last place that is outside, going from far `outward` (−1 or 1) towards the inside.
///
/// `is_outside` must be monotone: once true, true for everything further outward. The search starts
/// at `start` with steps of `resolution`, doubles them until the change is bracketed, and bisects
/// to a ten-thousandth of `resolution`. The result is outside, so an interval is never too narrow;
/// it is infinite when nothing is outside.
pub(super) fn last_outside(
    start: f64,
    resolution: f64,
    outward: f64,
    is_outside: impl Fn(f64) -> bool,
) -> f64 {
    let infinity = outward * f64::INFINITY;
    if !is_outside(infinity) {
        return infinity;
    }
    let (mut outside, mut inside) = if is_outside(start) {
        bracket(start, -outward * resolution, &is_outside)
    } else {
        let (inside, outside) = bracket(start, outward * resolution, |x| !is_outside(x));
        (outside, inside)
    };
    while (inside - outside).abs() > 1e-4 * resolution {
        let middle = outside + (inside - outside) / 2.0;
        if middle == inside || middle == outside {
            break;
        }
        if is_outside(middle) {
            outside = middle;
        } else {
            inside = middle;
        }
    }
    outside
}

/// The last place where `holds`, from `start` in doubled steps, and the first where it does not.
/// Ends at infinity at the latest.
fn bracket(start: f64, mut step: f64, holds: impl Fn(f64) -> bool) -> (f64, f64) {
    let (mut near, mut far) = (start, start + step);
    while far.is_finite() && holds(far) {
        near = far;
        step *= 2.0;
        far = start + step;
    }
    (near, far)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_the_change_from_either_side() {
        for start in [-1000.0, 0.2, 0.3, 55.0] {
            let low = last_outside(start, 0.01, -1.0, |x| x <= 0.25);
            assert!((0.25 - low).abs() <= 1e-6 && low <= 0.25);
            let high = last_outside(start, 0.01, 1.0, |x| x >= 0.25);
            assert!((0.25 - high).abs() <= 1e-6 && high >= 0.25);
        }
    }

    #[test]
    fn is_infinite_when_nothing_is_outside() {
        assert_eq!(last_outside(0.0, 1.0, -1.0, |_| false), f64::NEG_INFINITY);
        assert_eq!(last_outside(0.0, 1.0, 1.0, |_| false), f64::INFINITY);
    }

    #[test]
    fn ends_when_the_resolution_is_finer_than_the_numbers() {
        let end = last_outside(1e9, 1e-12, 1.0, |x| x >= 2e9);
        assert!((end - 2e9).abs() < 1e-3);
    }
}
