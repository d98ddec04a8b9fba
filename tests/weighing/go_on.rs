//! `weigh compare --continue`: pairs are added to an experiment that is complete, interrupted or killed, and
//! to none that is not as it was or that is finished.

use std::path::Path;

use crate::support::{Home, Outcome, Turn, row};
use rustix::process::{Pid, Signal, kill_process};

/// Noisy enough never to be decided in a test, and fast.
const COMMAND: &str = "#!/bin/sh\nexit 0\n";

fn id(home: &Home) -> String {
    home.query_text("SELECT id FROM experiment ORDER BY rowid DESC LIMIT 1")
}

fn go_on(home: &Home, id: &str, budget: &str) -> Outcome {
    home.run(&["compare", "--continue", id, "--budget", budget, "--inconclusive-ok"])
}

/// Work, set, pair and how many samples it has, in the order measured.
fn pairs(home: &Home) -> Vec<(i64, i64, i64, i64)> {
    let database = home.open_database();
    let sql = "SELECT work, set_number, pair, count(*) FROM sample
               GROUP BY work, set_number, pair ORDER BY min(number)";
    let mut query = database.prepare(sql).unwrap();
    let rows = query.query_map([], |r| Ok((r.get(0)?, r.get(1)?, r.get(2)?, r.get(3)?)));
    rows.unwrap().collect::<Result<_, _>>().unwrap()
}

/// Two identical arms with a margin that no such command can be held to.
fn begin(home: &Home, script: &Path) -> Outcome {
    let script = script.to_str().unwrap();
    home.run(&["compare", "none", "--margin", "0.001%", "--budget", "1s", "--", "sh", script])
}

#[test]
fn pairs_are_added_and_all_of_them_are_judged_together() {
    let _turn = Turn::share();
    let home = Home::new();
    let script = home.file("work", COMMAND);
    begin(&home, &script);
    let (id, before) = (id(&home), home.json());
    let outcome = go_on(&home, &id[..4], "10s");
    assert_eq!(outcome.code, Some(0), "{outcome:#?}");
    outcome.assert_says(&["session 2", "Measured in 2 sessions"]);
    let after = home.json();
    assert_eq!(after["id"], before["id"]);
    assert_eq!((&after["sessions"], &after["state"]), (&2.into(), &"complete".into()));
    let name = before["results"][0]["workload"].as_str().unwrap();
    let count = |json| row(json, name)["pairs"].as_u64().unwrap();
    assert!(count(&after) > count(&before), "{} {}", count(&before), count(&after));
    assert!(after["elapsed_s"].as_f64() > before["elapsed_s"].as_f64());
    let numbers: Vec<i64> = pairs(&home).iter().map(|pair| pair.2).collect();
    assert_eq!(numbers, (0..numbers.len() as i64).collect::<Vec<_>>(), "each number once");
    assert_eq!(count(&after), numbers.len() as u64);
    let later: i64 = home
        .open_database()
        .query_row(
            "SELECT count(*) FROM sample s WHERE started_s < (SELECT max(started_s) FROM sample
            WHERE number < s.number)",
            [],
            |row| row.get(0),
        )
        .unwrap();
    assert_eq!(later, 0, "time goes on");
}

#[test]
fn a_half_pair_that_a_kill_left_is_no_part_of_any_pair() {
    let _turn = Turn::share();
    let home = Home::new();
    let script = home.file("work", COMMAND);
    let experiment = ["compare", "none", "--budget", "60s", "--", "sh", script.to_str().unwrap()];
    let mut running = home.start(home.weigh(&experiment));
    home.wait_for_samples(7, &mut running);
    running.kill();
    running.finish();
    let id = id(&home);
    // Whatever the moment of the kill was: the last pair has one sample.
    let database = home.open_database();
    let last = "SELECT max(pair) FROM sample";
    database
        .execute(&format!("DELETE FROM sample WHERE pair = ({last}) AND position = 1"), [])
        .unwrap();
    drop(database);
    let half = pairs(&home).last().unwrap().2;
    let outcome = go_on(&home, &id, "1s");
    assert_eq!(outcome.code, Some(0), "{outcome:#?}");
    let pairs = pairs(&home);
    let halves: Vec<i64> = pairs.iter().filter(|pair| pair.3 == 1).map(|pair| pair.2).collect();
    assert_eq!(halves, [half]);
    assert!(pairs.iter().all(|pair| pair.3 <= 2));
    let json = home.json();
    assert_eq!(json["results"][0]["pairs"].as_u64().unwrap() as usize, pairs.len() - 1);
}

#[test]
fn an_interrupted_suite_goes_on_with_the_length_that_its_pilot_chose() {
    let _turn = Turn::share();
    let home = Home::new();
    let works = ["-w", "getppid", "-w", "stat"];
    let experiment = [
        &["compare", "none", "--interleave=off", "--margin", "0.001%", "--budget", "10m"],
        &works[..],
    ]
    .concat();
    let mut running = home.start(home.weigh(&experiment));
    home.wait_for_samples(40, &mut running);
    kill_process(Pid::from_raw(running.pid()).unwrap(), Signal::INT).unwrap();
    assert_eq!(running.finish().code, Some(130));
    let id = id(&home);
    let lengths = "SELECT group_concat(sample_ms) FROM work";
    let before = home.query_text(lengths);
    let outcome = go_on(&home, &id, "20s");
    assert_eq!(outcome.code, Some(0), "{outcome:#?}");
    assert_eq!(home.query_text(lengths), before);
    let json = home.json();
    for name in ["getppid", "stat"] {
        assert!(row(&json, name)["pairs"].as_u64().unwrap() > 10);
    }
}

/// A set builds its treatments anew, from files that may be others by then.
#[test]
fn a_later_set_does_not_weigh_another_file() {
    let _turn = Turn::share();
    let home = Home::new();
    let file = home.file("profile.json", r#"{"defaultAction":"SCMP_ACT_ALLOW"}"#);
    let label = format!("seccomp:profile={}", file.display());
    let words = [
        "compare", &label, "-w", "getppid", "--sets", "2", "--budget", "60s", "--margin", "0.001%",
    ];
    let mut running = home.start(home.weigh(&words));
    home.wait_for_samples(4, &mut running);
    let syscalls = r#"[{"names":["acct"],"action":"SCMP_ACT_ERRNO"}]"#;
    let other = format!("{{\"defaultAction\":\"SCMP_ACT_ALLOW\",\"syscalls\":{syscalls}}}");
    home.file("profile.json", other);
    let outcome = running.finish();
    assert_eq!(outcome.code, Some(2), "{outcome:#?}");
    outcome.assert_says(&["has changed since the experiment began"]);
    assert!(pairs(&home).iter().all(|(_, set, ..)| *set == 0));
}

#[test]
fn an_experiment_in_sets_gets_another_set() {
    let _turn = Turn::share();
    let home = Home::new();
    let sets =
        ["compare", "none", "-w", "getppid", "--margin", "0.001%", "--sets", "2", "--budget", "2s"];
    home.run(&sets);
    let id = id(&home);
    let outcome = go_on(&home, &id, "10s");
    assert_eq!(outcome.code, Some(0), "{outcome:#?}");
    assert_eq!(row(&home.json(), "getppid")["sets"].as_array().unwrap().len(), 3);
}

/// The workload makes no system calls, so a filter costs nothing, and something is always left to measure.
#[test]
fn what_changed_is_refused_and_the_experiment_is_as_before() {
    let _turn = Turn::share();
    let home = Home::new();
    let profile = r#"{"defaultAction":"SCMP_ACT_ALLOW"}"#;
    let file = home.file("profile.json", profile);
    let experiment = [
        "compare",
        "seccomp:profile=profile.json",
        "-w",
        "dhry2reg",
        "--budget",
        "1s",
        "--no-detail",
    ];
    home.run(&[&experiment[..], &["--margin", "0.001%"]].concat());
    let (id, before) = (id(&home), home.json());
    home.file(
        "profile.json",
        r#"{"defaultAction":"SCMP_ACT_ALLOW","syscalls":[
        {"names":["ptrace"],"action":"SCMP_ACT_ERRNO"}]}"#,
    );
    let refused = go_on(&home, &id, "1s");
    assert_eq!(refused.code, Some(2), "{refused:#?}");
    refused.assert_says(&["profile.json", "changed since the experiment began"]);
    assert_eq!(home.json(), before);
    std::fs::write(file, profile).unwrap();
    let database = home.open_database();
    let other = "UPDATE experiment SET machine = json_set(machine, '$.kernel', '1.2.3')";
    database.execute(other, []).unwrap();
    let refused = go_on(&home, &id, "1s");
    assert_eq!(refused.code, Some(2), "{refused:#?}");
    refused.assert_says(&["the kernel is", "was `1.2.3`"]);
}

/// With an effect of half the rate and hardly any noise, all is decided at the first look.
#[test]
fn of_a_finished_experiment_nothing_is_measured_and_its_report_is_shown() {
    let _turn = Turn::share();
    let home = Home::new();
    let line = |operations: &str| {
        format!(
            "echo \"{{\\\"operations\\\":$(({operations} + $$ % 7)),\\\"elapsed_ns\\\":1000000}}\""
        )
    };
    let halved = format!(
        "if grep -q 'Seccomp:.*2' /proc/self/status; then {}; else {}; fi",
        line("50000"),
        line("100000")
    );
    let (slow, fast) = (line("50000"), line("100000"));
    let compare = ["compare", "seccomp", "--budget", "60s", "--", "sh", "-c", &halved];
    let versus = ["versus", "--budget", "60s", &fast, &slow];
    for (command, words) in [("compare", &compare[..]), ("versus", &versus)] {
        let first = home.run(words);
        assert_eq!(first.code, Some(0), "{first:#?}");
        let before = home.json();
        let going_on = [command, "--continue", "latest", "--budget", "60s"];
        let again = home.succeed(&going_on);
        again.assert_says(&["There is nothing left to measure of", "every row has its verdict"]);
        assert!(again.stdout.contains("slower"), "the report is shown: {again:#?}");
        assert_eq!(home.json(), before);
        // The exit status is that of the report.
        let limited = home.run(&[&going_on[..], &["--fail-above", "10%"]].concat());
        assert_eq!(limited.code, Some(1), "{limited:#?}");
        limited.assert_says(&["There is nothing left to measure of", "FAIL: "]);
    }
}

#[test]
fn what_cannot_be_gone_on_with_says_why() {
    let _turn = Turn::share();
    let home = Home::new();
    home.run("compare none -w getppid --pairs 8 --no-detail");
    let id = id(&home);
    go_on(&home, &id, "1s").assert_says(&["--pairs", "fix the number of pairs"]);
    home.open_database().execute("UPDATE experiment SET origin = NULL", []).unwrap();
    let refused = go_on(&home, &id, "1s");
    assert_eq!(refused.code, Some(2));
    refused.assert_says(&["its request was not stored", "weigh compare none -w getppid"]);
    home.run("compare none --").assert_says(&["no command after `--`"]);
    home.run(&["compare", "none", "--", ""]).assert_says(&["after `--` is empty"]);
    home.run(&["compare", "none", "-w", ""]).assert_says(&["the name of the workload is empty"]);
    go_on(&home, "zzzz", "1s").assert_says(&["there is no experiment `zzzz`"]);
    let both = home.run(&["compare", "audit", "--continue", &id]);
    both.assert_says(&["cannot be used with"]);
}
