//! The normal distribution, as far as the signed-rank test needs it.

use std::f64::consts::{PI, SQRT_2};

/// Φ(z), the chance that a standard normal variable is at most `z`; relative error below 1e-12 for
/// z ≥ −37.
///
/// The series 26.2.11 near the middle and the continued fraction 26.2.14 in the tails, of
/// Abramowitz and Stegun, "Handbook of Mathematical Functions", 1964. The tails matter: Holm
/// compares p with α/m.
pub(crate) fn distribution(z: f64) -> f64 {
    if z.abs() < 2.5 {
        0.5 + density(z) * series(z)
    } else if z < 0.0 {
        density(z) / fraction(-z)
    } else {
        1.0 - density(z) / fraction(z)
    }
}

/// Φ⁻¹(p) for p in (0, 1), to about 1e-14 of a standard deviation.
///
/// Newton's method from 0: Φ bends towards the axis on either side, so no step goes too far.
pub(crate) fn quantile(p: f64) -> f64 {
    let mut z = 0.0;
    for _ in 0..100 {
        let step = (p - distribution(z)) / density(z);
        z += step;
        if step.abs() < 1e-14 {
            break;
        }
    }
    z
}

fn density(z: f64) -> f64 {
    (-0.5 * z * z).exp() / (SQRT_2 * PI.sqrt())
}

/// z + z³/3 + z⁵/(3·5) + …
fn series(z: f64) -> f64 {
    let (mut term, mut sum, mut odd) = (z, z, 1.0);
    while term.abs() > 1e-17 * sum.abs() {
        odd += 2.0;
        term *= z * z / odd;
        sum += term;
    }
    sum
}

/// z + 1/(z + 2/(z + 3/(z + …))); 200 levels are enough from z = 2.5.
fn fraction(z: f64) -> f64 {
    (1..=200).rev().fold(z, |below, level| z + f64::from(level) / below)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agrees_with_published_values() {
        let published = [
            (0.0, 0.5),
            (1.0, 0.841344746068543),
            (-1.959963984540054, 0.025),
            (-2.5, 0.006209665325776132),
            (3.0, 0.998650101968370),
            (-6.0, 9.865876450376946e-10),
        ];
        for (z, expected) in published {
            let found = distribution(z);
            assert!((found / expected - 1.0).abs() < 1e-12, "{z}: {found}");
        }
    }

    #[test]
    fn the_quantile_turns_the_distribution_round() {
        for p in [1e-5, 0.025, 0.3, 0.5, 0.8413, 0.999, 1.0 - 1e-5] {
            assert!((distribution(quantile(p)) / p - 1.0).abs() < 1e-12, "{p}");
        }
        assert!((quantile(0.975) - 1.959_963_984_540_054).abs() < 1e-12);
    }

    #[test]
    fn is_continuous_where_the_methods_meet() {
        for z in [-2.5_f64, 2.5] {
            let jump = distribution(z.next_up()) - distribution(z.next_down());
            assert!(jump.abs() < 1e-13);
        }
    }
}
