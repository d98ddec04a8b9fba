//! Treatments of processes: in force where they should be, together with others, and refused where they
//! cannot be. That they fail when they are switched off is in `switched_off.rs`.

mod support;

use serde_json::Value;
use support::{Home, NOBODY, Turn, as_nobody, is_root, row};

const SHORT: [&str; 4] = ["--pairs", "8", "--no-detail", "--json"];

/// Runs a short comparison to its end.
#[track_caller]
fn compare(home: &Home, arguments: &[&str], work: &[&str]) -> Value {
    let _turn = Turn::take();
    let all = [&["compare"], arguments, &SHORT, &["-"], work].concat();
    let outcome = home.run(&all);
    assert!(matches!(outcome.code, Some(0 | 3)), "{outcome:#?}");
    assert_eq!(home.leftovers(), Vec::<std::path::PathBuf>::new());
    outcome.json()
}

#[track_caller]
fn refused(arguments: &[&str], said: &[&str]) {
    let home = Home::new();
    home.run(&[&["compare"], arguments].concat()).assert_error(said);
    assert_eq!(home.leftovers(), Vec::<std::path::PathBuf>::new());
}

/// It fails where it has not what it should have.
const CHECKS: &str = r#"
[ "$(cut -d' ' -f19 /proc/self/stat)" = 5 ] || exit 7
grep -q '^Cpus_allowed_list:.0$' /proc/self/status || exit 8
[ "$COLOUR" = 'blue, or "so"' ] || exit 9
grep -q '^Seccomp:.2' /proc/self/status || exit 10
[ "$1" = eight ] || exit 11
sleep 0.02
"#;

#[test]
fn four_of_them_and_a_filter_in_one_arm_are_all_in_force() {
    let home = Home::new();
    let arm = "nice:5+cpus:0+env:COLOUR=\"blue, or \\\"so\\\"\"+seccomp+with:n=eight";
    // The baseline has none of it, so there the same line goes another way.
    let line = format!("[ {{n}} = one ] && {{ sleep 0.02; exit; }}\n{CHECKS}");
    let work = ["--", "sh", "-c", &line, "sh", "{n}"];
    let json = compare(&home, &[arm, "--base", "with:n=one"], &work);
    assert_eq!(json["treatments"][0]["label"], arm);
    let facts = json["treatments"][0]["facts"].to_string();
    for fact in ["niceness 5", "on CPU 0 alone", "COLOUR=blue", "{n} is `eight`"] {
        assert!(facts.contains(fact), "{facts}");
    }
    assert_eq!(json["treatments"][0]["differences"].as_array().unwrap().len(), 5);
    let shown = home.succeed(&["show"]);
    shown.assert_says(&["differs from `with:n=one` in 5 things", "that of all 5 together"]);
}

#[test]
fn arms_of_one_kind_differ_and_so_does_the_baseline() {
    let home = Home::new();
    let arms = ["nice:5", "nice:9+env:A=1", "env:A=2", "--base", "cpus:0"];
    let json = compare(&home, &arms, &["-w", "getppid"]);
    assert_eq!(json["results"].as_array().unwrap().len(), 3);
    assert_eq!(
        json["treatments"][0]["differences"],
        serde_json::json!(["with `nice:5`", "without `cpus:0`"])
    );
}

/// Workloads that choose their CPUs themselves choose among those that they have.
#[test]
fn a_workload_that_pins_itself_stays_on_its_cpus() {
    let json = compare(&Home::new(), &["cpus:0"], &["-w", "bw-pipe@same-cpu"]);
    assert!(row(&json, "bw-pipe@same-cpu")["pairs"] == 8, "{json:#}");
}

#[test]
fn what_a_process_cannot_have_is_refused_before_it_is_measured() {
    let _turn = Turn::take();
    refused(
        &["cpus:999", "-w", "getppid"],
        &["there is no CPU 999, or it is offline: online are 0"],
    );
    refused(&["cpus:0-9999999", "-w", "getppid"], &["takes a list of CPUs"]);
    refused(&["nice:20", "-w", "getppid"], &["from -20 to 19"]);
    if !is_root() {
        println!("partly skipped: needs root");
        return;
    }
    let home = Home::new();
    for name in ["", "data", "state", "tmp"] {
        std::os::unix::fs::chown(home.path(name), Some(NOBODY), Some(NOBODY)).unwrap();
    }
    let mut command = home.weigh(&["compare", "nice:-1", "-w", "getppid", "--pairs", "8"]);
    as_nobody(&mut command);
    home.start(command).finish().assert_error(&["niceness -1 is not permitted", "ulimit -e"]);
    // Where only one CPU is allowed, the other is there all the same.
    let home = Home::new();
    let mut command = home.command("taskset");
    command.args(["-c", "0"]).arg(support::program());
    command.args(["compare", "cpus:1", "-w", "getppid"]);
    if rustix::thread::sched_getaffinity(None).unwrap().is_set(1) {
        home.start(command).finish().assert_error(&["CPU 1 is not allowed here", "allowed are 0"]);
    }
}

#[test]
fn blanks_of_a_command_are_filled_by_all_arms_or_none() {
    let command = ["--", "sleep", "{time}"];
    let with = |arms: &[&'static str]| [arms, &command].concat();
    refused(&with(&["with:time=1"]), &["`none` leaves {time}", "--base with:time=VALUE"]);
    refused(&with(&["with:tim=1", "--base", "with:tim=2"]), &["there is no {tim} in the command"]);
    refused(&["with:n=1", "-w", "getppid"], &["workloads have none", "after `--`"]);
    refused(
        &with(&["with:time=1", "--base", "with:time=2", "nice:5"]),
        &["`nice:5` leaves {time}", "add +with:time=VALUE"],
    );
}
