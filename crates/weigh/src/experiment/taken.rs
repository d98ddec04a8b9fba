//! The pairs of a row as they were taken: which of them it is judged by, and what the others were for.

use std::time::Duration;

use serde::Deserialize;

use super::schedule::{PILOT_PAIRS, Schedule, SchemePilot, is_control};
use crate::result::scheme::Scheme;
use crate::store::record::Header;
use crate::store::samples::{OfRow, Point};
use crate::workload::metric::Metric;

/// A whole pair.
#[derive(Clone, Copy)]
pub struct Taken<'a> {
    /// The number of its first sample.
    pub first: usize,
    /// In the order of time.
    pub both: [&'a Point; 2],
    pub scheme: Scheme,
}

/// Those of a row, by what they are for.
pub struct Sorted<'a> {
    pub counted: Vec<Taken<'a>>,
    /// Of a row in turns, those in sequence.
    pub control: Vec<Taken<'a>>,
    pub schedule: Schedule,
}

/// As a stored request says it.
#[derive(Deserialize)]
struct OriginOfPilot {
    request: PilotOfRequest,
}

#[derive(Deserialize)]
struct PilotOfRequest {
    #[serde(default)]
    pilot_chooses_scheme: bool,
}

/// Whether the first pairs of rows choose their scheme.
pub fn has_scheme_pilot(header: &Header) -> bool {
    let origin: Option<OriginOfPilot> =
        header.origin.as_deref().and_then(|text| serde_json::from_str(text).ok());
    origin.is_some_and(|origin| origin.request.pilot_chooses_scheme)
}

/// Sorts the pairs of a row of an experiment with such a pilot, or without.
pub fn sort(of_row: &OfRow, has_pilot: bool) -> Sorted<'_> {
    let taken: Vec<Taken> = of_row
        .pairs()
        .map(|(first, both)| Taken { first, both, scheme: scheme_of(of_row, first) })
        .collect();
    let took_turns = taken.iter().any(|one| one.scheme == Scheme::InTurns);
    if !(has_pilot && took_turns) {
        let scheme = if took_turns { Scheme::InTurns } else { Scheme::InSequence };
        let schedule = Schedule::Fixed(scheme);
        return Sorted { counted: taken, control: Vec::new(), schedule };
    }
    let mut pilot = SchemePilot::default();
    for one in taken.iter().filter(|one| is_of_pilot(one)) {
        // How long each took is not stored. It is asked for only where no pair came after the pilot.
        pilot.add(one.scheme, log_ratio(one.both), Duration::from_secs(1));
    }
    let of_choice = |one: &&Taken| !is_of_pilot(one) && !is_control(one.both[0].pair);
    let schedule = match taken.iter().find(of_choice) {
        Some(first) => Schedule::Chosen(first.scheme),
        None => Schedule::Open(pilot),
    };
    let main = schedule.main();
    let (mut counted, mut control): (Vec<Taken>, Vec<Taken>) =
        taken.into_iter().partition(|one| one.scheme == main);
    if main == Scheme::InSequence {
        // It was chosen by those before.
        counted.retain(|one| !is_of_pilot(one));
        control.clear();
    }
    Sorted { counted, control, schedule }
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
    use crate::workload::metric::MetricValue;

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
        }
    }

    fn sorted(sets: &[&str], has_pilot: bool) -> (usize, usize, Schedule) {
        let of_row = of_row(sets);
        let Sorted { counted, control, schedule, .. } = sort(&of_row, has_pilot);
        (counted.len(), control.len(), schedule)
    }

    /// What a row takes that has turned to `then` after its pilot.
    fn with_pilot(then: &str) -> String {
        "sttttttt".repeat(PILOT_PAIRS / 8) + then
    }

    #[test]
    fn a_row_in_turns_is_judged_by_all_of_them_and_the_others_are_its_control() {
        let in_turns = Schedule::Chosen(Scheme::InTurns);
        assert_eq!(sorted(&[&with_pilot("st")], true), (29, 5, in_turns.clone()));
        assert_eq!(sorted(&[&with_pilot("st"), "sttttttts"], true), (36, 7, in_turns));
    }

    #[test]
    fn what_chose_pairs_in_sequence_does_not_count() {
        let in_sequence = Schedule::Chosen(Scheme::InSequence);
        assert_eq!(sorted(&[&with_pilot("sss")], true), (3, 0, in_sequence.clone()));
        assert_eq!(sorted(&[&with_pilot("sss"), "ss"], true), (5, 0, in_sequence));
    }

    #[test]
    fn without_a_pilot_or_where_nothing_took_turns_all_count() {
        assert_eq!(sorted(&["ssssssssss"], true), (10, 0, Schedule::Fixed(Scheme::InSequence)));
        assert_eq!(sorted(&["tttttttttt"], false), (10, 0, Schedule::Fixed(Scheme::InTurns)));
    }

    #[test]
    fn a_pilot_that_is_not_over_is_in_turns() {
        for schemes in ["stt", &with_pilot("s")] {
            let (counted, control, schedule) = sorted(&[schemes], true);
            assert_eq!(counted + control, schemes.len());
            assert!(matches!(schedule, Schedule::Open(_)));
        }
    }
}
