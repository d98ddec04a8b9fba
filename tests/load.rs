//! Many users at the same time: the driver of a load, mixes and workfiles, the ramp, load points as rows.

mod support;

use std::fs;
use std::os::unix::fs::chown;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use rand::{RngExt, SeedableRng};
use rustix::process::Signal;
use serde_json::Value;
use support::processes::signal;
use support::{Home, Turn, is_root, row, wait_until};

/// Nobody's.
const UNUSED: u32 = 61_234;
const LONG: Duration = Duration::from_secs(30);
/// A few microseconds a job, in the kernel and in a file.
const MIX: &str =
    "name = \"mine\"\nsummary = \"stat and a copied file\"\n[tests]\nstat = 3\nfstime = 1\n";

/// The executable with the workloads, in this home.
fn workloads(home: &Home) -> PathBuf {
    let path = home.path("weigh-workloads");
    weighbridge::workload::executable::Executable::unpack(home.directory.path()).unwrap();
    path
}

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
    let program = workloads(&home);
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
    assert!((0.0..=100.0).contains(&reading(&sample, "job_timing_index")));
    assert_eq!(scratch_of(&home), Vec::<String>::new());
}

#[test]
fn many_users_start_and_none_is_lost() {
    let _turn = Turn::take();
    let home = Home::new();
    let program = workloads(&home);
    let users = support::hard(1000, 5000);
    let outcome =
        home.start(load(&home, &program, &["--users", &users.to_string(), "getppid=3"])).finish();
    assert_eq!(outcome.code, Some(0), "{outcome:#?}");
    assert_eq!(last_line(&outcome.stdout)["operations"].as_u64(), Some(3 * users));
    assert_eq!(scratch_of(&home), Vec::<String>::new());
}

#[test]
fn a_user_or_a_driver_that_is_killed_gives_no_rate_and_leaves_nothing() {
    let _turn = Turn::take();
    let mut chance = rand_chacha::ChaCha8Rng::seed_from_u64(14);
    for kill in 0..support::hard(8, 60) {
        let home = Home::new();
        let program = workloads(&home);
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
fn a_ramp_finds_a_peak_with_its_interval() {
    let _turn = Turn::take();
    let home = Home::new();
    home.file("mine.toml", MIX);
    let arguments =
        ["load", "./mine.toml", "--jobs", "2000", "--budget", "150s", "--precision", "40%"];
    let outcome = home.succeed(&arguments);
    outcome.assert_says(&["`load:./mine.toml` peaks with", "jobs/min [", "Crossover"]);
    let json = home.json();
    let loads = &json["loads"][0];
    let peak = &loads["peak"];
    let number = |name: &str| peak[name].as_f64().unwrap_or_else(|| panic!("{name}: {peak:#}"));
    assert!(number("samples") >= 8.0);
    assert!(number("low") <= number("jobs_per_min") && number("jobs_per_min") <= number("high"));
    assert!(loads["points"].as_array().unwrap().len() >= 3, "{loads:#}");
    // The last of the columns is there, so all readings were stored.
    let table = home.succeed(&["show", "latest", "--as", "reaim"]).stdout;
    assert!(table.contains("Jobs per Minute") && !table.contains("n/a"), "{table}");
}

#[test]
fn a_load_point_is_a_row_that_a_treatment_can_have_an_effect_on() {
    let _turn = Turn::take();
    let home = Home::new();
    home.file("workfile.mine", "# re-aim's\n30 stat\n10 getppid\n");
    let label = "load:./workfile.mine:users=3";
    let outcome = home.run(&[
        "compare",
        "seccomp:compares=500",
        "-w",
        label,
        "--jobs",
        "4000",
        "--pairs",
        "8",
        "--metric",
        "latency_p99",
    ]);
    assert!(matches!(outcome.code, Some(0 | 3)), "{outcome:#?}");
    outcome.assert_says(&["--jobs 4000", label]);
    let json = home.json();
    let measured = row(&json, label);
    assert_eq!(measured["unit"], "jobs/min");
    assert_eq!(measured["load"]["axis"], "users");
    support::assert_slows(measured, 10.0);
}

/// An ordinary user may have so many processes.
#[test]
fn a_machine_that_refuses_more_users_ends_the_ramp_before() {
    if !is_root() {
        println!("skipped: needs root, to be another user with no process yet");
        return;
    }
    let _turn = Turn::take();
    let home = Home::new();
    home.file("mine.toml", MIX);
    fs::copy(support::program(), home.path("weigh")).unwrap();
    let whole = ["", "data", "state", "tmp", "weigh"].map(|name| home.path(name));
    whole.iter().for_each(|path| chown(path, Some(UNUSED), Some(UNUSED)).unwrap());
    let mut command = home.command("prlimit");
    command.args([
        "--nproc=100",
        "setpriv",
        "--reuid",
        &UNUSED.to_string(),
        "--regid",
        &UNUSED.to_string(),
    ]);
    command.args([
        "--clear-groups",
        "./weigh",
        "load",
        "./mine.toml",
        "--users",
        "1,4,500",
        "--budget",
        "60s",
    ]);
    let outcome = home.start(command).finish();
    assert_eq!(outcome.code, Some(0), "{outcome:#?}");
    outcome.assert_says(&["The ramp ended before load:./mine.toml:users=500", "refuses user"]);
}

#[test]
fn what_gives_no_work_is_refused_in_a_sentence() {
    let home = Home::new();
    for (file, text, why) in [
        ("workfile.empty", "# nothing\n", "the mix has no tests"),
        ("workfile.unknown", "10 no_such_test\n", "has a test that does not exist"),
        ("workfile.zero", "0 stat\n", "all weights are 0"),
        ("workfile.wrong", "10 stat\nx stat\n", "workfile.wrong:2: `x` is no number of hits"),
        (
            "twice.toml",
            "name = \"x\"\nsummary = \"\"\n[tests]\nstat = 1\nstat = 2\n",
            "twice.toml:5",
        ),
        (
            "placed.toml",
            "name = \"x\"\nsummary = \"\"\n[tests]\n\"context1@same-cpu\" = 1\n",
            "cannot be a part",
        ),
    ] {
        home.file(file, text);
        let outcome =
            home.run(&["load", &format!("./{file}"), "--users", "1,2", "--budget", "10s"]);
        outcome.assert_error(&[why]);
    }
    home.run(&["load", "no-such-mix"]).assert_error(&["there is no mix `no-such-mix`; there are"]);
    home.run(&["run", "load:shared:copies=2"]).assert_error(&["there is `users`"]);
    home.run(&["load", "shared", "--users", "0"]).assert_error(&["no number of users"]);
    home.run(&["load", "shared", "--to", "top"]).assert_error(&["peak, crossover, quick, classic"]);
}

/// re-aim keeps the last weight of a test that is named again, and both in the total.
#[test]
fn a_test_that_is_named_twice_is_told() {
    let home = Home::new();
    home.file("workfile.twice", "20 stat\n30 getppid\n50 stat\n");
    let arguments = ["run", "load:./workfile.twice:users=1", "--samples", "3", "--jobs", "10"];
    home.succeed(&arguments).assert_says(&["workfile.twice:3: `stat` is named twice"]);
}
