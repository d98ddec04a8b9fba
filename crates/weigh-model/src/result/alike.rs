//! Which load points of a ramp cannot be told apart from the best one. The highest of several noisy medians
//! may be the highest by luck, and a changing machine makes points differ that were measured at different
//! times. So points that may be the best are measured in rounds: each once per round, in random order.
//! Within a round, only chance decides which point has the better moment.

use paired::estimate::median;
use paired::looks;
use paired::series::sign_interval;

/// A sample of a ramp, in the order in which they were taken.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RampSample {
    pub users: usize,
    pub jobs_per_min: f64,
    /// How long a job took in the mean, where that is known.
    pub job_ns: Option<f64>,
    /// In which round; `None` of those by which it was chosen what is measured in rounds.
    pub round: Option<usize>,
}

impl RampSample {
    /// Jobs per minute over the minutes that a job takes (Kleinrock, Power and deterministic rules of thumb,
    /// 1979). What was measured before jobs' times were kept has users over throughput.
    pub fn power(&self) -> f64 {
        let interleaved = self.users as f64 / self.jobs_per_min;
        self.jobs_per_min / self.job_ns.map_or(interleaved, |ns| ns / 60e9)
    }
}

/// The chance that rounds tell a point apart from one that is as good, to either side: as small as it can be
/// with the fewest rounds, as there are several points.
const ROUNDS_MISS: f64 = 0.008;
/// A point whose samples all lie so far below those of the best needs no rounds: no machine that we know
/// changes by more.
const FAR: f64 = 0.7;
/// One sample in this many may be an outlier.
const WILD: usize = 10;

/// A measure of load points: higher is better, and a value close enough to the best counts as equal.
#[derive(Clone, Copy)]
pub struct Measure {
    pub value: fn(&RampSample) -> f64,
    pub as_good: f64,
}

pub const THROUGHPUT: Measure = Measure { value: |sample| sample.jobs_per_min, as_good: 0.99 };
/// The power is a product of two noisy numbers.
pub const POWER: Measure = Measure { value: RampSample::power, as_good: 0.95 };

impl Measure {
    /// The point with the highest median of those that have enough samples in rounds.
    pub fn best(self, samples: &[RampSample]) -> Option<usize> {
        let has_enough = |users: &usize| {
            let in_rounds = samples.iter().filter(|one| one.round.is_some());
            in_rounds.filter(|one| one.users == *users).count() >= looks::FIRST
        };
        self.highest(samples, has_enough)
    }

    /// Returns true if a point without enough samples in rounds is shown to be better: all that it has are
    /// higher than all that the best one has in rounds. A higher median of a few samples is chance.
    pub fn is_exceeded(self, samples: &[RampSample], best: usize) -> bool {
        let in_rounds = samples.iter().filter(|one| one.users == best && one.round.is_some());
        let highest = in_rounds.map(self.value).fold(0.0, f64::max);
        points(samples).into_iter().any(|users| {
            let mut own = samples.iter().filter(|one| one.users == users);
            users != best && own.all(|one| (self.value)(one) > highest)
        })
    }

    /// The point with the highest median of those that are wanted.
    pub fn highest(
        self,
        samples: &[RampSample],
        is_wanted: impl Fn(&usize) -> bool,
    ) -> Option<usize> {
        let median = |users: &usize| self.median(samples, *users).unwrap_or(f64::NEG_INFINITY);
        let points = points(samples).into_iter().filter(is_wanted);
        points.max_by(|a, b| median(a).total_cmp(&median(b)))
    }

    /// The best point and all that are not shown to be less good, ascending in users.
    pub fn alike(self, samples: &[RampSample], best: usize) -> Vec<usize> {
        let mut points = points(samples);
        let ends = points.iter().filter_map(|point| self.ends(samples, *point));
        let spread = ends.fold(FAR, |spread, (low, high)| spread.min(low / high));
        let far = self.ends(samples, best).map_or(0.0, |(low, _)| low * spread);
        points.retain(|users| *users == best || !self.is_below(samples, *users, best, far));
        points
    }

    /// Returns true if a point is shown to be worse than another one by more than the tolerance
    /// `as_good`. Rounds may show that, or all its samples may lie below `far`. `far` is at least
    /// as far below nearly all samples of the best point as the samples of any point lie apart. A
    /// point whose median is as good is never below, whatever rounds show: no sentence may
    /// contradict the table.
    fn is_below(self, samples: &[RampSample], users: usize, best: usize, far: f64) -> bool {
        let medians = self.median(samples, users).zip(self.median(samples, best));
        let Some((own, other)) = medians else { return false };
        let values = samples.iter().filter(|one| one.users == users).map(self.value);
        own < self.as_good * other
            && (values.fold(0.0, f64::max) < far || self.is_below_in_rounds(samples, users, best))
    }

    fn is_below_in_rounds(self, samples: &[RampSample], users: usize, best: usize) -> bool {
        let of_best = |round: Option<usize>| {
            samples.iter().find(|one| one.users == best && one.round == round).map(self.value)
        };
        let own = samples.iter().filter(|one| one.users == users && one.round.is_some());
        let ratios: Vec<f64> =
            own.filter_map(|one| Some((self.value)(one) / of_best(one.round)?)).collect();
        sign_interval(&ratios, ROUNDS_MISS).is_some_and(|(_, high)| high < self.as_good)
    }

    /// Between what nearly all samples of a point lie.
    fn ends(self, samples: &[RampSample], users: usize) -> Option<(f64, f64)> {
        let own = samples.iter().filter(|one| one.users == users);
        let mut values: Vec<f64> = own.map(self.value).collect();
        values.sort_by(f64::total_cmp);
        let wild = values.len() / WILD;
        Some((*values.get(wild)?, *values.get(values.len().checked_sub(1 + wild)?)?))
    }

    /// As in the table: of those in rounds, where there are any.
    fn median(self, samples: &[RampSample], users: usize) -> Option<f64> {
        let of = |is_wanted: &dyn Fn(&RampSample) -> bool| -> Vec<f64> {
            let own = samples.iter().filter(|one| one.users == users && is_wanted(one));
            own.map(self.value).collect()
        };
        median(&of(&|one| one.round.is_some())).or_else(|| median(&of(&|_| true)))
    }
}

/// Ascending in users.
fn points(samples: &[RampSample]) -> Vec<usize> {
    let mut points: Vec<usize> = samples.iter().map(|one| one.users).collect();
    points.sort_unstable();
    points.dedup();
    points
}

/// As many rounds over points with these jobs per minute.
#[cfg(any(test, feature = "example"))]
pub fn rounds(points: &[(usize, f64)], rounds: usize) -> Vec<RampSample> {
    let round = |round: usize| {
        let sample = move |(users, jobs_per_min): &(usize, f64)| RampSample {
            users: *users,
            // The machine has a different speed in each round.
            jobs_per_min: jobs_per_min * (1.0 + 0.001 * round as f64),
            job_ns: None,
            round: Some(round),
        };
        points.iter().map(sample).collect::<Vec<_>>()
    };
    (0..rounds).flat_map(round).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn explored(users: usize, rates: &[f64]) -> Vec<RampSample> {
        let sample =
            |rate: &f64| RampSample { users, jobs_per_min: *rate, job_ns: None, round: None };
        rates.iter().map(sample).collect()
    }

    #[test]
    fn what_is_less_good_in_every_round_is_told_apart_and_gaps_are_not_spanned() {
        let mut samples = rounds(&[(1, 900.0), (2, 995.0), (4, 970.0), (8, 1000.0)], looks::FIRST);
        assert_eq!(THROUGHPUT.best(&samples), Some(8));
        assert_eq!(THROUGHPUT.alike(&samples, 8), [2, 8], "not the four between them");
        samples.retain(|one| one.users != 4 || one.round < Some(looks::FIRST - 2));
        assert_eq!(THROUGHPUT.alike(&samples, 8), [2, 4, 8], "too few rounds");
        // The power is rate times rate over users.
        assert_eq!(POWER.best(&samples), Some(1));
        assert_eq!(POWER.alike(&samples, 1), [1]);
    }

    #[test]
    fn without_rounds_only_what_is_far_is_told_apart() {
        let samples = [
            explored(1, &[600.0]),
            explored(2, &[750.0]),
            explored(4, &[1000.0, 990.0, 1010.0]),
            explored(8, &[700.0, 710.0]),
        ];
        let samples = samples.concat();
        assert_eq!(THROUGHPUT.best(&samples), None);
        assert_eq!(THROUGHPUT.highest(&samples, |_| true), Some(4));
        assert_eq!(THROUGHPUT.alike(&samples, 4), [2, 4, 8]);
        // The best itself scatters by half: then nothing is far that is not lower by as much.
        let noisy = [explored(1, &[600.0]), explored(2, &[300.0]), explored(4, &[1000.0, 650.0])];
        assert_eq!(THROUGHPUT.alike(&noisy.concat(), 4), [1, 4]);
    }

    #[test]
    fn what_the_table_has_as_higher_is_never_told_apart() {
        // In rounds always lower, but two wild rounds of the best are not in the other's.
        let mut samples = rounds(&[(2, 900.0), (4, 1000.0)], looks::FIRST);
        assert_eq!(THROUGHPUT.alike(&samples, 4), [4]);
        for round in 8..17 {
            let one = RampSample { jobs_per_min: 1200.0, round: Some(round), ..samples[0] };
            samples.push(one);
        }
        assert_eq!(THROUGHPUT.alike(&samples, 4), [2, 4]);
    }
}
