//! Where a monotone condition changes: the end of an interval.

/// The parts of a resolution among which an end is found.
const CELLS: f64 = 16_384.0;

/// After so many looks it is certain that the curve is not as smooth as hoped.
const PATIENCE: i32 = 8;

/// The last place that is outside, going from far `outward` (−1 or 1) towards the inside.
///
/// `excess` is at least 0 outside and negative inside, and monotone: it never falls outwards. The
/// places are `start` and every 16 384th part of `resolution` from there, on both sides; the result is
/// outside, and its neighbour inwards is not, so an interval is never too narrow. It is infinite when
/// nothing is outside.
///
/// It is found in about seven looks where it is a few resolutions outward of `start`, and where
/// `excess` is about a straight line that is −1 at `start`; in any case with about as many as it has
/// binary digits.
pub(crate) fn last_outside(
    start: f64,
    resolution: f64,
    outward: f64,
    excess: impl Fn(f64) -> f64,
) -> f64 {
    let place = |cell: f64| start + outward * resolution * (cell / CELLS);
    let mut search = Search::new();
    while let Some(cell) = search.next() {
        search.add(cell, excess(place(cell)));
        let is_doubtful = search.looks == 3 && search.outside.is_infinite();
        if is_doubtful && excess(outward * f64::INFINITY) < 0.0 {
            break;
        }
    }
    place(search.outside)
}

/// State of the search for the change, in cells outward of the start.
struct Search {
    /// The outermost cell that is surely inside, and the innermost that is not.
    inside: f64,
    outside: f64,
    /// The two latest looks, with the excesses there.
    earlier: (f64, f64),
    latest: (f64, f64),
    looks: i32,
}

impl Search {
    fn new() -> Search {
        Search {
            inside: f64::NEG_INFINITY,
            outside: f64::INFINITY,
            // What is expected, not seen: these are not bounds.
            earlier: (0.0, -1.0),
            latest: (3.0 * CELLS, 0.0),
            looks: 0,
        }
    }

    fn add(&mut self, cell: f64, excess: f64) {
        let end = if excess >= 0.0 { &mut self.outside } else { &mut self.inside };
        *end = cell;
        self.earlier = if self.looks == 0 { self.earlier } else { self.latest };
        self.latest = (cell, excess);
        self.looks += 1;
    }

    /// Where to look next: the nearest cell on the other side of where the straight line through the
    /// latest two looks crosses zero. `None` when no cell is left between inside and outside.
    fn next(&self) -> Option<f64> {
        let ((before, lower), (cell, excess)) = (self.earlier, self.latest);
        if self.looks == 0 {
            return Some(cell);
        }
        let crossing = cell - excess * (cell - before) / (excess - lower);
        let beyond = if excess >= 0.0 { crossing.ceil() - 1.0 } else { crossing.ceil() };
        let step = CELLS * f64::from(self.looks).exp2();
        let is_bracketed = self.inside.is_finite() && self.outside.is_finite();
        let is_near = is_bracketed || (beyond - cell).abs() <= step;
        let is_smooth = self.looks < PATIENCE || self.looks % 2 == 1;
        if is_smooth && is_near && self.inside < beyond && beyond < self.outside {
            return Some(beyond);
        }
        let safe = match (self.inside.is_finite(), self.outside.is_finite()) {
            (true, true) => (self.inside + (self.outside - self.inside) / 2.0).floor(),
            (true, false) => self.inside + step,
            _ => self.outside - step,
        };
        (self.inside < safe && safe < self.outside).then_some(safe)
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::super::betting::{Betting, DEFAULT_SCALE};
    use super::super::simulated::{Machine, Noise, white_pairs};
    use super::super::wealth::excess;
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

    /// Finds the change by bisection alone.
    fn bisected(start: f64, resolution: f64, outward: f64, excess: impl Fn(f64) -> f64) -> f64 {
        let place = |cell: f64| start + outward * resolution * (cell / CELLS);
        let (mut inside, mut outside) = (-1e9, 1e9);
        assert!(excess(place(inside)) < 0.0 && excess(place(outside)) >= 0.0);
        while outside - inside > 1.0 {
            let middle = f64::midpoint(inside, outside).floor();
            let end = if excess(place(middle)) >= 0.0 { &mut outside } else { &mut inside };
            *end = middle;
        }
        place(outside)
    }

    #[test]
    fn finds_the_place_that_bisection_finds_in_evidence_of_all_kinds() {
        for noise in Noise::ALL {
            for (seed, pairs) in (0..60).zip([8, 9, 11, 15, 30, 200].into_iter().cycle()) {
                let mut machine = Machine::new(noise, seed);
                let d: Vec<f64> = (0..pairs).map(|_| machine.pair(-0.03)).collect();
                let row = Betting::from_log_ratios(&d, DEFAULT_SCALE).unwrap();
                let needed = 40.0_f64.ln();
                let low = |theta| excess(row.log_e_value_upper(theta), needed);
                let high = |theta| excess(row.log_e_value_lower(theta), needed);
                for resolution in [1e-4, 3e-3, 0.05] {
                    assert_eq!(
                        last_outside(-0.03, resolution, -1.0, low),
                        bisected(-0.03, resolution, -1.0, low)
                    );
                    assert_eq!(
                        last_outside(-0.03, resolution, 1.0, high),
                        bisected(-0.03, resolution, 1.0, high)
                    );
                }
            }
        }
    }

    #[test]
    fn finds_the_place_that_bisection_finds_where_the_curve_is_bent() {
        for power in [1, 3, 7] {
            for root in [-77.7, 0.3, 12.1, 4000.7, 16_383.5] {
                let excess = |x: f64| (x - root).powi(power) / 1e3;
                assert_eq!(last_outside(0.0, 1.0, 1.0, excess), bisected(0.0, 1.0, 1.0, excess));
            }
        }
    }

    #[test]
    fn a_row_of_evidence_takes_few_looks() {
        let looks = Cell::new(0);
        for (seed, pairs) in (0..200).zip([8, 30, 200, 2000].into_iter().cycle()) {
            let d = white_pairs(0.0, pairs, seed);
            let row = Betting::from_log_ratios(&d, DEFAULT_SCALE).unwrap();
            let resolution = 0.014 / (pairs as f64).sqrt();
            last_outside(0.0, resolution, 1.0, |theta| {
                looks.set(looks.get() + 1);
                excess(row.log_e_value_lower(theta), 40.0_f64.ln())
            });
        }
        // Seven in the mean; eight pairs are hard, as they can hardly reach what is needed.
        assert!(looks.get() <= 200 * 7, "{looks:?}");
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
