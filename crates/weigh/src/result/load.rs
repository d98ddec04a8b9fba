//! What a ramp found: how much of a mix a machine does with how many users.

use serde::Serialize;

use super::work_name::WorkName;
use paired::estimate::median;

/// Of so many fresh samples the lowest and the highest have the median between them in 99.2 % of cases:
/// 1 − 2·½ⁿ.
pub const FEWEST_FRESH: usize = 8;
/// How surely an interval covers at each look. After 8, 14, 20 and 26 samples it then misses in 0.8, 1.3, 1.2
/// and 0.9 % of cases: in fewer than 5 % in all, however many looks there are.
const SURELY: f64 = 0.984;

/// Jobs per minute, and the interval of their median.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Throughput {
    pub jobs_per_min: f64,
    pub low: f64,
    pub high: f64,
    pub samples: usize,
}

impl Throughput {
    /// The median, and the interval between two of the sorted samples as far from both ends, the narrowest
    /// that is sure enough: the sign test turned round (Hollander, Wolfe and Chicken, Nonparametric
    /// Statistical Methods, 3.6). `None` of fewer samples than that takes.
    pub fn of(samples: &[f64]) -> Option<Throughput> {
        if samples.len() < FEWEST_FRESH {
            return None;
        }
        let mut sorted = samples.to_vec();
        sorted.sort_by(f64::total_cmp);
        let count = sorted.len();
        // So many samples lie below the median with this chance: n coins.
        let mut chance = 0.5f64.powi(count as i32);
        let (mut outside, mut rank) = (2.0 * chance, 0);
        while rank + 1 < count / 2 {
            chance *= (count - rank) as f64 / (rank + 1) as f64;
            if outside + 2.0 * chance > 1.0 - SURELY {
                break;
            }
            outside += 2.0 * chance;
            rank += 1;
        }
        let (low, high) = (sorted[rank], sorted[count - 1 - rank]);
        Some(Throughput { jobs_per_min: median(&sorted)?, low, high, samples: count })
    }
}

/// A load point.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct LoadPoint {
    pub users: usize,
    /// Median of all samples there.
    pub jobs_per_min: f64,
    pub samples: usize,
    /// Of one launch: from the first user's start to the last one's end.
    pub elapsed_s: f64,
    /// Of one launch: what all users had of the CPUs.
    pub user_s: Option<f64>,
    pub system_s: Option<f64>,
    /// How far the ends of the users lie apart: their standard deviation.
    pub deviation_s: Option<f64>,
    /// Share of the time in which some task waited for a CPU, in per cent.
    pub waiting_pct: Option<f64>,
    /// Share of the CPUs' time that the users' processes had, in per cent.
    pub cpu_pct: Option<f64>,
    /// Within which 99 of 100 jobs end.
    pub job_p99_ns: Option<f64>,
    /// 100 where all users take the same time.
    pub job_timing_index: Option<f64>,
}

/// What is to be said of one mix.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LoadAnswers {
    #[serde(skip)]
    pub name: WorkName,
    pub mix: String,
    /// Ascending in users.
    pub points: Vec<LoadPoint>,
    pub peak: Option<LoadPeak>,
    /// The fewest users of whom each gets ten jobs a minute or fewer; `None` where no point had so many.
    pub crossover_users: Option<usize>,
    /// The fewest users that are as many as there are jobs per minute.
    pub classic_crossover_users: Option<usize>,
}

/// Where throughput is highest.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LoadPeak {
    pub users: usize,
    /// The fewest and the most users of the points whose median is within 1 % of the highest.
    pub users_low: usize,
    pub users_high: usize,
    /// Of fresh samples, taken after the point was chosen.
    #[serde(flatten)]
    pub throughput: Throughput,
    /// Whether the most users that were measured are the best: then there may be a higher peak beyond.
    pub is_at_the_end: bool,
}

/// Jobs per minute that a user gets at the crossover (re-aim's `-x`).
pub const CROSSOVER_JOBS: f64 = 10.0;
/// A point so much below the best one is as good.
const AS_GOOD: f64 = 0.99;

impl LoadAnswers {
    /// From the points, and the samples that were taken at the peak after it was chosen.
    pub fn new(
        name: WorkName,
        points: Vec<LoadPoint>,
        fresh: Option<(usize, &[f64])>,
    ) -> LoadAnswers {
        let highest = points.iter().map(|point| point.jobs_per_min).fold(0.0, f64::max);
        let as_good = || points.iter().filter(|point| point.jobs_per_min >= AS_GOOD * highest);
        let peak = fresh.and_then(|(users, samples)| {
            Some(LoadPeak {
                users,
                users_low: as_good().map(|point| point.users).min()?.min(users),
                users_high: as_good().map(|point| point.users).max()?.max(users),
                throughput: Throughput::of(samples)?,
                is_at_the_end: points.last().is_some_and(|last| last.users == users),
            })
        });
        let first = |is_so: &dyn Fn(&LoadPoint) -> bool| {
            points.iter().find(|point| is_so(point)).map(|point| point.users)
        };
        let per_user = |point: &LoadPoint| point.jobs_per_min / point.users as f64;
        LoadAnswers {
            crossover_users: first(&|point| per_user(point) <= CROSSOVER_JOBS),
            classic_crossover_users: first(&|point| per_user(point) <= 1.0),
            mix: name.name.clone(),
            name,
            points,
            peak,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_interval_is_between_two_of_the_samples() {
        let samples = |count: u32| (1..=count).map(f64::from).collect::<Vec<_>>();
        assert_eq!(Throughput::of(&samples(7)), None);
        let of = |count| {
            let found = Throughput::of(&samples(count)).unwrap();
            (found.jobs_per_min, found.low, found.high)
        };
        assert_eq!(of(8), (4.5, 1.0, 8.0));
        // P(fewer than 3 of 14 coins) = 0.0065 on each side, fewer than 4: 0.029.
        assert_eq!(of(14), (7.5, 3.0, 12.0));
        assert_eq!(of(20), (10.5, 5.0, 16.0));
    }

    fn point(users: usize, jobs_per_min: f64) -> LoadPoint {
        LoadPoint { users, jobs_per_min, samples: 3, ..LoadPoint::default() }
    }

    #[test]
    fn peak_and_crossover_are_of_the_points() {
        let points = [(1, 100.0), (2, 199.0), (4, 200.0), (8, 198.5), (16, 160.0), (200, 150.0)];
        let points = points.map(|(users, rate)| point(users, rate)).to_vec();
        let fresh = [197.0; 8];
        let answers = LoadAnswers::new("load:x".into(), points, Some((4, &fresh)));
        let peak = answers.peak.unwrap();
        assert_eq!((peak.users_low, peak.users_high, peak.throughput.jobs_per_min), (2, 8, 197.0));
        assert!(!peak.is_at_the_end);
        assert_eq!(
            (answers.crossover_users, answers.classic_crossover_users),
            (Some(16), Some(200))
        );
    }
}
