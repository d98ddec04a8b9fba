//! Which load point of a mix is measured next: more and more users until the throughput no longer grows, then
//! the points around the best one, then rounds of fresh samples at all that may be the best. What was chosen
//! for its high rate is not believed for it: the highest of several noisy rates is too high. In a round each
//! of them has its turn, in random order: a drift of the machine then makes none of them the best. What is
//! left of the budget goes to the points that have too few samples, in random order too.

use std::time::Duration;

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};

use crate::reaim_rules::{RampPoint, next_increment, no_longer_grows};
use paired::estimate::median;
use paired::looks;
use weigh_model::result::alike::{POWER, RampSample, THROUGHPUT};
use weigh_model::result::load::Throughput;

/// A point that exceeds the best one by less does not count as growth: re-aim's 1 %.
const GROWTH: f64 = 1.01;
/// So many steps without growth end the climb.
const STEPS_WITHOUT_GROWTH: usize = 2;

/// Number of rounds after which only the best point goes on: later rounds would hardly tell points apart.
const ROUNDS: usize = 14;
/// After so many fresh samples at the peak, all points get the samples that each has at least.
const TO_OTHERS: usize = 21;

/// Where a ramp ends.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RampGoal {
    /// Where throughput no longer grows.
    Peak,
    /// Where a user gets this many jobs a minute, or fewer.
    JobsPerUser(f64),
    /// Where there are as many users as jobs per minute: AIM's own crossover.
    Classic,
    /// With the last of the points.
    AllPoints,
}

/// By how many users the next load point has more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RampStride {
    /// About as many as there are: it doubles them.
    Doubling,
    /// The next point, whichever that is.
    Each,
    /// re-aim's adaptive increment, which begins with this many.
    Adaptive(usize),
}

/// How a ramp goes.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct RampPlan {
    pub goal: RampGoal,
    pub stride: RampStride,
    /// Half the width that the interval at the peak is to have, as a share.
    pub precision: f64,
    /// How many samples each point has at least.
    pub samples: usize,
    /// Seed of the order in which points are repeated.
    pub seed: u64,
}

/// Next measurement of a ramp.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RampStep {
    /// A sample of the point of this number.
    Explore(usize),
    /// A fresh sample of one of the points that may be the peak.
    Fresh(usize),
    Done,
}

/// The load points, ascending in users, and what was found at each.
pub struct Ramp {
    users: Vec<usize>,
    plan: RampPlan,
    /// Jobs per minute, per point.
    explored: Vec<Vec<f64>>,
    /// These and the fresh ones, in the order in which they were taken.
    ramp_samples: Vec<RampSample>,
    /// The best point as far as is known, once points are chosen that have fresh samples.
    peak: Option<usize>,
    /// The points for whose fresh samples there is time.
    may_have_rounds: Vec<usize>,
    /// The number of finished rounds, the points in the next round, and the points still due in it.
    rounds: usize,
    members: Vec<usize>,
    due: Vec<usize>,
    /// The points from here on cannot be measured: the machine refuses, or there is no time.
    end: usize,
    /// Points below that for which there is no time.
    passed_over: Vec<usize>,
    /// By the rules of re-aim, which look at the last points alone, a ramp ends once.
    has_climbed: bool,
}

impl Ramp {
    /// Samples of the best point and of each of its neighbours, before one is chosen.
    pub const TO_CHOOSE: usize = 3;

    /// At least one point.
    pub fn new(users: Vec<usize>, plan: RampPlan) -> Ramp {
        let (explored, end) = (vec![Vec::new(); users.len()], users.len());
        Ramp {
            users,
            plan,
            explored,
            ramp_samples: Vec::new(),
            peak: None,
            may_have_rounds: Vec::new(),
            rounds: 0,
            members: Vec::new(),
            due: Vec::new(),
            end,
            passed_over: Vec::new(),
            has_climbed: false,
        }
    }

    /// Returns the next measurement.
    pub fn next(&self) -> RampStep {
        if let Some(point) = self.next_to_climb() {
            return RampStep::Explore(point);
        }
        let Some(best) = self.peak.or_else(|| self.best()) else { return RampStep::Done };
        if self.peak.is_none() {
            let around = self.around(best).into_iter();
            let around = around.filter(|point| !self.passed_over.contains(point));
            let fewest = around.min_by_key(|point| self.explored[*point].len());
            if let Some(point) =
                fewest.filter(|point| self.explored[*point].len() < self.plan.samples)
            {
                return RampStep::Explore(point);
            }
        }
        if best >= self.end {
            return RampStep::Done;
        }
        let to_repeat = self.to_repeat();
        if !self.are_over() && !self.comes_first(to_repeat) {
            return RampStep::Fresh(self.at_random(&self.due).unwrap_or(best));
        }
        to_repeat.map_or(RampStep::Done, RampStep::Explore)
    }

    /// Returns true if further rounds are unnecessary.
    fn are_over(&self) -> bool {
        let is_between = self.ramp_samples.iter().all(|one| one.round != Some(self.rounds));
        let has_enough = |point: &usize| self.fresh(*point).len() >= looks::FIRST;
        is_between && self.is_settled() && self.due.iter().all(has_enough)
    }

    /// Who has a turn in a round: the best point, and those that may be it or the knee. Points that were
    /// listed all have, until the interval of each is narrow. That is asked at looks alone: at each, rounds
    /// have a chance to tell apart what is as good.
    fn chosen_members(&self) -> Vec<usize> {
        let Some(peak) = self.peak else { return Vec::new() };
        let users = |point: usize| self.users[point];
        let may_be: Vec<usize> = match self.rounds < ROUNDS {
            true => {
                let knee = POWER.highest(&self.ramp_samples, |_| true);
                let knees = knee.map(|knee| POWER.alike(&self.ramp_samples, knee));
                let peaks = THROUGHPUT.alike(&self.ramp_samples, users(peak));
                peaks.into_iter().chain(knees.into_iter().flatten()).collect()
            }
            false => vec![users(peak)],
        };
        let has_turn = |point: usize| match self.wants_all_narrow() {
            true => !self.is_precise(&self.fresh(point)),
            false => may_be.contains(&users(point)),
        };
        let members = self.may_have_rounds.iter().copied();
        members.filter(|point| *point < self.end && has_turn(*point)).collect()
    }

    /// Begins rounds, for which so much time is left: with the best point, and with as many others as there
    /// is time for, the highest first. With the cheapest first, seven of eight ramps on a broad peak had no
    /// rounds at points that were higher, and named no peak.
    pub fn begin_rounds(&mut self, left: Duration, cost: impl Fn(usize) -> Duration) {
        let Some(best) = self.best() else { return };
        let mut points = self.measured();
        points.sort_by(|a, b| self.found(*b).total_cmp(&self.found(*a)));
        points.sort_by_key(|point| *point != best);
        let mut needed = Duration::ZERO;
        self.may_have_rounds = points;
        self.may_have_rounds.retain(|point| {
            // One more than is needed: no sample takes just as long as the last one.
            let more = cost(*point) * (looks::FIRST + 1) as u32;
            let has_time = *point == best || needed + more <= left;
            needed += if has_time { more } else { Duration::ZERO };
            has_time
        });
        self.peak = Some(best);
        self.members = self.chosen_members();
        self.due.clone_from(&self.members);
    }

    /// In which round a fresh sample is.
    pub fn round(&self) -> usize {
        self.rounds
    }

    /// Jobs per minute of the fresh samples of a point.
    fn fresh(&self, point: usize) -> Vec<f64> {
        let is_its = |one: &&RampSample| one.users == self.users[point] && one.round.is_some();
        self.ramp_samples.iter().filter(is_its).map(|one| one.jobs_per_min).collect()
    }

    /// Ends a turn, and the round if it was the last turn.
    fn had_turn(&mut self, point: usize) {
        self.due.retain(|due| *due != point);
        if self.due.is_empty() {
            self.rounds += 1;
            let in_rounds = |users: &usize| {
                self.ramp_samples.iter().any(|one| one.users == *users && one.round.is_some())
            };
            let best = THROUGHPUT.best(&self.ramp_samples);
            let best = best.or_else(|| THROUGHPUT.highest(&self.ramp_samples, in_rounds));
            let number = best.and_then(|best| self.users.iter().position(|users| *users == best));
            self.peak = number.filter(|_| self.rounds <= ROUNDS).or(self.peak);
            if self.rounds < looks::FIRST || looks::is_one(self.rounds) {
                self.members = self.chosen_members();
            }
            self.members.retain(|point| *point < self.end);
            self.due.clone_from(&self.members);
        }
    }

    /// Returns true if a point with fewer samples than required has its turn. Otherwise the peak of
    /// a noisy machine would leave no time for other points.
    fn comes_first(&self, point: Option<usize>) -> bool {
        let is_short = |point: usize| self.explored[point].len() < self.plan.samples;
        let fresh = self.peak.map_or(0, |peak| self.fresh(peak).len());
        fresh >= TO_OTHERS && point.is_some_and(is_short)
    }

    /// A point and its neighbours; of points that were given, those that were measured.
    fn around(&self, best: usize) -> Vec<usize> {
        if self.plan.stride == RampStride::Doubling {
            return (best.saturating_sub(1)..=(best + 1).min(self.end - 1)).collect();
        }
        let measured = self.measured();
        let at = measured.iter().position(|point| *point == best).unwrap_or_default();
        measured[at.saturating_sub(1)..(at + 2).min(measured.len())].to_vec()
    }

    /// Picks a point with too few samples: at random, one of the points with the fewest. If the
    /// points were listed, a point has too few until its interval is narrow enough.
    fn to_repeat(&self) -> Option<usize> {
        let is_enough = |rates: &[f64]| {
            rates.len() >= self.plan.samples && (!self.wants_all_narrow() || self.is_precise(rates))
        };
        let is_open = |point: &usize| {
            let rates = &self.explored[*point];
            // What has fresh ones is judged by those.
            let has_rounds = self.may_have_rounds.contains(point) && !self.fresh(*point).is_empty();
            !(rates.is_empty() || has_rounds || is_enough(rates))
        };
        let taken = |point: usize| self.explored[point].len();
        let open: Vec<usize> = (0..self.end).filter(is_open).collect();
        let fewest = open.iter().map(|point| taken(*point)).min()?;
        let open: Vec<usize> = open.into_iter().filter(|point| taken(*point) == fewest).collect();
        self.at_random(&open)
    }

    /// Picks a point at random; the choice stays until there is another sample.
    fn at_random(&self, points: &[usize]) -> Option<usize> {
        let all = self.ramp_samples.len() as u64;
        let mut chance = ChaCha8Rng::seed_from_u64(self.plan.seed.wrapping_add(all));
        (!points.is_empty()).then(|| points[chance.random_range(0..points.len())])
    }

    /// Adds the rate that a step found.
    pub fn add(&mut self, step: RampStep, jobs_per_min: f64) {
        if matches!(step, RampStep::Fresh(_)) && self.peak.is_none() {
            self.begin_rounds(Duration::MAX, |_| Duration::ZERO);
        }
        if let RampStep::Explore(point) | RampStep::Fresh(point) = step {
            let round = (step == RampStep::Fresh(point)).then_some(self.rounds);
            let users = self.users[point];
            self.ramp_samples.push(RampSample { users, jobs_per_min, job_ns: None, round });
        }
        match step {
            RampStep::Explore(point) => {
                self.explored[point].push(jobs_per_min);
                self.has_climbed |= self.plan.stride != RampStride::Doubling
                    && self.measured().last() == Some(&point)
                    && self.is_at_goal(&self.measured(), point);
            }
            RampStep::Fresh(point) => self.had_turn(point),
            RampStep::Done => {}
        }
    }

    /// This point and those with more users cannot be measured. Where the peak is one of them, there is
    /// nothing more to find out.
    pub fn ends_before(&mut self, point: usize) {
        self.end = self.end.min(point);
        let gone: Vec<usize> = self.due.iter().copied().filter(|due| *due >= self.end).collect();
        gone.into_iter().for_each(|point| self.had_turn(point));
    }

    /// For how many launches of a point that was not measured yet there has to be time: where the peak is
    /// wanted, for being sure of it there.
    pub fn launches_of_new_point(&self) -> u32 {
        match self.plan.goal {
            RampGoal::Peak => (self.plan.samples + looks::FIRST) as u32,
            _ => 1,
        }
    }

    /// There is no time for this point. Those that were measured stand.
    pub fn pass_over(&mut self, point: usize) {
        match self.explored[point..].iter().all(Vec::is_empty) {
            true => self.ends_before(point),
            false => self.passed_over.push(point),
        }
    }

    /// Returns true if rounds have begun.
    pub fn has_peak(&self) -> bool {
        self.peak.is_some()
    }

    /// The points that were measured, ascending, of those that can be.
    pub fn measured(&self) -> Vec<usize> {
        (0..self.end).filter(|point| !self.explored[*point].is_empty()).collect()
    }

    /// Returns true if each point is to be as precise as the peak, because the points were listed.
    pub fn wants_all_narrow(&self) -> bool {
        self.plan.goal == RampGoal::AllPoints
    }

    /// Returns true unless something is known that keeps a point from being measured.
    pub fn can_be_measured(&self, point: usize) -> bool {
        point < self.end && !self.passed_over.contains(&point)
    }

    /// Jobs per minute of the samples of a point that were taken to choose one.
    pub fn explored(&self, point: usize) -> &[f64] {
        &self.explored[point]
    }

    /// The first point is measured, then the next by the stride.
    fn next_to_climb(&self) -> Option<usize> {
        if self.peak.is_some() || self.has_climbed {
            return None;
        }
        let measured = self.measured();
        let Some(&last) = measured.last() else { return (self.end > 0).then_some(0) };
        if self.is_at_goal(&measured, last) {
            return None;
        }
        let least = match self.plan.stride {
            RampStride::Doubling => 2 * self.users[last],
            RampStride::Each => self.users[last] + 1,
            RampStride::Adaptive(first) => self.users[last] + self.adapted(&measured, first),
        };
        (last + 1..self.end)
            .find(|point| self.users[*point] >= least)
            .or_else(|| (last + 1 < self.end).then(|| self.end - 1))
    }

    /// The increment after these points, of which the first were `first` apart.
    fn adapted(&self, measured: &[usize], first: usize) -> usize {
        let point = |point: &usize| RampPoint {
            users: self.users[*point] as f64,
            jobs_per_min: self.found(*point),
        };
        let points: Vec<RampPoint> = measured.iter().map(point).collect();
        (1..=points.len()).fold(first, |increment, n| next_increment(increment, &points[..n]))
    }

    fn is_at_goal(&self, measured: &[usize], last: usize) -> bool {
        let rate = |point: usize| self.found(point);
        let users = self.users[last] as f64;
        match self.plan.goal {
            RampGoal::AllPoints => false,
            RampGoal::JobsPerUser(least) => rate(last) / users <= least,
            RampGoal::Classic => rate(last) <= users,
            RampGoal::Peak if self.plan.stride != RampStride::Doubling => {
                let rates: Vec<f64> = measured.iter().map(|point| rate(*point)).collect();
                no_longer_grows(&rates)
            }
            RampGoal::Peak => {
                // The growth is looked for step by step, against the best of those before.
                let mut best = 0.0;
                let mut without_growth = 0;
                for &point in measured {
                    without_growth =
                        if rate(point) > best * GROWTH { 0 } else { without_growth + 1 };
                    best = rate(point).max(best);
                }
                without_growth >= STEPS_WITHOUT_GROWTH
            }
        }
    }

    /// The point with the highest rate so far.
    pub fn best(&self) -> Option<usize> {
        self.measured().into_iter().max_by(|a, b| self.found(*a).total_cmp(&self.found(*b)))
    }

    /// Jobs per minute that a point had before the rounds.
    fn found(&self, point: usize) -> f64 {
        median(&self.explored[point]).unwrap_or_default()
    }

    /// Returns true if the interval at the peak was narrow enough at the last look.
    pub fn is_settled(&self) -> bool {
        self.peak.is_some_and(|peak| self.is_precise(&self.fresh(peak)))
    }

    /// At the last look: at each the interval has a chance of its own to miss, so there are few.
    fn is_precise(&self, rates: &[f64]) -> bool {
        let last = looks::counts().take_while(|look| *look <= rates.len()).last();
        let found = last.and_then(|look| Throughput::of(&rates[..look]));
        found.is_some_and(|found| found.half_width() <= self.plan.precision)
    }
}

impl RampPlan {
    /// Our own search for the peak.
    pub fn doubling(goal: RampGoal, precision: f64) -> RampPlan {
        let (stride, samples) = (RampStride::Doubling, Ramp::TO_CHOOSE);
        RampPlan { goal, stride, precision, samples, seed: 0 }
    }
}

/// The points of a ramp without a list of its own: powers of two, and one between each two.
pub fn default_points(most: usize) -> Vec<usize> {
    let powers = (0..usize::BITS).map(|power| 1usize << power).take_while(|users| *users <= most);
    let points = powers.flat_map(|users| [Some(users), (users > 1).then_some(users + users / 2)]);
    points.flatten().filter(|users| *users <= most).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Ramps on a machine whose throughput this is, with some noise; gives the steps.
    fn ramped(
        ramp: &mut Ramp,
        noise: f64,
        seed: u64,
        throughput: impl Fn(f64) -> f64,
    ) -> Vec<RampStep> {
        let steps = ramped_until(ramp, noise, seed, 3000, throughput);
        assert!(steps.len() < 3000, "{steps:?}");
        steps
    }

    /// With so many steps at most.
    fn ramped_until(
        ramp: &mut Ramp,
        noise: f64,
        seed: u64,
        most: usize,
        throughput: impl Fn(f64) -> f64,
    ) -> Vec<RampStep> {
        let mut chance = ChaCha8Rng::seed_from_u64(seed);
        let mut steps = Vec::new();
        while steps.len() < most {
            let step = ramp.next();
            let (RampStep::Explore(point) | RampStep::Fresh(point)) = step else { break };
            let users = ramp.users[point] as f64;
            let rate = throughput(users) * chance.random_range(1.0 - noise..=1.0 + noise);
            ramp.add(step, rate);
            steps.push(step);
        }
        steps
    }

    /// Grows up to eight users, and then falls slowly.
    fn eight(users: f64) -> f64 {
        1000.0 * users.min(8.0) * (1.0 - 0.01 * (users - 8.0).max(0.0))
    }

    #[test]
    fn it_climbs_by_doubling_stops_and_looks_around_the_best() {
        let mut ramp = Ramp::new(default_points(4096), RampPlan::doubling(RampGoal::Peak, 0.05));
        let steps = ramped(&mut ramp, 0.0, 1, eight);
        let users: Vec<usize> = steps
            .iter()
            .filter_map(|step| match step {
                RampStep::Explore(point) => Some(ramp.users[*point]),
                _ => None,
            })
            .collect();
        assert_eq!(users[..6], [1, 2, 4, 8, 16, 32]);
        let before_fresh =
            steps.iter().position(|step| matches!(step, RampStep::Fresh(_))).unwrap();
        let around = &users[6..before_fresh];
        assert!(around.iter().all(|users| [6, 8, 12].contains(users)), "{users:?}");
        // In rounds are those that may be the peak or the knee; all others have three samples.
        assert_eq!(ramp.users[ramp.peak.unwrap()], 8);
        let count = |users: usize, is_fresh: bool| {
            let all = ramp.ramp_samples.iter().filter(|one| one.round.is_some() == is_fresh);
            all.filter(|one| one.users == users).count()
        };
        assert_eq!([6, 8, 12, 16].map(|users| count(users, true)), [looks::FIRST; 4]);
        assert_eq!([1, 2, 4].map(|users| count(users, true)), [0; 3]);
        assert_eq!([1, 2, 4].map(|users| count(users, false)), [Ramp::TO_CHOOSE; 3]);
    }

    #[test]
    fn each_point_has_one_turn_in_a_round_and_one_that_is_told_apart_has_none_any_more() {
        let mut ramp = Ramp::new(default_points(64), RampPlan::doubling(RampGoal::Peak, 0.0001));
        // Never narrow enough; four and eight are equal, and six is a twentieth below.
        let rate = |users: f64| if users == 6.0 { 950.0 } else { 1000.0 * (users / 4.0).min(1.0) };
        let steps = ramped_until(&mut ramp, 0.004, 1, 400, rate);
        assert!(steps.len() >= 400);
        let of_round = |round: usize| -> Vec<usize> {
            let all = ramp.ramp_samples.iter().filter(|one| one.round == Some(round));
            all.map(|one| one.users).collect()
        };
        let orders: Vec<Vec<usize>> = (0..ROUNDS).map(of_round).collect();
        for order in &orders {
            let mut once = order.clone();
            once.sort_unstable();
            once.dedup();
            assert_eq!(once.len(), order.len(), "{orders:?}");
        }
        assert!(orders[0].contains(&6) && !orders[looks::FIRST].contains(&6), "{orders:?}");
        assert!(orders[..7].iter().any(|order| !order.is_sorted()), "{orders:?}");
        assert!(orders[ROUNDS - 1].contains(&4) && orders[ROUNDS - 1].contains(&8), "{orders:?}");
        assert_eq!(of_round(ROUNDS).len(), 1, "then the best goes on alone");
    }

    #[test]
    fn without_time_for_all_the_best_has_rounds_alone() {
        let mut ramp = Ramp::new(default_points(64), RampPlan::doubling(RampGoal::Peak, 0.05));
        while !matches!(ramp.next(), RampStep::Fresh(_)) {
            let RampStep::Explore(point) = ramp.next() else { panic!() };
            ramp.add(RampStep::Explore(point), 1000.0 + ramp.users[point] as f64);
        }
        let best = ramp.best().unwrap();
        ramp.begin_rounds(Duration::from_secs(8), |_| Duration::from_secs(1));
        assert_eq!(ramp.may_have_rounds, [best]);
        ramp.begin_rounds(Duration::from_secs(18), |_| Duration::from_secs(1));
        assert_eq!((ramp.may_have_rounds.len(), ramp.may_have_rounds[0]), (2, best));
    }

    #[test]
    fn a_peak_that_has_to_be_chosen_early_is_the_best_so_far() {
        let mut ramp = Ramp::new(default_points(4096), RampPlan::doubling(RampGoal::Peak, 0.05));
        for users in [1.0, 2.0, 4.0, 8.0, 16.0] {
            let step = ramp.next();
            ramp.add(step, eight(users));
        }
        ramp.begin_rounds(Duration::ZERO, |_| Duration::from_secs(1));
        let RampStep::Fresh(peak) = ramp.next() else { panic!("{:?}", ramp.next()) };
        assert_eq!(ramp.users[peak], 8);
    }

    #[test]
    fn each_goal_ends_the_climb_where_it_says() {
        let last = |goal| {
            let mut ramp = Ramp::new(default_points(4096), RampPlan::doubling(goal, 0.05));
            ramped(&mut ramp, 0.0, 1, eight);
            let explored = ramp.explored.iter().rposition(|rates| !rates.is_empty());
            ramp.users[explored.unwrap()]
        };
        assert_eq!(last(RampGoal::JobsPerUser(600.0)), 16);
        assert_eq!(last(RampGoal::JobsPerUser(60.0)), 64);
        assert_eq!(last(RampGoal::Classic), 128);
    }

    fn listed(users: Vec<usize>) -> Ramp {
        let plan = RampPlan::doubling(RampGoal::AllPoints, 0.05);
        Ramp::new(users, RampPlan { stride: RampStride::Each, ..plan })
    }

    #[test]
    fn all_points_are_taken_where_they_are_given() {
        let mut ramp = listed(vec![1, 5, 6]);
        let steps = ramped(&mut ramp, 0.0, 1, eight);
        assert!([0, 1, 2].iter().all(|point| steps.contains(&RampStep::Explore(*point))));
        assert_eq!(ramp.peak, Some(2));
    }

    #[test]
    fn what_is_passed_over_takes_nothing_from_what_was_measured() {
        let mut ramp = Ramp::new(default_points(64), RampPlan::doubling(RampGoal::Peak, 0.05));
        let mut steps = Vec::new();
        while let step @ (RampStep::Explore(point) | RampStep::Fresh(point)) = ramp.next() {
            let users = ramp.users[point];
            match [6, 12, 64].contains(&users) {
                true => ramp.pass_over(point),
                false => ramp.add(step, eight(users as f64)),
            }
            steps.push(users);
        }
        assert_eq!(ramp.users[ramp.peak.unwrap()], 8, "{steps:?}");
        assert_eq!(steps.iter().filter(|users| **users == 6).count(), 1, "{steps:?}");
    }

    #[test]
    fn a_peak_that_fails_ends_the_search() {
        let mut ramp = listed(vec![1, 2]);
        while !ramp.has_peak() {
            ramp.add(ramp.next(), 100.0);
        }
        let RampStep::Fresh(peak) = ramp.next() else { panic!() };
        ramp.ends_before(peak);
        assert_eq!(ramp.next(), RampStep::Done);
    }

    #[test]
    fn what_the_machine_refuses_ends_it_at_the_last_point_that_it_did() {
        let mut ramp = Ramp::new(default_points(64), RampPlan::doubling(RampGoal::Peak, 0.05));
        for users in [1000.0, 2000.0] {
            ramp.add(ramp.next(), users);
        }
        let RampStep::Explore(refused) = ramp.next() else { panic!() };
        assert_eq!(ramp.users[refused], 4);
        ramp.ends_before(refused);
        let steps = ramped(&mut ramp, 0.0, 1, eight);
        assert!(!steps.contains(&RampStep::Explore(refused)), "{steps:?}");
        assert_eq!(ramp.users[ramp.peak.unwrap()], 3);
    }

    #[test]
    fn listed_points_repeat_in_random_order_until_each_interval_is_narrow() {
        let mut ramp = listed(vec![1, 2, 4, 8]);
        let steps = ramped(&mut ramp, 0.02, 1, eight);
        let order: Vec<usize> = steps
            .iter()
            .filter_map(|step| match step {
                RampStep::Explore(point) => Some(*point),
                _ => None,
            })
            .collect();
        assert_eq!(order[..4], [0, 1, 2, 3]);
        let fresh: Vec<usize> = ramp
            .ramp_samples
            .iter()
            .filter(|one| one.round.is_some())
            .map(|one| one.users)
            .collect();
        assert!(!fresh[..8].is_sorted(), "{fresh:?}");
        assert!((0..4).all(|point| ramp.is_precise(&ramp.fresh(point))), "{fresh:?}");
    }

    #[test]
    fn re_aims_increment_and_its_rule_end_a_ramp_of_its_own() {
        let plan = RampPlan::doubling(RampGoal::Peak, 0.05);
        let plan = RampPlan { stride: RampStride::Adaptive(1), samples: 1, ..plan };
        let mut ramp = Ramp::new((1..=2000).collect(), plan);
        ramped(&mut ramp, 0.0, 1, |users| 10_000.0 * users.min(40.0));
        let climbed = ramp.measured().into_iter().map(|point| ramp.users[point]);
        let climbed: Vec<usize> = climbed.collect();
        assert_eq!(climbed[..9], [1, 2, 3, 4, 5, 6, 7, 8, 9]);
        // From the tenth on it takes as long with twice the users, and the steps double; then five are equal.
        assert!(climbed.contains(&12) && climbed.len() < 24, "{climbed:?}");
        let last = *climbed.last().unwrap();
        assert!(last > 40, "{climbed:?}");

        let stride = RampStride::Each;
        let plan = RampPlan { stride, samples: 1, ..RampPlan::doubling(RampGoal::Classic, 0.05) };
        let mut ramp = Ramp::new((1..=1000).step_by(10).collect(), plan);
        ramped(&mut ramp, 0.0, 1, |_| 55.0);
        assert_eq!(ramp.measured().last().map(|point| ramp.users[*point]), Some(61));
    }
}
