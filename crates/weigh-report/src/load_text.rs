//! Result of a ramp, in sentences.

use paired::looks;
use weigh_model::cpu_share::quota_text;
use weigh_model::format;
use weigh_model::result::busy_machine::{BusyMachine, Resource, Saturated};
use weigh_model::result::load::{LoadAnswers, LoadPoint, or_with, percent_known};

/// Busier than this, the CPUs are what limits; and also where tasks waited for one most of the time.
const BUSY_PCT: f64 = 90.0;
const WAITING_PCT: f64 = 50.0;

/// The peak, who waits there, and the crossovers.
pub fn sentences(answers: &LoadAnswers) -> Vec<String> {
    let peak = peak(answers).or_else(|| best_without_interval(answers));
    let all = [peak, at_peak(answers), saturation(answers), knee(answers)].into_iter().flatten();
    all.chain(crossovers(answers)).chain(device(answers)).chain(basis(answers)).collect()
}

fn peak(answers: &LoadAnswers) -> Option<String> {
    let best = answers.best()?;
    let [rate, low, high] =
        [best.throughput.jobs_per_min, best.throughput.low, best.throughput.high]
            .map(|rate| format::rate(rate, "jobs/min"));
    let users = format::plural(best.users, "user");
    let did = format!(
        "{rate} jobs/min [{low}, {high}] in this run (±{} %, median of {} in rounds)",
        format::unsigned(100.0 * best.throughput.half_width()),
        format::plural(best.throughput.samples, "sample")
    );
    let most = answers.points.last().filter(|_| best.is_at_the_end);
    let beyond = most.map_or_else(String::new, |most| {
        let alike = match most.users == best.users {
            true => String::new(),
            false => format!(" ({} are as good)", most.users),
        };
        let most = format::plural(most.users, "user");
        format!(" The ramp ended at {most}{alike}, so the real peak may be higher.")
    });
    let mix = &answers.mix;
    Some(match answers.no_peak {
        Some(_) => {
            let why = match answers.points.len() {
                1 => "only one load point was measured".to_owned(),
                points => {
                    format!("none of {points} load points differs significantly from the best")
                }
            };
            format!("No clear peak for `{mix}`: {why}. With {users}: {did}.{beyond}")
        }
        None => {
            let others = or_with(best.users, &best.as_good);
            format!("`{mix}` peaks with {users}{others}: {did}.{beyond}")
        }
    })
}

/// The best point without an interval: too few samples in rounds, so its rate is likely too high.
fn best_without_interval(answers: &LoadAnswers) -> Option<String> {
    let best = answers.best_point()?;
    let did = match answers.points.len() {
        1 => "was measured with no more than",
        _ => "did best with",
    };
    let candidates = answers.points.iter().chain(answers.points.last());
    let enough = candidates.map(|point| SAMPLES_OF_CANDIDATE * point.elapsed_s).sum::<f64>();
    Some(format!(
        "`{}` {did} {}: about {} jobs/min. Not confirmed as the peak, which takes {} of each candidate: use \
         --budget {} or more.",
        answers.mix,
        format::plural(best.users, "user"),
        format::rate(best.jobs_per_min, "jobs/min"),
        format::plural(looks::FIRST, "sample"),
        format::budget(enough)
    ))
}

/// Launches of a load point that may be the peak: three to choose it, and those in rounds.
const SAMPLES_OF_CANDIDATE: f64 = 3.0 + looks::FIRST as f64;

fn at_peak(answers: &LoadAnswers) -> Option<String> {
    let users = answers.best()?.users;
    let point @ LoadPoint { cpu_pct, waiting_pct, .. } =
        answers.points.iter().find(|point| point.users == users)?;
    let job_time = job_time(point);
    let cpu = cpu_pct.map(|pct| {
        let waiting = waiting_pct.unwrap_or_default();
        let quota = answers.quota_cpus.map(quota_text);
        match quota {
            Some(quota) if pct >= BUSY_PCT => {
                format!("the quota of {quota} is {pct:.0} % used and limits the throughput")
            }
            Some(quota) => format!("the users got {pct:.0} % of the quota of {quota}"),
            None if pct >= BUSY_PCT => format!("the CPUs are {pct:.0} % busy and limit the throughput"),
            None if waiting >= WAITING_PCT => format!(
                "the users got {pct:.0} % of the CPU time, and tasks waited for a CPU {waiting:.0} % of the \
                 time: other processes took most of the rest"
            ),
            None => format!(
                "the CPUs are {pct:.0} % busy: jobs wait for a disk, for memory or for each other"
            ),
        }
    });
    let run_queue = point.machine.run_queue;
    let queue = run_queue.map(|tasks| format!("{tasks:.1} tasks run or wait for a CPU"));
    let driver = point.driver_cpu_pct;
    let driver = driver.map(|pct| format!("the load driver takes {pct:.1} % of the CPU time"));
    let parts: Vec<String> = [job_time, cpu, queue, driver].into_iter().flatten().collect();
    let users = format::plural(users, "user");
    (!parts.is_empty()).then(|| format!("With {users}, {}.", parts.join("; ")))
}

/// Within which time nearly all jobs end there.
fn job_time(point: &LoadPoint) -> Option<String> {
    let pct = percent_known(std::iter::once(point));
    let ns = point.job_time_ns(pct)?;
    Some(format!("{pct} % of the jobs end within {}", format::time_ns(ns)))
}

fn job_time_with(answers: &LoadAnswers, users: usize) -> String {
    let point = answers.points.iter().find(|point| point.users == users);
    point.and_then(job_time).map_or_else(String::new, |text| format!("; {text}"))
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
        let users = format::plural(one.users, "user");
        let by = if one.resource == Resource::Cpu { by_others(answers, one.users) } else { None };
        format!("{} with {users}{}", name(one.resource), by.unwrap_or_default())
    };
    let found: Vec<String> = answers.saturated.iter().map(with).collect();
    let is_spared =
        |resource: &&Resource| !answers.saturated.iter().any(|one| one.resource == **resource);
    let spared: Vec<&str> = all.iter().filter(is_spared).map(|one| name(*one)).collect();
    let found = found.join(", then ");
    Some(match &spared[..] {
        [] => format!("Saturated first: {found}."),
        [one] => format!("Saturated first: {found}. Still free: {one}."),
        [one, other] => format!("Saturated first: {found}. Still free: {one} and {other}."),
        _ => "Nothing is saturated: the CPUs, memory and the disk are still free.".into(),
    })
}

/// Says so if other processes used more CPU time than the users at this point.
fn by_others(answers: &LoadAnswers, users: usize) -> Option<String> {
    let point = answers.points.iter().find(|point| point.users == users)?;
    let (own, all) = (point.cpu_pct?, point.machine.cpu_busy_pct?);
    (all - own > own)
        .then(|| format!(" (mostly other processes: the users got {own:.0} % of the CPU time)"))
}

fn knee(answers: &LoadAnswers) -> Option<String> {
    let what = "Knee (best throughput per job time)";
    if answers.no_knee.is_some() {
        return Some(format!("{what}: no load point differs significantly from the best."));
    }
    let knee = answers.knee.as_ref()?;
    let users = format::plural(knee.users, "user");
    let others = or_with(knee.users, &knee.as_good);
    let there = job_time_with(answers, knee.users);
    Some(format!("{what}: at {users}{others}{there}."))
}

/// How much of what jobs read and write is read and written by the device.
fn device(answers: &LoadAnswers) -> Option<String> {
    let users = answers.best().map(|best| best.users);
    let point = answers.points.iter().find(|point| Some(point.users) == users)?;
    let (files, device) =
        point.machine.file_bytes_per_job.zip(point.machine.device_bytes_per_job)?;
    Some(format!(
        "Each job did {} of file I/O and {} of device I/O ({:.0} %).",
        format::bytes(files),
        format::bytes(device),
        100.0 * device / files
    ))
}

/// Which samples the figures are of, where load points differ in that.
fn basis(answers: &LoadAnswers) -> Option<String> {
    let in_rounds = answers.points.iter().filter(|point| point.in_rounds);
    let users: Vec<String> = in_rounds.map(|point| point.users.to_string()).collect();
    (1..answers.points.len()).contains(&users.len()).then(|| {
        format!(
            "Samples: with {} {}, only those in rounds count; with other numbers, all count.",
            users.join(", "),
            if users[..] == ["1"] { "user" } else { "users" }
        )
    })
}

/// Each crossover that was reached, and a sentence for all others.
fn crossovers(answers: &LoadAnswers) -> Vec<String> {
    let Some(last) = answers.points.last() else { return Vec::new() };
    let mut missed = Vec::new();
    let mut all = Vec::new();
    for (jobs, users) in answers.crossovers() {
        let Some(users) = users else {
            missed.push(jobs.to_string());
            continue;
        };
        let there = job_time_with(answers, users);
        let users = format::plural(users, "user");
        all.push(format!("Crossover ({jobs} jobs/min per user): at {users}{there}."));
    }
    if !missed.is_empty() {
        all.push(format!(
            "Crossover ({} jobs/min per user): not reached with {} ({} jobs/min per user).",
            missed.join(", "),
            format::plural(last.users, "user"),
            format::rate(last.jobs_per_min / last.users as f64, "jobs/min")
        ));
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use weigh_model::result::alike::{RampSample, rounds};
    use weigh_model::result::load::Throughput;

    fn point(users: usize, jobs_per_min: f64) -> LoadPoint {
        let (cpu_pct, job_p99_ns) = (Some(97.2), Some(12e6));
        LoadPoint { users, jobs_per_min, samples: 3, cpu_pct, job_p99_ns, ..LoadPoint::default() }
    }

    /// The answers for points with `in_rounds` rounds each.
    fn answers(rates: &[(usize, f64)], in_rounds: usize) -> LoadAnswers {
        let samples = rounds(rates, in_rounds);
        let of = |users: usize| {
            let own = samples.iter().filter(|one: &&RampSample| one.users == users);
            Throughput::of(&own.map(|one| one.jobs_per_min).collect::<Vec<_>>())
        };
        let points = rates.iter().map(|(users, rate)| {
            let found = of(*users);
            LoadPoint {
                samples: in_rounds,
                jobs_per_min_low: found.map(|found| found.low),
                jobs_per_min_high: found.map(|found| found.high),
                ..point(*users, found.map_or(*rate, |found| found.jobs_per_min))
            }
        });
        LoadAnswers::new("load:shared".into(), points.collect(), &samples)
    }

    fn text(rates: &[(usize, f64)], in_rounds: usize) -> String {
        sentences(&answers(rates, in_rounds)).join("\n")
    }

    #[test]
    fn the_answers_are_sentences_with_their_intervals() {
        let text = text(&[(1, 600.0), (2, 1000.0), (4, 996.0), (200, 900.0)], 8);
        for part in [
            "`load:shared` peaks with 2 users (not told apart from 4): 1,004 jobs/min [",
            "median of 8 samples in rounds",
            "With 2 users, 99 % of the jobs end within 12.0 ms; the CPUs are 97 % busy and limit",
            "Crossover (60 jobs/min per user): at 200 users; 99 %",
            "Crossover (10 jobs/min per user): at 200 users; 99 %",
            "Crossover (1 jobs/min per user): not reached with 200 users (4.5",
            "Knee (best throughput per job time): at 2 users; 99 %",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
        assert!(!text.contains("may be higher"), "{text}");
    }

    /// Other processes take nothing of a quota.
    #[test]
    fn under_a_quota_the_reason_is_the_quota() {
        let mut found = answers(&[(1, 600.0), (2, 1000.0), (4, 996.0)], 8);
        found.quota_cpus = Some(0.5);
        let text = at_peak(&found).unwrap();
        assert!(
            text.contains("the quota of 0.5 CPUs is 97 % used and limits the throughput"),
            "{text}"
        );
        let less =
            |point: &mut LoadPoint| (point.cpu_pct, point.waiting_pct) = (Some(60.0), Some(90.0));
        found.points.iter_mut().for_each(less);
        let text = at_peak(&found).unwrap();
        assert!(text.contains("the users got 60 % of the quota of 0.5 CPUs"), "{text}");
    }

    #[test]
    fn where_nothing_is_told_apart_no_peak_is_named() {
        let text = text(&[(1, 1000.0), (2, 1001.0), (4, 1002.0)], 8);
        for part in ["No clear peak for", "none of 3 load points", "the best. With 4 users: "] {
            assert!(text.contains(part), "{part}: {text}");
        }
        assert!(!text.contains("peaks with"), "{text}");
    }

    #[test]
    fn one_user_alone_is_no_plural() {
        let text = text(&[(1, 1000.0)], 8);
        for part in
            ["The ramp ended at 1 user, so", "not reached with 1 user (1,004 jobs/min per user)"]
        {
            assert!(text.contains(part), "{part}: {text}");
        }
        assert!(!text.contains("none of 1"), "{text}");
    }

    #[test]
    fn without_enough_rounds_the_best_is_named_without_an_interval() {
        let text = text(&[(1, 600.0), (2, 1000.0), (4, 900.0)], 3);
        assert!(text.contains("did best with 2 users: about 1,000"), "{text}");
        assert!(!text.contains('[') && text.contains("use --budget 10s or more"), "{text}");
        let alone = answers(&[(1, 600.0)], 3);
        let alone = sentences(&alone).join(" ");
        assert!(alone.contains("was measured with no more than 1 user: about 600"), "{alone}");
    }

    #[test]
    fn it_is_said_which_samples_count_where_points_differ_in_that() {
        let mut found = answers(&[(1, 600.0), (2, 1000.0), (4, 996.0)], 8);
        let said = |found: &LoadAnswers| sentences(found).join(" ");
        assert!(!said(&found).contains("Samples:"), "{}", said(&found));
        found.points[1].in_rounds = true;
        found.points[2].in_rounds = true;
        let wanted =
            "Samples: with 2, 4 users, only those in rounds count; with other numbers, all count.";
        assert!(said(&found).contains(wanted), "{}", said(&found));
        found.points[0].in_rounds = true;
        assert!(!said(&found).contains("Samples:"), "all are of one kind");
        found.points[1..].iter_mut().for_each(|point| point.in_rounds = false);
        assert!(said(&found).contains("Samples: with 1 user, only"), "{}", said(&found));
    }

    #[test]
    fn what_is_saturated_and_what_is_not_are_two_sentences() {
        let mut found = answers(&[(1, 600.0), (2, 1000.0), (4, 996.0)], 8);
        found.points[0].machine.run_queue = Some(1.0);
        let said = |found: &LoadAnswers| saturation(found).unwrap();
        assert_eq!(
            said(&found),
            "Nothing is saturated: the CPUs, memory and the disk are still free."
        );
        found.saturated = vec![Saturated { resource: Resource::Cpu, users: 2 }];
        assert_eq!(
            said(&found),
            "Saturated first: the CPUs with 2 users. Still free: memory and the disk."
        );
        found.points[1].cpu_pct = Some(7.0);
        found.points[1].machine.cpu_busy_pct = Some(100.0);
        assert_eq!(
            said(&found),
            "Saturated first: the CPUs with 2 users (mostly other processes: the users got 7 % of the CPU \
             time). Still free: memory and the disk."
        );
        found.points[1].cpu_pct = Some(97.0);
        found.saturated.push(Saturated { resource: Resource::Disk, users: 4 });
        assert_eq!(
            said(&found),
            "Saturated first: the CPUs with 2 users, then the disk with 4 users. Still free: memory."
        );
    }

    #[test]
    fn a_peak_at_the_end_is_said_to_be_one() {
        let text = text(&[(1, 600.0), (2, 1000.0)], 8);
        assert!(
            text.contains("The ramp ended at 2 users, so the real peak may be higher")
                && text.contains("not reached with 2 users"),
            "{text}"
        );
        let text = self::text(&[(1, 600.0), (2, 1000.0), (4, 996.0)], 8);
        assert!(text.contains("ended at 4 users (4 are as good), so"), "{text}");
    }
}
