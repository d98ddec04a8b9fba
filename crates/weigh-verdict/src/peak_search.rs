//! Which load points of a mix are compared as its peak, without a treatment and with it: a ramp in each arm,
//! of pairs, so that a drift of the machine reaches both. What was chosen for its high rate is not believed
//! for it: the pairs that are judged are taken afterwards.

use crate::ramp::{Ramp, RampGoal, RampPlan, RampStep};
use paired::estimate::median;
use weigh_model::ids::Side;

/// A point counts as better than another if its median exceeds that by more: re-aim's 1 %.
const BETTER: f64 = 1.01;
/// Where all so many samples of a point are above all those of another, that is chance in one of 252 orders.
const TO_BE_SURE: usize = 5;

/// The load points, ascending in users, and what was found at each in both arms.
pub struct PeakSearch {
    ramps: [Ramp; 2],
}

impl PeakSearch {
    /// At least one point.
    pub fn new(users: &[usize]) -> PeakSearch {
        // The interval at the peak is the business of the pairs that are judged.
        let ramp = || Ramp::new(users.to_vec(), RampPlan::doubling(RampGoal::Peak, 0.0));
        PeakSearch { ramps: [ramp(), ramp()] }
    }

    /// The point of which a sample is wanted in each of the arms that can be measured there; `None` where
    /// each has its best one.
    pub fn next(&self) -> Option<(usize, [bool; 2])> {
        let of_ramps = self.ramps.iter().find_map(|ramp| match ramp.next() {
            RampStep::Explore(point) => Some(point),
            RampStep::Fresh(_) | RampStep::Done => None,
        });
        let point = of_ramps.or_else(|| self.next_to_be_sure())?;
        Some((point, Side::BOTH.map(|arm| self.ramps[arm].can_be_measured(point))))
    }

    /// Where an arm seems to be better at a point of its own, more samples of that and of the common one.
    fn next_to_be_sure(&self) -> Option<usize> {
        let (best, common) = self.best_and_common(|_| true)?;
        let open = Side::BOTH.into_iter().filter(|arm| self.is_better(*arm, best[*arm], common));
        let open = open.flat_map(|arm| [(arm, best[arm]), (arm, common)]);
        let taken = |(arm, point): &(Side, usize)| self.ramps[*arm].explored(*point).len();
        let open = open.filter(|of_arm| taken(of_arm) < TO_BE_SURE);
        let open = open.filter(|(arm, point)| self.ramps[*arm].can_be_measured(*point));
        open.min_by_key(taken).map(|(_, point)| point)
    }

    /// Adds the rate that was found at a point in an arm, in jobs per minute.
    pub fn add(&mut self, point: usize, arm: Side, jobs_per_min: f64) {
        self.ramps[arm].add(RampStep::Explore(point), jobs_per_min);
    }

    /// This point and those with more users cannot be measured in an arm.
    pub fn ends_before(&mut self, point: usize, arm: Side) {
        self.ramps[arm].ends_before(point);
    }

    /// There is no time for this point in an arm.
    pub fn pass_over(&mut self, point: usize, arm: Side) {
        self.ramps[arm].pass_over(point);
    }

    /// The points that were measured in both arms, ascending.
    pub fn points(&self) -> Vec<usize> {
        let treated = self.ramps[1].measured();
        let baseline = self.ramps[0].measured().into_iter();
        baseline.filter(|point| treated.contains(point)).collect()
    }

    /// The best point of each arm; `None` where none was measured.
    ///
    /// It is the same one in both unless an arm is shown to be better at another: on a broad peak the best of
    /// a few samples is there by luck, and a comparison of different points would find a difference that
    /// the treatment has not made. Where `has_time` is false for a verdict there, it is the common one that
    /// is the least below both, of those for which there is.
    pub fn chosen(&self, has_time: impl Fn([usize; 2]) -> bool) -> Option<[usize; 2]> {
        let (best, common) = self.best_and_common(|_| true)?;
        let is_sure = |arm: Side| {
            let taken = |point: usize| self.ramps[arm].explored(point).len();
            taken(best[arm]).min(taken(common)) >= TO_BE_SURE
                && self.is_better(arm, best[arm], common)
        };
        let at = Side::BOTH.map(|arm| if is_sure(arm) { best[arm] } else { common });
        let instead = || self.best_and_common(|point| has_time([point, point]));
        match has_time(at) {
            true => Some(at),
            false => Some(instead().map_or(at, |(_, common)| [common, common])),
        }
    }

    /// The best point of each arm, and of those in question the one that is the least below both.
    fn best_and_common(
        &self,
        is_in_question: impl Fn(usize) -> bool,
    ) -> Option<([usize; 2], usize)> {
        let rate =
            |arm: Side, point: usize| median(self.ramps[arm].explored(point)).unwrap_or_default();
        let best = |arm: Side| {
            let points = self.ramps[arm].measured().into_iter();
            points.max_by(|a, b| rate(arm, *a).total_cmp(&rate(arm, *b)))
        };
        let best = [best(Side::BASELINE)?, best(Side::TREATED)?];
        let as_share = |point: usize| {
            let of_arm = |arm: Side| rate(arm, point) / rate(arm, best[arm]);
            of_arm(Side::BASELINE).min(of_arm(Side::TREATED))
        };
        let points = self.points().into_iter().filter(|point| is_in_question(*point));
        let common = points.max_by(|a, b| as_share(*a).total_cmp(&as_share(*b)))?;
        Some((best, common))
    }

    /// Returns true if every sample of one point is above every sample of the other point.
    fn is_better(&self, arm: Side, one: usize, other: usize) -> bool {
        let [one, other] = [one, other].map(|point| self.ramps[arm].explored(point));
        let lowest = one.iter().copied().fold(f64::INFINITY, f64::min);
        let highest = other.iter().copied().fold(0.0, f64::max);
        let medians = median(one).zip(median(other));
        lowest > highest && medians.is_some_and(|(one, other)| one > other * BETTER)
    }
}

#[cfg(test)]
mod tests {
    use rand::{RngExt, SeedableRng};
    use rand_chacha::ChaCha8Rng;

    use super::*;
    use crate::ramp::default_points;

    /// Searches on a machine whose arms have these throughputs, with some noise; gives the chosen users and
    /// the number of pairs.
    fn searched(noise: f64, seed: u64, throughput: [fn(f64) -> f64; 2]) -> ([usize; 2], usize) {
        let users = default_points(4096);
        let mut chance = ChaCha8Rng::seed_from_u64(seed);
        let mut search = PeakSearch::new(&users);
        let mut pairs = 0;
        while let Some((point, _)) = search.next() {
            for (arm, rate) in Side::BOTH.into_iter().zip(throughput) {
                let noise = chance.random_range(1.0 - noise..=1.0 + noise);
                search.add(point, arm, rate(users[point] as f64) * noise);
            }
            pairs += 1;
            assert!(pairs < 200);
        }
        (search.chosen(|_| true).unwrap().map(|point| users[point]), pairs)
    }

    fn eight(users: f64) -> f64 {
        1000.0 * users.min(8.0) * (1.0 - 0.02 * (users - 8.0).max(0.0)).max(0.1)
    }

    /// Returns the rate of a machine with a lock that lets two users through.
    fn two(users: f64) -> f64 {
        1000.0 * users.min(2.0) * (1.0 - 0.03 * (users - 2.0).max(0.0)).max(0.1)
    }

    fn flat(users: f64) -> f64 {
        1000.0 * users.min(2.0)
    }

    #[test]
    fn each_arm_has_its_own_peak_where_they_differ_and_a_common_one_where_not() {
        assert_eq!(searched(0.0, 1, [eight, eight]).0, [8, 8]);
        assert_eq!(searched(0.0, 1, [eight, two]).0, [8, 2]);
        assert_eq!(searched(0.0, 1, [two, eight]).0, [2, 8]);
        for seed in 0..50 {
            assert_eq!(searched(0.02, seed, [eight, two]).0, [8, 2]);
        }
    }

    #[test]
    fn on_a_broad_peak_both_arms_have_the_same_point_nearly_always() {
        let same = |seed: &u64| {
            let ([baseline, treated], _) = searched(0.1, *seed, [flat, flat]);
            baseline == treated
        };
        let count = (0..200).filter(same).count();
        assert!(count >= 150, "{count} of 200");
    }

    #[test]
    fn what_cannot_be_measured_is_not_chosen_and_the_other_arm_goes_on() {
        let users = default_points(64);
        let mut search = PeakSearch::new(&users);
        while let Some((point, arms)) = search.next() {
            let of_users = users[point] as f64;
            if arms[0] {
                search.add(point, Side::BASELINE, eight(of_users));
            }
            match users[point] {
                4.. if arms[1] => search.ends_before(point, Side::TREATED),
                _ if arms[1] => search.add(point, Side::TREATED, two(of_users)),
                _ => {}
            }
        }
        let chosen = search.chosen(|_| true).unwrap().map(|point| users[point]);
        assert_eq!(chosen, [8, 2]);
        assert_eq!(search.points(), [0, 1, 2]);
        // Where there is no time for a verdict there, the nearest that both have and that there is for.
        let chosen = search.chosen(|at| at[1] < 1).unwrap();
        assert_eq!(chosen, [0, 0]);
        assert_eq!(search.chosen(|_| false).unwrap().map(|point| users[point]), [8, 2]);
        assert_eq!(PeakSearch::new(&users).chosen(|_| true), None);
    }
}
