//! Log-ratios as people read them.

use paired::Interval;
use paired::betting::Betting;
use paired::judge::Judgement;
use weigh_model::result::preliminary::Preliminary;

/// A log-ratio as a change in per cent.
pub fn percent(log_ratio: f64) -> f64 {
    log_ratio.exp_m1() * 100.0
}

/// Converts an end of an interval to per cent; `None` if the end is infinite.
pub fn bound(log_ratio: f64) -> Option<f64> {
    log_ratio.is_finite().then(|| percent(log_ratio))
}

/// Returns the preliminary result of a row with an unbounded effect, from two pairs on.
pub fn preliminary(row: &Betting, judgement: &Judgement) -> Option<Preliminary> {
    if row.pairs() < 2 || judgement.interval != Interval::UNBOUNDED {
        return None;
    }
    let lowest = row.values().iter().copied().fold(f64::INFINITY, f64::min);
    let highest = row.values().iter().copied().fold(f64::NEG_INFINITY, f64::max);
    Some(Preliminary {
        effect_pct: percent(judgement.estimate),
        low_pct: percent(lowest),
        high_pct: percent(highest),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use paired::judge_rows;

    #[test]
    fn a_few_pairs_have_an_estimate_and_their_range_until_something_bounds_it() {
        let of = |pairs: &[f64]| {
            let row = Betting::from_log_ratios(pairs, 0.01).unwrap();
            preliminary(&row, &judge_rows([&row], &paired::Design::default())[0])
        };
        assert_eq!(of(&[-0.5]), None);
        let three = of(&[-0.5, -0.4, -0.6]).unwrap();
        assert!((three.low_pct - percent(-0.6)).abs() < 1e-9, "{three:?}");
        assert!((three.high_pct - percent(-0.4)).abs() < 1e-9, "{three:?}");
        assert!(three.low_pct < three.effect_pct && three.effect_pct < three.high_pct);
        assert_eq!(of(&[-0.5, -0.4, -0.6, -0.5, -0.5, -0.4, -0.6, -0.5]), None);
    }
}
