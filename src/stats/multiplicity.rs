//! Many rows, one promise: the chance of *any* false claim in an experiment.

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

#[cfg(test)]
mod tests {
    use super::*;

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
