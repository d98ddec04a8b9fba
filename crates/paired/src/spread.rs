//! The spread of the values before each value, for all of a long series at once.
//!
//! Kept in a sorted list while a series grows, every value moves all that are larger: O(n²). Known
//! whole, a series can be taken apart backwards instead: in a linked list sorted once, values are
//! removed in the reverse of the order measured, and the median and the window of the values
//! nearest to it move by few places each time. O(n log n) in all, and the same numbers to the bit.

/// For i = 2 … n − 1: gives `take` the i and the MAD of the first i values, from the last i to the
/// first. Values must be finite.
pub(crate) fn earlier_mads(values: &[f64], mut take: impl FnMut(usize, f64)) {
    let mut order: Vec<u32> = (0..values.len() as u32).collect();
    order.sort_by(|a, b| values[*a as usize].total_cmp(&values[*b as usize]));
    let mut rank = vec![0; values.len()];
    for (at, index) in order.iter().enumerate() {
        rank[*index as usize] = at;
    }
    let mut past = LinkedValues::new(order.iter().map(|index| values[*index as usize]).collect());
    for i in (2..values.len()).rev() {
        past.remove(rank[i]);
        take(i, past.mad());
    }
}

/// No value: what is before the first, and behind the last.
const NONE: usize = usize::MAX;

/// The values that are left, as a linked list in ascending order; places are those in the whole.
struct LinkedValues {
    values: Vec<f64>,
    before: Vec<usize>,
    behind: Vec<usize>,
    left: usize,
    /// Where the lower of the middle two is.
    middle: usize,
    /// First and last of the ⌈left/2⌉ values that are nearest to the median, and their number.
    first: usize,
    last: usize,
    nearest: usize,
}

impl LinkedValues {
    /// Creates the list from values in ascending order.
    fn new(values: Vec<f64>) -> LinkedValues {
        let left = values.len();
        let nearest = left.div_ceil(2);
        LinkedValues {
            before: (0..left).map(|at| if at == 0 { NONE } else { at - 1 }).collect(),
            behind: (0..left).map(|at| if at + 1 == left { NONE } else { at + 1 }).collect(),
            values,
            left,
            middle: left.saturating_sub(1) / 2,
            first: 0,
            last: nearest.saturating_sub(1),
            nearest,
        }
    }

    /// Takes the value at `place` out; at least two must remain.
    fn remove(&mut self, place: usize) {
        if self.left % 2 == 1 && place >= self.middle {
            self.middle = self.before[self.middle];
        } else if self.left.is_multiple_of(2) && place <= self.middle {
            self.middle = self.behind[self.middle];
        }
        if (self.first..=self.last).contains(&place) {
            self.nearest -= 1;
            if place == self.first {
                self.first = self.behind[place];
            } else if place == self.last {
                self.last = self.before[place];
            }
        }
        let (before, behind) = (self.before[place], self.behind[place]);
        if before != NONE {
            self.behind[before] = behind;
        }
        if behind != NONE {
            self.before[behind] = before;
        }
        self.left -= 1;
        self.move_window();
    }

    /// Makes the window again that of the values nearest to the median.
    fn move_window(&mut self) {
        let centre = self.median();
        let wanted = self.left.div_ceil(2);
        while self.nearest > wanted {
            if self.below(self.first, centre) > self.above(self.last, centre) {
                self.first = self.behind[self.first];
            } else {
                self.last = self.before[self.last];
            }
            self.nearest -= 1;
        }
        while self.nearest < wanted {
            let (next, previous) = (self.behind[self.last], self.before[self.first]);
            if self.below(previous, centre) < self.above(next, centre) {
                self.first = previous;
            } else {
                self.last = next;
            }
            self.nearest += 1;
        }
        while self.above(self.behind[self.last], centre) < self.below(self.first, centre) {
            self.first = self.behind[self.first];
            self.last = self.behind[self.last];
        }
        while self.below(self.before[self.first], centre) < self.above(self.last, centre) {
            self.first = self.before[self.first];
            self.last = self.before[self.last];
        }
    }

    fn median(&self) -> f64 {
        let low = self.values[self.middle];
        let high = if self.left % 2 == 1 { low } else { self.values[self.behind[self.middle]] };
        low + (high - low) / 2.0
    }

    /// As `estimate::mad`.
    fn mad(&self) -> f64 {
        let centre = self.median();
        let low = self.below(self.first, centre).max(self.above(self.last, centre));
        let high = if self.left % 2 == 1 {
            low
        } else {
            let (previous, next) = (self.before[self.first], self.behind[self.last]);
            self.below(previous, centre).min(self.above(next, centre))
        };
        low + (high - low) / 2.0
    }

    /// How far the value at `place` is below `centre`; infinitely where there is none.
    fn below(&self, place: usize, centre: f64) -> f64 {
        if place == NONE { f64::INFINITY } else { centre - self.values[place] }
    }

    /// How far it is above.
    fn above(&self, place: usize, centre: f64) -> f64 {
        if place == NONE { f64::INFINITY } else { self.values[place] - centre }
    }
}

#[cfg(test)]
mod tests {
    use rand::{RngExt, SeedableRng};
    use rand_chacha::ChaCha8Rng;

    use super::super::estimate::mad;
    use super::*;

    #[test]
    fn equals_the_mad_of_each_beginning_to_the_bit() {
        let mut rng = ChaCha8Rng::seed_from_u64(3);
        for n in 0..120_usize {
            let drifting = |i: usize| i as f64 * 0.01 + rng.random_range(-1.0..1.0);
            let smooth: Vec<f64> = (0..n).map(drifting).collect();
            let tied: Vec<f64> = (0..n).map(|_| f64::from(rng.random_range(-3..3))).collect();
            for values in [smooth, tied] {
                let mut seen = 0;
                earlier_mads(&values, |i, found| {
                    assert_eq!(found, mad(&values[..i]).unwrap(), "{i} of {values:?}");
                    seen += 1;
                });
                assert_eq!(seen, n.saturating_sub(2));
            }
        }
    }
}
