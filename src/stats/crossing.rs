//! Where a monotone condition changes: the end of an interval.

/// The last place that is outside, going from far `outward` (−1 or 1) towards the inside.
///
/// `excess` is at least 0 outside and negative inside, and monotone: it never falls outwards. The
/// search starts at `start` with steps of `resolution` and doubles them until the change is
/// bracketed. The bracket is halved in thought, until its cells are at most a ten-thousandth of
/// `resolution`; the end of the cell with the change that is outside is the result, so an interval
/// is never too narrow. It is infinite when nothing is outside.
pub(super) fn last_outside(
    start: f64,
    resolution: f64,
    outward: f64,
    excess: impl Fn(f64) -> f64,
) -> f64 {
    let infinity = outward * f64::INFINITY;
    if excess(infinity) < 0.0 {
        return infinity;
    }
    let at_start = (start, excess(start));
    let (outside, inside) = if at_start.1 >= 0.0 {
        bracket(at_start, -outward * resolution, &excess)
    } else {
        let (inside, outside) = bracket(at_start, outward * resolution, &excess);
        (outside, inside)
    };
    if outside.0.is_infinite() {
        return outside.0;
    }
    let width = inside.0 - outside.0;
    let halvings = (width.abs() / (1e-4 * resolution)).log2().ceil().clamp(0.0, 52.0);
    let cells = halvings.exp2();
    let place = |cell: f64| outside.0 + width * (cell / cells);
    place(last_cell(cells, (outside.1, inside.1), |cell| excess(place(cell))))
}

/// The last of the places 0 … `cells` that is outside, where 0 is and `cells` is not; `ends` are the
/// excesses there.
///
/// What bisection would find, in fewer looks: a straight line through the ends of what is left, with
/// the weight of an end halved that stays (the Illinois method: Dowell, Jarratt, BIT 11, 1971), and
/// bisection in turn where that did not halve it.
fn last_cell(cells: f64, ends: (f64, f64), excess: impl Fn(f64) -> f64) -> f64 {
    let (mut outside, mut inside) = (0.0, cells);
    let (mut above, mut below) = ends;
    let mut bisects = false;
    while inside - outside > 1.0 {
        let left = inside - outside;
        let share = above / (above - below);
        let share = if bisects || !share.is_finite() { 0.5 } else { share };
        let cell = (outside + share * left).floor().clamp(outside + 1.0, inside - 1.0);
        let found = excess(cell);
        if found >= 0.0 {
            (outside, above, below) = (cell, found, below / 2.0);
        } else {
            (inside, below, above) = (cell, found, above / 2.0);
        }
        bisects = !bisects && inside - outside > left / 2.0;
    }
    outside
}

/// The last place on the side of `start`, in doubled steps, and the first on the other side, with
/// their excesses. Ends at infinity at the latest.
fn bracket(
    start: (f64, f64),
    mut step: f64,
    excess: impl Fn(f64) -> f64,
) -> ((f64, f64), (f64, f64)) {
    let look = |place: f64| (place, excess(place));
    let (mut near, mut far) = (start, look(start.0 + step));
    while far.0.is_finite() && (far.1 >= 0.0) == (start.1 >= 0.0) {
        near = far;
        step *= 2.0;
        far = look(start.0 + step);
    }
    (near, far)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_the_change_from_either_side() {
        for start in [-1000.0, 0.2, 0.3, 55.0] {
            let low = last_outside(start, 0.01, -1.0, |x| if x <= 0.25 { 1.0 } else { -1.0 });
            assert!((0.25 - low).abs() <= 1e-6 && low <= 0.25);
            let high = last_outside(start, 0.01, 1.0, |x| if x >= 0.25 { 1.0 } else { -1.0 });
            assert!((0.25 - high).abs() <= 1e-6 && high >= 0.25);
        }
    }

    #[test]
    fn finds_the_cell_that_bisection_finds() {
        for power in [1, 3, 7] {
            for root in [0.3, 12.1, 4000.7, 16_383.5] {
                let excess = |x: f64| (root - x).powi(power) / 1e3;
                let ends = (excess(0.0), excess(16_384.0));
                assert_eq!(last_cell(16_384.0, ends, excess), root.floor());
            }
        }
    }

    #[test]
    fn is_infinite_when_nothing_is_outside() {
        assert_eq!(last_outside(0.0, 1.0, -1.0, |_| -1.0), f64::NEG_INFINITY);
        assert_eq!(last_outside(0.0, 1.0, 1.0, |_| -1.0), f64::INFINITY);
    }

    #[test]
    fn ends_when_the_resolution_is_finer_than_the_numbers() {
        let end = last_outside(1e9, 1e-12, 1.0, |x| if x >= 2e9 { 1.0 } else { -1.0 });
        assert!((end - 2e9).abs() < 1e-3);
    }
}
