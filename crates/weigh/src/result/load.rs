//! What a ramp found: how much of a mix a machine does with how many users.

use serde::{Deserialize, Serialize};

use super::busy_machine::{BusyMachine, Saturated, saturated};
use super::curve::{Chart, ChartMark, Curve, CurvePoint, Quantity};
use super::load_drift::{self, RampSample};
use super::looks::Looks;
use super::work_name::{USERS, WorkName};
use crate::format;
use paired::estimate::median;

/// Of so many fresh samples the lowest and the highest have the median between them in 99.2 % of cases:
/// 1 − 2·½ⁿ.
pub const FEWEST_FRESH: usize = 8;
/// Fresh samples are looked at after 8, 14, 21, 31, 46, and so on by a half. As whole samples allow, the
/// first three miss in 0.8, 1.3 and 0.7 % of cases, and those after them in less than 3 · 0.73 %: it is less
/// than 5 % in all, however often one looks.
pub const LOOKS: Looks =
    Looks { first: FEWEST_FRESH, next: |count| (count * 3 / 2).max(count + 6), first_miss: 0.016 };

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
            if outside + 2.0 * chance > LOOKS.misses(count) {
                break;
            }
            outside += 2.0 * chance;
            rank += 1;
        }
        let (low, high) = (sorted[rank], sorted[count - 1 - rank]);
        Some(Throughput { jobs_per_min: median(&sorted)?, low, high, samples: count })
    }

    /// Of the fresh samples of a ramp: the interval of their median, or the wider one of a machine that
    /// changed while the ramp went on.
    pub fn of_fresh(ramp_samples: &[RampSample]) -> Option<Throughput> {
        let fresh = ramp_samples.iter().filter(|sample| sample.is_fresh);
        let found = Throughput::of(&fresh.map(|sample| sample.jobs_per_min).collect::<Vec<_>>())?;
        let share = 1.0 + load_drift::half_width(ramp_samples).unwrap_or_default();
        let (low, high) = (found.jobs_per_min / share, found.jobs_per_min * share);
        Some(Throughput { low: found.low.min(low), high: found.high.max(high), ..found })
    }

    /// How far it reaches to either side, as a share.
    pub fn half_width(self) -> f64 {
        (self.high / self.low).sqrt() - 1.0
    }
}

/// The share of the driver itself in the CPU time of users and driver.
pub const DRIVER_READING: &str = "driver_cpu";

/// What each sample of a load reports of itself and of the machine, besides its rate.
pub const LOAD_READINGS: [&str; 14] = [
    "job_timing_index",
    "mean_job_time",
    "finish_deviation",
    "first_finish",
    DRIVER_READING,
    "psi_cpu",
    "psi_io",
    "psi_memory",
    "cpu_busy",
    "run_queue",
    "memory_left",
    "disk_busy",
    "file_bytes",
    "device_bytes",
];

/// What a sample that reads and writes files has of them: what its jobs moved, and what the device.
pub const DISK_READINGS: [&str; 2] = ["file_bytes", "device_bytes"];

/// A load point.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LoadPoint {
    pub users: usize,
    /// Median of all samples there.
    pub jobs_per_min: f64,
    /// How far they scatter: 1.4826 · MAD over the median, in per cent.
    pub spread_pct: Option<f64>,
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
    /// The same of 90: a sample of few jobs tells no more.
    pub job_p90_ns: Option<f64>,
    /// How long a job takes in the mean.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mean_job_ns: Option<f64>,
    /// 100 where all users take the same time.
    pub job_timing_index: Option<f64>,
    /// When the first user was done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_finish_s: Option<f64>,
    /// The share of the driver itself in the CPU time of users and driver.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub driver_cpu_pct: Option<f64>,
    /// Where there are enough samples: the interval of the jobs per minute.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub jobs_per_min_low: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub jobs_per_min_high: Option<f64>,
    /// What the machine had to do meanwhile.
    #[serde(default, flatten)]
    pub machine: BusyMachine,
}

impl LoadPoint {
    /// Within which time so many per cent of the jobs end: 90 or 99.
    pub fn job_time_ns(&self, pct: u8) -> Option<f64> {
        if pct == 90 { self.job_p90_ns } else { self.job_p99_ns }
    }

    /// Jobs per minute, with how far they scatter to both sides.
    pub fn jobs_spread(&self) -> Option<[f64; 3]> {
        let spread = self.spread_pct.unwrap_or_default() / 100.0;
        Some([1.0 - spread, 1.0, 1.0 + spread].map(|part| part.max(0.0) * self.jobs_per_min))
    }

    /// Where there are enough samples.
    pub fn throughput(&self) -> Option<Throughput> {
        let (low, high) = self.jobs_per_min_low.zip(self.jobs_per_min_high)?;
        Some(Throughput { jobs_per_min: self.jobs_per_min, low, high, samples: self.samples })
    }
}

/// The highest percentile of a job's time that all these points have.
pub fn percent_known<'a>(mut points: impl Iterator<Item = &'a LoadPoint>) -> u8 {
    if points.all(|point| point.job_p99_ns.is_some()) { 99 } else { 90 }
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
    /// The most users that were measured below that.
    pub crossover_above: Option<usize>,
    /// The fewest users that are as many as there are jobs per minute.
    pub classic_crossover_users: Option<usize>,
    pub knee: Option<LoadKnee>,
    /// What is saturated with how many users, the first one first.
    pub saturated: Vec<Saturated>,
}

/// Where more users begin to wait more than they get done: the highest power, throughput over the time that a
/// job takes (Kleinrock, Power and deterministic rules of thumb, 1979).
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LoadKnee {
    pub users: usize,
    /// The fewest and the most users of the points whose power is within 5 % of it.
    pub users_low: usize,
    pub users_high: usize,
}

impl LoadKnee {
    /// Of more than two points. What was measured before jobs' times were kept has users over throughput.
    fn of(points: &[LoadPoint]) -> Option<LoadKnee> {
        let job_min = |point: &LoadPoint| {
            let in_turns = point.users as f64 / point.jobs_per_min;
            point.mean_job_ns.map_or(in_turns, |ns| ns / 60e9)
        };
        let power = |point: &LoadPoint| point.jobs_per_min / job_min(point);
        let best = points.iter().max_by(|a, b| power(a).total_cmp(&power(b)))?;
        let near = points.iter().filter(|point| power(point) >= NEARLY * power(best));
        let (low, high) = near.fold((best.users, best.users), |(low, high), point| {
            (low.min(point.users), high.max(point.users))
        });
        (points.len() > 2).then_some(LoadKnee {
            users: best.users,
            users_low: low,
            users_high: high,
        })
    }
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
/// The power is a product of two noisy numbers.
const NEARLY: f64 = 0.95;

impl LoadAnswers {
    /// From the points, and all samples in the order in which they were taken.
    pub fn new(name: WorkName, points: Vec<LoadPoint>, ramp_samples: &[RampSample]) -> LoadAnswers {
        let fresh = ramp_samples.iter().find(|sample| sample.is_fresh);
        let peak = fresh.and_then(|RampSample { users, .. }| {
            let users = *users;
            let (users_low, users_high) = as_good(&points, users);
            Some(LoadPeak {
                users,
                users_low,
                users_high,
                throughput: Throughput::of_fresh(ramp_samples)?,
                is_at_the_end: points.last().is_some_and(|last| last.users == users),
            })
        });
        let crossover = Crossover::of(&points, CROSSOVER_JOBS);
        LoadAnswers {
            crossover_users: crossover.map(|crossover| crossover.users),
            crossover_above: crossover.and_then(|crossover| crossover.above),
            classic_crossover_users: Crossover::of(&points, 1.0).map(|crossover| crossover.users),
            knee: LoadKnee::of(&points),
            saturated: saturated(points.iter().map(|point| (point.users, &point.machine))),
            mix: name.name.clone(),
            name,
            points,
            peak,
        }
    }
}

impl LoadAnswers {
    /// Throughput over users, with what is marked on it, and how long jobs take; none of a single point.
    pub fn charts(&self) -> Vec<Chart> {
        let pct = percent_known(self.points.iter());
        let chart = |quantity: Quantity, marks, value: &dyn Fn(&LoadPoint) -> Option<[f64; 3]>| {
            let point = |point: &LoadPoint| {
                let workload = WorkName::of_users(&self.mix, point.users);
                let [low, y, high] = value(point)?;
                let x = point.users as f64;
                Some(CurvePoint { workload, x, y, low: Some(low), high: Some(high) })
            };
            let points = self.points.iter().filter_map(point).collect();
            let curves = vec![Curve { series: self.mix.clone(), points }];
            Chart { quantity, x_unit: USERS.into(), curves, marks }
        };
        let jobs = chart(Quantity::Rate("jobs/min".into()), self.marks(), &LoadPoint::jobs_spread);
        let job_time = |point: &LoadPoint| point.job_time_ns(pct).map(|ns| [ns; 3]);
        let times = chart(Quantity::JobTime(pct), Vec::new(), &job_time);
        let charts = [jobs, times].into_iter();
        charts.filter(|chart| chart.points().count() > 1).collect()
    }

    /// Where the peak, the knee and the crossover are, each between what was measured.
    pub fn marks(&self) -> Vec<ChartMark> {
        let peak = self.peak.as_ref().map(|peak| {
            let range = [peak.users_low, peak.users_high];
            peak_mark(peak.users, range, Some(peak.throughput), "")
        });
        let knee = self.knee.as_ref().map(|knee| {
            let range = [knee.users_low, knee.users_high];
            users_mark("knee", knee.users, range, "are as good")
        });
        let crossover = self.crossover_users;
        let crossover =
            crossover.map(|users| Crossover { users, above: self.crossover_above }.mark(""));
        peak.into_iter().chain(knee).chain(crossover).collect()
    }
}

/// A place that is known to within a range of users.
fn users_mark(what: &str, users: usize, [low, high]: [usize; 2], within: &str) -> ChartMark {
    let range = match low == high {
        true => String::new(),
        false => format!(" ({low} to {high} {within})"),
    };
    let note = format!("{what}: {}{range}", format::plural(users, "user"));
    let text = what.split(' ').next().unwrap_or_default().to_owned();
    let [x, low, high] = [users, low, high].map(|users| users as f64);
    ChartMark { text, note, x, low, high, y: None, curve: None }
}

/// The peak of the arm that is named, and the interval of its jobs per minute where that is known.
pub fn peak_mark(
    users: usize,
    range: [usize; 2],
    throughput: Option<Throughput>,
    of_arm: &str,
) -> ChartMark {
    let what = format!("peak {of_arm}");
    let mark = users_mark(what.trim_end(), users, range, "are within 1 %");
    let Some(Throughput { jobs_per_min, low, high, .. }) = throughput else { return mark };
    let [rate, from, to] = [jobs_per_min, low, high].map(|rate| format::rate(rate, "jobs/min"));
    let note = format!("{}, {rate} jobs/min [{from}, {to}]", mark.note);
    ChartMark { note, y: Some([low, high]), ..mark }
}

/// The fewest and the most users of the points that are as good as the best one, and of the one where the
/// peak was measured.
pub fn as_good(points: &[LoadPoint], peak: usize) -> (usize, usize) {
    let highest = points.iter().map(|point| point.jobs_per_min).fold(0.0, f64::max);
    let good = points.iter().filter(|point| point.jobs_per_min >= AS_GOOD * highest);
    good.fold((peak, peak), |(low, high), point| (low.min(point.users), high.max(point.users)))
}

/// Where each user gets no more than so many jobs a minute.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Crossover {
    /// The fewest users that were measured there.
    pub users: usize,
    /// The most of whom each gets more; it lies between the two.
    pub above: Option<usize>,
}

impl Crossover {
    /// `None` where no point had so many users.
    pub fn of(points: &[LoadPoint], jobs: f64) -> Option<Crossover> {
        let is_there = |point: &LoadPoint| point.jobs_per_min / point.users as f64 <= jobs;
        let at = points.iter().position(is_there)?;
        let above = at.checked_sub(1).map(|below| points[below].users);
        Some(Crossover { users: points[at].users, above })
    }

    /// Where it is on a chart, of the arm that is named.
    pub fn mark(self, of_arm: &str) -> ChartMark {
        let Crossover { users, above } = self;
        let what = format!("crossover {of_arm}");
        let what = what.trim_end();
        let mark = users_mark(what, users, [above.unwrap_or(users), users], "");
        let note = match above {
            Some(above) => format!("{what}: between {above} and {users} users"),
            None => format!("{what}: {} or fewer", format::plural(users, "user")),
        };
        ChartMark { note, ..mark }
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
        // From the fourth look on the chance shrinks.
        assert_eq!((of(21), of(31)), ((11.0, 5.0, 17.0), (16.0, 8.0, 24.0)));
    }

    /// What the sign test misses at each look, summed up: the chance to be wrong at any of them is no more.
    #[test]
    fn all_looks_together_miss_in_less_than_five_per_cent() {
        let missed = |count: usize| {
            let samples: Vec<f64> = (0..count).map(|i| i as f64).collect();
            let rank = Throughput::of(&samples).unwrap().low as usize;
            let chances = (0..=rank).scan(0.5f64.powi(count as i32), |chance, k| {
                let now = *chance;
                *chance *= (count - k) as f64 / (k + 1) as f64;
                Some(now)
            });
            2.0 * chances.sum::<f64>()
        };
        let counts: Vec<usize> = LOOKS.counts().take_while(|count| *count < 1000).collect();
        assert_eq!(counts[..6], [8, 14, 21, 31, 46, 69]);
        let all: f64 = counts.into_iter().map(missed).sum();
        assert!(all < 0.05, "{all}");
    }

    fn point(users: usize, jobs_per_min: f64) -> LoadPoint {
        LoadPoint { users, jobs_per_min, samples: 3, ..LoadPoint::default() }
    }

    #[test]
    fn peak_and_crossover_are_of_the_points() {
        let points = [(1, 100.0), (2, 199.0), (4, 200.0), (8, 198.5), (16, 160.0), (200, 150.0)];
        let points = points.map(|(users, rate)| point(users, rate)).to_vec();
        let fresh = [197.0; 8];
        let answers = LoadAnswers::new("load:x".into(), points, &load_drift::all_fresh(4, &fresh));
        let peak = answers.peak.unwrap();
        assert_eq!((peak.users_low, peak.users_high, peak.throughput.jobs_per_min), (2, 8, 197.0));
        assert!(!peak.is_at_the_end);
        assert_eq!(
            (answers.crossover_users, answers.classic_crossover_users),
            (Some(16), Some(200))
        );
        assert_eq!(answers.crossover_above, Some(8));
        // 199²/2 is more than 200²/4.
        let knee = answers.knee.unwrap();
        assert_eq!((knee.users, knee.users_low, knee.users_high), (2, 2, 2));
    }
}
