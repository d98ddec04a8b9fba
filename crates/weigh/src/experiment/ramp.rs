//! Which load point of a mix is measured next: more and more users until the throughput no longer grows,
//! then the points around the best one, then fresh samples at that one alone. What was chosen for its high
//! rate is not believed for it: the highest of several noisy rates is too high. What is left of the budget
//! goes to the points that have too few samples to show a spread.

use serde::{Deserialize, Serialize};

use crate::result::load::{FEWEST_FRESH, Throughput};
use paired::estimate::median;

/// A point that exceeds the best one by less does not count as growth: re-aim's 1 %.
const GROWTH: f64 = 1.01;
/// So many steps without growth end the climb.
const STEPS_WITHOUT_GROWTH: usize = 2;
/// Fresh samples that are taken between two looks at their interval. Each look has a chance of its own to be
/// wrong, so there are few.
const BETWEEN_LOOKS: usize = 6;
const MOST_FRESH: usize = 26;

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

/// What is measured next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RampStep {
    /// A sample of the point of this number.
    Explore(usize),
    /// A fresh sample at the peak.
    Fresh(usize),
    Done,
}

/// The load points, ascending in users, and what was found at each.
pub struct Ramp {
    users: Vec<usize>,
    goal: RampGoal,
    /// Half the width that the interval at the peak is to have, as a share.
    precision: f64,
    /// Jobs per minute, per point.
    explored: Vec<Vec<f64>>,
    fresh: Vec<f64>,
    /// Chosen, once there are fresh samples.
    peak: Option<usize>,
    /// The points from here on cannot be measured: the machine refuses, or there is no time.
    end: usize,
    /// Points below that for which there is no time.
    passed_over: Vec<usize>,
}

impl Ramp {
    /// Samples of the best point and of each of its neighbours, before one is chosen.
    pub const TO_CHOOSE: usize = 3;

    /// At least one point.
    pub fn new(users: Vec<usize>, goal: RampGoal, precision: f64) -> Ramp {
        let (explored, end) = (vec![Vec::new(); users.len()], users.len());
        Ramp {
            users,
            goal,
            precision,
            explored,
            fresh: Vec::new(),
            peak: None,
            end,
            passed_over: Vec::new(),
        }
    }

    /// What to measure next.
    pub fn next(&self) -> RampStep {
        if let Some(point) = self.next_to_climb() {
            return RampStep::Explore(point);
        }
        let Some(best) = self.peak.or_else(|| self.best()) else { return RampStep::Done };
        if self.peak.is_none() {
            let around = best.saturating_sub(1)..=(best + 1).min(self.end - 1);
            let around = around.filter(|point| !self.passed_over.contains(point));
            let fewest = around.min_by_key(|point| self.explored[*point].len());
            if let Some(point) =
                fewest.filter(|point| self.explored[*point].len() < Ramp::TO_CHOOSE)
            {
                return RampStep::Explore(point);
            }
        }
        if best >= self.end {
            return RampStep::Done;
        }
        if !self.is_settled() {
            return RampStep::Fresh(best);
        }
        let once_only = |point: &usize| (1..Ramp::TO_CHOOSE).contains(&self.explored[*point].len());
        (0..self.end).find(once_only).map_or(RampStep::Done, RampStep::Explore)
    }

    /// What was found there.
    pub fn add(&mut self, step: RampStep, jobs_per_min: f64) {
        match step {
            RampStep::Explore(point) => self.explored[point].push(jobs_per_min),
            RampStep::Fresh(point) => {
                self.peak = Some(point);
                self.fresh.push(jobs_per_min);
            }
            RampStep::Done => {}
        }
    }

    /// This point and those with more users cannot be measured. Where the peak is one of them, there is
    /// nothing more to find out.
    pub fn ends_before(&mut self, point: usize) {
        self.end = self.end.min(point);
    }

    /// For how many launches of a point that was not measured yet there has to be time: where the peak is
    /// wanted, for being sure of it there.
    pub fn launches_of_new_point(&self) -> u32 {
        match self.goal {
            RampGoal::Peak => (Ramp::TO_CHOOSE + FEWEST_FRESH) as u32,
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

    /// The best point so far is the peak, with fewer samples of it and its neighbours than more time would
    /// give.
    pub fn choose_best(&mut self) {
        self.peak = self.best();
    }

    /// Whether a peak was chosen.
    pub fn has_peak(&self) -> bool {
        self.peak.is_some()
    }

    /// The points that were measured, ascending, of those that can be.
    pub fn measured(&self) -> Vec<usize> {
        (0..self.end).filter(|point| !self.explored[*point].is_empty()).collect()
    }

    /// Whether nothing is known that keeps a point from being measured.
    pub fn can_be_measured(&self, point: usize) -> bool {
        point < self.end && !self.passed_over.contains(&point)
    }

    /// Jobs per minute of the samples of a point that were taken to choose one.
    pub fn explored(&self, point: usize) -> &[f64] {
        &self.explored[point]
    }

    /// The first point is measured, then each that has about twice as many users as the one before.
    fn next_to_climb(&self) -> Option<usize> {
        if self.peak.is_some() {
            return None;
        }
        let measured = self.measured();
        let Some(&last) = measured.last() else { return (self.end > 0).then_some(0) };
        if self.is_at_goal(&measured, last) {
            return None;
        }
        let is_far_enough = |point: &usize| {
            self.goal == RampGoal::AllPoints || self.users[*point] >= 2 * self.users[last]
        };
        (last + 1..self.end)
            .find(is_far_enough)
            .or_else(|| (last + 1 < self.end).then(|| self.end - 1))
    }

    fn is_at_goal(&self, measured: &[usize], last: usize) -> bool {
        let rate = |point: usize| median(&self.explored[point]).unwrap_or_default();
        let users = self.users[last] as f64;
        match self.goal {
            RampGoal::AllPoints => false,
            RampGoal::JobsPerUser(least) => rate(last) / users <= least,
            RampGoal::Classic => rate(last) <= users,
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
        let rate = |point: &usize| median(&self.explored[*point]).unwrap_or_default();
        (0..self.end)
            .filter(|point| !self.explored[*point].is_empty())
            .max_by(|a, b| rate(a).total_cmp(&rate(b)))
    }

    /// Whether the interval at the peak is narrow enough, or there are as many samples as there will be.
    pub fn is_settled(&self) -> bool {
        let taken = self.fresh.len();
        if taken >= MOST_FRESH {
            return true;
        }
        if taken < FEWEST_FRESH || !(taken - FEWEST_FRESH).is_multiple_of(BETWEEN_LOOKS) {
            return false;
        }
        let is_precise = |found: Throughput| {
            let half = (found.high / found.low).sqrt() - 1.0;
            half <= self.precision
        };
        Throughput::of(&self.fresh).is_some_and(is_precise)
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
    use rand::{RngExt, SeedableRng};
    use rand_chacha::ChaCha8Rng;

    use super::*;

    /// Ramps on a machine whose throughput this is, with some noise; gives the steps.
    fn ramped(
        ramp: &mut Ramp,
        noise: f64,
        seed: u64,
        throughput: impl Fn(f64) -> f64,
    ) -> Vec<RampStep> {
        let mut chance = ChaCha8Rng::seed_from_u64(seed);
        let mut steps = Vec::new();
        loop {
            let step = ramp.next();
            let (RampStep::Explore(point) | RampStep::Fresh(point)) = step else { return steps };
            let users = ramp.users[point] as f64;
            let rate = throughput(users) * chance.random_range(1.0 - noise..=1.0 + noise);
            ramp.add(step, rate);
            steps.push(step);
            assert!(steps.len() < 200, "{steps:?}");
        }
    }

    /// Grows up to eight users, and then falls slowly.
    fn eight(users: f64) -> f64 {
        1000.0 * users.min(8.0) * (1.0 - 0.01 * (users - 8.0).max(0.0))
    }

    #[test]
    fn it_climbs_by_doubling_stops_and_looks_around_the_best() {
        let mut ramp = Ramp::new(default_points(4096), RampGoal::Peak, 0.05);
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
        let measured = ramp.explored.iter().filter(|rates| !rates.is_empty());
        assert!(
            measured.clone().all(|rates| rates.len() == Ramp::TO_CHOOSE) && measured.count() == 8
        );
        assert_eq!(ramp.users[ramp.peak.unwrap()], 8);
        assert_eq!(ramp.fresh.len(), FEWEST_FRESH);
    }

    #[test]
    fn a_peak_that_has_to_be_chosen_early_is_the_best_so_far() {
        let mut ramp = Ramp::new(default_points(4096), RampGoal::Peak, 0.05);
        for users in [1.0, 2.0, 4.0, 8.0, 16.0] {
            let step = ramp.next();
            ramp.add(step, eight(users));
        }
        ramp.choose_best();
        let RampStep::Fresh(peak) = ramp.next() else { panic!("{:?}", ramp.next()) };
        assert_eq!(ramp.users[peak], 8);
    }

    #[test]
    fn noise_takes_more_fresh_samples_and_the_interval_covers_the_truth() {
        let mut covered = 0;
        for seed in 0..200 {
            let mut ramp = Ramp::new(default_points(4096), RampGoal::Peak, 0.02);
            ramped(&mut ramp, 0.1, seed, eight);
            let truth = eight(ramp.users[ramp.peak.unwrap()] as f64);
            let found = Throughput::of(&ramp.fresh).unwrap();
            covered += usize::from((found.low..=found.high).contains(&truth));
        }
        assert!(covered >= 190, "{covered} of 200");
    }

    #[test]
    fn the_highest_of_the_explored_is_too_high_and_the_fresh_are_not() {
        let (mut explored, mut fresh) = (0.0, 0.0);
        for seed in 0..200 {
            let mut ramp = Ramp::new(default_points(64), RampGoal::Peak, 0.05);
            // As fast with any number of users: whichever is chosen was lucky.
            ramped(&mut ramp, 0.1, seed, |_| 1000.0);
            let peak = ramp.peak.unwrap();
            explored += median(&ramp.explored[peak]).unwrap() / 200.0;
            fresh += median(&ramp.fresh).unwrap() / 200.0;
        }
        assert!(explored > 1020.0 && (990.0..1010.0).contains(&fresh), "{explored} {fresh}");
    }

    #[test]
    fn each_goal_ends_the_climb_where_it_says() {
        let last = |goal| {
            let mut ramp = Ramp::new(default_points(4096), goal, 0.05);
            ramped(&mut ramp, 0.0, 1, eight);
            let explored = ramp.explored.iter().rposition(|rates| !rates.is_empty());
            ramp.users[explored.unwrap()]
        };
        assert_eq!(last(RampGoal::JobsPerUser(600.0)), 16);
        assert_eq!(last(RampGoal::JobsPerUser(60.0)), 64);
        assert_eq!(last(RampGoal::Classic), 128);
    }

    #[test]
    fn all_points_are_taken_where_they_are_given() {
        let mut ramp = Ramp::new(vec![1, 5, 6], RampGoal::AllPoints, 0.05);
        let steps = ramped(&mut ramp, 0.0, 1, eight);
        assert!([0, 1, 2].iter().all(|point| steps.contains(&RampStep::Explore(*point))));
        assert_eq!(ramp.peak, Some(2));
    }

    #[test]
    fn what_is_passed_over_takes_nothing_from_what_was_measured() {
        let mut ramp = Ramp::new(default_points(64), RampGoal::Peak, 0.05);
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
        let mut ramp = Ramp::new(vec![1, 2], RampGoal::AllPoints, 0.05);
        while !ramp.has_peak() {
            ramp.add(ramp.next(), 100.0);
        }
        let RampStep::Fresh(peak) = ramp.next() else { panic!() };
        ramp.ends_before(peak);
        assert_eq!(ramp.next(), RampStep::Done);
    }

    #[test]
    fn what_the_machine_refuses_ends_it_at_the_last_point_that_it_did() {
        let mut ramp = Ramp::new(default_points(64), RampGoal::Peak, 0.05);
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
}
