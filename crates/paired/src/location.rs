//! Where the middle of the log-ratios is, seen by the same scores that the bets are made on.

use super::wealth::score;

/// A step of this part of the scale changes no digit that anybody sees.
const STEP: f64 = 1e-9;

/// Newton's method takes about five looks; bisection, where it fails, about forty.
const MAX_LOOKS: u32 = 100;

/// The root of Σψ((d_i − θ)/s_i) = 0: an M-estimate (Huber, "Robust Estimation of a Location Parameter",
/// Ann. Math. Stat. 35, 1964), the centre that the interval is about.
///
/// The root lies in the interval, always: there every gambler owns Π(1 ± bψ_i) ≤ e^(±bΣψ_i) = 1, and 2/α
/// would be needed to refute it. `start`, between the least and the largest value, is where the search
/// begins: the median, so that a sum that is flat about zero has its middle for an answer. `None` without
/// values.
pub(crate) fn m_estimate(values: &[f64], scales: &[f64], start: f64) -> Option<f64> {
    let (mut low, mut high) = values
        .iter()
        .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), d| (low.min(*d), high.max(*d)));
    let resolution = STEP * scales.last()?;
    let (mut theta, mut last_step) = (start, high - low);
    for _ in 0..MAX_LOOKS {
        let (sum, slope) = sum_and_slope(values, scales, theta);
        if sum == 0.0 {
            break;
        }
        let end = if sum > 0.0 { &mut low } else { &mut high };
        *end = theta;
        // Where Newton's step leaves what is known, or does not halve the one before, the middle is safe.
        let newton = sum / slope;
        let is_good =
            newton.abs() <= last_step.abs() / 2.0 && (low..=high).contains(&(theta + newton));
        let next = if is_good { theta + newton } else { f64::midpoint(low, high) };
        last_step = next - theta;
        theta = next;
        if last_step.abs() <= resolution {
            break;
        }
    }
    Some(theta)
}

/// Σψ((d_i − θ)/s_i), and by how much it falls per step of θ.
fn sum_and_slope(values: &[f64], scales: &[f64], theta: f64) -> (f64, f64) {
    values.iter().zip(scales).fold((0.0, 0.0), |(sum, slope), (d, scale)| {
        let psi = score(*d, theta, *scale);
        (sum + psi, slope + 1.5 / scale * (1.0 - psi * psi))
    })
}

#[cfg(test)]
mod tests {
    use super::super::betting::{Betting, DEFAULT_SCALE};
    use super::super::estimate::median;
    use super::super::simulated::{Machine, Noise};
    use super::*;

    fn of(values: &[f64], scale: f64) -> f64 {
        m_estimate(values, &vec![scale; values.len()], median(values).unwrap()).unwrap()
    }

    #[test]
    fn it_is_the_root() {
        for noise in Noise::ALL {
            let mut machine = Machine::new(noise, 3);
            let values: Vec<f64> = (0..77).map(|_| machine.pair(0.02)).collect();
            for scale in [1e-6, 1e-3, 0.01, 1.0] {
                let scales = vec![scale; values.len()];
                let root = of(&values, scale);
                let sum = |theta| sum_and_slope(&values, &scales, theta).0;
                assert!(sum(root - 1e-6 * scale) >= 0.0 && sum(root + 1e-6 * scale) <= 0.0);
            }
        }
    }

    #[test]
    fn few_values_and_flat_sums_have_their_middle() {
        assert_eq!(m_estimate(&[], &[], 0.0), None);
        assert_eq!(of(&[0.25], 0.01), 0.25);
        assert_eq!(of(&[0.25; 9], 1e-6), 0.25);
        assert_eq!(of(&[-1.0, 3.0], 1e-6), 1.0);
        assert!((of(&[0.0, 0.0, 0.0, 1.0], 1e-3)).abs() < 1e-3);
        assert!(of(&[-1e300, 0.0, 1e300], 0.01).abs() < 1e-6);
    }

    /// Guards against the finding of issue 11's review: with skewed noise the pseudo-median leaves
    /// the interval.
    #[test]
    fn it_is_inside_the_interval_whatever_the_shape() {
        let mut machine = Machine::new(Noise::White, 8);
        let mut uniform = || 0.5 + machine.sample().clamp(-0.0499, 0.0499) * 10.0;
        for pairs in [8, 9, 30, 1000] {
            for _ in 0..if pairs < 100 { 50 } else { 5 } {
                // Exponential, of 10 %, and modes 10 % apart: one side alone has them.
                let skewed: Vec<f64> = (0..pairs).map(|_| 0.1 * uniform().ln()).collect();
                let modes: Vec<f64> =
                    (0..pairs).map(|_| if uniform() < 0.55 { 0.0 } else { -0.1 }).collect();
                for values in [skewed, modes] {
                    let row = Betting::from_log_ratios(&values, DEFAULT_SCALE).unwrap();
                    let (estimate, interval) = (row.estimate().unwrap(), row.interval(0.05));
                    assert!(interval.low <= estimate && estimate <= interval.high, "{values:?}");
                }
            }
        }
    }
}
