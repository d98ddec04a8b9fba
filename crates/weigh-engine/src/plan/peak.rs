//! Search for the peaks of mixes before they are compared: samples of both arms at more and more users, as
//! `peak_search` chooses them. They have a role of their own and are no evidence of an effect.

use std::time::Duration;

use crate::host::Host;
use crate::measure::Session;
use crate::order::Coins;
use crate::peak_search::PeakSearch;
use crate::platform::{PairSlot, Platform, SampleSlot, Stop};
use crate::ramp::Ramp;
use crate::request::{ProgressSink, Taken};
use crate::work::LoadRole;
use paired::judge::MIN_PAIRS;
use weigh_model::format;
use weigh_model::record::ChosenPeak;
use weigh_model::result::scheme::Scheme;
use weigh_model::role::SampleRole;
use weigh_model::samples::Point;

/// So much of the budget the searches may take together.
const SHARE: u32 = 3;
/// Eight pairs are the fewest for a verdict; of several claims it takes one or two more.
const PAIRS_OF_VERDICT: u32 = (MIN_PAIRS + 2) as u32;
/// Number of samples that must fit the time before a new point is begun: it may be the peak.
const SAMPLES_OF_NEW_POINT: u32 = (Ramp::TO_CHOOSE + MIN_PAIRS + 2) as u32;

/// The coins of a search are a stream of their own, which no set has.
const COINS_OF_SEARCH: usize = 255;

/// One mix under one treatment.
struct MixPeak {
    peak: usize,
    treated_arm: usize,
    /// The works that may be it, ascending in users, and the users of each.
    candidates: Vec<usize>,
    users: Vec<usize>,
    ends_at: Duration,
    /// How many mixes the rest of the budget is for.
    share: u32,
}

impl Session<'_> {
    /// Chooses the load points that are compared, where there are mixes whose peak is sought and that was not
    /// done yet; tells the host.
    ///
    /// # Errors
    /// Where the experiment cannot go on.
    pub(crate) fn seek_peaks(
        &mut self,
        host: &mut Host,
        progress_sink: &mut dyn ProgressSink,
    ) -> Result<(), Stop> {
        if self.peaks.is_empty() {
            let works = self.works;
            let role = |work: usize| works[work].role();
            let peaks = (0..self.works.len()).filter(|work| role(*work) == LoadRole::Peak);
            let arms = 1..self.request.common.arms.len();
            let sought: Vec<(usize, usize)> =
                peaks.flat_map(|peak| arms.clone().map(move |arm| (peak, arm))).collect();
            let share = sought.len().max(1) as u32;
            let time = self.request.common.budget / SHARE / share;
            let seed = self.request.common.seed;
            let mut coins = Coins::new(seed, COINS_OF_SEARCH, self.earlier.sessions);
            let mut found = Vec::new();
            for (peak, treated_arm) in sought {
                let name = works[peak].name().name;
                let is_its = |work: &usize| {
                    role(*work) == LoadRole::Candidate && works[*work].name().name == name
                };
                let its: Vec<usize> = (0..self.works.len()).filter(is_its).collect();
                let points = self.load_points(&its, treated_arm).into_iter();
                let (candidates, users) =
                    points.map(|point| (point.unit.work, point.users)).unzip();
                let ends_at = host.elapsed() + time;
                let sought = MixPeak { peak, treated_arm, candidates, users, ends_at, share };
                progress_sink.announce(&format!(
                    "Searching for the peak of {name}, without and with `{}`: {} at most.",
                    self.request.common.arms[treated_arm],
                    format::seconds(time.as_secs_f64())
                ));
                found.extend(self.seek_peak(host, &sought, &mut coins, progress_sink)?);
            }
            if !found.is_empty() {
                self.store.set_peaks(self.id, &found)?;
            }
            self.peaks = found;
        }
        let of_host = self.peaks.iter().map(|peak| ((peak.work, peak.treated_arm), peak.at));
        host.peaks = of_host.collect();
        Ok(())
    }

    fn seek_peak(
        &mut self,
        host: &mut Host,
        sought: &MixPeak,
        coins: &mut Coins,
        progress_sink: &mut dyn ProgressSink,
    ) -> Result<Option<ChosenPeak>, Stop> {
        let MixPeak { peak, treated_arm, candidates, users, .. } = sought;
        let (mut search, mut taken, mut costs) = begun(users.clone(), &self.searched(sought));
        while let Some((point, mut arms)) = search.next() {
            let left = [sought.ends_at, self.earlier.elapsed + self.request.common.budget]
                .map(|end| end.saturating_sub(host.elapsed()));
            for (arm, is_wanted) in arms.iter_mut().enumerate() {
                if *is_wanted && !costs.has_time(arm, point, left) {
                    *is_wanted = false;
                    search.pass_over(point, arm);
                }
            }
            if arms == [false, false] {
                if costs.is_known(point) {
                    break;
                }
                continue;
            }
            let slot = PairSlot {
                unit: self.unit(candidates[point], *treated_arm),
                set: 0,
                role: SampleRole::Search,
                pair: taken[point],
                baseline_first: coins.baseline_first(),
                scheme: Scheme::Sequential,
            };
            taken[point] += 1;
            let is_very_first = point == 0 && !costs.is_known(0);
            let mut found = [None; 2];
            let wanted = slot.slots().into_iter().filter(|slot| arms[arm_of(slot)]);
            for (position, slot) in wanted.enumerate() {
                let slot = SampleSlot { position, ..slot };
                let arm = arm_of(&slot);
                let began = host.elapsed();
                found[arm] = self.search_sample(host, &slot, is_very_first, progress_sink)?;
                costs.of_arms[arm][point] =
                    found[arm].map(|_| host.elapsed().saturating_sub(began));
                match found[arm] {
                    Some(rate) => search.add(point, arm, rate),
                    None if is_very_first => return Ok(None),
                    None => search.ends_before(point, arm),
                }
            }
            let name = self.works[candidates[point]].name();
            progress_sink.took(&Taken::Searched { name, jobs_per_min: found });
        }
        for (point, work) in candidates.iter().enumerate() {
            let cost = costs.of_pair(point);
            self.pair_costs.extend(cost.map(|cost| ((*work, *treated_arm), cost)));
        }
        let at = self.choose(host, sought, (&search, &costs), progress_sink)?;
        let Some(at) = at else { return Ok(None) };
        let others = search.points().into_iter().filter(|point| at != [*point, *point]);
        Ok(Some(ChosenPeak {
            work: *peak,
            treated_arm: *treated_arm,
            at: at.map(|point| candidates[point]),
            points: others.map(|point| candidates[point]).collect(),
        }))
    }

    /// Where both arms are the best; or as near to it as there is time for a verdict, which is told.
    fn choose(
        &self,
        host: &Host,
        sought: &MixPeak,
        (search, costs): (&PeakSearch, &Costs),
        progress_sink: &mut dyn ProgressSink,
    ) -> Result<Option<[usize; 2]>, Stop> {
        let left = self.earlier.elapsed + self.request.common.budget;
        let left = left.saturating_sub(host.elapsed()) / sought.share;
        let at = search.chosen(|at| costs.has_time_for_verdict(at, left));
        let best = search.chosen(|_| true);
        let (Some(at), Some(best)) = (at, best.filter(|best| at != Some(*best))) else {
            return Ok(at);
        };
        let users = |point: usize| format::plural(costs.users[point], "user");
        let sentence = format!(
            "The budget is too small for a verdict on {} at its peaks ({} without `{}`, {} with the \
             treatment), where samples take long, so it is compared at {}. Give --budget more time.",
            self.works[sought.peak].name(),
            users(best[0]),
            self.request.common.arms[sought.treated_arm],
            users(best[1]),
            users(at[0])
        );
        self.warn(progress_sink, sentence)?;
        Ok(Some(at))
    }

    /// A sample of a load point, in jobs per minute; `None` where that failed. The very first one has no
    /// point below it that stands: then the mix has failed.
    fn search_sample(
        &self,
        host: &mut Host,
        slot: &SampleSlot,
        is_very_first: bool,
        progress_sink: &mut dyn ProgressSink,
    ) -> Result<Option<f64>, Stop> {
        let reason = match self.take(|| host.sample(slot))? {
            Ok(readings) => return Ok(Some(readings.rate)),
            Err(reason) => reason,
        };
        if is_very_first {
            host.failed(slot, &reason)?;
            return Ok(None);
        }
        let sentence = format!(
            "Under `{}`, the search for the peak stopped at {}, which failed: {reason}",
            self.request.common.arms[slot.arm],
            self.works[slot.unit.work].name()
        );
        self.warn(progress_sink, sentence)?;
        Ok(None)
    }

    /// Returns the points that earlier sessions measured for each candidate.
    fn searched(&self, sought: &MixPeak) -> Vec<&[Point]> {
        let key = |work: &usize| (*work, sought.treated_arm);
        let of_work = |work| self.earlier.searched.get(&key(work)).map_or(&[][..], Vec::as_slice);
        sought.candidates.iter().map(of_work).collect()
    }
}

/// A search with what earlier sessions measured of each point, the number of its next pair, and the costs.
fn begun(users: Vec<usize>, earlier: &[&[Point]]) -> (PeakSearch, Vec<usize>, Costs) {
    let mut search = PeakSearch::new(&users);
    let mut costs = Costs { of_arms: [(); 2].map(|()| vec![None; users.len()]), users };
    let next_pair = |points: &&[Point]| points.iter().map(|one| one.pair + 1).max().unwrap_or(0);
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
        let arm = usize::from(one.is_treated);
        search.add(point, arm, one.rate);
        // A little less than it took with starting it, which is not stored.
        costs.of_arms[arm][point] = Duration::try_from_secs_f64(one.elapsed_s).ok();
    }
    (search, taken, costs)
}

fn arm_of(slot: &SampleSlot) -> usize {
    usize::from(slot.arm != 0)
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
    fn forecast(&self, arm: usize, point: usize) -> Duration {
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
        let costs = [0, 1].map(|arm| self.of_arms[arm][at[arm]]);
        costs.into_iter().flatten().sum::<Duration>() * PAIRS_OF_VERDICT <= left
    }

    /// Returns true if a sample fits the time `left` of the search. At a new point, all samples
    /// that it may need must also fit the time of the experiment, together with samples of the
    /// other arm.
    fn has_time(&self, arm: usize, point: usize, left: [Duration; 2]) -> bool {
        let forecast = self.forecast(arm, point);
        let of_other = self.of_arms[1 - arm].iter().flatten().min().copied().unwrap_or_default();
        let needed = forecast * SAMPLES_OF_NEW_POINT + of_other * MIN_PAIRS as u32;
        (self.of_arms[arm][point].is_some() || needed <= left[1]) && forecast <= left[0]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::example;

    #[test]
    fn what_an_earlier_session_searched_is_not_measured_again() {
        // One user in both arms, two; and of a second pair of two an interrupt left half.
        let mut clock = 0.0;
        let mut sample = |pair, is_treated| {
            clock += 1.0;
            Point { is_treated, started_s: clock, ..example::point(pair, 100.0 * clock) }
        };
        let one = [sample(0, false), sample(0, true)];
        let two = [sample(0, true), sample(0, false), sample(1, true)];
        let (search, taken, costs) = begun(vec![1, 2, 4], &[&one, &two, &[]]);
        assert_eq!(search.next(), Some((2, [true, true])));
        assert_eq!(search.points(), [0, 1]);
        assert_eq!(taken, [1, 2, 0], "no number of a pair is used twice");
        assert!(costs.is_known(1) && !costs.is_known(2));
        let whole = [two[0], two[1], two[2], sample(1, false)];
        let (search, ..) = begun(vec![1, 2], &[&one, &whole]);
        assert_eq!(search.next(), Some((0, [true, true])), "it has fewer samples than two users");
        let (search, taken, costs) = begun(vec![1, 2], &[&[], &[]]);
        assert_eq!((search.next(), taken), (Some((0, [true, true])), vec![0, 0]));
        assert!(!costs.is_known(0));
    }

    #[test]
    fn a_new_point_needs_the_time_of_a_verdict_and_a_known_one_that_of_a_sample() {
        let seconds = Duration::from_secs;
        let users = vec![1, 64, 128];
        let mut costs = Costs { of_arms: [vec![None; 3], vec![None; 3]], users };
        assert!(costs.has_time(0, 0, [Duration::ZERO; 2]), "the first is always begun");
        costs.of_arms = [vec![Some(seconds(1)), Some(seconds(2)), None], vec![None; 3]];
        // Thirteen samples of four seconds each, at twice as many users.
        assert!(costs.has_time(0, 2, [seconds(10), seconds(52)]));
        assert!(!costs.has_time(0, 2, [seconds(10), seconds(51)]));
        assert!(!costs.has_time(0, 2, [seconds(3), seconds(52)]));
        assert!(costs.has_time(0, 1, [seconds(2), seconds(2)]));
        costs.of_arms[1][0] = Some(seconds(1));
        assert!(costs.has_time_for_verdict([1, 0], seconds(30)), "ten pairs of two and one second");
        assert!(!costs.has_time_for_verdict([1, 0], seconds(29)));
        assert!(!costs.has_time(0, 2, [seconds(10), seconds(59)]), "and eight of the other arm");
    }
}
