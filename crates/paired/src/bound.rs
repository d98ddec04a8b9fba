//! Lower bound of the effect, and a test of whether the effect is below a limit. For a cost, one
//! side is often all that matters.

use super::Interval;
use super::betting::Betting;
use super::design::Design;
use super::judge::MIN_PAIRS;
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

/// Which of `rows` have an effect that is shown to be below `limit`, a log-ratio: "it is the limit or
/// more" is refuted.
///
/// Each row is asked for the evidence m/α, with m rows (Bonferroni). So the chance that *any* row is
/// named whose effect is not below the limit is at most α, however many rows there are and, without a
/// fixed number of pairs, whenever one looks.
pub fn below<'a>(
    rows: impl ExactSizeIterator<Item = &'a Betting>,
    limit: f64,
    design: &Design,
) -> Vec<bool> {
    let alpha = design.alpha / design.rows.max(rows.len()) as f64;
    let is_below = |row: &Betting| match design.fixed_pairs {
        _ if row.pairs() < MIN_PAIRS => false,
        None => row.log_e_value_lower(limit) >= (1.0 / alpha).ln(),
        Some(fixed) if row.pairs() >= fixed => {
            let both_sides = signed_rank_interval(row.values(), 2.0 * alpha);
            both_sides.is_some_and(|interval| interval.high < limit)
        }
        Some(_) => false,
    };
    rows.map(is_below).collect()
}

#[cfg(test)]
mod tests {
    use super::super::judge_rows;
    use super::super::simulated::{white_pairs, white_row as row};
    use super::*;

    /// Tests a gate at 3 %. A cost of 2.9 % seldom fails, though it is slower and half of its
    /// estimates are beyond 3 %. A cost of 6 % fails.
    #[test]
    fn a_limit_is_exceeded_only_where_that_is_shown() {
        const EXPERIMENTS: u64 = 400;
        let limit = (-0.03_f64).ln_1p();
        let share = |effect: f64, fixed_pairs: Option<usize>| {
            let design = Design { fixed_pairs, ..Design::default() };
            let fails = |seed: &u64| {
                let pairs = white_pairs(effect, 40, *seed);
                let looks = if fixed_pairs.is_some() { 40..=40 } else { MIN_PAIRS..=40 };
                looks.into_iter().any(|n| {
                    let row = Betting::from_log_ratios(&pairs[..n], 0.01).unwrap();
                    below([row].iter(), limit, &design)[0]
                })
            };
            (0..EXPERIMENTS).filter(fails).count() as f64 / EXPERIMENTS as f64
        };
        for fixed_pairs in [None, Some(40)] {
            // 5 % and three standard deviations of 400 repetitions.
            let barely = share((-0.029_f64).ln_1p(), fixed_pairs);
            assert!(barely <= 0.083, "{fixed_pairs:?}: {barely}");
            let clearly = share((-0.06_f64).ln_1p(), fixed_pairs);
            assert!(clearly >= 0.95, "{fixed_pairs:?}: {clearly}");
        }
    }

    #[test]
    fn more_rows_ask_for_more_before_a_limit_is_exceeded() {
        let strong = row(-0.05, 12, 1);
        let empty = Betting::new(0.01);
        let among = |others: usize, design: &Design| {
            let rows: Vec<&Betting> =
                std::iter::once(&strong).chain(std::iter::repeat_n(&empty, others)).collect();
            below(rows.into_iter(), -0.02, design)
        };
        let fixed = |pairs| Design { fixed_pairs: Some(pairs), ..Design::default() };
        for design in [Design::default(), fixed(12)] {
            assert_eq!(among(0, &design), [true]);
            assert!(!among(10_000, &design)[0]);
        }
        assert_eq!(among(0, &fixed(13)), [false]);
        let planned = Design { rows: 10_000, ..Design::default() };
        assert_eq!(among(0, &planned), [false], "rows without a result count");
        assert_eq!(below([row(-0.2, 8, 1)].iter(), 0.0, &Design::default()), [true]);
        assert_eq!(below([row(-0.05, 7, 1)].iter(), 0.0, &Design::default()), [false]);
    }

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

    #[test]
    fn a_fixed_number_of_pairs_is_bounded_as_by_looking_until_it_is_reached() {
        let row = row(-0.01, 60, 7);
        let bound = |fixed_pairs| lower_bound(&row, &Design { fixed_pairs, ..Design::default() });
        assert_eq!(bound(Some(61)), bound(None));
        let once = signed_rank_interval(row.values(), 0.1).unwrap().low;
        assert!(bound(Some(60)) == once && bound(Some(59)) == once && once > bound(None));
        let design = Design { fixed_pairs: Some(60), ..Design::default() };
        let high = signed_rank_interval(row.values(), 0.1).unwrap().high;
        let is_below = |limit| below([&row].into_iter(), limit, &design)[0];
        assert_eq!([is_below(high), is_below(high.next_up())], [false, true]);
    }
}
