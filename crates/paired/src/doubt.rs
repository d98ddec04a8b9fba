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
