//! Estimates that a few wild samples cannot move: medians, and what is made of them.

/// A MAD times this estimates the standard deviation of normal data: 1/Φ⁻¹(¾).
pub const MAD_TO_SD: f64 = 1.4826;

/// Hodges and Lehmann's estimate: the median of the Walsh averages (d_i + d_j)/2, i ≤ j.
///
/// In the unit of `d`; `None` without values. Values must be finite. Exact for every length, in
/// O(n log n) time and O(n) memory: the n(n+1)/2 averages are counted, never stored.
/// Source: Hodges, Lehmann, "Estimates of location based on rank tests", Ann. Math. Stat. 34, 1963.
pub fn hodges_lehmann(d: &[f64]) -> Option<f64> {
    hodges_lehmann_of_sorted(&sorted(d))
}

/// [`hodges_lehmann`] of values that are in ascending order already.
pub(crate) fn hodges_lehmann_of_sorted(sorted: &[f64]) -> Option<f64> {
    let averages = walsh_averages(sorted.len());
    if averages == 0 {
        return None;
    }
    let below = kth_walsh_average(sorted, averages.div_ceil(2));
    if !averages.is_multiple_of(2) {
        return Some(below);
    }
    let above = kth_walsh_average(sorted, averages / 2 + 1);
    Some(below + (above - below) / 2.0)
}

/// The median; `None` without values. Of an even number of values, the mean of the middle two.
pub fn median(values: &[f64]) -> Option<f64> {
    median_of_sorted(&sorted(values))
}

/// The median absolute deviation from the median, not scaled (times 1.4826 it estimates the
/// standard deviation of normal data); `None` without values. In the unit of `values`.
pub fn mad(values: &[f64]) -> Option<f64> {
    mad_of_sorted(&sorted(values))
}

/// The standard deviation of normal data with these values, by their MAD, which wild values do not move; 0
/// of fewer than two.
pub fn deviation(values: &[f64]) -> f64 {
    let spread = mad(values).filter(|_| values.len() > 1);
    spread.map_or(0.0, |mad| unbiased_mad_to_sd(values.len()) * mad)
}

/// Returns the factor from the MAD of so many values to the standard deviation. With few values,
/// the MAD is smaller on average. Source: Croux and Rousseeuw, "Time-efficient algorithms for two
/// highly robust estimators of scale", COMPSTAT 1992. A test below finds the same factors.
fn unbiased_mad_to_sd(values: usize) -> f64 {
    const OF_FEW: [f64; 8] = [1.196, 1.495, 1.363, 1.206, 1.200, 1.140, 1.129, 1.107];
    let of_many = || values as f64 / (values as f64 - 0.8);
    MAD_TO_SD * OF_FEW.get(values - 2).copied().unwrap_or_else(of_many)
}

/// So many values at least, or two measures of their spread differ by chance.
const MODES_AT_LEAST: usize = 24;
/// They differ where one is so many times the other. Both are the standard deviation of normal data, and
/// hardly differ for skewed or heavy-tailed ones with one peak.
const MODES_RATIO: f64 = 1.75;

/// The standard deviations that the MAD and the quartiles of normal data would mean, where they disagree.
///
/// Among values that come in clusters, as where a launch has modes, the MAD jumps between the width of a
/// cluster and the distance of two, whichever half of the values falls on.
pub fn modes_disagree(values: &[f64]) -> Option<[f64; 2]> {
    const QUARTILES_TO_SD: f64 = 1.349; // 2 Φ⁻¹(¾)
    let values = sorted(values);
    let by_mad = MAD_TO_SD * mad_of_sorted(&values)?;
    let quartile = |share: f64| values[((values.len() - 1) as f64 * share).round() as usize];
    let by_quartiles = (quartile(0.75) - quartile(0.25)) / QUARTILES_TO_SD;
    let ratio = by_mad / by_quartiles;
    // Of equal values both are zero, and agree.
    let differ = !ratio.is_nan() && !(1.0 / MODES_RATIO..=MODES_RATIO).contains(&ratio);
    (values.len() >= MODES_AT_LEAST && differ).then_some([by_mad, by_quartiles])
}

/// The geometric mean; `None` without values, or when one of them is not positive and finite.
pub fn geometric_mean(values: &[f64]) -> Option<f64> {
    let usable = |v: &f64| v.is_finite() && *v > 0.0;
    if values.is_empty() || !values.iter().all(usable) {
        return None;
    }
    let log_sum: f64 = values.iter().map(|v| v.ln()).sum();
    Some((log_sum / values.len() as f64).exp())
}

/// A copy in ascending order.
pub(crate) fn sorted(values: &[f64]) -> Vec<f64> {
    let mut copy = values.to_vec();
    copy.sort_unstable_by(f64::total_cmp);
    copy
}

/// [`median`] of values that are in ascending order already.
pub(crate) fn median_of_sorted(sorted: &[f64]) -> Option<f64> {
    let n = sorted.len();
    let above = *sorted.get(n / 2)?;
    let below = sorted[(n - 1) / 2];
    Some(below + (above - below) / 2.0)
}

/// [`mad`] of values that are in ascending order already, in O(log n).
pub(crate) fn mad_of_sorted(sorted: &[f64]) -> Option<f64> {
    let n = sorted.len();
    let centre = median_of_sorted(sorted)?;
    let below = kth_deviation(sorted, centre, n.div_ceil(2));
    let above = kth_deviation(sorted, centre, n / 2 + 1);
    Some(below + (above - below) / 2.0)
}

/// The `k`-th smallest (from 1) distance to `centre`.
///
/// The k values nearest to the centre are neighbours in `sorted`. While that window moves right,
/// its left end comes nearer to the centre and its right end goes away: the best window is where
/// the two distances cross.
fn kth_deviation(sorted: &[f64], centre: f64, k: usize) -> f64 {
    let left = |start: usize| centre - sorted[start];
    let right = |start: usize| sorted[start + k - 1] - centre;
    let (mut start, mut end) = (0, sorted.len() - k);
    while start < end {
        let middle = start + (end - start) / 2;
        if right(middle) >= left(middle) {
            end = middle;
        } else {
            start = middle + 1;
        }
    }
    let radius = |at: usize| left(at).max(right(at));
    match start {
        0 => radius(0),
        _ => radius(start).min(radius(start - 1)),
    }
}

/// How many Walsh averages `n` values have.
pub(crate) fn walsh_averages(n: usize) -> u64 {
    let n = n as u64;
    n * (n + 1) / 2
}

/// The `k`-th smallest (from 1, at most [`walsh_averages`]) Walsh average of ascending values.
///
/// The sums up to a limit can be counted in O(n). Limits close in on the k-th, until no more than n
/// sums are left between two, and these are looked through; so the result is the exact order statistic
/// and not an approximation. A limit lies where a straight line through the two counts says, with the
/// weight of a side halved that stays (the Illinois method: Dowell, Jarratt, BIT 11, 1971), and halfway
/// between the two among the floating-point numbers where that did not halve what is left: about ten
/// counts, and never many more than 128.
pub(crate) fn kth_walsh_average(sorted: &[f64], k: u64) -> f64 {
    debug_assert!(k >= 1 && k <= walsh_averages(sorted.len()));
    let (mut low, mut high) = ((2.0 * sorted[0]).next_down(), 2.0 * sorted[sorted.len() - 1]);
    let (mut up_to_low, mut up_to_high) = (0, walsh_averages(sorted.len()));
    let (mut missing, mut surplus) = (k as f64 - 0.5, (up_to_high - k) as f64 + 0.5);
    let mut bisects = false;
    while up_to_high - up_to_low > sorted.len() as u64 {
        let left = up_to_high - up_to_low;
        let mut limit = low + (high - low) * (missing / (missing + surplus));
        if bisects || !(low < limit && limit < high) {
            limit = between(low, high);
        }
        if limit == low {
            // Neighbours: all that is left is equal.
            return high / 2.0;
        }
        let count = sums_up_to(sorted, limit);
        if count >= k {
            (high, up_to_high) = (limit, count);
            (surplus, missing) = ((count - k) as f64 + 0.5, missing / 2.0);
        } else {
            (low, up_to_low) = (limit, count);
            (missing, surplus) = ((k - count) as f64 - 0.5, surplus / 2.0);
        }
        bisects = !bisects && up_to_high - up_to_low > left / 2;
    }
    let mut sums = sums_between(sorted, low, high);
    let (_, sum, _) = sums.select_nth_unstable_by((k - up_to_low - 1) as usize, f64::total_cmp);
    *sum / 2.0
}

/// The sums x_i + x_j, i ≤ j, of ascending values that are above `low` and at most `high`.
fn sums_between(sorted: &[f64], low: f64, high: f64) -> Vec<f64> {
    let mut sums = Vec::new();
    let (mut first, mut end) = (sorted.len(), sorted.len());
    for (start, x) in sorted.iter().enumerate() {
        while first > start && x + sorted[first - 1] > low {
            first -= 1;
        }
        while end > start && x + sorted[end - 1] > high {
            end -= 1;
        }
        if end <= start {
            break;
        }
        sums.extend(sorted[first.max(start)..end].iter().map(|y| x + y));
    }
    sums
}

/// How many sums x_i + x_j, i ≤ j, of ascending values are at most `limit`.
fn sums_up_to(sorted: &[f64], limit: f64) -> u64 {
    let mut count = 0;
    let mut end = sorted.len();
    for (start, x) in sorted.iter().enumerate() {
        while end > start && x + sorted[end - 1] > limit {
            end -= 1;
        }
        if end <= start {
            break;
        }
        count += (end - start) as u64;
    }
    count
}

const SIGN: u64 = 1 << 63;

/// The place of a number among all floating-point numbers, so that numbers can be bisected.
fn ordinal(x: f64) -> u64 {
    let bits = x.to_bits();
    if bits & SIGN == 0 { bits | SIGN } else { !bits }
}

/// The number halfway between two among all floating-point numbers; `low` where there is none.
fn between(low: f64, high: f64) -> f64 {
    let ordinal = ordinal(low) + (ordinal(high) - ordinal(low)) / 2;
    let bits = if ordinal & SIGN == 0 { !ordinal } else { ordinal & !SIGN };
    f64::from_bits(bits)
}

#[cfg(test)]
mod tests {
    use rand::{RngExt, SeedableRng};
    use rand_chacha::ChaCha8Rng;

    use super::super::simulated::{Machine, Noise};
    use super::*;

    fn brute_median(mut values: Vec<f64>) -> f64 {
        values.sort_unstable_by(f64::total_cmp);
        let n = values.len();
        (values[(n - 1) / 2] + values[n / 2]) / 2.0
    }

    fn brute_walsh(d: &[f64]) -> Vec<f64> {
        (0..d.len()).flat_map(|i| (i..d.len()).map(move |j| (d[i] + d[j]) / 2.0)).collect()
    }

    /// Values with and without ties, of both signs, of every length up to 60.
    fn cases() -> Vec<Vec<f64>> {
        let mut rng = ChaCha8Rng::seed_from_u64(1963);
        let mut cases = Vec::new();
        for n in 1..=60 {
            cases.push((0..n).map(|_| rng.random_range(-1.0..1.0)).collect());
            cases.push((0..n).map(|_| rng.random_range(-3..3) as f64).collect());
        }
        cases
    }

    #[test]
    fn hodges_lehmann_equals_the_median_of_all_walsh_averages() {
        for d in cases() {
            let expected = brute_median(brute_walsh(&d));
            let found = hodges_lehmann(&d).unwrap();
            assert!((found - expected).abs() < 1e-15, "{d:?}");
        }
        assert_eq!(hodges_lehmann(&[]), None);
    }

    #[test]
    fn every_walsh_average_is_selected_exactly() {
        let far_apart = (0..40).map(|i| (-2_f64).powi(30 * i - 600)).collect();
        for d in cases().into_iter().take(40).chain([far_apart]) {
            let mut all = brute_walsh(&d);
            all.sort_unstable_by(f64::total_cmp);
            let d = sorted(&d);
            for (k, expected) in all.iter().enumerate() {
                assert_eq!(kth_walsh_average(&d, k as u64 + 1), *expected);
            }
        }
    }

    #[test]
    fn hodges_lehmann_needs_no_quadratic_memory() {
        // Symmetric about 0.25: 100 000 values have 5·10⁹ averages, 40 GB if they were stored.
        let d: Vec<f64> = (0..=100_000).map(|i| 0.25 + f64::from(i - 50_000)).collect();
        assert_eq!(hodges_lehmann(&d), Some(0.25));
    }

    #[test]
    fn hodges_lehmann_turns_with_the_arms_and_ignores_one_wild_sample() {
        let mut rng = ChaCha8Rng::seed_from_u64(7);
        let mut d: Vec<f64> = (0..21).map(|_| rng.random_range(-0.01..0.01)).collect();
        let negated: Vec<f64> = d.iter().map(|x| -x).collect();
        assert_eq!(hodges_lehmann(&d), hodges_lehmann(&negated).map(|estimate| -estimate));
        d[3] = 1e6;
        assert!(hodges_lehmann(&d).unwrap().abs() < 0.01);
    }

    #[test]
    fn median_and_mad_equal_their_definitions() {
        for values in cases() {
            let centre = brute_median(values.clone());
            let deviations = values.iter().map(|v| (v - centre).abs()).collect();
            assert!((median(&values).unwrap() - centre).abs() < 1e-15);
            assert!((mad(&values).unwrap() - brute_median(deviations)).abs() < 1e-15);
        }
        assert_eq!(median(&[]), None);
        assert_eq!(mad(&[]), None);
    }

    /// Modes 10 % apart, whose slow share goes from a half to 0.7 under the treatment.
    #[test]
    fn modes_are_seen_and_other_noise_is_not_taken_for_them() {
        let told = |draw: &mut dyn FnMut(u64) -> Vec<f64>| {
            (0..400).filter(|seed| modes_disagree(&draw(*seed)).is_some()).count() as f64 / 400.0
        };
        // Noise of period two has modes.
        for noise in Noise::ALL.into_iter().filter(|noise| *noise != Noise::Alternating) {
            for pairs in [24, 60, 200] {
                let mut draw = |seed| {
                    let mut machine = Machine::new(noise, seed);
                    (0..pairs).map(|_| machine.pair(-0.02)).collect()
                };
                let share = told(&mut draw);
                assert!(share <= 0.03, "{noise:?} {pairs}: {share}");
            }
        }
        let mut modes = |seed| {
            let mut coin = ChaCha8Rng::seed_from_u64(seed);
            let mut machine = Machine::new(Noise::White, seed);
            (0..200)
                .map(|_| {
                    let slow = [0.5, 0.7].map(|share| f64::from(u8::from(coin.random_bool(share))));
                    machine.pair(0.0) / 2.0 + 0.1 * (slow[0] - slow[1])
                })
                .collect()
        };
        let share = told(&mut modes);
        assert!(share >= 0.35, "{share}");
    }

    #[test]
    fn modes_are_looked_for_among_24_values_and_told_by_both_deviations() {
        // Fifteen close to each other, and nine far away.
        let near = (0..15).map(|i| f64::from(i) * 1e-3);
        let values: Vec<f64> = near.chain(std::iter::repeat_n(1.0, 9)).collect();
        let [by_mad, by_quartiles] = modes_disagree(&values).unwrap();
        assert!((by_mad - 1.4826 * mad(&values).unwrap()).abs() < 1e-12 && by_mad < 0.02);
        assert!((by_quartiles - 0.994 / 1.349).abs() < 1e-12, "{by_quartiles}");
        assert_eq!(modes_disagree(&values[..23]), None);
        assert_eq!(modes_disagree(&[1.0; 30]), None);
        let from_0_to_24 = |value: fn(i32) -> f64| (0..=24).map(value).collect::<Vec<f64>>();
        // The median is 2^12, and 1 is the last of the half that is nearer than 2^13. The quartiles are the
        // values with six before and six behind them.
        let [by_mad, by_quartiles] = modes_disagree(&from_0_to_24(|i| 2.0_f64.powi(i))).unwrap();
        assert!((by_mad - 1.4826 * 4095.0).abs() < 1e-9, "{by_mad}");
        let between = 2.0_f64.powi(18) - 2.0_f64.powi(6);
        assert!((by_quartiles - between / 1.349).abs() < 1e-9, "{by_quartiles}");
        // Their ratios are 1.000 and 0.933.
        assert_eq!(modes_disagree(&from_0_to_24(f64::from)), None);
        let skewed = from_0_to_24(|i| f64::from(if i < 18 { i } else { i + 3 }));
        assert_eq!(modes_disagree(&skewed), None);
    }

    /// Tests the eight pairs of a pilot, too.
    #[test]
    fn the_spread_of_few_values_is_not_underestimated() {
        let mut machine = Machine::new(Noise::White, 3);
        for count in [2, 3, 4, 5, 8, 9, 10, 32] {
            let spread = |_| deviation(&(0..count).map(|_| machine.sample()).collect::<Vec<_>>());
            let mean = (0..4000).map(spread).sum::<f64>() / 4000.0;
            // White noise has a deviation of 1 %.
            assert!((0.97..1.03).contains(&(100.0 * mean)), "{count}: {mean}");
        }
        assert_eq!((deviation(&[]), deviation(&[7.0])), (0.0, 0.0));
    }

    #[test]
    fn geometric_mean_is_of_positive_values_only() {
        assert!((geometric_mean(&[1.0, 4.0, 16.0]).unwrap() - 4.0).abs() < 1e-12);
        assert_eq!(geometric_mean(&[]), None);
        assert_eq!(geometric_mean(&[1.0, 0.0]), None);
        assert_eq!(geometric_mean(&[1.0, f64::NAN]), None);
    }
}
