//! Search for the peak of a mix before it is compared: samples of both arms at more and more users, as
//! `peak_search` chooses them. They have a role of their own and are no evidence of an effect.

use std::collections::VecDeque;
use std::time::Duration;

use super::{Event, MixPoint, Outcome, Planner};
use crate::order::Coins;
use crate::platform::{PairSlot, SampleSlot};
use crate::request::Taken;
use paired::judge::MIN_PAIRS;
use weigh_model::ids::{PairId, SetId, Side};
use weigh_model::result::scheme::Scheme;
use weigh_model::result::warning::Warning;
use weigh_model::role::SampleRole;
use weigh_model::samples::Point;
use weigh_verdict::peak_search::PeakSearch;
use weigh_verdict::ramp::Ramp;

/// Eight pairs are the fewest for a verdict; of several claims it takes one or two more.
const PAIRS_OF_VERDICT: u32 = (MIN_PAIRS + 2) as u32;
/// Number of samples that must fit the time before a new point is begun: it may be the peak.
const SAMPLES_OF_NEW_POINT: u32 = (Ramp::TO_CHOOSE + MIN_PAIRS + 2) as u32;

/// The samples that choose the load points of one mix under one treatment.
pub struct PeakPlanner<'a> {
    /// Ascending in users.
    pub points: Vec<MixPoint>,
    /// Labels of the baseline and of the treated arm.
    arms: [&'a str; 2],
    /// When the search ends at the latest, and when the experiment does.
    ends: [Duration; 2],
    coins: &'a mut Coins,
    pub search: PeakSearch,
    /// Per point, the number of its next pair.
    taken: Vec<PairId>,
    costs: Costs,
    /// The point that is measured, the samples of it to come, and the rates of those that were taken.
    point: usize,
    due: VecDeque<SampleSlot>,
    found: [Option<f64>; 2],
    /// True if the very first sample failed: no point below it stands.
    pub has_failed: bool,
    is_very_first: bool,
}

impl<'a> PeakPlanner<'a> {
    /// Plans a search that goes on from the samples of earlier sessions at each point.
    pub fn new(
        points: Vec<MixPoint>,
        arms: [&'a str; 2],
        ends: [Duration; 2],
        coins: &'a mut Coins,
        earlier: &[&[Point]],
    ) -> PeakPlanner<'a> {
        let users = points.iter().map(|point| point.users).collect();
        let (search, taken, costs) = begun(users, earlier);
        PeakPlanner {
            points,
            arms,
            ends,
            coins,
            search,
            taken,
            costs,
            point: 0,
            due: VecDeque::new(),
            found: [None; 2],
            has_failed: false,
            is_very_first: false,
        }
    }

    /// Duration of a pair of each point, where that is known.
    pub fn pair_costs(&self) -> impl Iterator<Item = (&MixPoint, Duration)> {
        let cost = |(at, point)| Some((point, self.costs.of_pair(at)?));
        self.points.iter().enumerate().filter_map(cost)
    }

    /// The best point of each arm, or as near to it as `left` allows a verdict; and the best if that is
    /// another.
    pub fn chosen(&self, left: Duration) -> Option<([usize; 2], Option<[usize; 2]>)> {
        let at = self.search.chosen(|at| self.costs.has_time_for_verdict(at, left))?;
        Some((at, self.search.chosen(|_| true).filter(|best| *best != at)))
    }

    /// The arms that are measured at a point; the search passes over it in an arm that lacks the time.
    fn affordable(&mut self, point: usize, mut arms: [bool; 2], now: Duration) -> [bool; 2] {
        let left = self.ends.map(|end| end.saturating_sub(now));
        for (arm, is_wanted) in Side::BOTH.into_iter().zip(&mut arms) {
            if *is_wanted && !self.costs.has_time(arm, point, left) {
                *is_wanted = false;
                self.search.pass_over(point, arm);
            }
        }
        arms
    }

    fn begin_pair(&mut self, point: usize, arms: [bool; 2]) {
        let slot = PairSlot {
            unit: self.points[point].unit,
            set: SetId(0),
            role: SampleRole::Search,
            pair: self.taken[point],
            baseline_first: self.coins.baseline_first(),
            scheme: Scheme::Sequential,
            until: None,
        };
        self.taken[point] = slot.pair.next();
        self.point = point;
        self.is_very_first = point == 0 && !self.costs.is_known(0);
        self.found = [None; 2];
        let wanted = slot.slots().into_iter().filter(|slot| arms[slot.arm.side()]);
        let numbered = wanted.enumerate();
        self.due = numbered.map(|(position, slot)| SampleSlot { position, ..slot }).collect();
    }
}

impl Planner for PeakPlanner<'_> {
    fn next(&mut self, now: Duration, events: &mut Vec<Event>) -> Option<SampleSlot> {
        while self.due.is_empty() && !self.has_failed {
            let (point, arms) = self.search.next()?;
            match self.affordable(point, arms, now) {
                [false, false] if self.costs.is_known(point) => return None,
                [false, false] => {}
                arms => self.begin_pair(point, arms),
            }
        }
        let slot = self.due.pop_front()?;
        let (name, arm) = (&self.points[self.point].name, self.arms[slot.arm.side()]);
        events.push(Event::Begins(format!("{name} under `{arm}`")));
        Some(slot)
    }

    fn took(&mut self, slot: &SampleSlot, outcome: Outcome, events: &mut Vec<Event>) {
        let (point, arm) = (self.point, slot.arm.side());
        let name = &self.points[point].name;
        self.costs.of_arms[arm][point] = outcome.found.is_ok().then_some(outcome.cost);
        match outcome.found {
            Ok(readings) => {
                self.found[arm] = Some(readings.rate);
                self.search.add(point, arm, readings.rate);
            }
            Err(reason) if self.is_very_first => {
                self.has_failed = true;
                self.due.clear();
                return events.push(Event::Failure(*slot, reason));
            }
            Err(reason) => {
                self.search.ends_before(point, arm);
                let (arm, point) = (self.arms[arm].to_owned(), name.clone());
                events.push(Event::Warning(Warning::SearchStopped { arm, point, reason }));
            }
        }
        if self.due.is_empty() {
            let (name, jobs_per_min) = (name.clone(), self.found);
            events.push(Event::Taken(Taken::Searched { name, jobs_per_min }));
        }
    }
}

/// A search with what earlier sessions measured of each point, the number of its next pair, and the costs.
fn begun(users: Vec<usize>, earlier: &[&[Point]]) -> (PeakSearch, Vec<PairId>, Costs) {
    let mut search = PeakSearch::new(&users);
    let mut costs = Costs { of_arms: [(); 2].map(|()| vec![None; users.len()]), users };
    let next_pair =
        |points: &&[Point]| points.iter().map(|one| one.pair.next()).max().unwrap_or_default();
    let taken = earlier.iter().map(next_pair).collect();
    let mut all: Vec<(usize, Point)> = Vec::new();
    for (point, of_point) in earlier.iter().enumerate() {
        all.extend(of_point.iter().map(|one| (point, *one)));
    }
    all.sort_by(|(_, a), (_, b)| a.started_s.total_cmp(&b.started_s));
    // An interrupt may have left half a pair: it is taken again, or this arm would be ahead of the other.
    let is_half = all.last().is_some_and(|(point, last)| {
        earlier[*point].iter().filter(|other| other.pair == last.pair).count() == 1
    });
    if is_half {
        all.pop();
    }
    for (point, one) in all {
        let arm = Side(usize::from(one.is_treated));
        search.add(point, arm, one.rate);
        // A little less than it took with starting it, which is not stored.
        costs.of_arms[arm][point] = Duration::try_from_secs_f64(one.elapsed_s).ok();
    }
    (search, taken, costs)
}

/// Cost of a sample of each point in each arm, as far as it is known.
struct Costs {
    of_arms: [Vec<Option<Duration>>; 2],
    users: Vec<usize>,
}

impl Costs {
    fn is_known(&self, point: usize) -> bool {
        self.of_arms.iter().any(|of_arm| of_arm[point].is_some())
    }

    fn of_pair(&self, point: usize) -> Option<Duration> {
        Some(self.of_arms[0][point]? + self.of_arms[1][point]?)
    }

    /// As long as it took before, or in proportion to the users of the nearest point below; but as many users
    /// as there are CPUs take hardly longer than one.
    fn forecast(&self, arm: Side, point: usize) -> Duration {
        let below = (0..=point).rev().find_map(|below| Some((below, self.of_arms[arm][below]?)));
        let cpus = std::thread::available_parallelism().map_or(1, usize::from);
        let users = |point: usize| self.users[point].max(cpus) as f64;
        below.map_or(Duration::ZERO, |(below, cost)| {
            if below == point { cost } else { cost.mul_f64(users(point) / users(below)) }
        })
    }

    /// Returns true if the time that is left has room for the pairs of a verdict, each arm at its
    /// own point.
    fn has_time_for_verdict(&self, at: [usize; 2], left: Duration) -> bool {
        let costs = Side::BOTH.map(|arm| self.of_arms[arm][at[arm]]);
        costs.into_iter().flatten().sum::<Duration>() * PAIRS_OF_VERDICT <= left
    }

    /// Returns true if a sample fits the time `left` of the search. At a new point, all samples
    /// that it may need must also fit the time of the experiment, together with samples of the
    /// other arm.
    fn has_time(&self, arm: Side, point: usize, left: [Duration; 2]) -> bool {
        let forecast = self.forecast(arm, point);
        let of_other = self.of_arms[1 - arm.0].iter().flatten().min().copied().unwrap_or_default();
        let needed = forecast * SAMPLES_OF_NEW_POINT + of_other * MIN_PAIRS as u32;
        (self.of_arms[arm][point].is_some() || needed <= left[1]) && forecast <= left[0]
    }
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;
    use rand_chacha::ChaCha8Rng;

    use super::super::drive;
    use super::super::simulated::{Simulated, Watcher, normal, points};
    use super::*;
    use crate::platform::SampleError;
    use weigh_model::example::point;
    use weigh_model::ids::{ArmId, SetId};
    use weigh_verdict::ramp::default_points;

    #[test]
    fn what_an_earlier_session_searched_is_not_measured_again() {
        // One user in both arms, two; and of a second pair of two an interrupt left half.
        let mut clock = 0.0;
        let mut sample = |pair, is_treated| {
            clock += 1.0;
            Point { is_treated, started_s: clock, ..point(pair, 100.0 * clock) }
        };
        let one = [sample(0, false), sample(0, true)];
        let two = [sample(0, true), sample(0, false), sample(1, true)];
        let (search, taken, costs) = begun(vec![1, 2, 4], &[&one, &two, &[]]);
        assert_eq!(search.next(), Some((2, [true, true])));
        assert_eq!(search.points(), [0, 1]);
        assert_eq!(taken, [1, 2, 0].map(PairId), "no number of a pair is used twice");
        assert!(costs.is_known(1) && !costs.is_known(2));
        let whole = [two[0], two[1], two[2], sample(1, false)];
        let (search, ..) = begun(vec![1, 2], &[&one, &whole]);
        assert_eq!(search.next(), Some((0, [true, true])), "it has fewer samples than two users");
        let (search, taken, costs) = begun(vec![1, 2], &[&[], &[]]);
        assert_eq!((search.next(), taken), (Some((0, [true, true])), vec![PairId(0); 2]));
        assert!(!costs.is_known(0));
    }

    #[test]
    fn a_new_point_needs_the_time_of_a_verdict_and_a_known_one_that_of_a_sample() {
        let seconds = Duration::from_secs;
        let users = vec![1, 64, 128];
        let mut costs = Costs { of_arms: [vec![None; 3], vec![None; 3]], users };
        assert!(
            costs.has_time(Side::BASELINE, 0, [Duration::ZERO; 2]),
            "the first is always begun"
        );
        costs.of_arms = [vec![Some(seconds(1)), Some(seconds(2)), None], vec![None; 3]];
        // Thirteen samples of four seconds each, at twice as many users.
        assert!(costs.has_time(Side::BASELINE, 2, [seconds(10), seconds(52)]));
        assert!(!costs.has_time(Side::BASELINE, 2, [seconds(10), seconds(51)]));
        assert!(!costs.has_time(Side::BASELINE, 2, [seconds(3), seconds(52)]));
        assert!(costs.has_time(Side::BASELINE, 1, [seconds(2), seconds(2)]));
        costs.of_arms[1][0] = Some(seconds(1));
        assert!(costs.has_time_for_verdict([1, 0], seconds(30)), "ten pairs of two and one second");
        assert!(!costs.has_time_for_verdict([1, 0], seconds(29)));
        assert!(
            !costs.has_time(Side::BASELINE, 2, [seconds(10), seconds(59)]),
            "and eight of the other arm"
        );
    }
    const BUDGET_S: u64 = 300;

    /// Drives a search on a machine whose arms have these throughputs, and which fails from so many users on
    /// in each arm. Gives the users that are chosen, and the machine's warnings and failures.
    fn searched(
        seed: u64,
        throughput: [fn(f64) -> f64; 2],
        fails_at: [usize; 2],
    ) -> (Option<[usize; 2]>, Vec<Warning>, Vec<usize>) {
        let users = default_points(64);
        let (mut chance, mut coins) =
            (ChaCha8Rng::seed_from_u64(seed), Coins::new(seed, SetId(0), 0));
        let mut machine = Simulated::new(|slot: &SampleSlot| match users[slot.unit.work] {
            refused if refused >= fails_at[slot.arm.side()] => {
                Err(SampleError::Workload("it broke".into()))
            }
            users => {
                Ok(throughput[slot.arm.side()](users as f64) * (0.02 * normal(&mut chance)).exp())
            }
        });
        let ends = [BUDGET_S / 3, BUDGET_S].map(Duration::from_secs);
        let earlier = vec![&[][..]; users.len()];
        let arms = ["none", "treated"];
        let mut plan = PeakPlanner::new(points(&users, 1), arms, ends, &mut coins, &earlier);
        drive(&mut plan, &mut machine, &mut Watcher::default()).unwrap();
        // Each arm of a pair fits the time by itself.
        assert!(machine.now <= ends[0] + machine.lasts, "{:?}", machine.now);
        let pairs = machine.taken.iter().filter(|(slot, _)| slot.position == 0);
        let orders: Vec<ArmId> = pairs.map(|(slot, _)| slot.arm).collect();
        assert!(
            orders.is_empty() || [0, 1].iter().all(|arm| orders.contains(&ArmId(*arm))),
            "{orders:?}"
        );
        let chosen = plan.chosen(ends[1].saturating_sub(machine.now));
        let failures = machine.failures.iter().map(|(slot, _)| users[slot.unit.work]).collect();
        let users = |(at, _): ([usize; 2], _)| at.map(|point: usize| users[point]);
        (chosen.map(users).filter(|_| !plan.has_failed), machine.warnings, failures)
    }

    /// Returns the throughput of as many users as there are CPUs, which falls with more.
    fn eight(users: f64) -> f64 {
        1000.0 * users.min(8.0) * (1.0 - 0.05 * (users / 8.0).log2().max(0.0))
    }

    /// Returns the throughput behind a lock that lets two users through.
    fn two(users: f64) -> f64 {
        1000.0 * users.min(2.0) * (1.0 - 0.1 * (users / 2.0).log2().max(0.0)).max(0.1)
    }

    const NEVER: [usize; 2] = [usize::MAX; 2];

    #[test]
    fn the_true_peak_is_chosen_or_one_that_cannot_be_told_apart() {
        for throughput in [[eight as fn(f64) -> f64, eight], [eight, two], [two, eight], [two, two]]
        {
            let is_good = |seed: &u64| {
                let chosen = searched(*seed, throughput, NEVER).0.expect("nothing fails");
                let is_best = |arm: Side| {
                    let rates = default_points(64).into_iter().map(|users| users as f64);
                    let highest = rates.map(throughput[arm]).fold(0.0, f64::max);
                    // Within the deviation of a single sample.
                    throughput[arm](chosen[arm] as f64) >= 0.98 * highest
                };
                Side::BOTH.into_iter().all(is_best)
            };
            let good = (0..200).filter(is_good).count();
            assert!(good >= 190, "{good} of 200");
        }
    }

    #[test]
    fn an_arm_that_fails_ends_before_that_and_the_other_goes_on() {
        let (chosen, warnings, failures) = searched(1, [eight, eight], [usize::MAX, 4]);
        let [baseline, treated] = chosen.unwrap();
        assert!(baseline >= 6 && treated < 4, "{chosen:?}");
        let is_of_treated =
            matches!(&warnings[0], Warning::SearchStopped { arm, .. } if arm == "treated");
        assert!(is_of_treated, "{warnings:?}");
        assert!(failures.is_empty(), "what failed may work with fewer users");
        let (chosen, warnings, failures) = searched(1, [eight, eight], [1, 1]);
        assert_eq!((chosen, warnings.len(), failures), (None, 0, vec![1]));
    }
}
