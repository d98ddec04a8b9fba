//! re-aim's own rules on a ramp (classic-suites.md, 3.2): by how many users the next load point has more, and
//! when throughput no longer grows.

/// Its adaptive timer begins with the tenth load point.
const POINTS_BEFORE: usize = 9;
/// With jobs per minute so near to the number of users, the increment halves the way that is left.
const NEAR_CROSSOVER: f64 = 0.10;
/// Where a load point took hardly longer than the one before, the steps get larger; and the other way round.
const HARDLY_LONGER: f64 = 1.20;
const MUCH_LONGER: f64 = 1.30;

/// How many of the last load points are held against each other.
const WINDOW: usize = 5;
const ONE_PERCENT: f64 = 0.01;

/// A load point as these rules know it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RampPoint {
    pub users: f64,
    pub jobs_per_min: f64,
}

impl RampPoint {
    /// Returns the time of the point, in a unit that cancels out: with equal jobs per user, time is
    /// users over rate.
    fn time(self) -> f64 {
        self.users / self.jobs_per_min
    }
}

/// By how many users the next load point has more, where the last one had `increment` more than the one
/// before it.
pub fn next_increment(increment: usize, points: &[RampPoint]) -> usize {
    let [.., before, last] = points else { return increment };
    if points.len() <= POINTS_BEFORE {
        return increment;
    }
    let left = last.jobs_per_min - last.users;
    if left / last.users <= NEAR_CROSSOVER {
        return (left / 2.0).max(1.0) as usize;
    }
    let (now, then) = (last.time(), before.time());
    let factor = 2.0 / (then / f64::midpoint(now, then));
    let next = match now / then {
        growth if growth < HARDLY_LONGER => increment as f64 * factor,
        growth if growth > MUCH_LONGER => increment as f64 / factor,
        _ => increment as f64,
    };
    if next < 1.0 { increment } else { next as usize }
}

/// Returns true if throughput has reached the machine's limit. The last of five load points fell by
/// more than 1 % below their mean, or the points scatter by less than 1 %. Missing points count as
/// zero, as in re-aim.
pub fn no_longer_grows(jobs_per_min: &[f64]) -> bool {
    let [.., before, last] = jobs_per_min else { return false };
    let mut window = [0.0; WINDOW];
    let known = &jobs_per_min[jobs_per_min.len().saturating_sub(WINDOW)..];
    window[WINDOW - known.len()..].copy_from_slice(known);
    let mean = window.iter().sum::<f64>() / WINDOW as f64;
    let deviation =
        (window.iter().map(|rate| (rate - mean).powi(2)).sum::<f64>() / WINDOW as f64).sqrt();
    let is_dropping = last < before && (mean - last) / mean > ONE_PERCENT;
    is_dropping || deviation / mean < ONE_PERCENT
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Ten points, the last two with these users and times.
    fn points(users: [f64; 2], times: [f64; 2]) -> Vec<RampPoint> {
        let point = |(users, time): (f64, f64)| RampPoint { users, jobs_per_min: users / time };
        let first = (1..=8).map(|users| (f64::from(users), 1e-3));
        first.chain(users.into_iter().zip(times)).map(point).collect()
    }

    #[test]
    fn the_increment_is_as_given_for_nine_points_and_then_follows_the_time() {
        assert_eq!(next_increment(3, &points([9.0, 10.0], [1e-3; 2])[..9]), 3);
        // Equally long: 2 / (1/1) = 2 times as many.
        assert_eq!(next_increment(3, &points([9.0, 10.0], [1e-3; 2])), 6);
        // A tenth longer: 2 / (1 / 1.05) = 2.1 times.
        assert_eq!(next_increment(10, &points([9.0, 10.0], [1.0e-3, 1.1e-3])), 21);
        // A quarter longer: as before.
        assert_eq!(next_increment(10, &points([9.0, 10.0], [1.0e-3, 1.25e-3])), 10);
        // Twice as long: 2 / (1 / 1.5) = a third of it.
        assert_eq!(next_increment(10, &points([9.0, 10.0], [1.0e-3, 2.0e-3])), 3);
        // Less than one more is none: it stays.
        assert_eq!(next_increment(2, &points([9.0, 10.0], [1.0e-3, 2.0e-3])), 2);
    }

    #[test]
    fn near_the_crossover_the_increment_halves_the_way() {
        let mut points = points([800.0, 900.0], [1e-3; 2]);
        points[9].jobs_per_min = 980.0;
        assert_eq!(next_increment(100, &points), 40);
        points[9].jobs_per_min = 880.0;
        assert_eq!(next_increment(100, &points), 1);
    }

    /// The sequence that re-aim itself ended on 10 pipe_cpy here (classic-suites.md, 6.3).
    #[test]
    fn it_ends_where_re_aim_ended() {
        let measured = [
            21544.0, 40678.0, 55641.0, 66759.0, 67189.0, 72654.0, 140_000.0, 150_000.0, 146_143.0,
            142_518.0, 205_288.0, 155_340.0,
        ];
        let ends: Vec<usize> =
            (1..=measured.len()).filter(|n| no_longer_grows(&measured[..*n])).collect();
        assert_eq!(ends, [12]);
        let mean = measured[7..].iter().sum::<f64>() / 5.0;
        assert!((mean - 159_857.75).abs() < 1.0 && ((mean - 155_340.0) / mean - 0.0283) < 1e-4);
    }

    #[test]
    fn five_equal_points_are_the_most_that_is_sustained_and_missing_ones_are_zero() {
        assert!(no_longer_grows(&[10.0, 100.0, 100.1, 99.9, 100.0, 100.05]));
        assert!(!no_longer_grows(&[100.0, 100.0, 100.0, 100.0]));
        assert!(!no_longer_grows(&[100.0]) && !no_longer_grows(&[]));
    }
}
