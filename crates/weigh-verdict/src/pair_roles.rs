//! The pairs of a row as they were taken: which of them it is judged by, and what the others were for.

use std::time::Duration;

use super::outside::OutsideUse;
use super::schedule::{PILOT_PAIRS, Schedule, SchemePilot};
use weigh_model::ids::SetId;
use weigh_model::result::scheme::Scheme;
use weigh_model::role::SampleRole;
use weigh_model::samples::{Point, RowSamples};

/// A whole pair.
#[derive(Clone, Copy)]
pub struct MeasuredPair<'a> {
    /// The number of its first sample.
    pub first: usize,
    /// In the order of time.
    pub both: [&'a Point; 2],
}

/// Pairs of a row that it is judged by.
pub struct PairsByRole<'a> {
    pub counted: Vec<MeasuredPair<'a>>,
    pub schedule: Schedule,
    /// Use of the partner's slices by the processes of interleaved pairs.
    pub outside: OutsideUse,
    /// Pairs of old processes, in the same scheme.
    pub old: Vec<MeasuredPair<'a>>,
}

impl MeasuredPair<'_> {
    pub fn role(&self) -> SampleRole {
        self.both[0].role
    }

    pub fn scheme(&self) -> Scheme {
        self.both[0].scheme
    }
}

/// Sorts the pairs of a row by what they were for.
pub fn sort(of_row: &RowSamples, has_pilot: bool) -> PairsByRole<'_> {
    let all: Vec<MeasuredPair> = of_row
        .pairs()
        .map(|(first, both)| MeasuredPair { first, both })
        .filter(|one| one.role() != SampleRole::Search)
        .collect();
    let outside = compared(&all);
    let (mut old, taken): (Vec<MeasuredPair>, Vec<MeasuredPair>) =
        all.into_iter().partition(|one| one.role() == SampleRole::Aged);
    let (counted, schedule) = judged_by(taken, has_pilot);
    old.retain(|one| one.scheme() == schedule.main());
    PairsByRole { counted, schedule, outside, old }
}

fn judged_by(taken: Vec<MeasuredPair<'_>>, has_pilot: bool) -> (Vec<MeasuredPair<'_>>, Schedule) {
    if !taken.iter().any(|one| one.scheme() == Scheme::Interleaved) {
        return (taken, Schedule::Fixed(Scheme::Sequential));
    }
    if !has_pilot {
        return (taken, Schedule::Fixed(Scheme::Interleaved));
    }
    let is_compared =
        |one: &MeasuredPair, scheme| one.role() == SampleRole::Compared && one.scheme() == scheme;
    let has_left = taken.iter().any(|one| is_compared(one, Scheme::Sequential));
    let schedule = match has_left {
        true => Schedule::Chosen(Scheme::Sequential),
        false if taken.iter().all(is_of_pilot) => Schedule::Open(pilot(&taken)),
        false => Schedule::Chosen(Scheme::Interleaved),
    };
    let counted = taken.into_iter().filter(|one| is_compared(one, schedule.main())).collect();
    (counted, schedule)
}

/// How long each pair took is not stored. It is asked for only where no pair came after the pilot.
fn pilot(taken: &[MeasuredPair]) -> SchemePilot {
    let mut pilot = SchemePilot::default();
    for one in taken.iter().filter(|one| is_of_pilot(one)) {
        pilot.add(one.scheme(), log_ratio(one.both), Duration::from_secs(1));
    }
    pilot
}

fn compared(taken: &[MeasuredPair]) -> OutsideUse {
    let mut comparison = OutsideUse::default();
    for MeasuredPair { both: [first, second], .. } in taken {
        let in_order = if first.is_treated { [second, first] } else { [first, second] };
        comparison.add(in_order.map(|point| point.outside));
    }
    comparison
}

/// Later sets have what the pilot of the first chose.
fn is_of_pilot(taken: &MeasuredPair) -> bool {
    taken.both[0].set == SetId(0) && taken.both[0].pair.0 < PILOT_PAIRS
}

fn log_ratio([first, second]: [&Point; 2]) -> f64 {
    let (baseline, treated) = if first.is_treated { (second, first) } else { (first, second) };
    (treated.rate / baseline.rate).ln()
}

#[cfg(test)]
mod tests {
    use super::*;
    use weigh_model::example::point;
    use weigh_model::ids::PairId;

    /// Pairs numbered from 0, and then from 0 in the next set: `p` is a sequential pair of a pilot, `t` is
    /// interleaved, `s` is sequential.
    fn sorted(sets: &[&str]) -> (usize, Schedule) {
        sorted_with(sets, true)
    }

    fn sorted_with(sets: &[&str], has_pilot: bool) -> (usize, Schedule) {
        let mut of_row = RowSamples::default();
        for (set, pairs) in sets.iter().enumerate() {
            for (pair, what) in pairs.chars().enumerate() {
                let (role, scheme) = match what {
                    'p' => (SampleRole::Pilot, Scheme::Sequential),
                    's' => (SampleRole::Compared, Scheme::Sequential),
                    _ => (SampleRole::Compared, Scheme::Interleaved),
                };
                for is_first in [true, false] {
                    let is_treated = !is_first;
                    let point = point(pair, 1.0);
                    of_row.points.push(Point {
                        set: SetId(set),
                        role,
                        scheme,
                        is_first,
                        is_treated,
                        ..point
                    });
                }
            }
        }
        let PairsByRole { counted, schedule, .. } = sort(&of_row, has_pilot);
        (counted.len(), schedule)
    }

    /// Returns the letters of a row that has turned to `then` after its pilot.
    fn with_pilot(then: &str) -> String {
        let open = Schedule::Open(SchemePilot::default());
        let letter = |pair| if open.next(PairId(pair)).0 == SampleRole::Pilot { 'p' } else { 't' };
        (0..PILOT_PAIRS).map(letter).collect::<String>() + then
    }

    #[test]
    fn a_row_with_interleaved_pairs_is_judged_by_those() {
        let interleaved = Schedule::Chosen(Scheme::Interleaved);
        assert_eq!(sorted(&[&with_pilot("tt")]), (30, interleaved.clone()));
        assert_eq!(sorted(&[&with_pilot("tt"), "ttttttttt"]), (39, interleaved));
    }

    #[test]
    fn a_row_that_left_them_is_judged_by_what_came_after() {
        let sequential = Schedule::Chosen(Scheme::Sequential);
        assert_eq!(sorted(&[&with_pilot("sss")]), (3, sequential.clone()));
        assert_eq!(sorted(&[&with_pilot("sss"), "ss"]), (5, sequential.clone()));
        // Before its pilot was over, also with a pair that might be one of it, and long after.
        assert_eq!(sorted(&["ptttss"]), (2, sequential.clone()));
        assert_eq!(sorted(&["pttttttts"]), (1, sequential.clone()));
        assert_eq!(sorted(&[&with_pilot("ttttss")]), (2, sequential.clone()));
        // The first pair of its pilot was cut off, and is no pair.
        assert_eq!(sorted(&["tttss"]), (2, sequential));
    }

    #[test]
    fn without_a_pilot_or_where_nothing_took_turns_all_count() {
        assert_eq!(sorted(&["psssssssss"]), (10, Schedule::Fixed(Scheme::Sequential)));
        assert_eq!(sorted_with(&["tttttttttt"], false), (10, Schedule::Fixed(Scheme::Interleaved)));
    }

    #[test]
    fn a_pilot_that_is_not_over_is_interleaved() {
        for (pairs, counted) in [("ptt", 2), (&*with_pilot(""), 28)] {
            let (found, schedule) = sorted(&[pairs]);
            assert_eq!(found, counted);
            assert!(matches!(schedule, Schedule::Open(_)));
        }
    }
}
