//! When it is looked at whether an interval is narrow enough to stop, and how sure it is to be each time.
//! Each look has a chance of its own to miss, and stopping where the interval is narrow picks those that
//! miss: so looks are few, and all of them together may miss no more often than one interval says.

/// The looks at the intervals of one kind of measurement.
pub struct Looks {
    /// How many samples there are at the first.
    pub first: usize,
    /// At the next one, by the number at the one before.
    pub next: fn(usize) -> usize,
    /// The chance that an interval misses at one of the first looks.
    pub first_miss: f64,
}

const FIRST_LOOKS: usize = 3;
/// At each look after those it is two thirds of the one before.
const LATER_MISS: f64 = 0.0073;
const SHRINKS: f64 = 2.0 / 3.0;

impl Looks {
    /// After how many samples.
    pub fn counts(&self) -> impl Iterator<Item = usize> {
        let next = self.next;
        std::iter::successors(Some(self.first), move |count| Some(next(*count)))
    }

    /// The chance that the interval of so many samples misses: that of the look that is made then, and of
    /// samples between two looks, where the time was over, that of the next one.
    pub fn misses(&self, count: usize) -> f64 {
        let before = self.counts().take_while(|look| *look < count).count();
        match before.checked_sub(FIRST_LOOKS) {
            Some(later) => LATER_MISS * SHRINKS.powi(later as i32),
            None => self.first_miss,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_chance_shrinks_after_the_first_looks() {
        let looks = Looks { first: 3, next: |count| count * 2, first_miss: 0.02 };
        assert_eq!(looks.counts().take(5).collect::<Vec<_>>(), [3, 6, 12, 24, 48]);
        assert_eq!([2, 3, 6, 7, 12].map(|count| looks.misses(count)), [0.02; 5]);
        assert_eq!([13, 24].map(|count| looks.misses(count)), [LATER_MISS; 2], "of the next one");
        assert_eq!(looks.misses(25), LATER_MISS * SHRINKS);
    }
}
