//! A ramp: one sample of a load point after the other, as `ramp` chooses them, until the goal is reached, the
//! machine refuses, or no further point fits the budget.

use std::time::Duration;

use super::{Event, MixPoint, Outcome, Planner};
use crate::platform::SampleSlot;
use crate::request::Taken;
use paired::looks;
use weigh_model::ids::PairId;
use weigh_model::result::warning::{Milestone, Warning};
use weigh_model::role::SampleRole;
use weigh_verdict::ramp::{Ramp, RampPlan, RampStep};

/// The samples of a ramp over the load points of one mix.
pub struct RampPlanner {
    points: Vec<MixPoint>,
    ramp: Ramp,
    budget: Duration,
    /// Per point: number of its samples, and what the last one took.
    taken: Vec<usize>,
    costs: Vec<Option<Duration>>,
    step: RampStep,
}

impl RampPlanner {
    /// Plans a ramp over points that are ascending in users.
    pub fn new(points: Vec<MixPoint>, plan: RampPlan, budget: Duration) -> RampPlanner {
        let users = points.iter().map(|point| point.users).collect();
        let (taken, costs) = (vec![0; points.len()], vec![None; points.len()]);
        let (ramp, step) = (Ramp::new(users, plan), RampStep::Done);
        RampPlanner { points, ramp, budget, taken, costs, step }
    }

    pub fn best(&self) -> Option<&MixPoint> {
        self.ramp.best().map(|best| &self.points[best])
    }

    /// Why nothing is measured that does not fit the budget, if that lacks.
    fn lacks_time(&self, point: usize) -> Option<Warning> {
        let milestone = match (self.costs[point].is_some(), self.ramp.has_peak()) {
            _ if self.ramp.is_settled() && !self.ramp.wants_all_narrow() => return None,
            _ if self.ramp.is_settled() => Milestone::NarrowPoints,
            (false, _) => {
                let point = self.points[point].name.clone();
                return Some(Warning::NotMeasured { point, budget_s: self.budget.as_secs_f64() });
            }
            (true, true) => Milestone::NarrowPeak,
            (true, false) => Milestone::Peak,
        };
        Some(Warning::BudgetEndedBefore { milestone })
    }

    /// Warnings about the goals of a ramp whose time ended during a sample.
    pub fn cut_off(&self) -> Vec<Warning> {
        let (RampStep::Explore(point) | RampStep::Fresh(point)) = self.step else {
            return Vec::new();
        };
        if self.ramp.best().is_none() {
            return Vec::new();
        }
        let is_new = self.costs[point].is_none();
        let peak = Warning::BudgetEndedBefore { milestone: Milestone::Peak };
        let peak = (is_new && !self.ramp.has_peak()).then_some(peak);
        self.lacks_time(point).into_iter().chain(peak).collect()
    }

    /// Results with fewer users than at a point that failed stand; without any, there is no result.
    /// Samples of the point itself do not stand: it is stored as failed.
    fn failed(&mut self, point: usize, slot: &SampleSlot, reason: String, events: &mut Vec<Event>) {
        self.ramp.ends_before(point);
        let name = &self.points[point].name;
        let stands = self.ramp.best().is_some();
        let has_samples = slot.role == SampleRole::Remeasured || slot.pair > PairId(0);
        let end = match stands {
            true => {
                let (point, reason) = (name.clone(), reason.clone());
                Event::Warning(Warning::RampStopped { point, reason })
            }
            false => Event::Stop(format!("{name}: {reason}")),
        };
        events.extend((has_samples || !stands).then_some(Event::Failure(*slot, reason)));
        events.push(end);
    }
}

impl Planner for RampPlanner {
    fn next(&mut self, now: Duration, events: &mut Vec<Event>) -> Option<SampleSlot> {
        loop {
            let step = self.ramp.next();
            let (RampStep::Explore(point) | RampStep::Fresh(point)) = step else { return None };
            let is_known = self.costs[point].is_some();
            let launches = if is_known { 1 } else { self.ramp.launches_of_new_point() };
            let ends = now + forecast(&self.points, &self.costs, point) * launches;
            if let Some(best) = self.ramp.best().filter(|_| is_known && !self.ramp.has_peak()) {
                // Of what is left, fresh samples at the best point tell more than further points.
                let cost = |point| forecast(&self.points, &self.costs, point);
                let is_late = ends + cost(best) * looks::FIRST as u32 > self.budget;
                if is_late || matches!(step, RampStep::Fresh(_)) {
                    self.ramp.begin_rounds(self.budget.saturating_sub(now), cost);
                    continue;
                }
            }
            if ends > self.budget {
                events.extend(self.lacks_time(point).map(Event::Warning));
                if is_known || self.ramp.is_settled() {
                    return None;
                }
                self.ramp.pass_over(point);
                continue;
            }
            let (role, number) = match step {
                RampStep::Fresh(_) => (SampleRole::Remeasured, self.ramp.round()),
                _ => (SampleRole::Compared, self.taken[point]),
            };
            self.step = step;
            let MixPoint { unit, name, .. } = &self.points[point];
            events.push(Event::Begins(name.to_string()));
            let unit = *unit;
            return Some(SampleSlot { role, ..SampleSlot::alone(unit, PairId(number)) });
        }
    }

    fn took(&mut self, slot: &SampleSlot, outcome: Outcome, events: &mut Vec<Event>) {
        let (RampStep::Explore(point) | RampStep::Fresh(point)) = self.step else { return };
        let jobs_per_min = match outcome.found {
            Ok(readings) => readings.rate,
            Err(reason) => return self.failed(point, slot, reason, events),
        };
        self.taken[point] += 1;
        self.costs[point] = Some(outcome.cost);
        self.ramp.add(self.step, jobs_per_min);
        let name = self.points[point].name.clone();
        let is_fresh = slot.role == SampleRole::Remeasured;
        events.push(Event::Taken(Taken::LoadPoint { name, jobs_per_min, is_fresh }));
    }
}

/// As long as it took before, or in proportion to the users of the nearest point below.
fn forecast(points: &[MixPoint], costs: &[Option<Duration>], point: usize) -> Duration {
    let below = (0..=point).rev().find_map(|below| Some((below, costs[below]?)));
    let users = |point: usize| points[point].users as f64;
    below.map_or(Duration::ZERO, |(below, cost)| cost.mul_f64(users(point) / users(below)))
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;
    use rand_chacha::ChaCha8Rng;

    use super::super::drive;
    use super::super::simulated::{Simulated, Watcher, normal, points};
    use super::*;
    use crate::platform::{SampleError, Stop};
    use weigh_verdict::ramp::{RampGoal, RampStride, default_points};

    const BUDGET_S: u64 = 100;

    fn plan(goal: RampGoal, seed: u64) -> RampPlan {
        RampPlan { seed, ..RampPlan::doubling(goal, 0.05) }
    }

    /// Jobs per minute, which grow up to eight users and then fall.
    fn eight(users: usize) -> f64 {
        let users = users as f64;
        1000.0 * users.min(8.0) * (1.0 - 0.05 * (users / 8.0).log2().max(0.0))
    }

    struct Outcome {
        result: Result<(), Stop>,
        /// Users, whether the sample is a fresh one, and jobs per minute.
        taken: Vec<(usize, bool, f64)>,
        failed: Vec<usize>,
        warnings: Vec<Warning>,
        lasted: Duration,
    }

    /// Drives a ramp over as many users as `default_points` has up to 64, which fails from some on.
    fn ramped(plan: RampPlan, deviation: f64, fails_at: usize) -> Outcome {
        let users = default_points(64);
        let mut chance = ChaCha8Rng::seed_from_u64(plan.seed);
        let mut machine = Simulated::new(|slot: &SampleSlot| match users[slot.unit.work] {
            refused if refused >= fails_at => Err(SampleError::Workload("it broke".into())),
            users => Ok(eight(users) * (deviation * normal(&mut chance)).exp()),
        });
        let mut ramp = RampPlanner::new(points(&users, 0), plan, Duration::from_secs(BUDGET_S));
        let result = drive(&mut ramp, &mut machine, &mut Watcher::default());
        let users = |slot: &SampleSlot| users[slot.unit.work];
        let is_fresh = |slot: &SampleSlot| slot.role == SampleRole::Remeasured;
        let taken = machine.taken.iter().map(|(slot, rate)| (users(slot), is_fresh(slot), *rate));
        let failed = machine.failures.iter().map(|(slot, _)| users(slot));
        Outcome {
            result,
            taken: taken.collect(),
            failed: failed.collect(),
            lasted: machine.now,
            warnings: machine.warnings,
        }
    }

    #[test]
    fn what_a_machine_refuses_ends_the_ramp_and_fewer_users_stand() {
        let Outcome { result, taken, failed, warnings, .. } =
            ramped(plan(RampGoal::Peak, 1), 0.01, 16);
        assert_eq!((result, failed.len()), (Ok(()), 0), "it had no sample");
        assert!(taken.iter().any(|(users, is_fresh, _)| *users == 8 && *is_fresh));
        let ended = |warning: &&Warning| matches!(warning, Warning::RampStopped { .. });
        assert_eq!(warnings.iter().filter(ended).count(), 1, "{warnings:?}");
        let Outcome { result, failed, .. } = ramped(plan(RampGoal::Peak, 1), 0.01, 1);
        assert!(matches!(result, Err(Stop::Failed(reason)) if reason.ends_with("it broke")));
        assert_eq!(failed, [1], "nothing stands, so it is stored as failed");
    }

    /// A sample takes a second, and the machine ends all when three were taken.
    #[test]
    fn a_ramp_that_is_cut_off_names_the_point_it_was_at_and_has_no_peak() {
        let users = [1, 2, 4, 8, 16, 32];
        let cut_off = |limit_s| {
            let mut machine = Simulated::new(|slot: &SampleSlot| Ok(eight(users[slot.unit.work])));
            machine.limit = Duration::from_secs(limit_s);
            let (points, budget) = (points(&users, 0), Duration::from_secs(BUDGET_S));
            let mut ramp = RampPlanner::new(points, plan(RampGoal::Peak, 1), budget);
            let driven = drive(&mut ramp, &mut machine, &mut Watcher::default());
            assert_eq!(driven, Err(Stop::OutOfTime));
            ramp.cut_off()
        };
        let point = "8 users".into();
        let peak = Warning::BudgetEndedBefore { milestone: Milestone::Peak };
        assert_eq!(cut_off(3), [Warning::NotMeasured { point, budget_s: BUDGET_S as f64 }, peak]);
        assert_eq!(cut_off(0), [], "the error says that no sample finished");
    }

    #[test]
    fn a_ramp_without_time_says_what_it_lacks_and_ends_with_its_budget() {
        let listed = plan(RampGoal::AllPoints, 1);
        let listed = RampPlan { stride: RampStride::Each, ..listed };
        let Outcome { result, taken, warnings, lasted, .. } = ramped(listed, 0.3, usize::MAX);
        assert_eq!((result, lasted), (Ok(()), Duration::from_secs(BUDGET_S)));
        assert!(default_points(64).iter().all(|users| taken.iter().any(|one| one.0 == *users)));
        let milestone = Milestone::NarrowPeak;
        assert_eq!(warnings, [Warning::BudgetEndedBefore { milestone }]);
    }
}
