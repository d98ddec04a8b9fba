//! The detail pass from the command line to the reports: latencies beside the samples, never in them.

use std::time::Duration;

use crate::support::audit::Audit;
use crate::support::{Home, Running, Turn, row, wait_until};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

fn details(home: &Home) -> i64 {
    home.open_database().query_row("SELECT count(*) FROM detail", [], |row| row.get(0)).unwrap()
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value} is no number"))
}

#[test]
fn every_row_tells_how_long_its_operations_take_and_what_they_use() {
    let _turn = Turn::share();
    let home = Home::new();
    let experiment =
        ["compare", "none", "-w", "getppid", "-w", "stat", "--pairs", "8", "--json", "-"];
    let json = home.run(&experiment).json();
    assert_eq!(json["state"], "complete");
    for name in ["getppid", "stat"] {
        let row = row(&json, name);
        let latency = &row["latency"];
        assert_eq!(latency["of"], "operation");
        // Six launches of 70 ms in either arm: enough for 99 %, however loaded the machine.
        let quantile = |name: &str, arm: &str| number(&latency[name][arm]);
        for arm in ["baseline", "treated"] {
            assert!(number(&latency[format!("{arm}_count")]) > 1000.0, "{row:#}");
            assert!(0.0 < quantile("p50_ns", arm), "{row:#}");
            assert!(quantile("p50_ns", arm) <= quantile("p99_ns", arm), "{row:#}");
            let used = &row["resources"][arm];
            assert!(number(&used["user_ns_per_op"]) + number(&used["system_ns_per_op"]) > 0.0);
            assert!(number(&used["involuntary_switches_per_op"]) < 1.0);
        }
        let [low, effect, high] =
            ["low_pct", "effect_pct", "high_pct"].map(|end| number(&latency["p50_ns"][end]));
        assert!(low <= effect && effect <= high, "{latency:#}");
        let [low, mean, high] =
            ["mean_low_pct", "mean_effect_pct", "mean_high_pct"].map(|end| number(&row[end]));
        assert!(low < mean && mean < high, "{row:#}");
        assert_eq!(row["pairs"], 8, "the pass adds no pair");
    }
    assert!(home.samples() == 2 * 2 * 8 && details(&home) >= 2 * 2 * 6);
    assert_eq!(json, home.json(), "what is stored says the same again");
    home.succeed("show -v").assert_says(&["Latency per operation", "p99.9", "CPU/op"]);
    let id = json["id"].as_str().unwrap();
    home.succeed(&["export", id, "--html"])
        .assert_says(&["Resources per operation", "Latency per operation"]);
    home.succeed(&["export", id, "--markdown"]).assert_says(&["| workload | p50"]);
    assert_eq!(home.leftovers(), Vec::<std::path::PathBuf>::new());
}

#[test]
fn it_can_be_left_out() {
    let _turn = Turn::share();
    let home = Home::new();
    let experiment =
        ["compare", "none", "-w", "getppid", "--pairs", "8", "--no-detail", "--json", "-"];
    let json = home.run(&experiment).json();
    assert!(json["command"].as_str().unwrap().contains("--no-detail"));
    let row = row(&json, "getppid");
    assert!(row.get("latency").is_none() && row["resources"]["treated"].is_object(), "{row:#}");
    assert_eq!(details(&home), 0);
}

#[test]
fn a_command_has_its_runs() {
    let _turn = Turn::share();
    let home = Home::new();
    let experiment = ["compare", "none", "--pairs", "20", "--json", "-", "--", "true"];
    let json = home.run(&experiment).json();
    let row = row(&json, "true");
    assert_eq!(row["latency"]["of"], "run");
    assert_eq!(row["latency"]["baseline_count"], 20);
    assert!(number(&row["latency"]["p50_ns"]["treated"]) > 0.0);
    assert!(row["latency"].get("p99_ns").is_none(), "twenty runs have no such quantile");
    assert_eq!(details(&home), 0);
}

#[test]
fn treatments_prove_themselves_in_force_for_it_too() {
    let _turn = Turn::share();
    let home = Home::new();
    let experiment =
        ["compare", "seccomp:compares=2000", "-w", "getppid", "--pairs", "8", "--json", "-"];
    let json = home.run(&experiment).json();
    let p50 = &row(&json, "getppid")["latency"]["p50_ns"];
    // Under a filter of 500 comparisons a system call takes several times as long.
    assert!(number(&p50["treated"]) > number(&p50["baseline"]), "{p50:#}");
    assert!(number(&p50["low_pct"]) > 0.0, "{p50:#}");
}

/// Starts an experiment of so many rows that the pass is not over at once, and waits for it.
fn in_the_pass(home: &Home, treatment: &str) -> Running {
    let mut experiment = vec!["compare", treatment, "--pairs", "8"];
    for name in ["getppid", "stat", "fork", "exec"] {
        experiment.extend(["-w", name]);
    }
    let mut running = home.start(home.weigh(&experiment));
    home.wait_for_samples(4 * 8 * 2, &mut running);
    let limit = Duration::from_secs(60);
    assert!(wait_until(limit, || details(home) >= 3 || running.has_ended()));
    running
}

#[test]
fn ctrl_c_keeps_what_there_is() {
    let _turn = Turn::share();
    let home = Home::new();
    let running = in_the_pass(&home, "none");
    kill_process(Pid::from_raw(running.pid()).unwrap(), Signal::INT).unwrap();
    let outcome = running.finish();
    assert_eq!(outcome.code, Some(130), "{outcome:#?}");
    outcome.assert_says(&["Interrupted"]);
    let json = home.json();
    assert_eq!(json["state"], "interrupted");
    let rows = json["results"].as_array().unwrap();
    assert_eq!((rows.len(), home.samples()), (4, 4 * 8 * 2));
    assert!(rows.iter().any(|row| row.get("latency").is_some()), "{json:#}");
    assert_eq!(home.leftovers(), Vec::<std::path::PathBuf>::new());
    assert!(home.processes().is_empty(), "{:#?}", home.describe_processes());
}

#[test]
fn a_treatment_that_is_no_longer_in_force_fails_it() {
    let Some(audit) = Audit::take() else { return };
    let home = Home::new();
    let running = in_the_pass(&home, "audit");
    audit.switch_off();
    running.finish().assert_error(&["auditing was switched off"]);
    audit.assert_restored();
    let json = home.json();
    assert_eq!(json["state"], "failed");
    for row in json["results"].as_array().unwrap() {
        assert_eq!(row["verdict"], "inconclusive");
        assert!(row.get("latency").is_none() && row.get("mean_effect_pct").is_none(), "{row:#}");
    }
    assert_eq!(home.leftovers(), Vec::<std::path::PathBuf>::new());
}
