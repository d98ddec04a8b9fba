//! The ratio of mean rates: all work over all time, arm by arm.
//!
//! The typical pair hardly notices a stall that is rare; the mean counts it in full. It has its price:
//! one wild sample moves it, and its interval rests on the central limit theorem. So verdicts are not made
//! of it; it stands beside them.

use super::Interval;
use super::judge::MIN_PAIRS;
use super::normal;

/// Work of one sample, and its time; the units do not matter.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Exposure {
    /// Operations, or whatever else is counted; not negative.
    pub work: f64,
    /// How long it took; positive.
    pub time: f64,
}

/// ln(mean rate of the second of each / that of the first), with its interval of error rate `alpha`.
///
/// The delta method, over pairs: with sums W and T per arm, ln(W₁/T₁) − ln(W₀/T₀) changes by
/// z_i = w₁/W₁ − t₁/T₁ − w₀/W₀ + t₀/T₀ where pair i is added, its variance is that of Σz, and Student's t
/// with n − 1 degrees of freedom gives the interval. The two of a pair are kept together, so what they
/// share cancels. Source: Cochran, "Sampling Techniques", 3rd ed., §6.4. Unbounded below eight pairs;
/// `None` where a sum is not positive and finite.
pub fn mean_ratio(pairs: &[[Exposure; 2]], alpha: f64) -> Option<(f64, Interval)> {
    let sum = |arm: usize, part: fn(&Exposure) -> f64| -> f64 {
        pairs.iter().map(|pair| part(&pair[arm])).sum()
    };
    let work = [0, 1].map(|arm| sum(arm, |exposure| exposure.work));
    let time = [0, 1].map(|arm| sum(arm, |exposure| exposure.time));
    if work.iter().chain(&time).any(|sum| !sum.is_finite() || *sum <= 0.0) {
        return None;
    }
    let estimate = (work[1] / time[1]).ln() - (work[0] / time[0]).ln();
    if pairs.len() < MIN_PAIRS {
        return Some((estimate, Interval::UNBOUNDED));
    }
    let n = pairs.len() as f64;
    let of_arm =
        |pair: &[Exposure; 2], arm: usize| pair[arm].work / work[arm] - pair[arm].time / time[arm];
    let squares: f64 = pairs.iter().map(|pair| (of_arm(pair, 1) - of_arm(pair, 0)).powi(2)).sum();
    let error = (squares * n / (n - 1.0)).sqrt();
    let half = student(1.0 - alpha / 2.0, n - 1.0) * error;
    Some((estimate, Interval { low: estimate - half, high: estimate + half }))
}

/// Quantile `p` of Student's t: the expansion 26.7.5 of Abramowitz and Stegun, "Handbook of Mathematical
/// Functions", 1964. With seven degrees of freedom, the fewest here, it is off by 0.001 at 97.5 %.
fn student(p: f64, degrees: f64) -> f64 {
    let z = normal::quantile(p);
    let power = |exponent| f64::powi(z, exponent);
    z + (power(3) + z) / 4.0 / degrees
        + (5.0 * power(5) + 16.0 * power(3) + 3.0 * z) / 96.0 / degrees.powi(2)
        + (3.0 * power(7) + 19.0 * power(5) + 17.0 * power(3) - 15.0 * z) / 384.0 / degrees.powi(3)
}

#[cfg(test)]
mod tests {
    use super::super::simulated::{Machine, Noise};
    use super::*;

    /// Pairs of samples of 70 ms of work, as a machine does them.
    fn pairs(machine: &mut Machine, effect: f64, count: usize) -> Vec<[Exposure; 2]> {
        let sample = |log_rate: f64| Exposure { work: 1.0, time: 0.07 * (-log_rate).exp() };
        (0..count).map(|_| [sample(machine.sample()), sample(machine.sample() + effect)]).collect()
    }

    #[test]
    fn it_is_all_work_over_all_time() {
        let slow = Exposure { work: 1.0, time: 3.0 };
        let fast = Exposure { work: 1.0, time: 1.0 };
        let (estimate, interval) = mean_ratio(&[[fast, fast], [fast, slow]], 0.05).unwrap();
        assert!((estimate - 0.5_f64.ln()).abs() < 1e-12);
        assert_eq!(interval, Interval::UNBOUNDED);
        assert_eq!(mean_ratio(&[], 0.05), None);
        let nothing = Exposure { work: 0.0, time: 1.0 };
        assert_eq!(mean_ratio(&[[nothing, fast]; 9], 0.05), None);
    }

    #[test]
    fn swapping_the_arms_negates_it() {
        let there = pairs(&mut Machine::new(Noise::Stalling, 5), -0.02, 40);
        let back: Vec<[Exposure; 2]> = there.iter().map(|[a, b]| [*b, *a]).collect();
        let ((x, there), (y, back)) =
            (mean_ratio(&there, 0.05).unwrap(), mean_ratio(&back, 0.05).unwrap());
        assert!((x + y).abs() < 1e-12 && (there.low + back.high).abs() < 1e-12);
    }

    #[test]
    fn students_t_is_that_of_the_tables() {
        for (degrees, expected) in [(7.0, 2.365), (10.0, 2.228), (30.0, 2.042), (1e9, 1.960)] {
            assert!((student(0.975, degrees) - expected).abs() < 2e-3, "{degrees}");
        }
        for (degrees, error) in [(30, 4e-6), (100, 5e-8), (400, 1e-10)] {
            let exact = crate::student::two_sided_quantile(0.05, degrees);
            assert!((student(0.975, degrees as f64) - exact).abs() < error, "{exact}");
        }
    }

    #[test]
    fn the_interval_covers_as_often_as_it_promises() {
        const EXPERIMENTS: u64 = 1000;
        for noise in [Noise::White, Noise::Stealing] {
            let missed = (0..EXPERIMENTS).filter(|seed| {
                let pairs = pairs(&mut Machine::new(noise, *seed), -0.01, 30);
                let (_, interval) = mean_ratio(&pairs, 0.05).unwrap();
                interval.low > -0.01 || interval.high < -0.01
            });
            // 5 % and three standard deviations of 1000 repetitions.
            assert!(missed.count() <= 70, "{noise:?}");
        }
    }

    #[test]
    fn of_equal_work_and_one_constant_arm_it_is_the_other_arms_relative_standard_error_too() {
        let one = |time: f64| Exposure { work: 2.0, time };
        let times = [1.0, 2.0, 1.0, 2.0, 1.0, 2.0, 1.0, 2.0];
        let (estimate, interval) =
            mean_ratio(&times.map(|time| [one(1.5), one(time)]), 0.05).unwrap();
        assert!(estimate.abs() < 1e-12);
        let deviation = (8.0 * 0.25_f64 / 7.0).sqrt();
        let half = student(0.975, 7.0) * deviation / 8.0_f64.sqrt() / 1.5;
        assert!((interval.high - half).abs() < 1e-12, "{interval:?}");
        // What both arms have in common makes no difference, and neither does longer work at the same rate.
        let longer = |share: f64| Exposure { work: share, time: 2.0 * share };
        for pairs in
            [times.map(|time| [one(time); 2]), times.map(|share| [one(2.0), longer(share)])]
        {
            let (estimate, interval) = mean_ratio(&pairs, 0.05).unwrap();
            assert!(interval.high - interval.low < 1e-12 && interval.low <= estimate);
        }
    }

    #[test]
    fn of_equal_times_and_one_constant_arm_it_is_the_other_arms_relative_standard_error() {
        let one = |work: f64| Exposure { work, time: 2.0 };
        let pairs: Vec<[Exposure; 2]> =
            [1.0, 2.0, 1.0, 2.0, 1.0, 2.0, 1.0, 2.0].map(|work| [one(1.0), one(work)]).into();
        let (estimate, interval) = mean_ratio(&pairs, 0.05).unwrap();
        assert!((estimate - 1.5_f64.ln()).abs() < 1e-12);
        let deviation = (8.0 * 0.25_f64 / 7.0).sqrt();
        let half = student(0.975, 7.0) * deviation / 8.0_f64.sqrt() / 1.5;
        assert!((interval.high - estimate - half).abs() < 1e-12, "{interval:?}");
        assert!((estimate - interval.low - half).abs() < 1e-12, "{interval:?}");
    }
}
