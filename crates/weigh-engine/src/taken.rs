//! The pairs of a row as they were taken: which of them it is judged by, and what the others were for.

use std::time::Duration;

use serde::Deserialize;

use super::outside::OutsideUse;
use super::schedule::{PILOT_PAIRS, Schedule, SchemePilot, is_sequential_in_pilot};
use weigh_model::record::{Header, OLD_SET, SEARCH_SET};
use weigh_model::result::scheme::Scheme;
use weigh_model::samples::{OfRow, Point};
use weigh_model::workload::metric::Metric;

/// A whole pair.
#[derive(Clone, Copy)]
pub struct Taken<'a> {
    /// The number of its first sample.
    pub first: usize,
    /// In the order of time.
    pub both: [&'a Point; 2],
    pub scheme: Scheme,
}

/// Those of a row that it is judged by.
pub struct Sorted<'a> {
    pub counted: Vec<Taken<'a>>,
    pub schedule: Schedule,
    /// What the interleaved pairs show of their processes.
    pub outside: OutsideUse,
    /// Those of old processes, of the same scheme.
    pub old: Vec<Taken<'a>>,
}

/// What a stored request says of its pairs.
#[derive(Deserialize)]
struct OriginOfPairs {
    request: PairsOfRequest,
}

#[derive(Clone, Copy, Default, Deserialize)]
pub struct PairsOfRequest {
    #[serde(default)]
    pub pilot_chooses_scheme: bool,
    #[serde(default)]
    pub takes_old_pairs: bool,
}

/// Which pairs the rows of an experiment have. A request that cannot be read counts as the one that asks
/// most: then nothing is concluded from pairs that it may have had for another purpose.
pub fn asked_for(header: &Header) -> PairsOfRequest {
    let strict = PairsOfRequest { pilot_chooses_scheme: true, takes_old_pairs: true };
    let Some(text) = header.origin.as_deref() else { return PairsOfRequest::default() };
    serde_json::from_str(text).map_or(strict, |origin: OriginOfPairs| origin.request)
}

/// Sorts the pairs of a row of an experiment with such a pilot, or without.
pub fn sort(of_row: &OfRow, has_pilot: bool) -> Sorted<'_> {
    let all: Vec<Taken> = of_row
        .pairs()
        .filter(|(_, both)| both[0].set != SEARCH_SET)
        .map(|(first, both)| Taken { first, both, scheme: scheme_of(of_row, first) })
        .collect();
    let outside = compared(&all);
    let (mut old, taken): (Vec<Taken>, Vec<Taken>) =
        all.into_iter().partition(|one| one.both[0].set == OLD_SET);
    let (counted, schedule) = judged_by(taken, has_pilot, &outside);
    old.retain(|one| one.scheme == schedule.main());
    Sorted { counted, schedule, outside, old }
}

fn judged_by<'a>(
    taken: Vec<Taken<'a>>,
    has_pilot: bool,
    outside: &OutsideUse,
) -> (Vec<Taken<'a>>, Schedule) {
    let Some(last) = taken.iter().rposition(|one| one.scheme == Scheme::InTurns) else {
        return (taken, Schedule::Fixed(Scheme::InSequence));
    };
    if !has_pilot {
        return (taken, Schedule::Fixed(Scheme::InTurns));
    }
    let after = &taken[last + 1..];
    let has_left = outside.difference().is_some() && !after.is_empty()
        || after.iter().any(|one| !is_sequential_in_pilot(one.both[0].pair));
    if has_left {
        return (after.to_vec(), Schedule::Chosen(Scheme::InSequence));
    }
    let schedule = match taken.iter().any(|one| !is_of_pilot(one)) {
        true => Schedule::Chosen(Scheme::InTurns),
        false => Schedule::Open(pilot(&taken)),
    };
    let counted = taken.into_iter().filter(|one| one.scheme == Scheme::InTurns).collect();
    (counted, schedule)
}

/// How long each pair took is not stored. It is asked for only where no pair came after the pilot.
fn pilot(taken: &[Taken]) -> SchemePilot {
    let mut pilot = SchemePilot::default();
    for one in taken.iter().filter(|one| is_of_pilot(one)) {
        pilot.add(one.scheme, log_ratio(one.both), Duration::from_secs(1));
    }
    pilot
}

fn compared(taken: &[Taken]) -> OutsideUse {
    let mut comparison = OutsideUse::default();
    for Taken { both: [first, second], .. } in taken {
        let in_order = if first.is_treated { [second, first] } else { [first, second] };
        comparison.add(in_order.map(|point| point.outside));
    }
    comparison
}

/// Later sets have what the pilot of the first chose.
fn is_of_pilot(taken: &Taken) -> bool {
    taken.both[0].set == 0 && taken.both[0].pair < PILOT_PAIRS
}

fn log_ratio([first, second]: [&Point; 2]) -> f64 {
    let (baseline, treated) = if first.is_treated { (second, first) } else { (first, second) };
    (treated.rate / baseline.rate).ln()
}

fn scheme_of(of_row: &OfRow, sample: usize) -> Scheme {
    let further = of_row.further.get(sample).into_iter().flatten();
    match further.into_iter().any(|(metric, _)| *metric == Metric::AllTime) {
        true => Scheme::InTurns,
        false => Scheme::InSequence,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weigh_model::workload::metric::MetricValue;
    use weigh_model::workload::sample::Outside;

    /// Pairs of these schemes, numbered from 0, and then from 0 in the next set.
    fn of_row(sets: &[&str]) -> OfRow {
        let mut of_row = OfRow::default();
        for (set, schemes) in sets.iter().enumerate() {
            for (pair, scheme) in schemes.chars().enumerate() {
                for is_first in [true, false] {
                    of_row.points.push(Point { set, pair, is_first, ..point(!is_first) });
                    let all_time = (Metric::AllTime, MetricValue::of(1.0, "ops/s"));
                    of_row.further.push((scheme == 't').then_some(all_time).into_iter().collect());
                }
            }
        }
        of_row
    }

    fn point(is_treated: bool) -> Point {
        Point {
            is_treated,
            is_first: true,
            after_treated: false,
            set: 0,
            pair: 0,
            started_s: 0.0,
            operations: 1.0,
            elapsed_s: 1.0,
            rate: 1.0,
            cpu_ns_per_op: None,
            waiting_share: None,
            waiting_share_before: None,
            stolen_share: None,
            was_throttled: false,
            rate_over_all: 1.0,
            outside: None,
        }
    }

    fn sorted(sets: &[&str], has_pilot: bool) -> (usize, Schedule) {
        let of_row = of_row(sets);
        let Sorted { counted, schedule, .. } = sort(&of_row, has_pilot);
        (counted.len(), schedule)
    }

    /// What a row takes that has turned to `then` after its pilot.
    fn with_pilot(then: &str) -> String {
        "sttttttt".repeat(PILOT_PAIRS / 8) + then
    }

    #[test]
    fn a_row_with_interleaved_pairs_is_judged_by_those() {
        let in_turns = Schedule::Chosen(Scheme::InTurns);
        assert_eq!(sorted(&[&with_pilot("tt")], true), (30, in_turns.clone()));
        assert_eq!(sorted(&[&with_pilot("tt"), "ttttttttt"], true), (39, in_turns.clone()));
        // One of an earlier weigh went on with a sequential pair in eight.
        assert_eq!(sorted(&[&with_pilot("st")], true), (29, in_turns));
    }

    #[test]
    fn a_row_that_left_them_is_judged_by_what_came_after() {
        let in_sequence = Schedule::Chosen(Scheme::InSequence);
        assert_eq!(sorted(&[&with_pilot("sss")], true), (3, in_sequence.clone()));
        assert_eq!(sorted(&[&with_pilot("sss"), "ss"], true), (5, in_sequence.clone()));
        // Before its pilot was over, and long after.
        assert_eq!(sorted(&["stttss"], true), (2, in_sequence.clone()));
        assert_eq!(sorted(&[&with_pilot("ttttss")], true), (2, in_sequence));
    }

    /// It has left, though the one pair that came after might be one of the pilot.
    #[test]
    fn what_the_processes_did_outside_their_slices_tells_that_a_row_has_left() {
        let mut of_row = of_row(&["sttttttts"]);
        let outside = |tasks| Outside { ns_per_slice: 0.0, slice_cpu_ns: 1.0, tasks };
        for (point, further) in of_row.points.iter_mut().zip(&of_row.further) {
            let tasks = if point.is_treated { 2 } else { 1 };
            point.outside = (!further.is_empty()).then(|| outside(tasks));
        }
        let Sorted { counted, schedule, .. } = sort(&of_row, true);
        assert_eq!((counted.len(), schedule), (1, Schedule::Chosen(Scheme::InSequence)));
    }

    #[test]
    fn without_a_pilot_or_where_nothing_took_turns_all_count() {
        assert_eq!(sorted(&["ssssssssss"], true), (10, Schedule::Fixed(Scheme::InSequence)));
        assert_eq!(sorted(&["tttttttttt"], false), (10, Schedule::Fixed(Scheme::InTurns)));
    }

    #[test]
    fn a_pilot_that_is_not_over_is_in_turns() {
        for (schemes, counted) in [("stt", 2), (&*with_pilot("s"), 28)] {
            let (found, schedule) = sorted(&[schemes], true);
            assert_eq!(found, counted);
            assert!(matches!(schedule, Schedule::Open(_) | Schedule::Chosen(Scheme::InTurns)));
        }
    }
}
