//! `--budget`: kept, or refused with the name of a budget that would do.

use std::path::PathBuf;

use crate::support::{Home, Turn, hidden};

/// Refuses a command line before anything is measured or stored.
fn refuse(command: &str, what: &str) {
    let home = Home::new();
    let outcome = home.run(command);
    assert_eq!(outcome.code, Some(2), "{command}: {outcome:#?}");
    outcome.assert_says(&["is too short: ", what, "Use --budget "]);
    assert_eq!(
        home.open_database().query_row("SELECT count(*) FROM experiment", [], |row| row.get(0)),
        Ok(0)
    );
    assert_eq!((home.leftovers(), home.processes()), (Vec::new(), Vec::new()));
}

#[test]
fn what_cannot_fit_is_refused() {
    let _turn = Turn::share();
    refuse("net --grid 1996 --budget 15s", "one sweep over grid 1996");
    refuse("net --budget 5s", "one sweep over grid quick");
    refuse("compare none -w net:today --budget 10s", "a pair of samples takes");
    refuse(
        "run getppid pipe --sample 2s --budget 1s",
        "one sample of each workload takes about 4 s. Use",
    );
    refuse("compare none -w app --budget 5s", "a pair of samples for each of");
    refuse("compare none -w syscalls -w interp --budget 1s", "a pair of samples for each of");
}

/// A sample of the baseline has some 100,000 calls. As many in the other arm would take ten seconds and more.
#[test]
fn each_arm_finds_its_own_number_of_operations() {
    let _turn = Turn::share();
    let home = Home::new();
    let label = |library: PathBuf| format!("preload:{}", library.display());
    let (treated, base) = (label(hidden::queue()), label(hidden::control()));
    let options = ["-w", "getppid", "--interleave", "off", "--no-detail", "--budget", "90s"];
    let outcome = home.run(&[&["compare", &treated, "--base", &base][..], &options].concat());
    assert_eq!(outcome.code, Some(0), "{outcome:#?}");
    assert_eq!(home.json()["results"][0]["verdict"], "slower");
    let calls = |which: &str| {
        let sql = format!("SELECT CAST({which} AS TEXT) FROM sample WHERE role = 'compared'");
        home.query_text(&sql).parse::<f64>().unwrap()
    };
    let of_baseline = calls("avg(CASE arm WHEN 0 THEN sample ->> 'operations' END)");
    let of_treated = calls("avg(CASE arm WHEN 1 THEN sample ->> 'operations' END)");
    assert!(of_treated * 20.0 < of_baseline, "{of_treated} and {of_baseline}");
}

/// Two commands of a minute: the first is killed at the end of the budget.
#[test]
fn a_launch_that_is_longer_than_the_budget_is_killed() {
    let _turn = Turn::share();
    let home = Home::new();
    let outcome = home.run(&["versus", "--budget", "1s", "sleep 600", "sleep 700"]);
    assert_eq!(outcome.code, Some(2), "{outcome:#?}");
    outcome.assert_says(&["--budget 1 s is too short: no sample finished. Use --budget "]);
    assert_eq!((home.leftovers(), home.processes()), (Vec::new(), Vec::new()));
}

/// It belongs to the budget, as what it leaves to do belongs to it.
#[test]
fn a_set_up_that_is_longer_than_the_budget_is_killed() {
    let _turn = Turn::share();
    let home = Home::new();
    let outcome = home.run(&["versus", "--budget", "1s", "--setup", "sleep 600", "true", ":"]);
    assert_eq!(outcome.code, Some(2), "{outcome:#?}");
    outcome.assert_says(&[
        "--budget 1 s is too short: the line of --setup did not finish. Use --budget ",
    ]);
    assert_eq!((home.leftovers(), home.processes()), (Vec::new(), Vec::new()));
}

#[test]
fn a_row_without_a_result_is_named_with_a_budget_that_would_do() {
    let _turn = Turn::share();
    let home = Home::new();
    // Whichever command the seed puts first, the other has a result.
    for seed in ["1", "2", "3", "4"] {
        let options = ["versus", "--inconclusive-ok", "--seed", seed, "--budget", "3s"];
        let outcome = home.run(&[&options[..], &["true", ":", "sleep 600"]].concat());
        assert_eq!(outcome.code, Some(0), "{outcome:#?}");
        outcome.assert_says(&["No result for `sleep 600`: the budget ended first. Use --budget "]);
        assert_eq!(home.processes(), Vec::<i32>::new());
    }
}

/// The third run of the command outlasts the budget, so nothing comes after it.
#[test]
fn what_the_budget_left_no_time_for_is_said() {
    let _turn = Turn::share();
    let home = Home::new();
    let runs = home.path("runs");
    let script = format!("echo >>{0}; [ $(wc -l <{0}) -gt 2 ] && sleep 600; true", runs.display());
    let options = ["--sets", "2", "--profiler", "true", "--budget", "20s", "--inconclusive-ok"];
    let command = ["--", "sh", "-c", &script];
    let outcome = home.run(&[&["compare", "none"][..], &options, &command].concat());
    assert_eq!(outcome.code, Some(0), "{outcome:#?}");
    let json = home.json();
    let warnings = json["warnings"].to_string();
    for what in ["set 2 of 2 began", "the profiler ran"] {
        assert!(warnings.contains(&format!("The budget ended before {what}.")), "{warnings}");
    }
}
