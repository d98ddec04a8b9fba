//! One sweep over the cells of a grid: each of them once, in random order.

use std::collections::VecDeque;
use std::time::Duration;

use super::{Event, Outcome, Planner};
use crate::order::Coins;
use crate::platform::SampleSlot;
use crate::request::Taken;
use crate::row::RowKey;
use crate::run_progress::Progress;
use weigh_model::ids::{ArmId, PairId, WorkId};

pub struct SweepPlanner {
    due: VecDeque<SampleSlot>,
    progress: Progress,
    pub failed: Vec<WorkId>,
}

impl SweepPlanner {
    /// Plans the sweep of this number, counted from 0.
    pub fn new(cells: &[RowKey], number: PairId, coins: &mut Coins) -> SweepPlanner {
        let mut order: Vec<usize> = (0..cells.len()).collect();
        coins.shuffle(&mut order, |_| ArmId::BASELINE);
        let due = order.into_iter().map(|at| SampleSlot::alone(cells[at], number)).collect();
        let progress = Progress::new(cells.iter().map(|_| (1, 1)));
        SweepPlanner { due, progress, failed: Vec::new() }
    }
}

impl Planner for SweepPlanner {
    fn next(&mut self, _: Duration, events: &mut Vec<Event>) -> Option<SampleSlot> {
        let slot = self.due.pop_front()?;
        events.push(Event::Begins(format!("a cell of sweep {}", slot.pair.0 + 1)));
        Some(slot)
    }

    fn took(&mut self, slot: &SampleSlot, outcome: Outcome, events: &mut Vec<Event>) {
        match outcome.found {
            Ok(_) => self.progress.took(1),
            Err(reason) => {
                self.progress.dropped(1, 1);
                self.failed.push(slot.unit.work);
                events.push(Event::Failure(*slot, reason));
            }
        }
        let progress = self.progress.clone();
        events.push(Event::Taken(Taken::Cell { sweep: slot.pair.0 + 1, progress }));
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::super::drive;
    use super::super::simulated::{Simulated, Watcher, unit};
    use super::*;
    use crate::platform::SampleError;
    use weigh_model::ids::SetId;

    #[test]
    fn each_sweep_takes_every_cell_once_and_each_cell_comes_equally_early() {
        let (cells, mut coins) =
            ((3..15).map(|work| unit(work, 0)).collect::<Vec<_>>(), Coins::new(7, SetId(0), 0));
        let mut machine = Simulated::new(|_: &SampleSlot| Ok(100.0));
        for number in 0..200 {
            let mut sweep = SweepPlanner::new(&cells, PairId(number), &mut coins);
            drive(&mut sweep, &mut machine, &mut Watcher::default()).unwrap();
        }
        let mut early = [0; 12];
        for (number, sweep) in machine.taken.chunks(12).enumerate() {
            let works: BTreeSet<usize> = sweep.iter().map(|(slot, _)| slot.unit.work.0).collect();
            assert!(works.into_iter().eq(3..15));
            assert!(sweep.iter().all(|(slot, _)| slot.pair.0 == number));
            sweep[..6].iter().for_each(|(slot, _)| early[slot.unit.work.0 - 3] += 1);
        }
        // Four standard deviations of 200 fair coins are 28.
        assert!(early.iter().all(|count| (72..=128).contains(count)), "{early:?}");
    }

    #[test]
    fn a_cell_that_fails_is_kept_as_failed_and_the_others_are_measured() {
        let (cells, mut coins) = ([0, 1, 2].map(|work| unit(work, 0)), Coins::new(7, SetId(0), 0));
        let mut machine = Simulated::new(|slot: &SampleSlot| match slot.unit.work.0 {
            1 => Err(SampleError::Workload("it broke".into())),
            _ => Ok(100.0),
        });
        let (mut sweep, mut watcher) =
            (SweepPlanner::new(&cells, PairId(4), &mut coins), Watcher::default());
        drive(&mut sweep, &mut machine, &mut watcher).unwrap();
        assert_eq!(
            (machine.taken.len(), machine.failures.len(), sweep.failed),
            (2, 1, vec![WorkId(1)])
        );
        let Some(Taken::Cell { sweep: 5, progress }) = watcher.taken.last() else { panic!() };
        assert_eq!((progress.samples, progress.of_samples), (2, 2));
    }
}
