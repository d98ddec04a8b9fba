//! Student's distribution, by the incomplete beta function.
//!
//! Source: Press et al., "Numerical Recipes", 3rd edition, §6.1 (ln Γ by Lanczos) and §6.4 (the
//! continued fraction, by Lentz's method).

/// The two-sided p-value of `t` with `degrees` of freedom; NaN for NaN.
pub fn student_p(t: f64, degrees: f64) -> f64 {
    incomplete_beta(degrees / 2.0, 0.5, degrees / (degrees + t * t))
}

/// I_x(a, b), the regularised incomplete beta function.
fn incomplete_beta(a: f64, b: f64, x: f64) -> f64 {
    if x <= 0.0 || x >= 1.0 {
        return x.clamp(0.0, 1.0);
    }
    let log_front = ln_gamma(a + b) - ln_gamma(a) - ln_gamma(b) + a * x.ln() + b * (-x).ln_1p();
    if x < (a + 1.0) / (a + b + 2.0) {
        log_front.exp() * fraction(a, b, x) / a
    } else {
        1.0 - log_front.exp() * fraction(b, a, 1.0 - x) / b
    }
}

/// The continued fraction of the incomplete beta function.
fn fraction(a: f64, b: f64, x: f64) -> f64 {
    let away_from_zero = |value: f64| if value.abs() < 1e-300 { 1e-300 } else { value };
    let mut c = 1.0;
    let mut d = 1.0 / away_from_zero(1.0 - (a + b) * x / (a + 1.0));
    let mut result = d;
    for m in 1..=10_000 {
        let m = f64::from(m);
        let even = m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m));
        let odd = -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0));
        let mut change = 1.0;
        for term in [even, odd] {
            d = 1.0 / away_from_zero(1.0 + term * d);
            c = away_from_zero(1.0 + term / c);
            change = c * d;
            result *= change;
        }
        if (change - 1.0).abs() < 1e-15 {
            break;
        }
    }
    result
}

/// ln Γ(x) for x > 0.
fn ln_gamma(x: f64) -> f64 {
    const LANCZOS: [f64; 6] = [
        76.180_091_729_471_46,
        -86.505_320_329_416_77,
        24.014_098_240_830_91,
        -1.231_739_572_450_155,
        0.120_865_097_386_617_9e-2,
        -0.539_523_938_495_3e-5,
    ];
    let base = x + 5.5;
    let series: f64 =
        LANCZOS.iter().zip(1..).map(|(factor, i)| factor / (x + f64::from(i))).sum::<f64>();
    (x + 0.5) * base.ln() - base
        + (2.506_628_274_631_000_5 * (1.000_000_000_190_015 + series) / x).ln()
}
