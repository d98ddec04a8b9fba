//! Counts of durations in buckets of at most 1/64 of their value, as `workloads/driver/histogram.c` makes
//! them: what a million operations took, in a few hundred numbers that add up.

use std::collections::BTreeMap;

/// Below this every nanosecond has a bucket of its own; each power of two above has this many.
const PARTS: u64 = 64;

/// A quantile is shown where at least this many observations lie beyond it: of fewer, chance decides
/// where it is.
const BEYOND: f64 = 10.0;

/// How often which duration was seen.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Histogram {
    /// By the lower end of the bucket, in nanoseconds.
    counts: BTreeMap<u64, u64>,
}

impl Histogram {
    /// From lower ends of buckets and their counts, in any order.
    pub fn new(buckets: impl IntoIterator<Item = (u64, u64)>) -> Histogram {
        let mut histogram = Histogram::default();
        histogram.extend(buckets);
        histogram
    }

    /// Adds what another has counted.
    pub fn merge(&mut self, other: &Histogram) {
        self.extend(other.counts.iter().map(|(low, count)| (*low, *count)));
    }

    fn extend(&mut self, buckets: impl IntoIterator<Item = (u64, u64)>) {
        for (low, count) in buckets {
            let sum = self.counts.entry(low).or_default();
            *sum = sum.saturating_add(count);
        }
    }

    /// All observations.
    pub fn count(&self) -> u64 {
        self.counts.values().fold(0, |sum, count| sum.saturating_add(*count))
    }

    /// Returns true if the values suffice to locate quantile `q`.
    pub fn supports(&self, q: f64) -> bool {
        self.beyond(q) >= BEYOND
    }

    /// Quantile `q` in nanoseconds, if the values suffice to locate it.
    pub fn located(&self, q: f64) -> Option<f64> {
        self.quantile(q).filter(|_| self.supports(q))
    }

    /// How many observations are larger than quantile `q`.
    pub fn beyond(&self, q: f64) -> f64 {
        // Per mille and exact, so that 10 000 are enough for 99.9 %.
        self.count() as f64 * (1000.0 - (1000.0 * q).round()) / 1000.0
    }

    /// The value that a share `q` of all observations does not exceed, in nanoseconds; within a bucket
    /// they are taken to lie evenly. `None` without observations.
    ///
    /// Without that assumption all quantiles of fast operations would be one of a few numbers, and
    /// the ratio of two of them exactly 1 or 2 % beside it.
    pub fn quantile(&self, q: f64) -> Option<f64> {
        let rank = self.count() as f64 * q;
        let mut below = 0.0;
        for (low, count) in self.counts.iter().filter(|(_, count)| **count > 0) {
            let count = *count as f64;
            if below + count >= rank {
                return Some(*low as f64 + width(*low) as f64 * (rank - below) / count);
            }
            below += count;
        }
        None
    }
}

/// How wide the bucket is that begins at `low`.
fn width(low: u64) -> u64 {
    if low < PARTS { 1 } else { 1 << (low.ilog2() - PARTS.ilog2()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The lower end of the bucket that holds a value.
    fn low(value: u64) -> u64 {
        value - value % width(value)
    }

    fn of(values: &[u64]) -> Histogram {
        Histogram::new(values.iter().map(|value| (low(*value), 1)))
    }

    #[test]
    fn a_bucket_is_a_64th_of_what_is_in_it() {
        assert_eq!([0, 1, 63, 64, 127, 128, 1 << 20].map(width), [1, 1, 1, 1, 1, 2, 1 << 14]);
        assert_eq!(width(u64::MAX), 1 << 57);
    }

    #[test]
    fn a_quantile_needs_ten_beyond_it() {
        let many = |count| Histogram::new([(100, count)]);
        for (q, enough) in [(0.5, 20), (0.99, 1000), (0.999, 10_000)] {
            assert!(many(enough).supports(q), "{q}");
            assert!(!many(enough - 1).supports(q), "{q}");
        }
    }

    #[test]
    fn within_a_bucket_values_lie_evenly() {
        let histogram = Histogram::new([(40, 10), (128, 10)]);
        assert_eq!(histogram.quantile(0.25), Some(40.5));
        assert_eq!(histogram.quantile(0.75), Some(129.0));
        assert_eq!(Histogram::default().quantile(0.5), None);
        assert_eq!(Histogram::new([(5, 0)]).quantile(0.5), None);
    }

    proptest! {
        #[test]
        fn a_quantile_is_off_by_a_64th_at_most(
            mut values in prop::collection::vec(0_u64..1 << 50, 1..300),
            q in 0.01_f64..0.999,
        ) {
            let found = of(&values).quantile(q).unwrap();
            values.sort_unstable();
            let rank = (values.len() as f64 * q).ceil() as usize;
            let exact = values[rank.clamp(1, values.len()) - 1] as f64;
            prop_assert!((found - exact).abs() <= 1.0 + exact / 64.0, "{found} {exact}");
        }

        #[test]
        fn merged_is_what_all_together_would_be(
            a in prop::collection::vec(0_u64..1 << 40, 0..100),
            b in prop::collection::vec(0_u64..1 << 40, 0..100),
        ) {
            let mut merged = of(&a);
            merged.merge(&of(&b));
            prop_assert_eq!(merged, of(&[a, b].concat()));
        }

        #[test]
        fn foreign_buckets_never_panic(
            buckets in prop::collection::vec((any::<u64>(), any::<u64>()), 0..20),
            q in 0.0_f64..1.0,
        ) {
            let histogram = Histogram::new(buckets);
            let _ = (histogram.quantile(q), histogram.supports(q));
        }
    }
}
