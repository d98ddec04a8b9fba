//! Many rows, one promise about all claims of slower and faster in an experiment.

use serde::{Deserialize, Serialize};

/// What is promised of the claims of an experiment together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Multiplicity {
    /// The chance that any of them is false is at most α: [`holm`].
    #[default]
    Holm,
    /// The share of false ones among them is at most α on average: [`e_bh`].
    EBh,
}

impl Multiplicity {
    /// The level that is asked of the next row at worst, where so many of `rows` have been found to differ.
    pub fn next_level(self, alpha: f64, differing: usize, rows: usize) -> f64 {
        let share = match self {
            Multiplicity::Holm => 1.0 / rows.saturating_sub(differing).max(1) as f64,
            Multiplicity::EBh => (differing + 1).min(rows) as f64 / rows as f64,
        };
        alpha * share
    }

    /// As it is stored and shown.
    pub fn as_str(self) -> &'static str {
        match self {
            Multiplicity::Holm => "holm",
            Multiplicity::EBh => "e-bh",
        }
    }

    /// The inverse of [`Multiplicity::as_str`]; `None` for a name that only a newer weigh knows.
    pub fn from_name(name: &str) -> Option<Multiplicity> {
        [Multiplicity::Holm, Multiplicity::EBh].into_iter().find(|one| one.as_str() == name)
    }
}

/// Which hypotheses Holm's method rejects, in the order given, so that the chance of any false
/// rejection is at most `alpha`, however the p-values depend on each other. A p-value that is not a
/// number is never rejected.
///
/// The smallest p is compared with α/m, the next with α/(m − 1), and so on until one fails. Source:
/// Holm, "A simple sequentially rejective multiple test procedure", Scand. J. Stat. 6, 1979.
pub fn holm(p: &[f64], alpha: f64) -> Vec<bool> {
    let mut order: Vec<usize> = (0..p.len()).collect();
    order.sort_by(|a, b| p[*a].total_cmp(&p[*b]));
    let mut rejected = vec![false; p.len()];
    for (rank, row) in order.into_iter().enumerate() {
        let level = alpha / (p.len() - rank) as f64;
        if p[row].is_nan() || p[row] > level {
            break;
        }
        rejected[row] = true;
    }
    rejected
}

/// Which hypotheses the e-BH method rejects, in the order given, so that the expected share of false
/// rejections among all is at most `alpha`, however the e-values depend on each other. `log_e` are
/// their logarithms, each at the moment when its row was looked at last; a running maximum is no
/// e-value. One that is not a number is never rejected.
///
/// The k largest are rejected, for the greatest k with E_(k) ≥ m/(αk). Source: Wang, Ramdas, "False
/// discovery rate control with e-values", J. R. Stat. Soc. B 84, 2022.
pub fn e_bh(log_e: &[f64], alpha: f64) -> Vec<bool> {
    let evidence = |row: usize| if log_e[row].is_nan() { f64::NEG_INFINITY } else { log_e[row] };
    let mut order: Vec<usize> = (0..log_e.len()).collect();
    order.sort_by(|a, b| evidence(*b).total_cmp(&evidence(*a)));
    let is_enough =
        |k: &usize| evidence(order[k - 1]) >= (log_e.len() as f64 / (alpha * *k as f64)).ln();
    let count = (1..=order.len()).rev().find(is_enough).unwrap_or(0);
    let mut rejected = vec![false; log_e.len()];
    order[..count].iter().for_each(|row| rejected[*row] = true);
    rejected
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_greatest_k_whose_evidence_is_enough_counts() {
        // m/(αk) for m = 4, α = 0.05: 80, 40, 26.7, 20.
        let found = |e: [f64; 4]| e_bh(&e.map(f64::ln), 0.05);
        assert_eq!(found([79.0, 41.0, 1.0, 1.0]), [true, true, false, false]);
        assert_eq!(found([1.0, 79.0, 39.0, 26.0]), [false; 4]);
        assert_eq!(found([20.0, 21.0, 25.0, 22.0]), [true; 4]);
        assert_eq!(found([f64::INFINITY, f64::NAN, 0.0, 1.0]), [true, false, false, false]);
        assert_eq!(e_bh(&[], 0.05), [false; 0]);
    }

    #[test]
    fn it_finds_all_that_holm_finds() {
        let e: [f64; 5] = [1000.0, 85.0, 100.0, 3.0, 60.0];
        let by_holm = holm(&e.map(|e| 1.0 / e), 0.05);
        let found = e_bh(&e.map(f64::ln), 0.05);
        assert!(by_holm.iter().zip(&found).all(|(holm, e_bh)| !holm || *e_bh));
        assert_eq!(found, [true, true, true, false, true]);
    }

    #[test]
    fn steps_down_until_one_fails() {
        assert_eq!(holm(&[0.01, 0.04, 0.03, 0.005], 0.05), [true, false, false, true]);
        assert_eq!(holm(&[0.05], 0.05), [true]);
        assert_eq!(holm(&[0.03, 0.03], 0.05), [false, false]);
        assert_eq!(holm(&[], 0.05), [false; 0]);
    }

    #[test]
    fn rejects_whatever_bonferroni_rejects() {
        let p = [0.001, 0.2, 0.012, 0.0124, 0.9];
        let rejected = holm(&p, 0.05);
        for (p, rejected) in p.iter().zip(rejected) {
            assert!(rejected || *p > 0.05 / 5.0);
        }
    }

    #[test]
    fn one_p_value_that_is_no_number_rejects_nothing_itself() {
        assert_eq!(holm(&[f64::NAN, 0.001], 0.05), [false, true]);
    }
}
