//! Student's t distribution, for means of normal data whose spread is not known beforehand.

use std::f64::consts::PI;

use crate::Interval;

/// The value that |t| exceeds with chance `alpha` in (0, 1), for `freedom` degrees of freedom, 1 or more.
///
/// By bisection, as the chance falls with t.
pub fn two_sided_quantile(alpha: f64, freedom: usize) -> f64 {
    let (mut low, mut high) = (0.0, 1.0);
    while outside(high, freedom) > alpha && high < f64::MAX / 4.0 {
        (low, high) = (high, high * 2.0);
    }
    // Until there is no number between the two.
    loop {
        let middle = f64::midpoint(low, high);
        if middle <= low || middle >= high {
            return high;
        }
        if outside(middle, freedom) > alpha {
            low = middle;
        } else {
            high = middle;
        }
    }
}

/// Where one more value lies of the normal distribution that these values were drawn from; it is elsewhere
/// with chance `alpha`. `None` of fewer than two values.
pub fn one_more(values: &[f64], alpha: f64) -> Option<Interval> {
    around_mean(values, alpha, 1.0)
}

/// Interval of the mean of the normal distribution that these values were drawn from; the mean is elsewhere
/// with chance `alpha`. `None` of fewer than two values.
pub fn of_mean(values: &[f64], alpha: f64) -> Option<Interval> {
    around_mean(values, alpha, 0.0)
}

/// Interval of the mean, and of so many further values beside it.
fn around_mean(values: &[f64], alpha: f64, further: f64) -> Option<Interval> {
    let freedom = values.len().checked_sub(1).filter(|freedom| *freedom > 0)?;
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    let variance = values.iter().map(|one| (one - mean).powi(2)).sum::<f64>() / freedom as f64;
    let half = two_sided_quantile(alpha, freedom) * (variance * (further + 1.0 / count)).sqrt();
    Some(Interval { low: mean - half, high: mean + half })
}

/// P(|T| > t): the finite series 26.7.3 and 26.7.4 of Abramowitz and Stegun, "Handbook of Mathematical
/// Functions", 1964. Its error is that of numbers near 1, about 1e-15.
fn outside(t: f64, freedom: usize) -> f64 {
    let angle = (t / (freedom as f64).sqrt()).atan();
    let (sine, cosine) = angle.sin_cos();
    let is_odd = freedom % 2 == 1;
    // 1, or cos θ, and each further term times cos² θ · k/(k + 1).
    let mut term = if is_odd { cosine } else { 1.0 };
    let mut sum = if freedom == 1 { 0.0 } else { term };
    let mut k = if is_odd { 2 } else { 1 };
    while k + 2 < freedom {
        term *= cosine * cosine * k as f64 / (k + 1) as f64;
        sum += term;
        k += 2;
    }
    1.0 - if is_odd { (angle + sine * sum) * 2.0 / PI } else { sine * sum }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_quantiles_are_those_of_the_tables() {
        // Abramowitz and Stegun, table 26.10: A(t|ν) = 0.95 and 0.99.
        let tables = [
            (1, 12.706, 63.657),
            (2, 4.303, 9.925),
            (3, 3.182, 5.841),
            (4, 2.776, 4.604),
            (11, 2.201, 3.106),
            (30, 2.042, 2.750),
            (120, 1.980, 2.617),
        ];
        for (freedom, at_5, at_1) in tables {
            let found = [0.05, 0.01].map(|alpha| two_sided_quantile(alpha, freedom));
            assert!((found[0] - at_5).abs() < 6e-4, "{freedom}: {found:?}");
            assert!((found[1] - at_1).abs() < 6e-4, "{freedom}: {found:?}");
        }
        let mean = of_mean(&[1.0, 2.0, 3.0, 4.0], 0.05).unwrap();
        assert!((mean.low - 0.446).abs() < 1e-3 && (mean.high - 4.554).abs() < 1e-3, "{mean:?}");
        assert!(of_mean(&[1.0], 0.05).is_none());
        // In the end it is the normal distribution.
        assert!((two_sided_quantile(0.05, 100_000) - 1.959_988).abs() < 1e-5);
    }
}
