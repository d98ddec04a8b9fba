//! Why a verdict that the interval would bear is withheld: what the interval rests on does not hold, or is
//! not shown to.

use serde::{Deserialize, Serialize};

use super::betting::Betting;
use super::carry_over::CarryOver;
use super::design::Design;
use super::stalls::Stalls;
use super::{Interval, Verdict};

/// A verdict that is not given, and the reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Withheld {
    /// Verdict that the interval would support.
    pub verdict: Verdict,
    /// Reason against the verdict.
    pub because: Doubt,
}

/// Reason against a verdict.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Doubt {
    /// It matters which sample of a pair is first, and that may be what treated samples leave behind.
    OrderMatters,
    /// It matters whether the sample before was a treated one.
    CarryOver,
    /// *Faster* or *equivalent*, and not yet seen in the pairs in which no treated sample came before.
    NotYetConfirmed,
    /// Treated samples stall more often than the baseline's.
    Stalls,
    /// Two claims on the same interleaved pairs contradict each other.
    ClaimsDisagree,
    /// A process of interleaved pairs works while its partner has the CPU.
    WorksOutside,
    /// *Equivalent*, by fewer interleaved pairs than that takes.
    FewPairs,
    /// *Equivalent*, and CPU time is not shown to be.
    CpuTime,
    /// *Equivalent*, and the rate over all time is not shown to be.
    OverallRate,
    /// *Equivalent* or *faster*, and no process has been measured yet that had lived for a second.
    NotYetAged,
    /// *Equivalent* or *faster*, and not so of processes that had lived for a second.
    LateCost,
}

/// Why `verdict`, which `interval` bears, should not be given; `None` where nothing is known against it.
/// `found` are the row's contrasts.
///
/// - *slower* stands unless the sample before matters, and so much, and in such a direction, that nothing
///   need be left of it. A baseline is not expected to leave anything behind.
/// - *faster* may be what treated samples do to the baseline after them. It stands where the whole interval
///   is beyond what carry-over can explain by the contrasts; else where no contrast is significant, and the
///   pairs in which no treated sample came before show it by themselves. That is asked of all claims
///   together, so here it is a doubt until then.
/// - *equivalent* stands where it would hold whatever carry-over by the contrasts may be; else where no
///   contrast is significant and those pairs refute both margins by themselves; and unless the treated arm
///   stalls.
///
/// The two processes of an interleaved pair are both new and run at the same time, so what was launched
/// before the pair is around both of them: nothing has to be confirmed there. A significant contrast is a
/// doubt all the same.
pub(crate) fn doubt(
    verdict: Verdict,
    row: &Betting,
    interval: Interval,
    found: &CarryOver,
    design: &Design,
) -> Option<Doubt> {
    let stalls = || {
        let stalls = Stalls::of(row, design.margin)?;
        stalls.are_the_treatments(2.0 * design.alpha).then_some(Doubt::Stalls)
    };
    if row.turns().is_none() {
        return if verdict == Verdict::Equivalent { stalls() } else { None };
    }
    let bias = found.bias();
    let significant = match (found.is_previous_significant(), found.is_order_significant()) {
        (true, _) => Some(Doubt::CarryOver),
        (_, true) => Some(Doubt::OrderMatters),
        _ => None,
    };
    match verdict {
        Verdict::Slower => {
            let by_previous = found.previous.filter(|contrast| contrast.is_significant());
            let explained =
                by_previous.map_or(0.0, |contrast| contrast.interval.low.min(0.0) / 2.0);
            (interval.high - explained >= 0.0).then_some(Doubt::CarryOver)
        }
        Verdict::Faster if interval.low > bias.high => None,
        Verdict::Faster => {
            significant.or((!row.is_interleaved()).then_some(Doubt::NotYetConfirmed))
        }
        Verdict::Equivalent => {
            let whatever_carries_over =
                Interval { low: interval.low - bias.high, high: interval.high - bias.low };
            let is_confirmed = || {
                row.is_interleaved()
                    || row.clean_log_e_within(design.margin) >= (1.0 / design.alpha).ln()
            };
            let carried = match whatever_carries_over.is_within(design.margin) {
                true => None,
                false => {
                    significant.or_else(|| (!is_confirmed()).then_some(Doubt::NotYetConfirmed))
                }
            };
            carried.or_else(stalls)
        }
        Verdict::Inconclusive => None,
    }
}

#[cfg(test)]
mod tests {
    use super::super::betting::{DEFAULT_SCALE, Start};
    use super::super::carry_over::{GroupContrast, Turn};
    use super::*;

    const CLEAN: Turn = Turn { baseline_first: true, after_treated: false };
    const UNCLEAN: Turn = Turn { after_treated: true, ..CLEAN };

    fn found(order: (f64, f64), previous: (f64, f64)) -> CarryOver {
        let contrast =
            |(low, high)| Some(GroupContrast { estimate: 0.0, interval: Interval { low, high } });
        CarryOver { order: contrast(order), previous: contrast(previous) }
    }

    /// Sixty pairs with hardly any effect.
    fn row(interleaved: bool, turn: Turn) -> Betting {
        let start = Start { interleaved, ..DEFAULT_SCALE.into() };
        let values: Vec<f64> = (0..60).map(|i| 1e-4 * f64::from(i % 5 - 2)).collect();
        Betting::from_log_ratios(&values, start).unwrap().with_turns(vec![turn; 60])
    }

    fn of(verdict: Verdict, row: &Betting, ends: (f64, f64), found: CarryOver) -> Option<Doubt> {
        let interval = Interval { low: ends.0, high: ends.1 };
        doubt(verdict, row, interval, &found, &Design::default())
    }

    #[test]
    fn slower_stands_unless_the_sample_before_explains_all_of_it() {
        let of = |high, previous| {
            let found = found((-0.01, 0.01), previous);
            of(Verdict::Slower, &row(false, UNCLEAN), (-0.1, high), found)
        };
        assert_eq!(of(-0.01, (-0.04, -0.001)), Some(Doubt::CarryOver));
        assert_eq!(of(-0.02, (-0.04, -0.001)), Some(Doubt::CarryOver), "nothing is left of it");
        assert_eq!(of(-0.03, (-0.04, -0.001)), None);
        assert_eq!(of(-0.01, (-0.04, 0.001)), None, "it may not matter at all");
        assert_eq!(of(-0.01, (0.001, 0.04)), None, "it makes it look faster");
    }

    #[test]
    fn faster_stands_beyond_what_carries_over_or_once_it_is_confirmed() {
        let neither = found((-0.01, 0.01), (-0.02, 0.02));
        let of = |low, interleaved, found| {
            of(Verdict::Faster, &row(interleaved, UNCLEAN), (low, 0.1), found)
        };
        assert_eq!(of(0.03, false, neither), None);
        assert_eq!(of(0.02, false, neither), Some(Doubt::NotYetConfirmed));
        assert_eq!(of(0.01, true, neither), None);
        let order = found((0.001, 0.01), (-0.02, 0.02));
        let previous = found((-0.01, 0.01), (0.001, 0.02));
        for interleaved in [false, true] {
            assert_eq!(of(0.005, interleaved, order), Some(Doubt::OrderMatters));
            assert_eq!(of(0.005, interleaved, previous), Some(Doubt::CarryOver));
        }
    }

    #[test]
    fn equivalent_stands_whatever_carries_over_or_once_it_is_confirmed() {
        let of = |row: &Betting, found| of(Verdict::Equivalent, row, (-0.001, 0.001), found);
        let little = found((-0.001, 0.001), (-0.002, 0.002));
        let much = found((-0.01, 0.01), (-0.02, 0.02));
        let order = found((0.001, 0.03), (-0.02, 0.02));
        let unclean = row(false, UNCLEAN);
        assert_eq!(of(&unclean, little), None);
        assert_eq!(of(&unclean, much), Some(Doubt::NotYetConfirmed));
        for on_one_side in [found((-0.01, 0.0), (0.0, 0.02)), found((0.0, 0.01), (-0.02, 0.0))] {
            assert_eq!(of(&unclean, on_one_side), Some(Doubt::NotYetConfirmed));
        }
        assert_eq!(of(&unclean, order), Some(Doubt::OrderMatters));
        assert_eq!(of(&row(false, CLEAN), much), None);
        assert_eq!(of(&row(true, UNCLEAN), much), None);
        assert_eq!(of(&row(true, CLEAN), order), Some(Doubt::OrderMatters));
    }

    #[test]
    fn only_equivalent_minds_stalls_and_without_turns_nothing_else_is_in_doubt() {
        let mut values = vec![0.0; 60];
        values[..8].fill(-1.0);
        let stalled = Betting::from_log_ratios(&values, DEFAULT_SCALE).unwrap();
        let known = stalled.clone().with_turns(vec![CLEAN; 60]);
        let much = found((0.001, 0.03), (0.001, 0.02));
        let little = found((-0.001, 0.001), (-0.002, 0.002));
        let ends = (-0.001, 0.001);
        assert_eq!(of(Verdict::Equivalent, &stalled, ends, much), Some(Doubt::Stalls));
        assert_eq!(of(Verdict::Equivalent, &known, ends, little), Some(Doubt::Stalls));
        let mut values = vec![0.0; 60];
        values[0] = -1.0;
        let stalled_once = Betting::from_log_ratios(&values, DEFAULT_SCALE).unwrap();
        assert_eq!(of(Verdict::Equivalent, &stalled_once, ends, much), None, "by chance");
        for verdict in [Verdict::Slower, Verdict::Faster, Verdict::Inconclusive] {
            assert_eq!(of(verdict, &stalled, ends, much), None, "{verdict:?}");
        }
        assert_eq!(of(Verdict::Inconclusive, &known, ends, much), None);
    }
}
