//! The other tools' rules of `benches/verdict`, against published figures and ones that were
//! computed by hand: a comparison with a rule that we got wrong would be worth nothing.

#[path = "../verdict/rules/mod.rs"]
mod rules;

use std::cmp::Ordering;

use rules::{Rule, benchstat, hyperfine, student, unixbench, welch};

const RULES: [Rule; 4] =
    [unixbench::differs, hyperfine::differs, benchstat::differs, welch::differs];

fn assert_near(found: f64, expected: f64, tolerance: f64) {
    assert!((found - expected).abs() <= tolerance, "{found} is not {expected}");
}

#[test]
fn student_agrees_with_its_table() {
    // Two-sided 5 % and 1 % points of any table of Student's distribution, of three or more decimals;
    // the last row is normal.
    let points = [
        (12.706, 1.0, 0.05),
        (2.571, 5.0, 0.05),
        (2.228, 10.0, 0.05),
        (3.169, 10.0, 0.01),
        (2.042, 30.0, 0.05),
        (1.959_964, 1e6, 0.05),
    ];
    for (t, degrees, p) in points {
        assert_near(student::student_p(t, degrees), p, 5e-5);
        assert_near(student::student_p(-t, degrees), p, 5e-5);
    }
    assert_near(student::student_p(0.0, 7.0), 1.0, 1e-12);
}

#[test]
fn unixbench_drops_the_lowest_third_and_averages_geometrically() {
    // Of ten passes three go: the geometric mean of 2, 2, 2, 2, 8, 8, 8 is 2^(13/7).
    let passes = [8.0, 1.0, 2.0, 2.0, 8.0, 1.0, 2.0, 2.0, 8.0, 1.0];
    assert_near(unixbench::score(&passes), 2.0_f64.powf(13.0 / 7.0), 1e-12);
    assert_near(unixbench::score(&[9.0, 1.0, 4.0]), 6.0, 1e-12);
    assert_eq!(unixbench::differs(&[100.0; 3], &[100.9; 3]), None);
    assert_eq!(unixbench::differs(&[100.0; 3], &[101.1; 3]), Some(Ordering::Greater));
}

#[test]
fn hyperfine_propagates_the_deviations_of_single_runs() {
    // By hand: times 0.9, 1.0, 1.1 and 1.8, 2.0, 2.2 have 10 % deviation each, so 2 ± 2·√0.02.
    let (ratio, deviation) = hyperfine::ratio(&[0.9, 1.0, 1.1], &[1.8, 2.0, 2.2]);
    assert_near(ratio, 2.0, 1e-12);
    assert_near(deviation, 2.0 * 0.02_f64.sqrt(), 1e-12);
}

#[test]
fn mann_whitney_agrees_with_all_orders_and_with_its_table() {
    // Of the 6 orders of 2 and 2 values, U is 0, 1, 2 (twice), 3, 4.
    assert_eq!(benchstat::counts(2, 2), [1.0, 1.0, 2.0, 1.0, 1.0]);
    assert_near(benchstat::counts(20, 20).iter().sum(), 137_846_528_820.0, 0.5);
    // Two-sided 5 % critical values of U of any table: the largest U that is significant.
    for (n, critical) in [(4, 0), (5, 2), (8, 13), (10, 23), (20, 127)] {
        let counts = benchstat::counts(n, n);
        let all: f64 = counts.iter().sum();
        let tail = |u: usize| 2.0 * counts[..=u].iter().sum::<f64>() / all;
        assert!(tail(critical) <= 0.05 && tail(critical + 1) > 0.05, "n = {n}");
    }
}

#[test]
fn mann_whitney_counts_ties_as_halves() {
    let (u, ties) = benchstat::u_statistic(&[1.0, 2.0], &[2.0, 3.0]);
    // (1,2), (1,3), (2,3) are greater and (2,2) is a tie; one group of two: 2³ − 2.
    assert_eq!((u, ties), (3.5, 6.0));
    // U = 3.5 of 4, variance 4/12·(5 − 6/12) = 1.5, z = (1.5 − 0.5)/√1.5 = 0.8165, p = 0.4142.
    assert_near(benchstat::p_value(&[1.0, 2.0], &[2.0, 3.0]), 0.4142, 1e-4);
    assert_near(benchstat::p_value(&[1.0; 8], &[1.0; 8]), 1.0, 1e-12);
}

#[test]
fn welch_agrees_with_a_published_example() {
    // rosettacode.org, "Welch's t-test", the first of its examples: p = 0.021378001462867.
    let a =
        [27.5, 21.0, 19.0, 23.6, 17.0, 17.9, 16.9, 20.1, 21.9, 22.6, 23.1, 19.6, 19.0, 21.7, 21.4];
    let b =
        [27.1, 22.0, 20.8, 23.4, 23.4, 23.5, 25.8, 22.0, 24.8, 20.2, 21.9, 22.1, 22.9, 20.5, 24.4];
    let (t, degrees) = welch::statistic(&a, &b);
    assert_near(student::student_p(t, degrees), 0.021_378_001_462_867, 1e-9);
    assert_eq!(welch::differs(&a, &b), Some(Ordering::Greater));
}

#[test]
fn every_rule_knows_slower_from_faster() {
    let rates = |centre: f64| -> Vec<f64> {
        (0..20).map(|i| centre * (1.0 + 0.001 * f64::from(i % 7))).collect()
    };
    let (fast, slow) = (rates(100.0), rates(90.0));
    for rule in RULES {
        assert_eq!(rule(&fast, &slow), Some(Ordering::Less));
        assert_eq!(rule(&slow, &fast), Some(Ordering::Greater));
        assert_eq!(rule(&fast, &fast), None);
    }
}
