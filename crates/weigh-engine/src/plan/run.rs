//! A run without pairs: passes over the workloads, so that a drift of the machine reaches all of them. The
//! first pass goes on until the time is over (`time_limit.rs`); the others end where a sample would probably
//! outlast the budget, if there is one.

use std::collections::VecDeque;
use std::time::Duration;

use super::{Event, Outcome, Planner, RunStart, RunWork};
use crate::platform::SampleSlot;
use crate::request::Taken;
use crate::run_progress::{Progress, SampleCosts};
use weigh_model::format;
use weigh_model::ids::PairId;
use weigh_model::result::warning::Warning;

pub struct RunPlanner {
    works: Vec<RunWork>,
    /// Per work.
    passes: Vec<usize>,
    budget: Option<Duration>,
    /// Number of the pass and index of the work, for each sample to come.
    due: VecDeque<(usize, usize)>,
    /// Index of the work that is measured.
    at: usize,
    progress: Progress,
    costs: SampleCosts,
    /// How long the run takes, if it has no budget and takes long.
    opening: Option<String>,
    has_failed: bool,
}

impl RunPlanner {
    /// Plans a run with so many passes over each work.
    pub fn new(RunStart { works, budget, now }: RunStart, passes: Vec<usize>) -> RunPlanner {
        let most = passes.iter().copied().max().unwrap_or(0);
        let all = (0..most).flat_map(|pass| (0..works.len()).map(move |at| (pass, at)));
        let due = all.filter(|(pass, at)| *pass < passes[*at]).collect();
        let lengths = works.iter().map(|work| work.length_ms);
        let progress = Progress::new(passes.iter().copied().zip(lengths));
        let opening = progress.announced_s().filter(|_| budget.is_none()).map(|seconds| {
            format!(
                "{} of {}: {} of measuring, plus some time for starting and calibrating.",
                format::plural(progress.of_samples, "sample"),
                format::plural(works.len(), "row"),
                format::clock(seconds)
            )
        });
        let limit = budget.map_or(Duration::MAX, |budget| budget.saturating_sub(now));
        let progress = progress.within(limit);
        let (at, costs, has_failed) = (0, SampleCosts::default(), false);
        RunPlanner { works, passes, budget, due, at, progress, costs, opening, has_failed }
    }

    pub fn has_failed(&self) -> bool {
        self.has_failed
    }
}

impl Planner for RunPlanner {
    fn next(&mut self, now: Duration, events: &mut Vec<Event>) -> Option<SampleSlot> {
        events.extend(self.opening.take().map(Event::Note));
        let (pass, at) = self.due.pop_front()?;
        let RunWork { unit, length_ms, ref name } = self.works[at];
        let timed = Duration::from_millis(length_ms);
        let fits = |budget: Duration| self.costs.fits(unit.work, timed, budget.saturating_sub(now));
        if pass > 0 && !self.budget.is_none_or(fits) {
            let (pass, passes) = (pass + 1, self.passes[at]);
            events.push(Event::Warning(Warning::BudgetEndedInPass { pass, passes }));
            return None;
        }
        self.at = at;
        events.push(Event::Begins(format!("{name}, pass {} of {}", pass + 1, self.passes[at])));
        Some(SampleSlot::alone(unit, PairId(pass)))
    }

    fn took(&mut self, slot: &SampleSlot, outcome: Outcome, events: &mut Vec<Event>) {
        let RunWork { name, length_ms, .. } = &self.works[self.at];
        let passes = self.passes[self.at];
        if let Err(reason) = outcome.found {
            self.has_failed = true;
            self.due.retain(|(_, at)| *at != self.at);
            self.progress.dropped(passes - slot.pair.0, *length_ms);
            return events.push(Event::Failure(*slot, reason));
        }
        self.progress.took(*length_ms);
        self.costs.took(slot.unit.work, outcome.cost);
        events.push(Event::Taken(Taken::Sample {
            work: name.clone(),
            pass: slot.pair.0 + 1,
            passes,
            progress: self.progress.clone(),
        }));
    }
}

#[cfg(test)]
mod tests {
    use super::super::drive;
    use super::super::simulated::{Simulated, Watcher, unit};
    use super::*;
    use crate::platform::{Platform, SampleError, Stop};

    /// A run of works with these passes of a second each, of which one may fail in a pass.
    fn run(
        passes: &[usize],
        budget_s: Option<u64>,
        fails: Option<(usize, usize)>,
    ) -> (Vec<(usize, usize)>, Vec<Warning>, Watcher) {
        let work = |work| RunWork { unit: unit(work, 0), name: work.to_string(), length_ms: 1000 };
        let works = (0..passes.len()).map(work).collect();
        let mut machine =
            Simulated::new(|slot: &SampleSlot| match (slot.unit.work.0, slot.pair.0) {
                sample if Some(sample) == fails => Err(SampleError::Workload("it broke".into())),
                _ => Ok(100.0),
            });
        let mut watcher = Watcher::default();
        let budget = budget_s.map(Duration::from_secs);
        let mut plan =
            RunPlanner::new(RunStart { works, budget, now: Duration::ZERO }, passes.to_vec());
        drive(&mut plan, &mut machine, &mut watcher).unwrap();
        assert_eq!(machine.failures.len(), usize::from(fails.is_some()));
        let is_announced = |warning: &Warning| watcher.notes.contains(&warning.to_string());
        assert!(!machine.warnings.iter().any(is_announced), "the report shows it");
        let taken = machine.taken.iter().map(|(slot, _)| (slot.pair.0, slot.unit.work.0)).collect();
        (taken, machine.warnings, watcher)
    }

    #[test]
    fn each_pass_takes_all_works_that_have_it() {
        let (taken, warnings, watcher) = run(&[3, 1, 2], None, None);
        assert_eq!(taken, [(0, 0), (0, 1), (0, 2), (1, 0), (1, 2), (2, 0)]);
        assert_eq!((warnings.len(), watcher.notes.len(), watcher.taken.len()), (0, 0, 6));
        assert_eq!(watcher.steps[..2], ["measuring 0, pass 1 of 3", "measuring 1, pass 1 of 1"]);
        assert_eq!(watcher.steps.len(), 6, "each sample is under way while it lasts");
        let (taken, _, watcher) = run(&[20], None, None);
        assert_eq!(taken.len(), 20);
        let said =
            "20 samples of 1 row: 20 s of measuring, plus some time for starting and calibrating.";
        assert_eq!(watcher.notes, [said]);
        assert!(run(&[], None, None).0.is_empty());
    }

    /// A sample is timed for a second, and takes four with its launch.
    #[test]
    fn a_launch_counts_when_the_budget_is_nearly_over() {
        let work = RunWork { unit: unit(0, 0), name: "a".into(), length_ms: 1000 };
        let mut machine = Simulated::new(|_: &SampleSlot| Ok(100.0));
        machine.lasts = Duration::from_secs(4);
        let (budget, now) = (Some(Duration::from_secs(10)), Duration::ZERO);
        let mut plan = RunPlanner::new(RunStart { works: vec![work], budget, now }, vec![10]);
        drive(&mut plan, &mut machine, &mut Watcher::default()).unwrap();
        assert_eq!((machine.taken.len(), machine.elapsed()), (2, Duration::from_secs(8)));
    }

    #[test]
    fn samples_stop_at_the_budget_but_the_first_pass_is_always_taken() {
        for budget_s in 0..40 {
            let (taken, warnings, _) = run(&[10, 10, 10], Some(budget_s), None);
            assert_eq!(taken.len() as u64, budget_s.clamp(3, 30), "{budget_s}");
            let pass = taken.len() / 3 + 1;
            let ended = Warning::BudgetEndedInPass { pass, passes: 10 };
            assert_eq!(warnings, vec![ended; usize::from(taken.len() < 30)]);
        }
    }

    #[test]
    fn not_even_the_first_pass_goes_on_when_the_time_is_over() {
        let work = |work| RunWork { unit: unit(work, 0), name: work.to_string(), length_ms: 1000 };
        let mut machine = Simulated::new(|_: &SampleSlot| Ok(100.0));
        machine.limit = Duration::from_secs(4);
        let (budget, now) = (Some(Duration::from_secs(2)), Duration::ZERO);
        let start = RunStart { works: (0..10).map(work).collect(), budget, now };
        let mut plan = RunPlanner::new(start, vec![3; 10]);
        let ended = drive(&mut plan, &mut machine, &mut Watcher::default());
        assert_eq!((ended, machine.taken.len()), (Err(Stop::OutOfTime), 4));
    }

    #[test]
    fn a_workload_that_fails_is_left_out_of_later_passes() {
        let (taken, _, watcher) = run(&[3, 3], None, Some((0, 1)));
        assert_eq!(taken, [(0, 0), (0, 1), (1, 1), (2, 1)]);
        let Some(Taken::Sample { progress, .. }) = watcher.taken.last() else { panic!() };
        assert_eq!((progress.samples, progress.of_samples), (4, 4));
    }
}
