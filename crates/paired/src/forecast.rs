//! How many more pairs an undecided row will probably take: its own pairs, drawn again, are put through the
//! real rule until it decides.

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::betting::Betting;
use super::design::Design;
use super::judge::MIN_PAIRS;
use super::wealth::score;

/// Futures that are drawn of a row.
pub const FUTURES: usize = 100;
/// How many pairs are drawn for all futures of all rows together: some tenths of a second.
const MOST_DRAWS: usize = 1_000_000;
/// At least so far each future is followed.
const LEAST_HORIZON: usize = 100;

/// Forecast for an undecided row.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Forecast {
    /// For each of [`FUTURES`], the verdict; `None` where that takes more pairs than `horizon`. Empty where
    /// nothing is known: with fewer pairs than a verdict needs.
    pub futures: Vec<Option<FutureVerdict>>,
    /// How far the futures were followed, in pairs.
    pub horizon: usize,
}

/// The verdict of a row in one of its futures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FutureVerdict {
    /// After how many more pairs.
    pub pairs: usize,
    /// True for equivalent and faster, which further checks may have to confirm.
    pub is_favourable: bool,
}

impl Forecast {
    /// The forecast of a row whose number of pairs is known.
    pub fn of_pairs(pairs: usize, is_favourable: bool) -> Forecast {
        let futures = vec![Some(FutureVerdict { pairs, is_favourable }); FUTURES];
        Forecast { futures, horizon: pairs }
    }

    /// The number of pairs that a `share` of the futures does not exceed; `None` where that is beyond the
    /// horizon, or nothing is known.
    pub fn quantile(&self, share: f64) -> Option<usize> {
        let mut sorted: Vec<usize> = self.futures.iter().flatten().map(|one| one.pairs).collect();
        sorted.sort_unstable();
        let rank = (self.futures.len() as f64 * share).ceil() as usize;
        sorted.get(rank.max(1) - 1).copied()
    }
}

/// Draws the futures of an undecided row, one of `rows` such; `level` is what the correction for many rows
/// asks of its p-value. Before it has `least_favourable` pairs, it is neither equivalent nor faster.
///
/// Each future first draws as many of the row's pairs, with replacement, as there are: what the row might
/// have shown instead. Its pairs to come are drawn from these. So the futures differ as much as so few pairs
/// leave open.
pub fn forecast(
    row: &Betting,
    level: f64,
    rows: usize,
    design: &Design,
    least_favourable: usize,
) -> Forecast {
    let pairs = row.pairs();
    if let Some(fixed) = design.fixed_pairs {
        let left = fixed.checked_sub(pairs).filter(|left| *left > 0);
        return left.map_or_else(Forecast::default, |left| Forecast::of_pairs(left, false));
    }
    if pairs < MIN_PAIRS {
        return Forecast::default();
    }
    let horizon = (MOST_DRAWS / FUTURES / rows.max(1)).max(LEAST_HORIZON);
    let mut random = ChaCha8Rng::seed_from_u64(pairs as u64);
    let futures = (0..FUTURES)
        .map(|_| {
            let mut any = || random.random_range(0..pairs);
            let world: Vec<usize> = (0..pairs).map(|_| any()).collect();
            let draw = || world[any()];
            first_verdict(row, (level, least_favourable), design, horizon, draw)
        })
        .collect();
    Forecast { futures, horizon }
}

/// The verdict of a row, and after how many of its pairs, whose places `draw` gives.
fn first_verdict(
    row: &Betting,
    (level, least_favourable): (f64, usize),
    design: &Design,
    horizon: usize,
    mut draw: impl FnMut() -> usize,
) -> Option<FutureVerdict> {
    let mut future = row.clone();
    let margin = design.margin;
    let bets = [(-margin, 1.0), (margin, -1.0), (0.0, 1.0)];
    let mut all = bets.map(|(theta, sign)| row.wealth(theta, sign));
    let mut clean = bets.map(|(theta, sign)| row.clean_wealth(theta, sign));
    let to_confirm = row.turns().filter(|_| !row.is_interleaved());
    let refuted = (1.0 / design.alpha).ln();
    (1..=horizon).find_map(|pairs| {
        let place = draw();
        let (d, scale) = (row.values()[place], future.next_scale());
        let is_clean = to_confirm.is_some_and(|turns| turns[place].is_clean());
        for (which, (theta, sign)) in bets.into_iter().enumerate() {
            let score = sign * score(d, theta, scale);
            all[which].bet(score);
            if is_clean {
                clean[which].bet(score);
            }
        }
        future.push(d).expect("values of the row itself");
        let confirms = |which: usize, needed| to_confirm.is_none() || clean[which].log() >= needed;
        let is_equivalent = (0..2).all(|one| all[one].log() >= refuted && confirms(one, refuted));
        let differs = future.p_zero() <= level && future.leaves_zero_out(design.alpha);
        let is_slower = differs && all[2].log() < 0.0;
        let is_faster = differs && confirms(2, -level.ln());
        let is_favourable =
            !is_slower && (is_equivalent || is_faster) && future.pairs() >= least_favourable;
        (is_slower || is_favourable).then_some(FutureVerdict { pairs, is_favourable })
    })
}

#[cfg(test)]
mod tests {
    use super::super::Verdict;
    use super::super::betting::{DEFAULT_SCALE, Start};
    use super::super::judge::{Judgement, judge_rows};
    use super::super::simulated::{Machine, Noise, white_row};
    use super::super::turn::Turn;
    use super::*;

    const ALPHA: f64 = 0.05;

    fn judged(row: &Betting) -> Judgement {
        judge_rows([row], &Design::default()).remove(0)
    }

    /// How many more pairs it takes on this machine; `None` for more than `most`.
    fn truth(row: &Betting, machine: &mut Machine, effect: f64, most: usize) -> Option<usize> {
        let mut row = row.clone();
        (1..=most).find(|_| {
            row.push(machine.pair(effect)).unwrap();
            // Only where a verdict is near is it asked for: that takes long.
            let differs = row.p_zero() <= ALPHA;
            let margin = Design::default().margin;
            let is_close =
                row.log_e_value_upper(-margin) > 2.9 && row.log_e_value_lower(margin) > 2.9;
            (differs || is_close) && judged(&row).verdict != Verdict::Inconclusive
        })
    }

    /// Four fifths of the futures are within the range, so about four fifths of what really becomes of such
    /// rows should be.
    #[test]
    fn what_becomes_of_a_row_is_within_the_range_in_about_four_of_five() {
        let (mut within, mut all) = (0, 0);
        for noise in [Noise::White, Noise::HeavyTailed, Noise::Drifting, Noise::Stealing] {
            for (effect, pairs) in [(0.0, 8), (0.0, 16), (-0.007, 12), (-0.02, 8)] {
                for seed in 0..20 {
                    let mut machine = Machine::new(noise, 100 * seed + pairs);
                    let mut row = Betting::new(DEFAULT_SCALE);
                    (0..pairs).for_each(|_| row.push(machine.pair(effect)).unwrap());
                    if judged(&row).verdict != Verdict::Inconclusive {
                        continue;
                    }
                    // As if there were 25 such rows, so that each is followed for 400 pairs.
                    let forecast = forecast(&row, ALPHA, 25, &Design::default(), 0);
                    let real = truth(&row, &mut machine, effect, forecast.horizon);
                    let low = forecast.quantile(0.1).unwrap_or(forecast.horizon);
                    let high = forecast.quantile(0.9);
                    all += 1;
                    within += usize::from(match (real, high) {
                        (Some(real), Some(high)) => (low..=high).contains(&real),
                        (Some(real), None) => real >= low,
                        (None, high) => high.is_none(),
                    });
                }
            }
        }
        let share = f64::from(within as u32) / f64::from(all as u32);
        assert!(all > 200 && (0.70..=0.92).contains(&share), "{within} of {all}");
    }

    #[test]
    fn a_quantile_is_the_future_of_that_rank() {
        let future = |pairs| Some(FutureVerdict { pairs, is_favourable: true });
        let forecast = Forecast { futures: (1..=FUTURES).rev().map(future).collect(), horizon: 9 };
        let known = [(0.0, 1), (0.005, 1), (0.5, 50), (0.501, 51), (1.0, 100)];
        assert!(known.iter().all(|(share, pairs)| forecast.quantile(*share) == Some(*pairs)));
    }

    #[test]
    fn rows_share_the_draws_and_each_has_a_hundred() {
        let row = white_row(0.0, MIN_PAIRS, 1);
        let horizon = |rows| forecast(&row, ALPHA, rows, &Design::default(), 0).horizon;
        assert_eq!([20, 1000].map(horizon), [500, 100]);
    }

    /// The gain may be what treated samples leave behind.
    #[test]
    fn a_gain_takes_pairs_that_did_not_follow_a_treated_sample() {
        let turn = |after_treated| Turn { baseline_first: true, after_treated };
        let favourable = |interleaved: bool, after_treated: bool| {
            let gain = white_row(0.2, 20, 1);
            let start = Start { interleaved, ..Start::from(DEFAULT_SCALE) };
            let row = Betting::from_log_ratios(gain.values(), start).unwrap();
            let row = row.with_turns(vec![turn(after_treated); 20]);
            let forecast = forecast(&row, ALPHA, 1000, &Design::default(), 0);
            forecast.futures.iter().flatten().filter(|future| future.is_favourable).count()
        };
        assert_eq!([favourable(false, true), favourable(false, false)], [0, FUTURES]);
        assert_eq!(favourable(true, true), FUTURES, "nothing is left behind in turns");
    }

    /// Draws the same pairs, and judges them as rows are judged.
    #[test]
    fn a_future_is_decided_when_the_rule_would_decide_it() {
        let mut verdicts = [0; 2];
        for (effect, pairs) in [(0.0, 10), (-0.02, 8), (0.02, 8)] {
            let row = white_row(effect, pairs, 3);
            let found = forecast(&row, ALPHA, 100, &Design::default(), 0);
            let mut random = ChaCha8Rng::seed_from_u64(pairs as u64);
            for future in &found.futures[..5] {
                let mut any = || random.random_range(0..pairs);
                let world: Vec<usize> = (0..pairs).map(|_| any()).collect();
                let mut longer = row.clone();
                let real = (1..=found.horizon).find_map(|pairs| {
                    longer.push(row.values()[world[any()]]).unwrap();
                    let verdict = judged(&longer).verdict;
                    let is_favourable = verdict != Verdict::Slower;
                    let decided = FutureVerdict { pairs, is_favourable };
                    (verdict != Verdict::Inconclusive).then_some(decided)
                });
                assert_eq!(*future, real, "{effect}");
                real.iter().for_each(|real| verdicts[usize::from(real.is_favourable)] += 1);
            }
        }
        assert!(verdicts.iter().all(|count| *count >= 4), "{verdicts:?}");
    }

    #[test]
    fn nothing_is_known_of_few_pairs_and_a_fixed_number_is_what_it_is() {
        let design = Design::default();
        let few = white_row(0.0, MIN_PAIRS - 1, 1);
        assert_eq!(forecast(&few, ALPHA, 1, &design, 0).quantile(0.5), None);
        let fixed = Design { fixed_pairs: Some(20), ..design };
        let range = |pairs| {
            let forecast = forecast(&white_row(0.0, pairs, 1), ALPHA, 1, &fixed, 0);
            [0.1, 0.9].map(|share| forecast.quantile(share))
        };
        assert_eq!((range(6), range(20)), ([Some(14); 2], [None; 2]));
    }

    #[test]
    fn favourable_verdicts_wait_for_their_pairs_and_slower_does_not() {
        let design = Design::default();
        let range = |effect: f64, least| {
            let found = forecast(&white_row(effect, 12, 3), ALPHA / 100.0, 1, &design, least);
            let pairs = found.futures.iter().flatten().map(|one| one.pairs);
            (pairs.min(), found.futures.iter().flatten().all(|one| one.is_favourable))
        };
        assert_eq!(range(0.05, 24), (Some(12), true));
        assert!(range(0.05, 0).0 < Some(12));
        let (soonest, is_favourable) = range(-0.05, 24);
        assert!(soonest < Some(12) && !is_favourable, "{soonest:?}");
    }

    #[test]
    fn more_noise_and_stricter_levels_take_longer() {
        // Nothing is ever equivalent within that.
        let design = Design { margin: 1e-6, ..Design::default() };
        let middle = |row: &Betting, level| {
            let forecast = forecast(row, level, 1, &design, 0);
            forecast.quantile(0.5).unwrap_or(forecast.horizon)
        };
        let quiet = white_row(-0.007, 12, 3);
        let doubled: Vec<f64> = quiet.values().iter().map(|d| -0.007 + 2.0 * (d + 0.007)).collect();
        let noisy = Betting::from_log_ratios(&doubled, DEFAULT_SCALE).unwrap();
        assert!(middle(&noisy, ALPHA) > 2 * middle(&quiet, ALPHA));
        assert!(middle(&quiet, ALPHA / 50.0) > middle(&quiet, ALPHA));
    }

    #[test]
    fn the_same_row_has_the_same_forecast_and_many_rows_are_not_followed_as_far() {
        let row = white_row(0.0, 10, 4);
        let design = Design::default();
        assert_eq!(forecast(&row, ALPHA, 3, &design, 0), forecast(&row, ALPHA, 3, &design, 0));
        let near = forecast(&row, ALPHA, 1000, &design, 0);
        assert_eq!(near.horizon, LEAST_HORIZON);
    }
}
