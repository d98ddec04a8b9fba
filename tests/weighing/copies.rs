//! Copies of a workload at the same time: they start together, their rates add up, and nothing is
//! left of them however they end.

use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use crate::support::{Home, Turn, row, wait_until};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use weigh_workload::executable::{Executable, Length};

const LIMIT: Duration = Duration::from_secs(20);

/// A home with the workloads in it.
struct Bench {
    home: Home,
    executable: Executable,
}

impl Bench {
    fn new() -> Bench {
        let home = Home::new();
        let executable = Executable::unpack(home.directory.path()).unwrap();
        Bench { home, executable }
    }

    /// Runs copies in `TMPDIR`, where leftovers are looked for.
    fn command(&self, workload: &str, copies: usize, target_ms: u64) -> Command {
        let argv = self.executable.sample_argv(workload, copies, Length::of_ms(target_ms));
        let mut command = self.home.command(&argv[0]);
        command.args(&argv[1..]).current_dir(self.home.path("tmp"));
        command
    }

    #[track_caller]
    fn assert_nothing_left(&self) {
        let is_over =
            || self.home.processes().is_empty() && self.home.leftovers() == Vec::<PathBuf>::new();
        let left = || (self.home.describe_processes(), self.home.leftovers());
        assert!(wait_until(LIMIT, is_over), "{:#?}", left());
    }
}

fn numbers(value: &Value) -> Vec<f64> {
    value.as_array().unwrap().iter().map(|rate| rate.as_f64().unwrap()).collect()
}

fn children(pid: i32) -> Vec<i32> {
    let text = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
    text.split_whitespace().map(|pid| pid.parse().unwrap()).collect()
}

fn signal(pid: i32, signal: Signal) {
    kill_process(Pid::from_raw(pid).unwrap(), signal).unwrap();
}

#[test]
fn the_rates_of_the_copies_add_up() {
    let _turn = Turn::share();
    let bench = Bench::new();
    for workload in ["getppid", "context1@same-cpu", "fsbuffer", "execl"] {
        let sample = bench.home.start(bench.command(workload, 3, 20)).finish().json();
        let rates = numbers(&sample["copy_rates"]);
        assert_eq!((&sample["copies"], rates.len()), (&3.into(), 3));
        let (sum, rate) = (rates.iter().sum::<f64>(), sample["rate"].as_f64().unwrap());
        assert!((sum / rate - 1.0).abs() < 1e-6, "{sample:#}");
        assert!(rates.iter().all(|rate| *rate > 0.0), "{sample:#}");
        // All worked on while one was measured, and before that to calibrate.
        let count = |key: &str| sample[key].as_u64().unwrap();
        assert!(count("total_operations") > count("operations"), "{sample:#}");
    }
    bench.assert_nothing_left();
}

#[test]
fn no_copy_starts_before_the_last_is_ready() {
    let _turn = Turn::share();
    let bench = Bench::new();
    // Where we come too late, which is rare, both had begun.
    let waits = || waits_for_one_that_is_stopped(&bench);
    assert!(waits() || (waits() && waits()));
}

/// Returns true if a copy waits for the other, which is stopped in its warm-up; then both are let
/// go.
fn waits_for_one_that_is_stopped(bench: &Bench) -> bool {
    let mut running = bench.home.start(bench.command("getppid", 2, 2000));
    assert!(wait_until(LIMIT, || children(running.pid()).len() == 3), "{}", running.said());
    // The first one tidies up after the others.
    let [_, late, ready] = children(running.pid())[..] else { panic!("three were there") };
    signal(late, Signal::STOP);
    let waits = format!("{} ", libc::SYS_futex);
    let is_waiting = || {
        fs::read_to_string(format!("/proc/{ready}/syscall")).unwrap_or_default().starts_with(&waits)
    };
    let waits = wait_until(LIMIT, is_waiting) && !running.has_ended();
    signal(late, Signal::CONT);
    assert_eq!(numbers(&running.finish().json()["copy_rates"]).len(), 2);
    bench.assert_nothing_left();
    waits
}

/// Operations of an open loop that were done, and those that could not begin.
fn arrived(sample: &Value) -> [u64; 2] {
    let readings = sample["readings"].as_array().into_iter().flatten();
    let unsent = readings.into_iter().find(|reading| reading["name"] == "unsent");
    let unsent = unsent.map_or(0.0, |reading| reading["value"].as_f64().unwrap());
    [sample["operations"].as_u64().unwrap(), unsent as u64]
}

/// Each moment is that of one operation, whichever copy does it: how many there are in the same time is a
/// matter of the seed, and not of the number of copies.
#[test]
fn copies_of_an_open_loop_share_one_queue() {
    let _turn = Turn::share();
    let bench = Bench::new();
    let due = |copies: usize, seed: &str| -> u64 {
        let mut command = bench.command("getppid", copies, 300);
        command.args(["--per-1000s", "2000000", "--seed", seed]);
        arrived(&bench.home.start(command).finish().json()).iter().sum()
    };
    let alone = due(1, "5");
    assert_eq!([due(2, "5"), due(7, "5")], [alone; 2]);
    assert!([due(2, "6"), due(2, "7")] != [alone; 2], "the moments are those of the seed");
    bench.assert_nothing_left();
}

/// Tests that a copy does the work that a stopped copy does not do.
#[test]
fn no_moment_waits_for_a_busy_copy_while_another_is_free() {
    let _turn = Turn::share();
    let bench = Bench::new();
    let mut command = bench.command("getppid", 2, 2000);
    command.args(["--per-1000s", "50000"]);
    let running = bench.home.start(command);
    let sleeps = format!("{} ", libc::SYS_clock_nanosleep);
    let is_asleep = |pid: &i32| {
        let call = fs::read_to_string(format!("/proc/{pid}/syscall")).unwrap_or_default();
        call.starts_with(&sleeps)
    };
    // Once both wait for their moments, all have begun.
    let copies = || children(running.pid()).into_iter().skip(1).collect::<Vec<i32>>();
    let have_begun = || copies().len() == 2 && copies().iter().all(is_asleep);
    assert!(wait_until(LIMIT, have_begun), "{}", running.said());
    let [stopped, free] = copies()[..] else { panic!("two were there") };
    signal(stopped, Signal::STOP);
    let is_over = || {
        let stat = fs::read_to_string(format!("/proc/{free}/stat")).unwrap_or_default();
        stat.rsplit_once(')').is_none_or(|(_, rest)| rest.trim_start().starts_with('Z'))
    };
    let is_over = wait_until(LIMIT, is_over);
    signal(stopped, Signal::CONT);
    assert!(is_over);
    let sample = running.finish().json();
    let [done, unsent] = arrived(&sample);
    // One moment was the stopped one's.
    assert!(done > 20 && unsent < done / 5, "{sample:#}");
    bench.assert_nothing_left();
}

#[test]
fn a_copy_that_fails_fails_the_sample_in_its_own_words() {
    let _turn = Turn::share();
    let bench = Bench::new();
    let mut command = bench.command("dc", 3, 20);
    command.env("PATH", "/nowhere");
    let outcome = bench.home.start(command).finish();
    assert_eq!((outcome.code, outcome.stdout.as_str()), (Some(1), ""));
    assert!(outcome.stderr.contains("dc: dc is not installed: apt-get install dc\n"));
    bench.assert_nothing_left();

    let running = bench.home.start(bench.command("fstime", 3, 2000));
    assert!(wait_until(LIMIT, || children(running.pid()).len() == 4), "{}", running.said());
    signal(children(running.pid())[2], Signal::KILL);
    let outcome = running.finish();
    assert_eq!((outcome.code, outcome.stdout.as_str()), (Some(1), ""));
    assert_eq!(outcome.stderr, "fstime: copy 2 was killed by signal 9\n");
    bench.assert_nothing_left();
}

#[test]
fn nothing_is_left_where_the_driver_is_killed() {
    let _turn = Turn::share();
    let bench = Bench::new();
    for workload in ["shell8", "context1@cross-cpu", "compile", "fsdisk"] {
        let mut running = bench.home.start(bench.command(workload, 2, 5000));
        assert!(wait_until(LIMIT, || children(running.pid()).len() == 3), "{}", running.said());
        assert!(wait_until(LIMIT, || !bench.home.leftovers().is_empty()), "{}", running.said());
        std::thread::sleep(Duration::from_millis(100)); // it may be doing anything by now
        running.kill();
        assert_eq!(running.finish().signal, Some(9));
        bench.assert_nothing_left();
    }
}

#[test]
fn weigh_names_the_copies_and_tells_how_they_differ() {
    let _turn = Turn::share();
    let home = Home::new();
    let run = ["run", "getppid", "pipe", "--copies", "2", "--samples", "3", "--json", "-"];
    let report = home.succeed(&run).json();
    let found = row(&report, "getppid:copies=2");
    let copies = &found["copies"];
    let [lowest, highest, rate] = [&copies["lowest"], &copies["highest"], &found["rate"]]
        .map(|number| number.as_f64().unwrap());
    assert_eq!(copies["count"], 2);
    assert!(0.0 < lowest && lowest <= highest && highest < rate, "{found:#}");
    assert!(copies["variation_pct"].as_f64().unwrap() >= 0.0, "{found:#}");
    home.succeed("show").assert_says(&[
        "Rates of single copies, and their coefficient of variation",
        "workload slowest fastest unit variation",
        "--copies 2",
    ]);

    let compare =
        ["compare", "none", "-w", "getppid", "--pairs", "8", "--no-detail", "--copies", "2"];
    home.run(&compare).assert_says(&["getppid:copies=2"]);
    let json = home.json();
    assert_eq!(row(&json, "getppid:copies=2")["pairs"], 8);
    assert!(json["command"].as_str().unwrap().contains("--copies 2"), "{json:#}");
    assert_eq!(home.leftovers(), Vec::<PathBuf>::new());

    // A label says it of one workload.
    let labels = [
        "compare",
        "none",
        "-w",
        "getppid:copies=2",
        "-w",
        "getppid",
        "--pairs",
        "8",
        "--no-detail",
    ];
    home.run(&labels).assert_says(&["getppid:copies=2"]);
    let json = home.json();
    for label in ["getppid", "getppid:copies=2"] {
        assert_eq!(row(&json, label)["pairs"], 8);
        assert_eq!(row(&json, label)["series"], "getppid");
    }
    home.run("compare none -w getppid:users=2").assert_error(&["no load `users`"]);
    home.run("run getppid:copies=1000").assert_error(&["1000 copies", "add --yes"]);

    let whole = ["compare", "none", "--copies", "2", "--", "/bin/true"];
    home.run(&whole).assert_error(&["--copies"]);
    let many = home.run("compare none -w getppid --copies 1000 --budget 1s");
    many.assert_error(&["1000 copies of each workload", "add --yes"]);
    home.run("run getppid --copies 1,1000").assert_error(&["add --yes"]);
    home.run("run getppid --copies 0").assert_error(&["from 1 to 1024, or `all`"]);
}
