//! Times of parts of a workload's operations, as the workload reports them. Parts are e.g. selects
//! and inserts, or a program's time counted from its start and from its due time.

use serde::{Deserialize, Serialize};

use crate::workload::metric::Percentile;
use paired::histogram::Histogram;

/// No workload tells more kinds of them.
pub const MOST_TIMES: usize = 4;

/// The times of one kind in a sample.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Times {
    pub name: String,
    pub longest_ns: u64,
    /// When the longest had ended, by the clock of the machine that it ran on, in ms since 1970.
    pub longest_at_ms: i64,
    /// The lower end of each bucket in nanoseconds, and its count.
    pub buckets: Vec<(u64, u64)>,
}

impl Times {
    /// Refuses what no clock gives.
    pub fn check(&self) -> Result<(), String> {
        let is_ordered = self.buckets.windows(2).all(|pair| pair[0].0 < pair[1].0);
        let is_within = self.buckets.last().is_none_or(|(low, _)| *low <= self.longest_ns);
        match is_ordered && is_within {
            true => Ok(()),
            false => Err(format!("its times of `{}` are not in order", self.name)),
        }
    }

    /// The percentiles that there is enough of, and the longest, in nanoseconds: `NAME_p50`, …, `NAME_max`.
    pub fn named_ns(&self) -> Vec<(String, f64)> {
        let histogram = Histogram::new(self.buckets.iter().copied());
        let reading = |end: &str, value: f64| (format!("{}_{end}", self.name), value);
        let percentiles = Percentile::ALL.into_iter().filter_map(|percentile| {
            Some(reading(percentile.end(), histogram.located(percentile.quantile())?))
        });
        let longest = (histogram.count() > 0).then(|| reading("max", self.longest_ns as f64));
        percentiles.chain(longest).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn times(longest_ns: u64, buckets: &[(u64, u64)]) -> Times {
        Times { name: "select".into(), longest_ns, longest_at_ms: 0, buckets: buckets.to_vec() }
    }

    #[test]
    fn a_percentile_needs_enough_beyond_it_and_the_longest_does_not() {
        let names = |times: &Times| -> Vec<String> {
            times.named_ns().into_iter().map(|(name, _)| name).collect()
        };
        assert_eq!(names(&times(70, &[(64, 19)])), ["select_max"]);
        assert_eq!(names(&times(70, &[(64, 100)])), ["select_p50", "select_p90", "select_max"]);
        assert!(names(&times(0, &[])).is_empty());
    }

    #[test]
    fn what_is_not_in_order_is_refused() {
        assert!(times(70, &[(64, 1), (70, 1)]).check().is_ok());
        assert!(times(70, &[(64, 1), (64, 1)]).check().is_err());
        assert!(times(60, &[(64, 1)]).check().is_err());
    }
}
