//! `weigh budget` on this very kernel: its arithmetic, its search, and what it leaves behind.

use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::support::audit::Audit;
use crate::support::processes::signal;
use crate::support::{Home, skip, wait_until};
use rand::{RngExt, SeedableRng};
use rustix::process::Signal;
use serde_json::Value;

fn budget(audit: &Audit, arguments: &[&str]) -> Value {
    let home = Home::new();
    let mut all = vec!["budget"];
    all.extend_from_slice(arguments);
    let split = all.iter().position(|argument| *argument == "--").unwrap_or(all.len());
    all.splice(split..split, ["--json", "-"]);
    let outcome = home.run(&all);
    assert_eq!(outcome.code, Some(0), "{outcome:#?}");
    audit.assert_restored();
    assert_eq!(home.leftovers(), Vec::<PathBuf>::new());
    assert_eq!(home.processes(), Vec::<i32>::new());
    outcome.json()
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("no number: {value}"))
}

#[test]
fn records_days_and_backlog_of_getppid() {
    let Some(audit) = Audit::take() else { return };
    let json = budget(&audit, &["-w", "getppid", "--rate", "100", "--burst", "3000"]);
    assert_eq!(json["schema"], "weighbridge/budget/1");
    let records = number(&json["per_operation"]["records"]);
    assert!((2.95..3.05).contains(&records), "{json:#}");

    let bytes = number(&json["per_operation"]["log_bytes"]);
    let compressed = &json["compressed"];
    let ratio = number(&compressed["gzip_bytes"]) / number(&compressed["log_bytes"]);
    assert!(ratio > 0.001 && ratio < 0.5, "{compressed}");
    let days = json["days"].as_array().unwrap();
    let rates: Vec<f64> = days.iter().map(|day| number(&day["rate"])).collect();
    assert_eq!(rates[..4], [100.0, 200.0, 500.0, 1000.0]);
    for day in days {
        let expected = number(&day["rate"]) * bytes * 86_400.0;
        assert!((number(&day["log_bytes"]) / expected - 1.0).abs() < 1e-9, "{day}");
        assert!((number(&day["gzip_bytes"]) / (expected * ratio) - 1.0).abs() < 1e-9, "{day}");
    }

    let loads = json["loads"].as_array().unwrap();
    assert_eq!(loads.len(), 3, "{json:#}");
    for (load, multiple) in loads.iter().zip([2.0, 5.0, 10.0]) {
        let asked = number(&load["asked"]);
        // A step of the load makes a few records, so the rate is met to a step.
        assert!((asked - multiple * 300.0).abs() < 20.0, "{load}");
        assert!(load["sink_cpu"].is_f64() && load["kauditd_cpu"].is_f64(), "{load}");
    }

    let backlog = &json["backlog"];
    assert_eq!(backlog["burst"], 3000);
    let enough = &backlog["enough"];
    assert_eq!(enough["lost"], serde_json::json!([0, 0, 0]), "{backlog:#}");
    let half = &backlog["half"];
    assert_eq!(number(&half["limit"]), (number(&enough["limit"]) / 2.0).floor());
    // Nine thousand records do not go through a few places without a wait.
    assert!(number(&enough["limit"]) > 16.0, "{backlog:#}");
    let lost = half["lost"].as_array().unwrap();
    assert!(number(lost.last().unwrap()) > 0.0, "half of what is enough is enough: {backlog:#}");
    let smallest = &backlog["common"][0];
    assert_eq!(smallest["limit"], 64);
    assert!(number(&smallest["lost_without_wait"]) > 0.0, "{backlog:#}");

    // Each record waits in a buffer of 1 KiB that was allocated for it, and in no ten of them.
    let memory = number(&json["backlog_bytes_per_record"]);
    // Less where others gave the kernel's memory back meanwhile.
    assert!(memory > 0.0 && memory < 10_240.0, "{memory}");
}

#[test]
fn limits_that_drop_records_make_no_smaller_log() {
    let Some(audit) = Audit::take() else { return };
    let json = budget(&audit, &["audit:backlog=64,wait=0", "-w", "getppid", "--burst", "100"]);
    assert!((2.95..3.05).contains(&number(&json["per_operation"]["records"])), "{json:#}");
    assert_eq!(json["per_operation"]["lost"], 0);
    // Their own limits are in force under load: at the maximum rate they drop.
    assert!(number(&json["loads"][2]["lost"]) > 0.0, "{json:#}");
}

#[test]
fn a_budget_is_stored_and_shown_again_in_every_format() {
    let Some(audit) = Audit::take() else { return };
    let home = Home::new();
    let shown = home.succeed("budget -w getppid --burst 100 --github-summary=b.github").stdout;
    audit.assert_restored();
    let id = home.query_text("SELECT id FROM experiment");
    assert_eq!(home.succeed(&["show", &id]).stdout, shown);
    for (format, part) in [
        ("--json", "weighbridge/budget/1"),
        ("--csv", ",getppid,audit,"),
        ("--markdown", "Log per day"),
        ("--junit", "<testsuite name=\"budget\""),
        ("--html", "<!DOCTYPE html>"),
        ("--text", "again: weigh budget"),
    ] {
        home.succeed(&["export", &id, format]).assert_says(&[part]);
    }
    let markdown = home.succeed(&["export", &id, "--markdown"]).stdout;
    assert_eq!(std::fs::read_to_string(home.path("b.github")).unwrap(), markdown + "\n");
    home.succeed("history --kind budget").assert_says(&[&id, "weigh budget"]);
    home.run("show --as unixbench").assert_error(&["is a result of `weigh budget`"]);
    home.run(&["compare", "--continue", &id]).assert_error(&["run `weigh budget` again"]);
}

/// A sample has one operation besides the warm-up, more than the launch that tells what a start makes.
#[test]
fn an_operation_longer_than_a_sample_is_counted() {
    let Some(audit) = Audit::take() else { return };
    let json = budget(&audit, &["-w", "shell8", "--burst", "1"]);
    assert!(number(&json["per_operation"]["records"]) > 1000.0, "{json:#}");
}

#[test]
fn a_command_is_counted_by_the_run() {
    let Some(audit) = Audit::take() else { return };
    let json = budget(&audit, &["audit", "--", "true"]);
    assert_eq!(json["operation"], "run");
    assert_eq!(json["workload"], "true");
    // Executing, loading the C library, ending: dozens of system calls of three records and more.
    assert!(number(&json["per_operation"]["records"]) > 50.0, "{json:#}");
    assert_eq!(json["backlog"]["burst"].as_u64().map(|burst| burst > 0), Some(true));
}

#[test]
fn rules_that_match_nothing_make_no_log() {
    let Some(audit) = Audit::take() else { return };
    let home = Home::new();
    let rules = home.file("no.rules", "-a always,exit -F arch=b64 -S swapoff -k none\n");
    let treatment = format!("audit:rules={}", rules.display());
    let outcome = home.succeed(&["budget", &treatment, "-w", "getppid", "--json", "budget.json"]);
    let json = std::fs::read_to_string(home.path("budget.json")).unwrap();
    let json: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["per_operation"]["records"], 0.0, "{json:#}");
    assert_eq!(json["days"][0]["log_bytes"], 0.0);
    assert!(json.get("backlog").is_none(), "{json:#}");
    outcome.assert_says(&["Nothing matched", "no operation produced a record"]);
    assert!(!outcome.stdout.contains("0 B"), "{}", outcome.stdout);
    audit.assert_restored();
}

/// A profile is a file that somebody gave; its command would be run as root.
#[test]
fn the_command_of_a_profile_is_not_run_unseen() {
    let home = Home::new();
    let mark = home.path("mark");
    let profile = |command: Value| {
        serde_json::json!({
            "schema": "weighbridge/profile/1", "command": command, "calls": {"read": 5},
            "elapsed_s": 1.0, "user_s": 1.0, "system_s": 1.0,
        })
        .to_string()
    };
    let file = home.file("p.json", profile(serde_json::json!(["touch", mark])));
    let again = format!("weigh budget audit --rate 5 -- touch {}", mark.display());
    home.run(&["budget", "--profile", file.to_str().unwrap(), "--rate", "5"])
        .assert_error(&["needs your confirmation", &again]);
    let hidden = home.file("h.json", profile(serde_json::json!(["touch", "a\u{1b}[8mb"])));
    home.run(&["budget", "--profile", hidden.to_str().unwrap()])
        .assert_error(&["contains control characters"]);
    // On a terminal, `n` and no answer at all are no.
    if Path::new("/usr/bin/script").exists() {
        for answer in ["n", ""] {
            let asked = format!(
                "echo '{answer}' | script -qec '{} budget --profile {}' /dev/null",
                crate::support::program().display(),
                file.display()
            );
            let output = home.command("sh").args(["-c", &asked]).output().unwrap();
            let said = String::from_utf8_lossy(&output.stdout).into_owned();
            assert!(said.contains("Run it? [y/N]") && said.contains("nothing was run"), "{said}");
            assert!(said.contains(&format!("touch {}", mark.display())), "{said}");
        }
    }
    assert!(!mark.exists());
}

#[test]
fn a_full_disk_loses_records_and_nothing_else() {
    let Some(audit) = Audit::take() else { return };
    if !Path::new("/usr/sbin/auditd").exists() {
        skip("audit", "auditd is not installed");
        return;
    }
    let json = budget(&audit, &["-w", "getppid", "--burst", "100", "--disk-full"]);
    let outcomes = json["disk_full"].as_array().unwrap();
    let actions: Vec<&str> = outcomes.iter().map(|one| one["action"].as_str().unwrap()).collect();
    assert_eq!(actions, ["IGNORE", "SYSLOG", "ROTATE", "SUSPEND"]);
    for outcome in outcomes {
        let [made, logged] = ["made", "logged"].map(|field| number(&outcome[field]));
        assert!(logged > 0.0 && logged < made, "the disk was not full: {outcome:#}");
    }
    assert!(!loop_devices().contains("small-disk"), "{}", loop_devices());
}

#[test]
fn killed_at_any_moment_it_leaves_nothing() {
    let Some(audit) = Audit::take() else { return };
    let mut chance = rand_chacha::ChaCha8Rng::seed_from_u64(5);
    let arguments = ["budget", "audit", "-w", "getppid", "--burst", "100", "--disk-full"];
    for kill in 0..crate::support::hard(2, 9) {
        let longest_ms = [3000, 10_000, 20_000][kill as usize % 3];
        let home = Home::new();
        let mut running = home.start(home.weigh(&arguments));
        let moment = Duration::from_millis(chance.random_range(longest_ms / 4..longest_ms));
        wait_until(moment, || running.has_ended());
        println!("killed after {moment:?}: {}", running.said());
        running.kill();
        running.finish();
        home.assert_nothing_runs();
        audit.assert_restored();
        assert_eq!(home.leftovers(), Vec::<PathBuf>::new());
        let is_unmounted =
            wait_until(Duration::from_secs(10), || !loop_devices().contains("small-disk"));
        assert!(is_unmounted, "{}", loop_devices());
    }
}

#[test]
fn what_makes_no_sense_is_refused() {
    let home = Home::new();
    home.run("budget --rate 0").assert_error(&["such as 100"]);
    home.run("budget --rate often").assert_error(&["such as 100"]);
    home.run("budget --burst 0").assert_error(&["--burst"]);
    home.run("budget --profile /nonexistent.json").assert_error(&["/nonexistent.json"]);
    let file = home.file("p.json", "{}");
    home.run(&["budget", "--profile", file.to_str().unwrap()]).assert_error(&["not a profile"]);
    let server = r#"{"schema": "weighbridge/profile/1", "command": ["server"], "calls": {"read": 5},
                     "is_of_period": true, "elapsed_s": 1.0, "user_s": 1.0, "system_s": 1.0}"#;
    let file = home.file("server.json", server);
    home.run(&["budget", "--profile", file.to_str().unwrap()])
        .assert_error(&["server.json: this profile covers a period", "one request"]);
    if crate::support::is_root() {
        let Some(_audit) = Audit::take() else { return };
        home.run("budget seccomp").assert_error(&["writes no log"]);
        home.run("budget audit:live").assert_error(&["leaves this host's backlog as it is"]);
        home.run("budget -w unixbench").assert_error(&["is a suite"]);
        home.run("budget -w no-such-workload").assert_error(&["no-such-workload"]);
    }
}

/// The files behind the loop devices of this machine.
fn loop_devices() -> String {
    let mut files = String::new();
    for entry in std::fs::read_dir("/sys/block").into_iter().flatten().flatten() {
        let file = std::fs::read_to_string(entry.path().join("loop/backing_file"));
        files += &file.unwrap_or_default();
    }
    files
}

/// As every other command tells it: nothing was wrong.
#[test]
fn an_interrupt_before_anything_is_counted_is_told_by_the_status() {
    let Some(audit) = Audit::take() else { return };
    let home = Home::new();
    let running = home.start(home.weigh("budget -- sleep 60"));
    let counts = || running.said().contains("Counting the records");
    assert!(wait_until(Duration::from_secs(60), counts), "{}", running.said());
    std::thread::sleep(Duration::from_millis(300));
    signal(running.pid(), Signal::INT);
    let outcome = running.finish_within(Duration::from_secs(30));
    assert_eq!(outcome.code, Some(130), "{outcome:#?}");
    outcome.assert_says(&["interrupted before anything was measured"]);
    audit.assert_restored();
    assert_eq!(home.leftovers(), Vec::<PathBuf>::new());
}
