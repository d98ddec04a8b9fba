//! `bpf`: its programs see the work of the treated arm, and of no other.

use std::path::PathBuf;

use crate::support::{Home, SETTINGS, Turn, hard, is_root, skip};
use serde_json::Value;

/// Measures a workload under these sensors.
fn sense(home: &Home, sensors: &[&str], workload: &str) -> Value {
    let _turn = Turn::with(SETTINGS);
    let pairs = match hard(1, 8) {
        1 => ["--budget", "30s"],
        _ => ["--pairs", "8"],
    };
    let outcome = home.measure(&[&["compare"], sensors, &pairs, &["-w", workload]].concat());
    assert_eq!(home.leftovers(), Vec::<PathBuf>::new());
    assert!(outcome.stdout.contains(sensors[0]), "{outcome:#?}");
    // What the start of a launch makes is subtracted, and other programs may have made much of it: only what
    // is left is shown as a line of its own.
    home.succeed("show -v").assert_says(&["Side effects of the treatment", "events/op"]);
    home.json()
}

/// Number of samples of an arm, and of those among them whose evidence satisfies a condition of SQL.
fn samples(home: &Home, arm: usize, condition: &str) -> [u64; 2] {
    let of_arm = format!("FROM sample WHERE arm = {arm} AND role = 'compared'");
    let count = |more: &str| {
        home.query_text(&format!("SELECT CAST(count(*) AS TEXT) {of_arm} {more}")).parse().unwrap()
    };
    [count(""), count(&format!("AND {condition}"))]
}

#[track_caller]
fn assert_each_sample(home: &Home, arm: usize, condition: &str) {
    let [all, these] = samples(home, arm, condition);
    assert!(all > 0 && these == all, "{these} of {all}: {condition}");
}

const EVENTS: &str = "json_extract(evidence, '$.bpf_events')";
const LOST: &str = "json_extract(evidence, '$.bpf_lost')";
const OPERATIONS: &str = "json_extract(sample, '$.total_operations')";

/// `open-close` makes two system calls per operation.
#[test]
fn a_counter_counts_each_call_and_none_of_the_baseline() {
    if !is_root() {
        return skip("root", "needs root");
    }
    let home = Home::new();
    let json = sense(&home, &["bpf", "bpf:off"], "open-close");
    assert_each_sample(&home, 0, &format!("{EVENTS} IS NULL"));
    assert_each_sample(&home, 1, &format!("{EVENTS} >= 2 * {OPERATIONS}"));
    assert_each_sample(&home, 2, &format!("{EVENTS} = 0"));
    let facts = |arm: usize| json["treatments"][arm]["facts"].to_string();
    assert!(facts(0).contains("counts each system call"), "{json:#}");
    assert!(facts(1).contains("has no BPF program"), "{json:#}");
}

/// Each operation opens a file once. Kprobes and fentry are not in every kernel: these were tried in a
/// virtual machine (docs/treatments-bpf.md).
#[test]
fn one_call_is_counted_at_either_tracepoint() {
    if !is_root() {
        return skip("root", "needs root");
    }
    let home = Home::new();
    let sensors = [
        "bpf:attach=raw-tracepoint",
        "bpf:attach=tracepoint",
        "bpf:attach=tracepoint,call=unlinkat",
    ];
    sense(&home, &sensors, "open-close");
    for arm in [1, 2] {
        assert_each_sample(&home, arm, &format!("{EVENTS} >= {OPERATIONS}"));
    }
    // Calls of all processes are counted, but a busy machine makes fewer of these.
    assert_each_sample(&home, 3, &format!("{EVENTS} < {OPERATIONS}"));
}

/// `open-close` makes two system calls per operation. One page holds 39 events.
#[test]
fn events_are_delivered_or_counted_as_lost() {
    if !is_root() {
        return skip("root", "needs root");
    }
    let home = Home::new();
    let json = sense(&home, &["bpf:events,buffer=65536", "bpf:events,buffer=4"], "open-close");
    for arm in [1, 2] {
        assert_each_sample(&home, arm, &format!("{EVENTS} + {LOST} >= 2 * {OPERATIONS}"));
    }
    assert_each_sample(&home, 1, &format!("{EVENTS} > {OPERATIONS}"));
    // A sample of which nothing is lost had a sensor that ran in time.
    let lost = &json["results"][1]["evidence"]["bpf_lost_pct"];
    assert!(lost.as_f64().is_some_and(|pct| pct > 0.0), "{json:#}");
}

/// Each operation of `exec` forks, executes and ends a process.
#[test]
fn the_life_of_each_process_is_reported() {
    if !is_root() {
        return skip("root", "needs root");
    }
    let home = Home::new();
    sense(&home, &["bpf:lifecycle"], "exec");
    assert_each_sample(&home, 1, &format!("{EVENTS} + {LOST} >= 3 * {OPERATIONS}"));
    assert_each_sample(&home, 0, &format!("{EVENTS} IS NULL"));
}
