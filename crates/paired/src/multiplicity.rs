//! Many claims, one promise about all claims of slower and faster in an experiment. A claim's weight is its
//! share of the promise.

use serde::{Deserialize, Serialize};

/// Promise for the claims of an experiment together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Multiplicity {
    /// The chance that any of them is false is at most α: [`holm`].
    #[default]
    Holm,
    /// The share of false ones among them is at most α on average: [`closed_e_bh`].
    EBh,
}

impl Multiplicity {
    /// Which claims are rejected, in the order given, by the logarithm of the evidence for each: of 1/p, or
    /// of its e-value.
    pub(crate) fn reject(self, log_evidence: &[f64], weights: &[f64], alpha: f64) -> Vec<bool> {
        match self {
            Multiplicity::Holm => {
                let p: Vec<f64> = log_evidence.iter().map(|log| (-log).exp()).collect();
                holm(&p, weights, alpha)
            }
            Multiplicity::EBh => closed_e_bh(log_evidence, weights, alpha),
        }
    }

    /// The level asked of the next claim of weight 1, at worst, where the claims rejected so far are those
    /// for which `rejected` is true.
    pub(crate) fn next_level(self, rejected: &[bool], weights: &[f64], alpha: f64) -> f64 {
        let all: f64 = weights.iter().sum();
        let of_rejected = weights.iter().zip(rejected).filter(|(_, rejected)| **rejected);
        match self {
            Multiplicity::Holm => {
                let left = all - of_rejected.map(|(weight, _)| weight).sum::<f64>();
                alpha / left.max(f64::MIN_POSITIVE)
            }
            Multiplicity::EBh => alpha * (of_rejected.count() + 1) as f64 / all,
        }
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

/// Which hypotheses Holm's weighted method rejects, in the order given, so that the chance of any false
/// rejection is at most `alpha`, however the p-values depend on each other. A p-value that is not a
/// number is never rejected, nor is a hypothesis of weight 0.
///
/// In the order of p/w, each p is compared with αw/W, W being the weights of this hypothesis and all later
/// ones, until one fails. With equal weights those are α/m, α/(m − 1), … Source: Holm, "A simple
/// sequentially rejective multiple test procedure", Scand. J. Stat. 6, 1979, section 4.
pub fn holm(p: &[f64], weights: &[f64], alpha: f64) -> Vec<bool> {
    let mut order: Vec<usize> = (0..p.len()).filter(|row| weights[*row] > 0.0).collect();
    order.sort_by(|a, b| (p[*a] / weights[*a]).total_cmp(&(p[*b] / weights[*b])));
    let mut rejected = vec![false; p.len()];
    for (rank, &row) in order.iter().enumerate() {
        let left: f64 = order[rank..].iter().map(|row| weights[*row]).sum();
        if p[row].is_nan() || p[row] > alpha * weights[row] / left {
            break;
        }
        rejected[row] = true;
    }
    rejected
}

/// e-values beyond e^this are certain enough, and their sums stay finite.
const MOST_LOG_E: f64 = 600.0;

/// Which hypotheses the closed e-BH method rejects, in the order given, so that the expected share of false
/// rejections among all is at most `alpha`, however the e-values depend on each other. `log_e` are
/// their logarithms, each at the moment when its row was looked at last; a running maximum is no
/// e-value. One that is not a number is never rejected, nor is a hypothesis of weight 0.
///
/// The weighted mean E_A = Σ w_i E_i / Σ w_i over a set A is an e-value of "all in A are true". A set R may
/// be rejected if no A refutes it: E_A ≥ |A ∩ R| / (α|R|) for all A. The largest such R is taken of those
/// that have the hypotheses of the greatest w_i E_i. All that e-BH rejects is among them (the k greatest with
/// w_i E_i ≥ Σw/(αk)), as then Σ over A of w_i E_i ≥ |A ∩ R| Σw/(α|R|). Source: Xu, Solari, Fischer,
/// de Heide, Ramdas, Goeman, "Bringing closure to FDR control", arXiv 2504.11759; e-BH: Wang, Ramdas, J. R.
/// Stat. Soc. B 84, 2022.
pub fn closed_e_bh(log_e: &[f64], weights: &[f64], alpha: f64) -> Vec<bool> {
    let of = |log: &f64| if log.is_nan() { 0.0 } else { log.min(MOST_LOG_E).exp() };
    let e: Vec<f64> = log_e.iter().map(of).collect();
    let evidence = |row: usize| weights[row] * e[row];
    let mut order: Vec<usize> = (0..e.len()).filter(|row| weights[*row] > 0.0).collect();
    order.sort_by(|a, b| evidence(*b).total_cmp(&evidence(*a)));
    let ordered: Vec<(f64, f64)> = order.iter().map(|row| (weights[*row], e[*row])).collect();
    let count = (1..=order.len()).rev().find(|count| may_be_rejected(&ordered, *count, alpha));
    let mut rejected = vec![false; e.len()];
    order[..count.unwrap_or(0)].iter().for_each(|row| rejected[*row] = true);
    rejected
}

/// True if no set A refutes the rejection of the first `count` of these hypotheses, each a weight and an
/// e-value.
///
/// E_A ≥ c with c = k/(α·count), for all A that share k hypotheses with them, means that the sum of w(E − c)
/// over A is never negative. It is least with the k least terms of those, and all negative others.
fn may_be_rejected(ordered: &[(f64, f64)], count: usize, alpha: f64) -> bool {
    let (inside, outside) = ordered.split_at(count);
    (1..=count).all(|shared| {
        let needed = shared as f64 / (alpha * count as f64);
        let term = |&(weight, e): &(f64, f64)| weight * (e - needed);
        let mut terms: Vec<f64> = inside.iter().map(term).collect();
        terms.select_nth_unstable_by(shared - 1, f64::total_cmp);
        let others: f64 = outside.iter().map(term).filter(|term| *term < 0.0).sum();
        terms[..shared].iter().sum::<f64>() + others >= 0.0
    })
}

#[cfg(test)]
mod tests {
    use rand::{RngExt, SeedableRng};
    use rand_chacha::ChaCha8Rng;

    use super::*;

    const EQUAL: [f64; 5] = [1.0; 5];

    fn closed(e: &[f64], weights: &[f64]) -> Vec<bool> {
        let log_e: Vec<f64> = e.iter().map(|e| e.ln()).collect();
        closed_e_bh(&log_e, weights, 0.05)
    }

    /// By the definition: every set A, one by one.
    fn is_allowed(e: &[f64], weights: &[f64], rejected: &[bool]) -> bool {
        let size = rejected.iter().filter(|rejected| **rejected).count();
        (1_u32..1 << e.len()).all(|set| {
            let is_in = |row: &usize| set >> row & 1 == 1;
            let sum = |of: &dyn Fn(usize) -> f64| (0..e.len()).filter(is_in).map(of).sum::<f64>();
            let shared = sum(&|row| f64::from(u8::from(rejected[row])));
            let mean = sum(&|row| weights[row] * e[row]) / sum(&|row| weights[row]);
            // Rounding must not decide.
            shared == 0.0 || mean * (1.0 + 1e-12) >= shared / (0.05 * size as f64)
        })
    }

    /// e-BH with weights: the k greatest w E, for the greatest k with w E ≥ Σw/(αk).
    fn count_of_e_bh(e: &[f64], weights: &[f64]) -> usize {
        let mut sorted: Vec<f64> = e.iter().zip(weights).map(|(e, weight)| e * weight).collect();
        sorted.sort_by(|a, b| b.total_cmp(a));
        let all: f64 = weights.iter().sum();
        let is_enough = |k: &usize| sorted[k - 1] >= all / (0.05 * *k as f64);
        (1..=e.len()).rev().find(is_enough).unwrap_or(0)
    }

    #[test]
    fn closed_e_bh_is_its_definition_and_rejects_no_less_than_e_bh() {
        let mut random = ChaCha8Rng::seed_from_u64(5);
        let (mut more, mut some) = (0, 0);
        for _ in 0..3000 {
            let count = random.random_range(1..=8);
            let mut draw = |low: f64, high: f64| -> Vec<f64> {
                (0..count).map(|_| random.random_range(low..high)).collect()
            };
            let e: Vec<f64> = draw(-2.0, 6.0).into_iter().map(f64::exp).collect();
            let weights = if count % 2 == 0 { vec![1.0; count] } else { draw(0.1, 1.0) };
            let rejected = closed(&e, &weights);
            let size = rejected.iter().filter(|rejected| **rejected).count();
            assert!(size == 0 || is_allowed(&e, &weights, &rejected), "{e:?} {weights:?}");
            let by_e_bh = count_of_e_bh(&e, &weights);
            assert!(size >= by_e_bh, "{e:?} {weights:?}");
            some += usize::from(by_e_bh > 0);
            more += usize::from(size > by_e_bh);
            // Of the greatest, no more would have been allowed.
            let mut order: Vec<usize> = (0..count).collect();
            order.sort_by(|a, b| (e[*b] * weights[*b]).total_cmp(&(e[*a] * weights[*a])));
            for larger in size + 1..=count {
                let mut wanted = vec![false; count];
                order[..larger].iter().for_each(|row| wanted[*row] = true);
                assert!(!is_allowed(&e, &weights, &wanted), "{e:?} {weights:?}: {larger}");
            }
        }
        assert!(some > 1000 && more > 100, "{more} more than e-BH's, of {some}");
    }

    #[test]
    fn what_is_no_number_or_has_no_weight_is_never_rejected() {
        let e = [f64::INFINITY, f64::NAN, 0.0, 1.0, f64::INFINITY];
        let weights = [1.0, 1.0, 1.0, 1.0, 0.0];
        assert_eq!(closed(&e, &weights), [true, false, false, false, false]);
        assert_eq!(closed(&[f64::INFINITY; 2], &[1.0, 0.0]), [true, false]);
        assert_eq!(holm(&[0.0, f64::NAN, 0.0], &[0.0, 1.0, 1.0], 0.05), [false, false, true]);
        assert_eq!(closed(&[], &[]), [false; 0]);
    }

    #[test]
    fn it_finds_all_that_holm_finds() {
        let e: [f64; 5] = [1000.0, 85.0, 100.0, 3.0, 60.0];
        let by_holm = holm(&e.map(|e| 1.0 / e), &EQUAL, 0.05);
        let found = closed(&e, &EQUAL);
        assert!(by_holm.iter().zip(&found).all(|(holm, e_bh)| !holm || *e_bh));
        assert_eq!(found, [true, true, true, false, true]);
    }

    #[test]
    fn steps_down_until_one_fails() {
        let holm = |p: &[f64]| holm(p, &EQUAL[..p.len()], 0.05);
        assert_eq!(holm(&[0.01, 0.04, 0.03, 0.005]), [true, false, false, true]);
        assert_eq!(holm(&[0.05]), [true]);
        assert_eq!(holm(&[0.03, 0.03]), [false, false]);
        assert_eq!(holm(&[]), [false; 0]);
    }

    #[test]
    fn a_weight_is_a_share_of_the_level() {
        // 0.05 times 0.8, and then 0.05 of what is left.
        assert_eq!(holm(&[0.04, 0.025, 0.03], &[0.8, 0.1, 0.1], 0.05), [true, true, true]);
        assert_eq!(holm(&[0.041, 0.025, 0.03], &[0.8, 0.1, 0.1], 0.05), [false; 3]);
        assert_eq!(holm(&[0.041, 0.005, 0.03], &[0.8, 0.1, 0.1], 0.05), [true, true, true]);
        assert_eq!(holm(&[0.046, 0.005, 0.03], &[0.8, 0.1, 0.1], 0.05), [false, true, false]);
    }

    #[test]
    fn rejects_whatever_bonferroni_rejects() {
        let p = [0.001, 0.2, 0.012, 0.0124, 0.9];
        let rejected = holm(&p, &EQUAL, 0.05);
        for (p, rejected) in p.iter().zip(rejected) {
            assert!(rejected || *p > 0.05 / 5.0);
        }
    }

    #[test]
    fn one_p_value_that_is_no_number_rejects_nothing_itself() {
        assert_eq!(holm(&[f64::NAN, 0.001], &EQUAL[..2], 0.05), [false, true]);
    }

    #[test]
    fn the_next_level_is_that_of_what_is_left() {
        let weights = [0.8, 0.1, 0.1, 1.0];
        let next =
            |how: Multiplicity, rejected: [bool; 4]| how.next_level(&rejected, &weights, 0.05);
        let left = next(Multiplicity::Holm, [true, false, false, false]);
        assert!((left - 0.05 / 1.2).abs() < 1e-12, "{left}");
        let two = next(Multiplicity::EBh, [true, false, false, false]);
        assert!((two - 0.05).abs() < 1e-12, "{two}");
    }

    #[test]
    fn a_method_is_known_by_its_name() {
        for (method, name) in [(Multiplicity::Holm, "holm"), (Multiplicity::EBh, "e-bh")] {
            assert_eq!((method.as_str(), Multiplicity::from_name(name)), (name, Some(method)));
        }
        assert_eq!(Multiplicity::from_name("bonferroni"), None);
    }

    #[test]
    fn evidence_is_given_as_its_logarithm() {
        let p = [0.01, 0.04, 0.03, 0.005_f64].map(|p| -p.ln());
        assert_eq!(Multiplicity::Holm.reject(&p, &EQUAL[..4], 0.05), [true, false, false, true]);
        let e = [1000.0, 85.0, 100.0, 3.0, 60.0].map(f64::ln);
        assert_eq!(Multiplicity::EBh.reject(&e, &EQUAL, 0.05), [true, true, true, false, true]);
    }
}
