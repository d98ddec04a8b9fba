//! Results of a ramp: how many jobs of a mix a machine does with how many users.

use serde::{Deserialize, Serialize};

use crate::format;
use crate::result::alike::{Measure, POWER, RampSample, THROUGHPUT};
use crate::result::busy_machine::{BusyMachine, Saturated, saturated};
use crate::result::curve::{Chart, ChartMark, Curve, CurvePoint, Quantity};
use crate::result::work_name::{USERS, WorkName};
use paired::looks;
use paired::series::Typical;

/// Jobs per minute, and the interval of their median.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Throughput {
    pub jobs_per_min: f64,
    pub low: f64,
    pub high: f64,
    pub samples: usize,
}

impl Throughput {
    /// The median of samples in the order in which they were taken, and its interval; `None` of fewer than
    /// that takes.
    pub fn of(samples: &[f64]) -> Option<Throughput> {
        let found = Typical::of(samples).filter(|_| samples.len() >= looks::FIRST)?;
        let Typical { median: jobs_per_min, low, high } = found;
        Some(Throughput { jobs_per_min, low, high, samples: samples.len() })
    }

    /// How far it reaches to either side, as a share.
    pub fn half_width(self) -> f64 {
        (self.high / self.low).sqrt() - 1.0
    }
}

/// How long a job takes in the mean.
pub const MEAN_JOB_TIME: &str = "mean_job_time";
/// The share of the driver itself in the CPU time of users and driver.
pub const DRIVER_READING: &str = "driver_cpu";

/// Readings that each sample of a load reports about itself and the machine, besides its rate.
pub const LOAD_READINGS: [&str; 14] = [
    "job_timing_index",
    MEAN_JOB_TIME,
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

/// Readings of a sample with file I/O: bytes that its jobs moved, and bytes that the device moved.
pub const DISK_READINGS: [&str; 2] = ["file_bytes", "device_bytes"];

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LoadPoint {
    pub users: usize,
    /// Median of its samples: of those in rounds alone, where it had rounds.
    pub jobs_per_min: f64,
    /// How far they scatter: 1.4826 · MAD over the median, in per cent.
    pub spread_pct: Option<f64>,
    pub samples: usize,
    /// Duration of one launch: from the first user's start to the last user's end.
    pub elapsed_s: f64,
    /// CPU time of all users in one launch.
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
    /// Time within which 90 of 100 jobs end; a sample of few jobs has no higher percentile.
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
    /// True if all its figures are of samples in rounds, which were taken after the points were chosen.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub in_rounds: bool,
    /// Load of the machine meanwhile.
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

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LoadAnswers {
    #[serde(skip)]
    pub name: WorkName,
    pub mix: String,
    /// The quota that limits the CPU time of the users, in CPUs.
    #[serde(skip)]
    pub quota_cpus: Option<f64>,
    /// Ascending in users.
    pub points: Vec<LoadPoint>,
    pub peak: Option<LoadPeak>,
    /// The best point, where none of the others can be told apart from it: no peak can be named.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub no_peak: Option<LoadPeak>,
    /// Smallest number of users at which each gets at most 60 jobs a minute; `None` if the load did not reach
    /// it.
    pub quick_crossover_users: Option<usize>,
    /// Smallest number of users at which each gets at most 10 jobs a minute.
    pub crossover_users: Option<usize>,
    /// Largest measured number of users below `crossover_users`.
    pub crossover_above: Option<usize>,
    /// Smallest number of users at which each gets at most 1 job a minute.
    pub classic_crossover_users: Option<usize>,
    pub knee: Option<LoadKnee>,
    /// Best point by power, where no other point can be told apart from it: no knee can be named.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub no_knee: Option<LoadKnee>,
    /// Saturated resources, each with the number of users that saturate it, the first one first.
    pub saturated: Vec<Saturated>,
}

/// Where more users begin to wait more than they get done: the highest power, throughput over the time that a
/// job takes.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LoadKnee {
    pub users: usize,
    /// The points that cannot be told apart from it, itself among them, ascending; and the ends of that list.
    pub as_good: Vec<usize>,
    pub users_low: usize,
    pub users_high: usize,
}

/// Where throughput is highest.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LoadPeak {
    pub users: usize,
    /// The points that cannot be told apart from it, itself among them, ascending; and the ends of that list.
    pub as_good: Vec<usize>,
    pub users_low: usize,
    pub users_high: usize,
    /// Throughput from samples in rounds, taken after the candidate points were chosen.
    #[serde(flatten)]
    pub throughput: Throughput,
    /// True if the best point may be the largest number of users that was measured. Then a higher
    /// peak may lie beyond.
    pub is_at_the_end: bool,
}

/// The best point by a measure, with all that cannot be told apart from it; `None` where a point with too few
/// samples in rounds is shown to be better. A higher median of such a point is listed with the others.
fn best_of(measure: Measure, samples: &[RampSample]) -> Option<(usize, Vec<usize>)> {
    let best = measure.best(samples).filter(|best| !measure.is_exceeded(samples, *best))?;
    Some((best, measure.alike(samples, best)))
}

/// Sorts a finding into the first place if it can be named, else into the second.
fn named<T>(found: Option<T>, is_named: impl Fn(&T) -> bool) -> [Option<T>; 2] {
    match found {
        Some(found) if is_named(&found) => [Some(found), None],
        other => [None, other],
    }
}

/// Jobs per minute that a user gets at the crossover (re-aim's `-c`).
pub const CROSSOVER_JOBS: f64 = 10.0;
/// Jobs per minute that a user gets at the quick crossover (re-aim's `-q`).
pub const QUICK_CROSSOVER_JOBS: f64 = 60.0;
/// Jobs per minute that a user gets at AIM's own crossover.
const CLASSIC_CROSSOVER_JOBS: f64 = 1.0;
/// A knee is between two others.
const POINTS_OF_KNEE: usize = 3;

impl LoadAnswers {
    /// From the points, and all samples in the order in which they were taken.
    pub fn new(name: WorkName, points: Vec<LoadPoint>, samples: &[RampSample]) -> LoadAnswers {
        let tells_apart = |as_good: &[usize]| points.len() < 2 || as_good.len() < points.len();
        let peak = best_of(THROUGHPUT, samples).and_then(|(users, as_good)| {
            let at = points.iter().find(|point| point.users == users)?;
            Some(LoadPeak {
                users,
                users_low: *as_good.first()?,
                users_high: *as_good.last()?,
                throughput: at.throughput()?,
                is_at_the_end: points.last().map(|last| last.users) == as_good.last().copied(),
                as_good,
            })
        });
        let knee = best_of(POWER, samples).filter(|_| points.len() >= POINTS_OF_KNEE);
        let knee = knee.and_then(|(users, as_good)| {
            let (users_low, users_high) = (*as_good.first()?, *as_good.last()?);
            Some(LoadKnee { users, users_low, users_high, as_good })
        });
        let [peak, no_peak] = named(peak, |peak| tells_apart(&peak.as_good));
        let [knee, no_knee] = named(knee, |knee| tells_apart(&knee.as_good));
        let crossover = Crossover::of(&points, CROSSOVER_JOBS);
        let users = |jobs| Crossover::of(&points, jobs).map(|crossover| crossover.users);
        LoadAnswers {
            quick_crossover_users: users(QUICK_CROSSOVER_JOBS),
            crossover_users: crossover.map(|crossover| crossover.users),
            crossover_above: crossover.and_then(|crossover| crossover.above),
            classic_crossover_users: users(CLASSIC_CROSSOVER_JOBS),
            saturated: saturated(points.iter().map(|point| (point.users, &point.machine))),
            mix: name.name.clone(),
            name,
            quota_cpus: None,
            points,
            peak,
            no_peak,
            knee,
            no_knee,
        }
    }

    /// The best point with its interval, whether or not it can be named as the peak.
    pub fn best(&self) -> Option<&LoadPeak> {
        self.peak.as_ref().or(self.no_peak.as_ref())
    }

    /// The point that is called the best, here and in the tables of others: without enough samples in rounds,
    /// that with the highest median.
    pub fn best_point(&self) -> Option<&LoadPoint> {
        let highest =
            || self.points.iter().max_by(|a, b| a.jobs_per_min.total_cmp(&b.jobs_per_min));
        match self.best() {
            Some(best) => self.points.iter().find(|point| point.users == best.users),
            None => highest(),
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

    /// Jobs per minute of each user at a crossover, and the users with whom it was reached.
    pub fn crossovers(&self) -> [(f64, Option<usize>); 3] {
        [
            (QUICK_CROSSOVER_JOBS, self.quick_crossover_users),
            (CROSSOVER_JOBS, self.crossover_users),
            (CLASSIC_CROSSOVER_JOBS, self.classic_crossover_users),
        ]
    }

    /// Where the peak, the knee and the crossover are, each between what was measured.
    pub fn marks(&self) -> Vec<ChartMark> {
        let peak = self
            .peak
            .as_ref()
            .map(|peak| peak_mark(peak.users, &peak.as_good, Some(peak.throughput), ""));
        let knee = self.knee.as_ref().map(|knee| users_mark("knee", knee.users, &knee.as_good));
        let crossover = self.crossover_users;
        let crossover =
            crossover.map(|users| Crossover { users, above: self.crossover_above }.mark(""));
        peak.into_iter().chain(knee).chain(crossover).collect()
    }
}

/// A place, with the points that cannot be told apart from it.
fn users_mark(what: &str, users: usize, as_good: &[usize]) -> ChartMark {
    let note = format!("{what}: {}{}", format::plural(users, "user"), or_with(users, as_good));
    let text = what.split(' ').next().unwrap_or_default().to_owned();
    let ends = as_good.first().zip(as_good.last()).unwrap_or((&users, &users));
    let [x, low, high] = [users, *ends.0, *ends.1].map(|users| users as f64);
    ChartMark { text, note, x, low, high, y: None, curve: None }
}

/// The points that cannot be told apart from the one with so many users, in brackets, if there are any.
pub fn or_with(users: usize, as_good: &[usize]) -> String {
    let others: Vec<String> =
        as_good.iter().filter(|other| **other != users).map(usize::to_string).collect();
    match others.is_empty() {
        true => String::new(),
        false => format!(" (not told apart from {})", others.join(", ")),
    }
}

/// The peak of the arm that is named, and the interval of its jobs per minute where that is known.
pub fn peak_mark(
    users: usize,
    as_good: &[usize],
    throughput: Option<Throughput>,
    of_arm: &str,
) -> ChartMark {
    let what = format!("peak {of_arm}");
    let mark = users_mark(what.trim_end(), users, as_good);
    let Some(Throughput { jobs_per_min, low, high, .. }) = throughput else { return mark };
    let [rate, from, to] = [jobs_per_min, low, high].map(|rate| format::rate(rate, "jobs/min"));
    let note = format!("{}, {rate} jobs/min [{from}, {to}]", mark.note);
    ChartMark { note, y: Some([low, high]), ..mark }
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
        let mark = users_mark(what, users, &[above.unwrap_or(users), users]);
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
    use crate::result::alike::rounds;

    #[test]
    fn an_interval_takes_eight_samples() {
        let samples: Vec<f64> = (1..=8).map(f64::from).collect();
        assert_eq!(Throughput::of(&samples[1..]), None);
        let found = Throughput::of(&samples).unwrap();
        assert_eq!((found.jobs_per_min, found.samples), (4.5, 8));
        assert!(found.low <= 1.0 && found.high >= 8.0, "{found:?}");
    }

    fn point(users: usize, jobs_per_min: f64) -> LoadPoint {
        LoadPoint { users, jobs_per_min, samples: 3, ..LoadPoint::default() }
    }

    /// Points whose samples are all in rounds.
    fn answers(rates: &[(usize, f64)]) -> LoadAnswers {
        let samples = rounds(rates, looks::FIRST);
        let of = |users: usize| {
            let own = samples.iter().filter(move |one| one.users == users);
            Throughput::of(&own.map(|one| one.jobs_per_min).collect::<Vec<_>>()).unwrap()
        };
        let points = rates.iter().map(|(users, _)| {
            let found = of(*users);
            LoadPoint {
                jobs_per_min_low: Some(found.low),
                jobs_per_min_high: Some(found.high),
                ..point(*users, found.jobs_per_min)
            }
        });
        LoadAnswers::new("load:x".into(), points.collect(), &samples)
    }

    #[test]
    fn the_peak_is_the_best_of_the_table_with_all_that_are_not_told_apart() {
        let rates = [(1, 100.0), (2, 199.0), (4, 190.0), (8, 200.0), (16, 155.0), (200, 150.0)];
        let found = answers(&rates);
        let peak = found.peak.as_ref().unwrap();
        assert_eq!((peak.users, &*peak.as_good, peak.users_low), (8, &[2, 8][..], 2));
        assert!(!peak.is_at_the_end && found.no_peak.is_none());
        assert_eq!(found.best_point().unwrap().jobs_per_min, peak.throughput.jobs_per_min);
        assert_eq!(found.crossovers(), [(60.0, Some(4)), (10.0, Some(16)), (1.0, Some(200))]);
        assert_eq!(found.crossover_above, Some(8));
        // 199²/2 is more than 200²/8.
        assert_eq!(found.knee.unwrap().as_good, [2]);
    }

    #[test]
    fn where_no_point_is_told_apart_no_peak_is_named() {
        let found = answers(&[(1, 100.0), (2, 100.5), (4, 100.2)]);
        assert_eq!(found.peak, None);
        let best = found.no_peak.as_ref().unwrap();
        assert_eq!((best.users, &*best.as_good), (2, &[1, 2, 4][..]));
        assert_eq!(found.best_point().unwrap().users, 2);
        assert_eq!(found.knee.unwrap().users, 1);
    }
}
