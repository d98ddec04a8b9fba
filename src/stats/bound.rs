//! What the effect is at least: for a cost, one side is often all that matters.

use super::Interval;
use super::betting::Betting;
use super::design::Design;
use super::wilcoxon::signed_rank_interval;

/// The least effect that is not refuted, as a log-ratio: "it is this or more" is wrong with
/// probability at most `alpha`. −∞ while it is not bounded.
///
/// It is the largest θ with M⁺_n(θ) ≥ 1/α: one bet alone, and so the low end of the interval with error
/// rate 2α. Valid at any time; with a fixed number of pairs, once, when these are there.
pub fn lower_bound(row: &Betting, design: &Design) -> f64 {
    let alpha = 2.0 * design.alpha;
    match design.fixed_pairs {
        Some(fixed) if row.pairs() >= fixed => {
            signed_rank_interval(row.values(), alpha).unwrap_or(Interval::UNBOUNDED).low
        }
        _ => row.low_end(alpha),
    }
}

#[cfg(test)]
mod tests {
    use super::super::judge_rows;
    use super::super::simulated::white_row as row;
    use super::*;

    #[test]
    fn one_side_alone_is_bounded_closer_than_by_the_interval() {
        for fixed_pairs in [None, Some(100)] {
            let design = Design { fixed_pairs, ..Design::default() };
            for effect in [-0.03, 0.0, 0.03] {
                let row = row(effect, 100, 6);
                let (bound, judgement) =
                    (lower_bound(&row, &design), judge_rows([&row], &design).remove(0));
                assert!(judgement.interval.low < bound && bound < judgement.estimate);
            }
        }
        assert_eq!(lower_bound(&row(0.0, 2, 6), &Design::default()), f64::NEG_INFINITY);
    }

    #[test]
    fn the_bound_is_where_one_bet_wins_what_refutes() {
        let row = row(-0.01, 60, 7);
        let bound = lower_bound(&row, &Design::default());
        let needed = 20.0_f64.ln();
        assert!(row.log_e_value_upper(bound - 1e-4) >= needed);
        assert!(row.log_e_value_upper(bound + 1e-4) < needed);
    }

    #[test]
    fn it_is_seldom_above_the_truth() {
        const EXPERIMENTS: u64 = 400;
        let missed = |seed: &u64| lower_bound(&row(-0.01, 40, *seed), &Design::default()) > -0.01;
        let missed = (0..EXPERIMENTS).filter(missed).count();
        // 5 % and three standard deviations of 400 repetitions.
        assert!(missed <= 33, "{missed} of {EXPERIMENTS}");
    }
}
