//! What a ramp found, in sentences.

use crate::format;
use crate::result::busy_machine::{BusyMachine, Resource, Saturated};
use crate::result::load::{CROSSOVER_JOBS, FEWEST_FRESH, LoadAnswers, LoadPoint, percent_known};

/// Busier than this, the CPUs are what limits; and also where tasks waited for one most of the time.
const BUSY_PCT: f64 = 90.0;
const WAITING_PCT: f64 = 50.0;

/// The peak, who waits there, and the crossover.
pub fn sentences(answers: &LoadAnswers) -> Vec<String> {
    let peak = peak(answers).or_else(|| best_without_interval(answers));
    let all = [peak, at_peak(answers), saturation(answers), knee(answers), crossover(answers)];
    all.into_iter().chain([device(answers)]).flatten().collect()
}

fn peak(answers: &LoadAnswers) -> Option<String> {
    let peak = answers.peak.as_ref()?;
    let [rate, low, high] =
        [peak.throughput.jobs_per_min, peak.throughput.low, peak.throughput.high]
            .map(|rate| format::rate(rate, "jobs/min"));
    let range = match (peak.users_low, peak.users_high) {
        (low, high) if low == high => String::new(),
        (low, high) => format!(" ({low} to {high} users are within 1 %)"),
    };
    let beyond = match peak.is_at_the_end {
        true => " That is the most that was measured; the peak may be beyond.",
        false => "",
    };
    Some(format!(
        "`{}` peaks with {}{range}: {rate} jobs/min [{low}, {high}], which is ±{} %, of {} fresh \
         samples.{beyond}",
        answers.mix,
        format::plural(peak.users, "user"),
        format::unsigned(100.0 * peak.throughput.half_width()),
        peak.throughput.samples
    ))
}

/// Of too few fresh samples there is no interval, and the best of several noisy points is too high.
fn best_without_interval(answers: &LoadAnswers) -> Option<String> {
    let best = answers.points.iter().max_by(|a, b| a.jobs_per_min.total_cmp(&b.jobs_per_min))?;
    Some(format!(
        "`{}` did best with {} of those measured, about {} jobs/min. That is no peak with an \
         interval: `weigh load` takes {FEWEST_FRESH} fresh samples for one, if --budget lasts.",
        answers.mix,
        format::plural(best.users, "user"),
        format::rate(best.jobs_per_min, "jobs/min")
    ))
}

fn at_peak(answers: &LoadAnswers) -> Option<String> {
    let users = answers.peak.as_ref()?.users;
    let point @ LoadPoint { cpu_pct, waiting_pct, .. } =
        answers.points.iter().find(|point| point.users == users)?;
    let job_time = job_time(point);
    let cpu = cpu_pct.map(|pct| {
        let waiting = waiting_pct.unwrap_or_default();
        match () {
            () if pct >= BUSY_PCT => format!("the CPUs are {pct:.0} % busy, and are what limits it"),
            () if waiting >= WAITING_PCT => format!(
                "the users have {pct:.0} % of the CPUs, for which tasks waited in {waiting:.0} % of the \
                 time: other processes had a part of them"
            ),
            () => format!(
                "the CPUs are {pct:.0} % busy: jobs wait for something else, a disk, memory or each other"
            ),
        }
    });
    let run_queue = point.machine.run_queue;
    let queue = run_queue.map(|tasks| format!("{tasks:.1} tasks run or wait for a CPU"));
    let driver = point.driver_cpu_pct;
    let driver = driver.map(|pct| format!("the driver itself takes {pct:.1} % of the CPU time"));
    let parts: Vec<String> = [job_time, cpu, queue, driver].into_iter().flatten().collect();
    (!parts.is_empty()).then(|| format!("There, {}.", parts.join("; ")))
}

/// Within which time nearly all jobs end there.
fn job_time(point: &LoadPoint) -> Option<String> {
    let pct = percent_known(std::iter::once(point));
    let ns = point.job_time_ns(pct)?;
    Some(format!("{pct} % of the jobs end within {}", format::time_ns(ns)))
}

fn job_time_with(answers: &LoadAnswers, users: usize) -> String {
    let point = answers.points.iter().find(|point| point.users == users);
    point.and_then(job_time).map_or_else(String::new, |text| format!("; there, {text}"))
}

/// Which resource has no more to give, in the order in which that comes.
fn saturation(answers: &LoadAnswers) -> Option<String> {
    let name = |resource: Resource| match resource {
        Resource::Cpu => "the CPUs",
        Resource::Memory => "memory",
        Resource::Disk => "the disk",
    };
    let all = [Resource::Cpu, Resource::Memory, Resource::Disk];
    let is_known = |point: &LoadPoint| point.machine != BusyMachine::default();
    if !answers.points.iter().any(is_known) {
        return None;
    }
    let with = |one: &Saturated| {
        format!("{} with {}", name(one.resource), format::plural(one.users, "user"))
    };
    let found: Vec<String> = answers.saturated.iter().map(with).collect();
    let is_spared =
        |resource: &&Resource| !answers.saturated.iter().any(|one| one.resource == **resource);
    let spared: Vec<&str> = all.iter().filter(is_spared).map(|one| name(*one)).collect();
    Some(match (found.is_empty(), spared.is_empty()) {
        (true, _) => "Neither the CPUs nor memory nor the disk are saturated.".into(),
        (false, true) => format!("Saturated first: {}.", found.join(", then ")),
        (false, false) => {
            format!("Saturated first: {}; not {}.", found.join(", then "), spared.join(" or "))
        }
    })
}

fn knee(answers: &LoadAnswers) -> Option<String> {
    let knee = answers.knee.as_ref()?;
    let range = match (knee.users_low, knee.users_high) {
        (low, high) if low == high => String::new(),
        (low, high) => format!(" ({low} to {high} users are as good)"),
    };
    let users = format::plural(knee.users, "user");
    let there = job_time_with(answers, knee.users);
    Some(format!("Knee (the most throughput for the time of a job): at {users}{range}{there}."))
}

/// How much of what jobs read and write is read and written by the device.
fn device(answers: &LoadAnswers) -> Option<String> {
    let users = answers.peak.as_ref().map(|peak| peak.users);
    let point = answers.points.iter().find(|point| Some(point.users) == users)?;
    let (files, device) =
        point.machine.file_bytes_per_job.zip(point.machine.device_bytes_per_job)?;
    Some(format!(
        "Of files, jobs read and write {} each there, the device {}: {:.2} of it.",
        format::bytes(files),
        format::bytes(device),
        device / files
    ))
}

fn crossover(answers: &LoadAnswers) -> Option<String> {
    let last = answers.points.last()?;
    let per_user = format!("{CROSSOVER_JOBS} jobs a minute for each user");
    Some(match answers.crossover_users {
        Some(users) => {
            let there = job_time_with(answers, users);
            format!("Crossover ({per_user}): at {users} users{there}.")
        }
        None => format!(
            "Crossover ({per_user}): not reached with {}, each of whom gets {}.",
            format::plural(last.users, "user"),
            format::rate(last.jobs_per_min / last.users as f64, "jobs/min")
        ),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::result::load_drift::all_fresh;

    fn point(users: usize, jobs_per_min: f64) -> LoadPoint {
        let (cpu_pct, job_p99_ns) = (Some(97.2), Some(12e6));
        LoadPoint { users, jobs_per_min, samples: 3, cpu_pct, job_p99_ns, ..LoadPoint::default() }
    }

    #[test]
    fn the_answers_are_sentences_with_their_intervals() {
        let points = vec![point(1, 600.0), point(2, 1000.0), point(4, 996.0), point(200, 900.0)];
        let fresh: Vec<f64> = (0..FEWEST_FRESH).map(|i| 990.0 + i as f64).collect();
        let answers = LoadAnswers::new("load:shared".into(), points, &all_fresh(2, &fresh));
        let text = sentences(&answers).join("\n");
        for part in [
            "`load:shared` peaks with 2 users (2 to 4 users are within 1 %)",
            "jobs/min [990",
            "which is ±0.35 %, of 8 fresh samples",
            "99 % of the jobs end within 12.0 ms",
            "the CPUs are 97 % busy, and are what limits it",
            "at 200 users; there, 99 %",
            "Knee (the most throughput for the time of a job): at 2 users; there, 99 %",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
        assert!(!text.contains("beyond"), "{text}");
    }

    #[test]
    fn without_enough_fresh_samples_the_best_is_named_without_an_interval() {
        let points = vec![point(1, 600.0), point(2, 1000.0), point(4, 900.0)];
        let answers = LoadAnswers::new("load:x".into(), points, &all_fresh(2, &[1000.0; 3]));
        let text = sentences(&answers).join("\n");
        assert!(text.contains("did best with 2 users of those measured, about 1,000"), "{text}");
        assert!(!text.contains('[') && text.contains("--budget"), "{text}");
    }

    #[test]
    fn a_peak_at_the_end_is_said_to_be_one() {
        let points = vec![point(1, 600.0), point(2, 1000.0)];
        let answers =
            LoadAnswers::new("load:x".into(), points, &all_fresh(2, &[1000.0; FEWEST_FRESH]));
        let text = sentences(&answers).join("\n");
        assert!(
            text.contains("may be beyond") && text.contains("not reached with 2 users"),
            "{text}"
        );
    }
}
