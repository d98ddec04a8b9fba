//! Many users at the same time: the driver of a load, mixes and workfiles, load points as rows.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::chown;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use crate::support::processes::signal;
use crate::support::{Home, Turn, is_root, row, skip, wait_until};
use rand::{RngExt, SeedableRng};
use rustix::process::Signal;
use serde_json::Value;

/// User ids that nobody has. The kernel limits processes per user, so each test with a limit has its own.
const UNUSED: [u32; 3] = [61_235, 61_236, 61_237];
const LONG: Duration = Duration::from_secs(30);
/// Jobs of a few microseconds, in the kernel and in a file.
const MIX: &str =
    "name = \"mine\"\nsummary = \"stat and a copied file\"\n[tests]\nstat = 3\nfstime = 1\n";

fn load(home: &Home, program: &PathBuf, arguments: &[&str]) -> Command {
    let mut command = home.command(program);
    command.arg("load").args(arguments);
    command
}

fn last_line(text: &str) -> Value {
    serde_json::from_str(text.lines().last().unwrap()).unwrap()
}

fn reading(sample: &Value, name: &str) -> f64 {
    let all = sample["readings"].as_array().unwrap();
    all.iter().find(|reading| reading["name"] == name).unwrap()["value"].as_f64().unwrap()
}

/// Directories of users or of the driver.
fn scratch_of(home: &Home) -> Vec<String> {
    let entries = fs::read_dir(home.directory.path()).unwrap();
    let names = entries.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned());
    names
        .filter(|name| name.starts_with("weigh-") && !name.starts_with("weigh-workloads"))
        .collect()
}

#[test]
fn each_user_does_every_job_and_the_rate_is_of_the_slowest() {
    let home = Home::new();
    let program = home.workloads();
    let outcome = home
        .start(load(&home, &program, &["--users", "7", "--seed", "3", "stat=20", "fstime=5"]))
        .finish();
    assert_eq!(outcome.code, Some(0), "{outcome:#?}");
    let sample = last_line(&outcome.stdout);
    let number = |name: &str| sample[name].as_f64().unwrap();
    assert_eq!((number("operations"), number("users")), (7.0 * 25.0, 7.0));
    let rate = number("operations") * 60e9 / number("elapsed_ns");
    assert!((number("rate") / rate - 1.0).abs() < 1e-6, "{sample:#}");
    let jobs: u64 = sample["latencies"]["buckets"]
        .as_array()
        .unwrap()
        .iter()
        .map(|bucket| bucket[1].as_u64().unwrap())
        .sum();
    assert_eq!(jobs, 175);
    // As re-aim has them (classic-suites.md, 3.2), from when the seven were done.
    let finishes = sample["finishes_ns"].as_array().unwrap();
    let finishes: Vec<f64> = finishes.iter().map(|ns| ns.as_f64().unwrap()).collect();
    let mean = finishes.iter().sum::<f64>() / 7.0;
    let deviation = (finishes.iter().map(|ns| (ns - mean).powi(2)).sum::<f64>() / 7.0).sqrt();
    let is_close = |name: &str, value: f64| {
        let found = reading(&sample, name);
        assert!((found - value).abs() <= 1e-6 * value.abs(), "{name} is {found}, not {value}");
    };
    is_close("finish_deviation", deviation);
    let driver_pct = reading(&sample, "driver_cpu");
    assert!(driver_pct > 0.0 && driver_pct < 100.0, "{sample:#}");
    is_close("job_timing_index", (100.0 * (1.0 - deviation / mean)).max(0.0));
    is_close("first_finish", finishes.iter().copied().fold(f64::INFINITY, f64::min));
    assert_eq!(finishes.iter().copied().fold(0.0, f64::max), number("elapsed_ns"));
    assert_eq!(scratch_of(&home), Vec::<String>::new());
}

#[test]
fn many_users_start_and_none_is_lost() {
    let _turn = Turn::share();
    let home = Home::new();
    let program = home.workloads();
    let users = crate::support::hard(1000, 5000);
    let outcome =
        home.start(load(&home, &program, &["--users", &users.to_string(), "getppid=3"])).finish();
    assert_eq!(outcome.code, Some(0), "{outcome:#?}");
    assert_eq!(last_line(&outcome.stdout)["operations"].as_u64(), Some(3 * users));
    assert_eq!(scratch_of(&home), Vec::<String>::new());
}

#[test]
fn a_user_or_a_driver_that_is_killed_gives_no_rate_and_leaves_nothing() {
    let _turn = Turn::share();
    let mut chance = rand_chacha::ChaCha8Rng::seed_from_u64(14);
    for kill in 0..crate::support::hard(8, 60) {
        let home = Home::new();
        let program = home.workloads();
        let running =
            home.start(load(&home, &program, &["--users", "20", "fstime=100000", "stat=100000"]));
        std::thread::sleep(Duration::from_millis(chance.random_range(5..300)));
        let processes = home.processes_of("load --users");
        let is_driver = kill % 2 == 0;
        let users: Vec<i32> = processes.into_iter().filter(|pid| *pid != running.pid()).collect();
        let victim = match users.get(chance.random_range(0..users.len().max(1))) {
            Some(user) if !is_driver => *user,
            _ => running.pid(),
        };
        signal(victim, Signal::KILL);
        let outcome = running.finish();
        assert_ne!(outcome.code, Some(0), "{outcome:#?}");
        assert!(!outcome.stdout.contains("rate"), "{outcome:#?}");
        let is_gone = || home.processes().is_empty() && scratch_of(&home).is_empty();
        assert!(
            wait_until(LONG, is_gone),
            "{:?} {:?}",
            home.describe_processes(),
            scratch_of(&home)
        );
    }
}

#[test]
fn a_load_point_is_a_row_that_a_treatment_can_have_an_effect_on() {
    // Audit rules of a test beside it would cost each system call more than the filter does.
    let _turn = Turn::with("audit");
    let home = Home::new();
    home.file("workfile.mine", "# re-aim's\n30 stat\n10 getppid\n");
    let label = "load:./workfile.mine:users=3";
    let outcome = home.measure(&[
        "compare",
        "seccomp:compares=2000",
        "-w",
        label,
        "--jobs",
        "40000",
        "--pairs",
        "16",
        "--metric",
        "latency_p99",
    ]);
    outcome.assert_says(&["--jobs 40000", label]);
    let json = home.json();
    let measured = row(&json, label);
    assert_eq!(measured["unit"], "jobs/min");
    assert_eq!(measured["load"]["axis"], "users");
    crate::support::assert_slows(measured, 10.0);
    // What the driver takes itself, of both arms.
    let driver = |arm: &str| measured["resources"][arm]["driver_cpu_pct"].as_f64();
    assert!(driver("baseline") > Some(0.0) && driver("treated") > Some(0.0), "{measured:#}");
    home.succeed("show -v").assert_says(&["CPU time of the load driver"]);
    home.succeed(&["run", label, "--samples", "3", "--jobs", "400"]).assert_says(&["driver"]);
}

/// The search, its points in both arms, and the peak, which a filter makes much lower. There is a verdict on
/// it in check-hard.
#[test]
fn the_peak_of_a_mix_is_sought_in_both_arms() {
    // Audit rules of a test beside it would cost each system call more than the filter does.
    let _turn = Turn::with("audit");
    let home = Home::new();
    // Calls only: what a filter costs is most of them.
    home.file("mine.toml", "name = \"mine\"\nsummary = \"calls\"\n[tests]\ngetppid = 1\n");
    let label = "load:./mine.toml";
    let arguments = ["compare", "seccomp:compares=2000", "-w", label, "--jobs", "20000"];
    // Until there is a verdict, it may take minutes: check-hard has them.
    let is_hard = crate::support::hard(0, 1) == 1;
    let budget = ["--budget", if is_hard { "240s" } else { "20s" }];
    let outcome = home.measure(&[&arguments[..], &budget].concat());
    outcome.assert_says(&["Searching for the peak of load:./mine.toml"]);
    let json = home.json();
    let peak = row(&json, label);
    assert!(peak["load"].is_null() && peak["pairs"].as_u64().unwrap() > 0, "{peak:#}");
    if is_hard {
        outcome.assert_says(&["lowers the peak of"]);
        assert_eq!(peak["verdict"], "slower", "{peak:#}");
        let rows = json["results"].as_array().unwrap();
        assert!(rows.iter().all(|row| row["pairs"].as_u64().unwrap() > 0), "{rows:#?}");
    }
    let load = &json["loads"][0];
    let highest = ["baseline", "treated"].map(|arm| {
        let points = load[arm]["points"].as_array().unwrap();
        assert!(points.iter().any(|point| point["users"] == load[arm]["peak_users"]), "{load:#}");
        points.iter().filter_map(|point| point["jobs_per_min"].as_f64()).fold(0.0, f64::max)
    });
    // On a busy machine the search has not left the first point when its time is over.
    let has_ramp = ["baseline", "treated"].iter().all(|arm| load[arm]["points"][1].is_object());
    assert!(has_ramp || !is_hard, "{load:#}");
    // A call that takes four times as long.
    assert!(highest[0] > 1.5 * highest[1] && highest[1] > 0.0, "{load:#}");
    // Of both arms, in the page too; and another session goes on at the same points.
    let html = home.succeed("export latest --html").stdout;
    let users: BTreeSet<u64> = (["baseline", "treated"].iter())
        .flat_map(|arm| load[arm]["points"].as_array().unwrap())
        .map(|point| point["users"].as_u64().unwrap())
        .collect();
    // Two load points are a table.
    let peak = if users.len() > 2 { "class=\"mark" } else { "<td>peak" };
    let is_shown = html.contains("By number of users") && html.contains(peak);
    assert!(is_shown || !has_ramp, "{html}");
    let id = json["id"].as_str().unwrap();
    let outcome = home.run(&["compare", "--continue", id, "--budget", "3s"]);
    // How far it comes in that time is the machine's affair.
    assert_eq!(outcome.signal, None, "{outcome:#?}");
    outcome.assert_says(&["session 2"]);
    assert!(!outcome.stderr.contains("Searching for the peak"), "{outcome:#?}");
    let later = home.json();
    assert_eq!(later["loads"][0]["baseline"]["peak_users"], load["baseline"]["peak_users"]);
}

/// `weigh load` of an ordinary user, who has no process yet and may have so many.
fn as_another_user(
    user: u32,
    home: &Home,
    arguments: &[&str],
    processes: &str,
) -> crate::support::Outcome {
    fs::copy(crate::support::program(), home.path("weigh")).unwrap();
    let whole = ["", "data", "state", "tmp", "weigh"].map(|name| home.path(name));
    whole.iter().for_each(|path| chown(path, Some(user), Some(user)).unwrap());
    let mut command = home.command("prlimit");
    command.arg(format!("--nproc={processes}")).args(["setpriv", "--reuid", &user.to_string()]);
    command.args(["--regid", &user.to_string(), "--clear-groups", "./weigh", "load"]);
    command.args(arguments).args(["--budget", "180s", "--precision", "90%"]);
    home.start(command).finish()
}

/// The budget lasts for a few samples, and a peak takes at least eleven. How long a sample takes is measured
/// anew for each command, as others may use the machine.
#[test]
fn a_search_that_confirms_no_peak_ends_with_status_3() {
    let _turn = Turn::share();
    let home = Home::new();
    home.file("mine.toml", MIX);
    let program = home.workloads();
    let jobs = ["--users", "1", "stat=600000", "fstime=200000"];
    let run = |more: &[&str]| {
        let sample = last_line(&home.start(load(&home, &program, &jobs)).finish().stdout);
        let budget = format!("{}ms", (3.3 * sample["elapsed_ns"].as_f64().unwrap() / 1e6).ceil());
        let line = ["load", "./mine.toml", "--jobs", "800000", "--budget", &budget];
        let before = home.samples();
        let outcome = home.run(&[&line[..], more].concat());
        (1..=10).contains(&(home.samples() - before)).then_some(outcome)
    };
    // Others may begin or end in between.
    let run = |more: &[&str]| (0..5).find_map(|_| run(more)).expect("none had a few samples");
    let outcome = run(&[]);
    assert_eq!(outcome.code, Some(3), "{outcome:#?}");
    outcome.assert_says(&["Not confirmed as the peak", "use --budget"]);
    let sets = run(&["--sets", "2"]);
    assert_eq!(sets.code, Some(3), "{sets:#?}");
    sets.assert_says(&["No peak was confirmed in 2 sets"]);
    let points = run(&["--users", "1"]);
    assert_eq!(points.code, Some(0), "its points were measured: {points:#?}");
}

/// An ordinary user may have so many processes.
#[test]
fn a_machine_that_refuses_more_users_ends_the_ramp_before() {
    if !is_root() {
        skip("root", "needs root, to be another user with no process yet");
        return;
    }
    let _turn = Turn::share();
    let home = Home::new();
    home.file("mine.toml", MIX);
    let arguments = ["./mine.toml", "--users", "1,40,500", "--jobs", "100"];
    let outcome = as_another_user(UNUSED[0], &home, &arguments, "100");
    assert_eq!(outcome.code, Some(0), "{outcome:#?}");
    outcome.assert_says(&["The ramp stopped at load:./mine.toml:users=500", "refuses user"]);
}

#[test]
fn what_gives_no_work_is_refused_in_a_sentence() {
    let home = Home::new();
    for (file, text, why) in [
        ("workfile.empty", "# nothing\n", "the mix has no tests"),
        ("workfile.unknown", "10 no_such_test\n", "has a test that does not exist"),
        ("workfile.zero", "0 stat\n", "all weights are 0"),
        ("workfile.wrong", "10 stat\nx stat\n", "workfile.wrong:2: `x` is not a number of hits"),
        (
            "twice.toml",
            "name = \"x\"\nsummary = \"\"\n[tests]\nstat = 1\nstat = 2\n",
            "twice.toml:5",
        ),
    ] {
        home.file(file, text);
        let outcome =
            home.run(&["load", &format!("./{file}"), "--users", "1,2", "--budget", "10s"]);
        outcome.assert_error(&[why]);
    }
    home.run("load no-such-mix").assert_error(&["there is no mix `no-such-mix`; there are"]);
    home.run("run load:shared:copies=2").assert_error(&["there is `users`"]);
    home.run("load shared --users 0").assert_error(&["no number of users"]);
    home.run("load shared --to top").assert_error(&["peak, crossover, quick, classic"]);
}

/// re-aim keeps the last weight of a test that is named again, and both in the total.
#[test]
fn a_test_that_is_named_twice_is_told() {
    let home = Home::new();
    home.file("workfile.twice", "20 stat\n30 getppid\n50 stat\n");
    let arguments = ["run", "load:./workfile.twice:users=1", "--samples", "3", "--jobs", "10"];
    home.succeed(&arguments).assert_says(&["workfile.twice:3: `stat` is named twice"]);
}

/// Each ends in a sentence, status 2 and without a number.
fn assert_no_number(home: &Home, outcome: &crate::support::Outcome, why: &[&str]) {
    assert_eq!(outcome.code, Some(2), "{outcome:#?}");
    let whole = format!("{}{}", outcome.stdout, outcome.stderr);
    assert!(why.iter().any(|why| whole.contains(why)), "{why:?}: {outcome:#?}");
    assert!(!outcome.stdout.contains("peaks with"), "{outcome:#?}");
    assert_eq!(home.leftovers(), Vec::<PathBuf>::new());
}

/// Another program fills it when the files of the first sample are begun, so that there was room before.
#[test]
fn a_disk_that_becomes_full_gives_no_result() {
    if !is_root() {
        skip("root", "needs root, to mount a small file system");
        return;
    }
    let home = Home::new();
    let small = home.path("small");
    fs::create_dir(&small).unwrap();
    // It takes again what the users free, as they delete each file after its job.
    let script = format!(
        "mount -t tmpfs -o size=64m none '{0}' || exit; \
         (until find '{0}' -name common | grep -q .; do kill -0 $$ || exit; sleep 0.02; done; \
         while kill -0 $$; do cat /dev/zero >>'{0}/fill'; sleep 0.01; done) 2>/dev/null & exec \"$@\"",
        small.display()
    );
    let mut command = home.command("unshare");
    command.args(["-m", "sh", "-c", &script, "sh"]).arg(crate::support::program());
    // Jobs for seconds, so that the other program is quicker on a busy machine, too.
    command.args(["load", "disk", "--users", "2", "--file-size", "9m", "--budget", "20s"]);
    command.args(["--jobs", "400"]);
    command.arg("--fixture").arg(format!("fs:dir={}", small.display()));
    let outcome = home.start(command).finish();
    assert_no_number(&home, &outcome, &["No space left on device"]);
}

#[test]
fn a_limit_of_processes_is_no_result() {
    if !is_root() {
        skip("root", "needs root, to be another user with no process yet");
        return;
    }
    let home = Home::new();
    home.file("mine.toml", MIX);
    let outcome = as_another_user(UNUSED[1], &home, &["./mine.toml", "--users", "500"], "64");
    assert_no_number(&home, &outcome, &["refuses user"]);
}

#[test]
fn a_disk_directory_that_cannot_be_read_is_no_result() {
    if !is_root() {
        skip("root", "needs root, to be another user");
        return;
    }
    let home = Home::new();
    home.file("mine.toml", MIX);
    let closed = home.path("closed");
    fs::create_dir(&closed).unwrap();
    fs::set_permissions(&closed, std::os::unix::fs::PermissionsExt::from_mode(0o000)).unwrap();
    let fixture = format!("fs:dir={}", closed.display());
    let arguments = ["./mine.toml", "--users", "1,2", "--fixture", &fixture];
    let outcome = as_another_user(UNUSED[2], &home, &arguments, "1000");
    assert_no_number(&home, &outcome, &["Permission denied", "cannot"]);
}

/// Through control groups of version 1 or 2, whichever this system has.
#[test]
fn too_little_memory_is_no_result() {
    let groups =
        [("/sys/fs/cgroup/memory", "memory.limit_in_bytes"), ("/sys/fs/cgroup", "memory.max")];
    let name = format!("test-of-memory-{}", std::process::id());
    let made = groups.into_iter().find_map(|(root, limit)| {
        let group = PathBuf::from(root).join(&name);
        let is_there = PathBuf::from(root).join("cgroup.procs").exists();
        (is_there && fs::create_dir(&group).is_ok()).then_some(())?;
        match fs::write(group.join(limit), "200M") {
            Ok(()) => Some(group),
            Err(_) => fs::remove_dir(&group).ok().and(None),
        }
    });
    let Some(group) = made else {
        skip("cgroup", "no control group with a limit of memory can be made here");
        return;
    };
    let home = Home::new();
    home.file("mine.toml", "name = \"mine\"\nsummary = \"memory\"\n[tests]\nresident = 1\n");
    let script = format!("echo $$ > '{}/cgroup.procs' && exec \"$@\"", group.display());
    let mut command = home.command("sh");
    command.args(["-c", &script, "sh"]).arg(crate::support::program());
    // 8 MiB each, which no user gives back.
    command.args(["load", "./mine.toml", "--users", "100", "--jobs", "2000", "--budget", "30s"]);
    let outcome = home.start(command).finish();
    let is_removed = || fs::remove_dir(&group).is_ok();
    assert!(wait_until(LONG, is_removed), "{} is in use", group.display());
    assert_no_number(&home, &outcome, &["killed by signal 9", "memory"]);
}

/// Whatever the machine does with it, the jobs begin as often as they are to; closed, users think.
#[test]
fn jobs_arrive_at_their_rate_and_users_think() {
    let home = Home::new();
    let program = home.workloads();
    let take = |arguments: &[&str]| {
        let outcome = home.start(load(&home, &program, arguments)).finish();
        assert_eq!(outcome.code, Some(0), "{outcome:#?}");
        last_line(&outcome.stdout)
    };
    // Two hundred jobs in two users, of a Poisson process of 400 a second: half a second.
    let open = ["--users", "2", "--jobs-per-1000s", "400000", "getppid=100"];
    let sample = take(&open);
    let elapsed_s = |sample: &Value| sample["elapsed_ns"].as_f64().unwrap() / 1e9;
    assert!(elapsed_s(&sample) > 0.25, "{sample:#}");
    assert!(reading(&sample, "user_memory") > 4096.0, "{sample:#}");
    // An overload: a job waits for those before it, and its time has that in it.
    let mut jobs = open;
    (jobs[3], jobs[4]) = ("1000000000", "fstime=2000");
    let buckets = |sample: &Value| -> Vec<(u64, u64)> {
        let buckets = sample["latencies"]["buckets"].as_array().unwrap();
        let of = |bucket: &Value, i: usize| bucket[i].as_u64().unwrap();
        buckets.iter().map(|bucket| (of(bucket, 0), of(bucket, 1))).collect()
    };
    let sample = take(&jobs);
    // In a closed loop all times of jobs together are at most those of the users; here each job has those of
    // all before it, a thousand times as much. So no stall of the machine is taken for that, or hides it.
    let all_ns: f64 = buckets(&sample).iter().map(|(ns, jobs)| (ns * jobs) as f64).sum();
    let of_users_ns = 2.0 * sample["elapsed_ns"].as_f64().unwrap();
    assert!(all_ns > 10.0 * of_users_ns, "{all_ns} of {of_users_ns}: {sample:#}");
    let sample = take(&["--users", "2", "--think-us", "10000", "getppid=20"]);
    assert!(elapsed_s(&sample) > 0.2, "{sample:#}");
}

/// For so long, whatever a job takes; and each user's memory is its own.
#[test]
fn users_work_for_a_period_and_keep_memory() {
    let home = Home::new();
    let program = home.workloads();
    let arguments = ["--users", "2", "--period-ms", "200", "--resident-mib", "20", "resident=3"];
    let outcome = home.start(load(&home, &program, &arguments)).finish();
    assert_eq!(outcome.code, Some(0), "{outcome:#?}");
    let sample = last_line(&outcome.stdout);
    assert!(sample["elapsed_ns"].as_f64().unwrap() >= 200e6, "{sample:#}");
    assert!(sample["operations"].as_u64().unwrap() >= 2, "{sample:#}");
    assert!(reading(&sample, "user_memory") >= 20.0 * 1048576.0, "{sample:#}");
}

/// A size may come from another's configuration.
#[test]
fn files_that_have_no_room_are_refused_before_they_are_written() {
    let home = Home::new();
    let outcome = home.run("load disk --file-size 1048576m --users 1 --budget 3s");
    outcome.assert_error(&["the users' files need ", "has room for"]);
}

#[test]
fn a_ramp_is_written_in_every_format() {
    let _turn = Turn::share();
    let home = Home::new();
    home.file("mine.toml", MIX);
    let files = ["--csv", "l.csv", "--junit", "l.xml", "--markdown", "l.md", "--json", "l.json"];
    let ramp = ["load", "./mine.toml", "--users", "1,2", "--repeat", "3", "--budget", "20s"];
    home.succeed(&[&ramp[..], &files].concat());
    let read = |name: &str| fs::read_to_string(home.path(name)).unwrap();
    let csv = read("l.csv");
    assert!(csv.contains(",users,2\n") && csv.lines().count() > 6, "{csv}");
    let junit = read("l.xml");
    assert!(junit.contains("tests=\"2\" failures=\"0\" errors=\"0\""), "{junit}");
    assert!(read("l.md").contains("| load:./mine.toml"), "{}", read("l.md"));
    for (format, file) in [("--csv", "l.csv"), ("--junit", "l.xml"), ("--json", "l.json")] {
        assert_eq!(home.succeed(&["export", "latest", format]).stdout, read(file), "{format}");
    }
}
