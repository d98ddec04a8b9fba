//! `weigh versus` with commands that run at the same time on one CPU, by loops of a known length.

use std::path::PathBuf;

use crate::interleaved::nothing_is_left_of;
use crate::support::busy::Busy;
use crate::support::{Home, Outcome, Turn};
use serde_json::Value;

/// A shell that does nothing but count: about 20 ms for 20,000.
fn count_to(steps: u32) -> String {
    format!("i=0; while [ $i -lt {steps} ]; do i=$((i+1)); done")
}

fn row(json: &Value) -> &Value {
    assert_eq!(json["failures"], Value::Array(Vec::new()), "{json:#}");
    &json["results"][0]
}

/// How many samples shared a CPU.
fn interleaved(home: &Home) -> usize {
    let count = home.query_text("SELECT count(*) || '' FROM sample WHERE scheme = 'interleaved'");
    count.trim().parse().unwrap()
}

/// Measures in a new home, until a pilot did not choose sequential pairs: its four sequential pairs may be
/// alike by chance.
fn measured_in_turns(words: &[&str]) -> (Home, Outcome) {
    let measured = |_| {
        let home = Home::new();
        let outcome = home.succeed(words);
        (home, outcome)
    };
    let is_in_turns = |(home, _): &(Home, Outcome)| row(&home.json())["scheme"] == "interleaved";
    (0..4).map(measured).find(is_in_turns).expect("each pilot chose sequential pairs")
}

#[test]
fn a_longer_loop_is_found_beside_hogs_by_its_cpu_time() {
    let _turn = Turn::take();
    let beside = Home::new();
    let _busy = Busy::start(&beside, 2);
    let [short, long] = [20_000, 30_000].map(count_to);
    let words = ["versus", "-n", "short", "-n", "long", &short, &long, "--budget", "90s"];
    let (home, outcome) = measured_in_turns(&words);
    outcome.assert_says(&[
        "`long` is slower than `short`: it takes",
        "more CPU time",
        "both commands of a pair ran at the same time on the same CPU",
        "They are CPU-bound",
    ]);
    let json = home.json();
    let row = row(&json);
    assert_eq!(row["verdict"], "slower", "{row:#}");
    // Half as much more makes the rate a third lower; the start of the shell is the same.
    let effect_pct = row["effect_pct"].as_f64().unwrap();
    assert!((-40.0..-20.0).contains(&effect_pct), "{row:#}");
    let pairs = row["pairs"].as_u64().unwrap() as usize;
    assert!(interleaved(&home) >= 2 * pairs, "{json:#}");
    // Their times are those of the runs that had no partner.
    let runs = json["versus"]["commands"][0]["times_s"].as_array().unwrap().len();
    assert_eq!(2 * runs + interleaved(&home), home.samples() as usize, "{json:#}");
    assert_eq!(home.leftovers(), Vec::<PathBuf>::new());
}

/// The shell itself only waits: for two children at the same time, or for one after the other.
#[test]
fn a_command_of_several_processes_is_judged_by_the_cpu_time_of_all() {
    let _turn = Turn::take();
    let beside = Home::new();
    let _busy = Busy::start(&beside, 2);
    let at_once = |steps| format!("({0}) & ({0}) & wait", count_to(steps));
    let in_turn = |steps| format!("({0}); ({0}); :", count_to(steps));
    for [short, long] in [[10_000, 15_000].map(at_once), [10_000, 15_000].map(in_turn)] {
        let words = ["versus", "-n", "short", "-n", "long", &short, &long];
        let (home, _) =
            measured_in_turns(&[&words[..], &["--budget", "40s", "--sets", "2"]].concat());
        let json = home.json();
        let row = row(&json);
        assert_eq!(row["verdict"], "slower", "{json:#}");
        let effect_pct = row["effect_pct"].as_f64().unwrap();
        assert!((-40.0..-15.0).contains(&effect_pct), "{row:#}");
        let later =
            "SELECT count(*) || '' FROM sample WHERE scheme = 'interleaved' AND set_number = 1";
        assert_ne!(home.query_text(later).trim(), "0");
    }
}

/// How long its children wait for a CPU is counted nowhere.
#[test]
fn a_command_whose_children_wait_is_compared_by_its_time() {
    let _turn = Turn::take();
    let home = Home::new();
    let _busy = Busy::start(&home, 2);
    let [short, long] = ["0.1", "0.4"].map(|time| format!("({}); sleep {time}", count_to(10_000)));
    home.measure(&["versus", &short, &long, "--budget", "20s"]);
    assert_eq!((interleaved(&home), &row(&home.json())["scheme"]), (0, &"sequential".into()));
}

#[test]
fn a_command_that_leaves_processes_running_is_compared_by_its_time() {
    let _turn = Turn::share();
    let home = Home::new();
    let leaving = |steps| format!("sleep 60 & {}", count_to(steps));
    let [short, long] = [20_000, 40_000].map(leaving);
    home.measure(&["versus", "-n", "short", "-n", "long", &short, &long, "--budget", "3s"]);
    let json = home.json();
    assert_eq!((interleaved(&home), &row(&json)["scheme"]), (0, &"sequential".into()));
    let said = json["warnings"].to_string();
    let why = "`long` changed to sequential pairs: it leaves processes running when it ends";
    assert!(said.contains(why), "{said}");
    assert_eq!(home.leftovers(), Vec::<PathBuf>::new());
}

/// A treatment of a command is judged in the same way: here a variable says how far a shell counts.
#[test]
fn a_treatment_of_a_command_is_judged_by_its_cpu_time() {
    let _turn = Turn::take();
    let beside = Home::new();
    let _busy = Busy::start(&beside, 2);
    let counting = "i=0; while [ $i -lt $STEPS ]; do i=$((i+1)); done";
    let arms = ["compare", "--base", "env:STEPS=20000", "env:STEPS=30000", "--budget", "90s"];
    let (home, outcome) = measured_in_turns(&[&arms[..], &["--", "sh", "-c", counting]].concat());
    outcome.assert_says(&[
        "(CPU time)",
        "both commands of a pair ran at the same time",
        "CPU-bound",
    ]);
    let json = home.json();
    let found = row(&json);
    assert_eq!(found["verdict"], "slower", "{found:#}");
    let effect_pct = found["effect_pct"].as_f64().unwrap();
    assert!((-40.0..-20.0).contains(&effect_pct), "{found:#}");
    assert_eq!(home.leftovers(), Vec::<PathBuf>::new());
}

#[test]
fn a_treatment_that_both_processes_would_have_keeps_commands_in_sequence() {
    let _turn = Turn::share();
    let home = Home::new();
    let command = count_to(20_000);
    let after = ["--budget", "20s", "--", "sh", "-c", &command];
    home.measure(&[&["compare", "nice:5"][..], &after].concat());
    home.measure(&[&["compare", "seccomp", "--interleave=off"][..], &after].concat());
    assert!(home.samples() > 16);
    assert_eq!(interleaved(&home), 0);
    home.run(&[&["compare", "seccomp", "--interleave=on"][..], &after].concat())
        .assert_error(&["--interleave=on: commands need sequential pairs"]);
    home.measure(&[&["compare", "seccomp"][..], &after].concat());
    assert!(interleaved(&home) > 0, "{:#}", home.json());
}

/// A sleep alone, and one that is five times as long as the work before it.
#[test]
fn commands_that_wait_are_compared_by_their_time() {
    let _turn = Turn::share();
    let home = Home::new();
    let [short, long] = ["0.1", "0.3"].map(|time| format!("{}; sleep {time}", count_to(20_000)));
    for [first, second] in [["sleep 0.1", "sleep 0.6"], [&*short, &*long]] {
        let outcome =
            home.succeed(&["versus", first, second, "--budget", "90s", "--margin", "10%"]);
        assert!(outcome.stdout.contains("more time"), "{outcome:#?}");
        assert!(!outcome.stdout.contains("more CPU time"), "{outcome:#?}");
        assert!(!outcome.stdout.contains("CPU-bound"), "{outcome:#?}");
        let json = home.json();
        let row = row(&json);
        assert_eq!((&row["verdict"], &row["scheme"]), (&"slower".into(), &"sequential".into()));
        assert!(!json["warnings"].to_string().contains("sequential"), "{json:#}");
    }
    assert_eq!(interleaved(&home), 0);
}

/// Equal loops are not different, whatever they print.
#[test]
fn equal_loops_are_not_different() {
    let _turn = Turn::share();
    let home = Home::new();
    let command = format!("{}; echo $i", count_to(20_000));
    let words =
        ["versus", &command, &command, "--same-output", "--margin", "10%", "--budget", "10s"];
    // One may be wrong by chance, of one in twenty at most; two of three have a chance of less than 1 %.
    let is_right = || {
        home.measure(&words);
        let json = home.json();
        let row = row(&json);
        assert_eq!(row["scheme"], "interleaved", "{json:#}");
        ["equivalent", "inconclusive"].contains(&row["verdict"].as_str().unwrap())
    };
    let (first, second) = (is_right(), is_right());
    assert!(if first == second { first } else { is_right() }, "{:#}", home.json());
}

#[test]
fn commands_that_cannot_run_together_run_one_after_the_other() {
    let _turn = Turn::take();
    let home = Home::new();
    let lock = home.file("lock", "");
    let locked =
        |steps| format!("exec flock -nF {} /bin/sh -c '{}'", lock.display(), count_to(steps));
    let [short, long] = [40_000, 80_000].map(locked);
    let words = ["versus", "-n", "short", "-n", "long", &short, &long, "--budget", "60s"];
    home.succeed(&words);
    let json = home.json();
    let row = row(&json);
    assert_eq!((&row["verdict"], &row["scheme"]), (&"slower".into(), &"sequential".into()));
    let said = json["warnings"].to_string();
    let why = "`long` changed to sequential pairs: a command failed while it shared a CPU";
    assert!(said.contains(why), "{said}");
}

#[test]
fn the_option_keeps_commands_in_sequence() {
    let _turn = Turn::share();
    let home = Home::new();
    let [short, long] = [20_000, 40_000].map(count_to);
    let words = ["versus", &short, &long, "--budget", "3s"];
    home.measure(&[&words[..], &["--interleave=off"]].concat());
    assert_eq!(interleaved(&home), 0);
    assert!(row(&home.json())["scheme"].is_null(), "{:#}", home.json());
    home.run("show").assert_says(&["Method: one sample ran after the other (sequential pairs)."]);
    home.run(&[&words[..], &["--interleave=on"]].concat())
        .assert_error(&["--interleave=on: commands need sequential pairs"]);
    // What runs before each launch cannot run before two at once.
    home.measure(&[&words[..], &["--prepare", "true"]].concat());
    assert_eq!(interleaved(&home), 0);
}

#[test]
fn killed_at_any_moment_nothing_is_left_of_two_commands() {
    let [one, other] = [100_000, 150_000].map(count_to);
    nothing_is_left_of(&["versus", &one, &other], 41, 500..3000);
}

#[test]
fn one_command_that_writes_a_file_runs_in_one_arm_after_the_other() {
    let _turn = Turn::take();
    let home = Home::new();
    let line = format!("{}; echo done > written", count_to(20_000));
    home.measure(&["compare", "seccomp", "--budget", "10s", "--", "sh", "-c", &line]);
    assert_eq!(interleaved(&home), 0);
    // Two commands may each have a file of their own.
    let other = format!("{}; echo done > other", count_to(20_000));
    home.measure(&["versus", &line, &other, "--budget", "10s"]);
    assert!(interleaved(&home) > 0, "{:#}", home.json());
}

/// The kernel gives the CPU time of such a child to nobody.
#[test]
fn a_child_that_nobody_waits_for_is_not_left_out() {
    let _turn = Turn::take();
    let home = Home::new();
    let burns = |parts: u32| {
        let work = "for ($i = 0; $i < 100_000 * $parts; $i++) {}";
        let child = format!("if (!fork) {{ $parts = {parts}; {work} exit }}");
        format!("perl -e '$SIG{{CHLD}} = q(IGNORE); $parts = 4; {work} {child} wait'")
    };
    let [short, long] = [20, 60].map(burns);
    home.measure(&["versus", "-n", "short", "-n", "long", &short, &long, "--budget", "4m"]);
    assert_eq!(interleaved(&home), 0);
    assert_eq!(row(&home.json())["verdict"], "slower");
}
