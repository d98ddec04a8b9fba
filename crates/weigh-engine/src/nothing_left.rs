//! Experiments that are finished: another session would measure nothing.

use super::prior_sessions::PriorSessions;
use super::request::{Plan, Request};
use super::sweep::{is_narrow, sweeps_of};
use paired::looks;
use weigh_model::record::Stored;
use weigh_model::result::summary::State;

/// Returns why nothing is left to measure of an experiment, as a clause; `None` if something is. `request`
/// is that of the next session, which may have another limit or precision.
///
/// One that was interrupted may lack its detail pass, so it goes on whatever its verdicts.
pub fn nothing_left(stored: &Stored, request: &Request) -> Option<&'static str> {
    if stored.state != State::Complete {
        return None;
    }
    match &request.plan {
        Plan::Compare(_) => PriorSessions::of(stored)
            .is_done(stored, request)
            .then_some("every row has its verdict and a sufficiently narrow interval"),
        // Between two looks an interval is not judged.
        Plan::Net(sweeps) => (looks::is_one(sweeps_of(stored))
            && is_narrow(stored, sweeps.precision))
        .then_some("the interval of the BTU is as narrow as --precision says"),
        Plan::Run(_) | Plan::Ramp(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::example;
    use crate::provenance::Provenance;
    use paired::looks::FIRST;

    #[test]
    fn a_grid_is_finished_at_a_look_where_its_interval_is_narrow() {
        let left = |sweeps: usize, precision: f64| {
            let stored = example::swept(sweeps);
            let Ok(mut origin) = Provenance::of(&stored) else { panic!() };
            let Plan::Net(of_grid) = &mut origin.request.plan else { panic!() };
            of_grid.precision = precision;
            nothing_left(&stored, &origin.request)
        };
        assert!(left(FIRST, 0.9).is_some_and(|why| why.contains("--precision")));
        assert_eq!(left(FIRST, 1e-9), None, "it is too wide");
        assert_eq!(left(FIRST + 1, 0.9), None, "it is no look");
        let mut interrupted = example::swept(FIRST);
        interrupted.state = State::Interrupted;
        let origin = Provenance::of(&interrupted).unwrap();
        assert_eq!(nothing_left(&interrupted, &origin.request), None);
    }
}
