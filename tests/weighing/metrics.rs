//! Other metrics than the rate: what is asked for with `--metric` has a verdict of its own.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use crate::support::{Home, Turn};
use serde_json::Value;

/// A program that knows its arm: under a filter it reports a tenth fewer jobs, and as many operations, and
/// takes half as much memory again: in both arms more than the launcher, as less has no reading.
fn program(home: &Home) -> PathBuf {
    let file = home.file(
        "jobs",
        "#!/bin/sh\n\
         noise=$(($$ % 7))\n\
         jobs=$((1000 + noise))\n\
         size=64\n\
         grep -q '^Seccomp:.*2' /proc/self/status && jobs=$((900 + noise)) && size=96\n\
         dd if=/dev/zero of=/dev/null bs=${size}M count=1 2>/dev/null\n\
         echo \"{\\\"operations\\\":1,\\\"elapsed_ns\\\":$((200000 + noise * 100)),\
         \\\"readings\\\":[{\\\"name\\\":\\\"jobs\\\",\\\"value\\\":$jobs,\\\"unit\\\":\\\"jobs/min\\\",\
         \\\"better\\\":\\\"higher\\\"}]}\"\n",
    );
    fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).unwrap();
    file
}

fn reading<'a>(report: &'a Value, metric: &str) -> &'a Value {
    let readings = report["results"][0]["readings"].as_array().unwrap();
    readings.iter().find(|reading| reading["metric"] == metric).unwrap_or(&Value::Null)
}

#[test]
fn what_a_program_reports_has_a_verdict_and_comes_back_from_the_store() {
    let _turn = Turn::share();
    let home = Home::new();
    let program = program(&home);
    let program = program.to_str().unwrap();
    let options = ["--budget", "60s", "--metric", "jobs,peak_memory", "--metric", "nothing"];
    let csv = home.path("pairs.csv");
    let files = ["--csv", csv.to_str().unwrap()];
    let compare = [&["compare", "seccomp"][..], &options, &files, &["--", program]].concat();
    let outcome = home.run(&compare);
    assert_eq!(outcome.code, Some(3), "`nothing` has no verdict: {outcome:#?}");
    outcome.assert_says(&["`jobs`: lower for"]);
    let why = "--metric nothing: ";
    let last = outcome.stderr.trim_end().lines().last().unwrap_or_default();
    assert!(last.contains(why) && last.contains("so the exit status is 3"), "{}", outcome.stderr);
    let report = home.json();
    let jobs = reading(&report, "jobs");
    assert_eq!(
        (&jobs["verdict"], &jobs["better"]),
        (&"slower".into(), &"higher".into()),
        "{jobs:#}"
    );
    assert_eq!(jobs["unit"], "jobs/min");
    let effect = jobs["effect_pct"].as_f64().unwrap();
    assert!((-11.0..-9.0).contains(&effect), "{jobs:#}");
    let memory = reading(&report, "peak_memory");
    assert_eq!(
        (&memory["verdict"], &memory["unit"]),
        (&"slower".into(), &"B".into()),
        "{memory:#}"
    );
    let effect = memory["effect_pct"].as_f64().unwrap();
    assert!((35.0..55.0).contains(&effect), "{memory:#}");
    assert_eq!(*reading(&report, "nothing"), Value::Null);
    let notes = report["results"][0]["notes"].to_string();
    assert!(notes.contains("no verdict on `nothing`"), "{notes}");
    let pairs = fs::read_to_string(&csv).unwrap();
    let header = pairs.lines().next().unwrap();
    assert!(
        header.ends_with(",baseline_jobs,treated_jobs,baseline_peak_memory,treated_peak_memory")
    );
    let columns = |line: &str| line.split(',').count();
    assert!(pairs.lines().all(|line| columns(line) == columns(header)), "{pairs}");
    home.succeed("show -v").assert_says(&["jobs/min", "Peak memory"]);
    assert!(report["command"].as_str().unwrap().contains("--metric"));
    let id = report["id"].as_str().unwrap();
    let further = home.run(&["compare", "--continue", id, "--budget", "5s"]);
    if !further.stderr.contains("There is nothing left to measure") {
        let pairs = |report: &Value| reading(report, "jobs")["pairs"].as_u64().unwrap();
        assert!(pairs(&home.json()) > pairs(&report), "{further:#?}");
    }
}

#[test]
fn percentiles_of_an_operations_time_have_verdicts() {
    let _turn = Turn::share();
    let home = Home::new();
    let metrics = ["--metric", "latency_p50", "--metric", "latency_p99"];
    let compare = ["compare", "seccomp:compares=1000", "-w", "getppid", "--budget", "90s"];
    home.measure(&[&compare[..], &metrics].concat());
    let report = home.json();
    let p50 = reading(&report, "latency_p50");
    assert_eq!((&p50["verdict"], &p50["unit"]), (&"slower".into(), &"ns".into()), "{p50:#}");
    let [p50, p99] = ["latency_p50", "latency_p99"].map(|name| reading(&report, name));
    assert!(p99["baseline"].as_f64().unwrap() >= p50["baseline"].as_f64().unwrap(), "{p99:#}");
}

#[test]
fn what_is_no_metric_or_no_reading_is_refused() {
    let home = Home::new();
    for (metric, words) in [
        ("latency_p98", "latency_p50, latency_p90, latency_p99, latency_p99.9"),
        ("rate", "`rate` is always judged"),
        ("a b", "letters, digits"),
    ] {
        let outcome = home.run(&["compare", "none", "--metric", metric]);
        assert_eq!(outcome.code, Some(2), "{outcome:#?}");
        assert!(outcome.stderr.contains(words), "{}", outcome.stderr);
    }
    let line = r#"{"operations":1,"elapsed_ns":9,"readings":[{"name":"rate","value":1,"unit":"s","better":"lower"}]}"#;
    let outcome = home.run(&["compare", "none", "--pairs", "8", "--", "echo", line]);
    outcome.assert_error(&["with the invalid name"]);
    let line = r#"{"operations":1,"elapsed_ns":9,"readings":[{"name":"jobs","value":1}]}"#;
    let outcome = home.run(&["compare", "none", "--pairs", "8", "--", "echo", line]);
    outcome.assert_error(&["`readings` in its line cannot be read"]);
}

#[test]
fn each_test_of_unixbenchs_own_suite_has_a_verdict() {
    let home = Home::new();
    let report = include_str!("../fixtures/import/unixbench-5.1.3.txt");
    // Its own report, with a slower system call under a filter. An index counts each result again.
    let slower = report.replace("501013.0", "250506.5").replace("334.0", "167.0");
    let slower = slower.replace("354.2", "250.4");
    home.file("usual.txt", report);
    home.file("slower.txt", slower);
    let run = home.file(
        "Run",
        "#!/bin/sh\n\
         cd \"${0%/*}\"\n\
         grep -q '^Seccomp:.*2' /proc/self/status && exec cat slower.txt\n\
         exec cat usual.txt\n",
    );
    fs::set_permissions(&run, fs::Permissions::from_mode(0o755)).unwrap();
    let metrics = "system-call-overhead,process-creation";
    let options = ["compare", "seccomp", "--pairs", "12", "--metric", metrics, "--"];
    home.run(&[&options[..], &[run.to_str().unwrap()]].concat());
    let json = home.json();
    let call = reading(&json, "system-call-overhead");
    assert_eq!((&call["verdict"], &call["unit"]), (&"slower".into(), &"ops/s".into()), "{call:#}");
    let effect = call["effect_pct"].as_f64().unwrap();
    assert!((-50.1..-49.9).contains(&effect), "{call:#}");
    let creation = reading(&json, "process-creation");
    assert_eq!(creation["effect_pct"], 0.0, "{creation:#}");
    home.file("usual.txt", report.replace("501013.0", "601013.0"));
    let refused = home.run(&[&options[..], &[run.to_str().unwrap()]].concat());
    assert_ne!(refused.code, Some(0));
    refused.assert_says(&["an invalid UnixBench report. The report prints the index 334"]);
}
