//! When it is looked at whether the interval of a [series](crate::series) is narrow enough to stop, and how
//! sure the interval has to be each time. Each look has a chance of its own to miss, and stopping where the
//! interval is narrow picks those that miss: so looks are few, and all of them together may miss no more
//! often than one interval says.

/// At the first look, the lowest and the highest have the median between them in 99.2 % of cases: 1 − 2·½ⁿ.
pub const FIRST: usize = 8;

const FIRST_LOOKS: usize = 3;
/// The chance that a sign test of independent values misses: as whole values allow, it is 0.8, 1.3 and 0.7 %
/// at the first three looks, and less than 3 · 0.73 % at all after them together, which is less than 5 % in
/// all.
const FIRST_MISS: f64 = 0.016;
const LATER_MISS: f64 = 0.0073;
/// At each later look it is so much of the one before.
const SHRINKS: f64 = 2.0 / 3.0;

/// After how many values to look: 8, 14, 21, 31, 46 and so on by a half.
pub fn counts() -> impl Iterator<Item = usize> {
    std::iter::successors(Some(FIRST), |count| Some((count * 3 / 2).max(count + 6)))
}

/// True if a series is looked at after this many values.
pub fn is_one(count: usize) -> bool {
    counts().find(|look| *look >= count) == Some(count)
}

/// The chance that the interval of so many values may miss: that of the look that is made then, and of values
/// between two looks, where the time was over, that of the next one.
pub fn misses(count: usize) -> f64 {
    let before = counts().take_while(|look| *look < count).count();
    match before.checked_sub(FIRST_LOOKS) {
        Some(later) => LATER_MISS * SHRINKS.powi(later as i32),
        None => FIRST_MISS,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn looks_become_rarer_and_surer() {
        assert_eq!(counts().take(6).collect::<Vec<_>>(), [8, 14, 21, 31, 46, 69]);
        assert_eq!([7, 8, 9, 14, 30, 31].map(is_one), [false, true, false, true, false, true]);
        assert_eq!([3, 8, 14, 15, 21].map(misses), [FIRST_MISS; 5]);
        assert_eq!([22, 31].map(misses), [LATER_MISS; 2], "of the next one");
        assert_eq!(misses(32), LATER_MISS * SHRINKS);
    }
}
