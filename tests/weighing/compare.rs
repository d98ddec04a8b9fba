//! `weigh compare` from the command line to its reports, with treatments that need no privilege.

use std::fs;
use std::path::Path;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

use crate::support::processes::signal;
use crate::support::{Home, Turn, program, row, skip, wait_until};

#[test]
fn identical_arms_give_the_documented_json() {
    let _turn = Turn::share();
    let home = Home::new();
    // Eight pairs give no verdict of a difference (2/256) after Holm's correction for seven rows (5 %/7).
    let works = "-w getppid -w stat -w read -w pipe -w syscall -w open-close -w dhry2reg";
    let more = "--pairs 8 --no-detail --seed 7 --json -";
    let outcome = home.measure(&*format!("compare none {works} {more}"));
    let json = outcome.json(); // and nothing else
    assert_eq!(json["schema"], "weighbridge/experiment/2");
    assert_eq!(json["state"], "complete");
    assert_eq!((&json["seed"], &json["baseline"]), (&7.into(), &"none".into()));
    assert_eq!((&json["alpha"], &json["margin_pct"]), (&0.05.into(), &1.0.into()));
    assert_eq!(json["treatments"][0]["label"], "none");
    assert!(json["machine"]["cpus_online"].as_u64().unwrap() > 0);
    assert!(json["command"].as_str().unwrap().contains("--seed 7"));
    assert_eq!(json["failures"], serde_json::json!([]));
    for name in ["getppid", "stat"] {
        let row = row(&json, name);
        assert_eq!((&row["pairs"], &row["treatment"]), (&8.into(), &"none".into()));
        assert_eq!((&row["metric"], &row["unit"]), (&"rate".into(), &"ops/s".into()));
        assert_eq!(row["evidence"]["syscalls_per_op"], 1.0);
        let [low, effect, high] =
            ["low_pct", "effect_pct", "high_pct"].map(|field| row[field].as_f64().unwrap());
        assert!(low <= effect && effect <= high, "{row:#}");
        assert!(
            ["equivalent", "inconclusive"].contains(&row["verdict"].as_str().unwrap()),
            "{row:#}"
        );
    }
    assert_eq!(json, home.json(), "what is stored says the same again");
    assert_eq!(home.leftovers(), Vec::<std::path::PathBuf>::new());
}

/// Work, arm, pair and position of every sample, in the order measured.
fn order(home: &Home) -> Vec<[i64; 4]> {
    let database = home.open_database();
    let mut query =
        database.prepare("SELECT work, arm, pair, position FROM sample ORDER BY number").unwrap();
    let rows = query.query_map([], |row| Ok([row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?]));
    rows.unwrap().collect::<Result<_, _>>().unwrap()
}

#[test]
fn the_same_seed_gives_the_same_order_and_another_another() {
    let _turn = Turn::share();
    let orders = ["11", "11", "12"].map(|seed| {
        let home = Home::new();
        let words = format!("compare none -w getppid -w stat --pairs 8 --no-detail --seed {seed}");
        home.measure(&*words);
        order(&home)
    });
    assert_eq!(orders[0].len(), 32);
    assert_eq!(orders[0], orders[1]);
    assert_ne!(orders[0], orders[2]);
}

#[test]
fn two_sets_are_in_the_json_and_make_the_table_of_the_thesis() {
    let _turn = Turn::share();
    let home = Home::new();
    let outcome = home.measure("compare none -w getppid --pairs 8 --no-detail --sets 2");
    outcome.assert_says(&["Delta-1", "Delta-2", "Delta-3"]);
    let json = home.json();
    let row = row(&json, "getppid");
    assert_eq!(row["pairs"], 16);
    let sets = row["sets"].as_array().unwrap();
    assert_eq!(sets.iter().map(|set| &set["pairs"]).collect::<Vec<_>>(), [8, 8]);
}

#[test]
fn the_exit_status_says_whether_a_limit_was_exceeded() {
    let _turn = Turn::share();
    let home = Home::new();
    // A command that says itself what it did: half as much under the filter, whatever else runs here.
    let rate = "if grep -q 'Seccomp:.*2' /proc/self/status; then n=50; else n=100; fi";
    let sample = r#"echo "{\"operations\":1,\"elapsed_ns\":9000,\"rate\":$n.00$$}""#;
    home.file("work", format!("{rate}\n{sample}\n"));
    let slow = ["compare", "seccomp", "--pairs", "8", "--no-detail"];
    let run = |options: &[&str]| home.run(&[&slow[..], options, &["--", "sh", "work"]].concat());
    assert_eq!(run(&[]).code, Some(0));
    let above = run(&["--fail-above", "3%"]);
    assert_eq!(above.code, Some(1));
    assert!(above.stderr.contains("cost more than 3 %: sh work under seccomp"), "{above:#?}");
    assert_eq!(run(&["--fail-above", "99.9%"]).code, Some(0));
    // A margin that no eight pairs can decide.
    let open =
        ["compare", "none", "-w", "getppid", "--pairs", "8", "--no-detail", "--margin", "0.001%"];
    let codes: Vec<Option<i32>> = (0..3).map(|_| home.run(&open).code).collect();
    assert!(codes.contains(&Some(3)), "{codes:?}");
}

#[test]
fn a_command_is_weighed_as_a_whole_or_by_the_sample_that_it_prints() {
    let _turn = Turn::share();
    let home = Home::new();
    let whole = home.measure("compare none --pairs 8 --no-detail --json - -- /bin/true");
    assert_eq!(row(&whole.json(), "/bin/true")["unit"], "runs/s");
    // The process number, so that no two samples are equal.
    let sample = r#"{\"operations\":1,\"elapsed_ns\":9000,\"rate\":50.00$$,\"unit\":\"pages/s\"}"#;
    let line = &format!("echo noise; echo \"{sample}\"");
    let own = home.measure(&[
        "compare",
        "none",
        "--pairs",
        "8",
        "--no-detail",
        "--json",
        "-",
        "--",
        "sh",
        "-c",
        line,
    ]);
    let json = own.json();
    let row = &json["results"][0];
    assert_eq!(row["unit"], "pages/s", "{row:#}");
    for arm in ["baseline", "treated"] {
        assert!((50.0..50.01).contains(&row[arm].as_f64().unwrap()), "{row:#}");
    }
}

#[test]
fn a_profile_fails_the_workload_that_it_forbids_and_the_others_go_on() {
    let _turn = Turn::share();
    let home = Home::new();
    home.file(
        "no-unlink.json",
        r#"{"defaultAction": "SCMP_ACT_ALLOW", "syscalls": [
            {"names": ["unlink", "unlinkat", "rmdir"], "action": "SCMP_ACT_ERRNO"}]}"#,
    );
    let outcome = home.run(&[
        "compare",
        "seccomp:profile=no-unlink.json",
        "-w",
        "create-unlink",
        "-w",
        "getppid",
        "--pairs",
        "8",
        "--no-detail",
    ]);
    assert_eq!(outcome.code, Some(2), "{outcome:#?}");
    outcome.assert_says(&["`create-unlink` gave no result"]);
    let json = home.json();
    assert_eq!(json["results"].as_array().unwrap().len(), 1);
    assert_eq!(row(&json, "getppid")["pairs"], 8);
    let failure = &json["failures"][0];
    assert_eq!(failure["workload"], "create-unlink");
    assert_eq!(failure["arm"], "seccomp:profile=no-unlink.json");
    let reason = failure["reason"].as_str().unwrap();
    assert!(reason.contains("not permitted"), "{failure:#}");
    assert!(
        reason.contains("; the filter denied `unlink") && reason.contains("(EPERM)"),
        "{reason}"
    );
}

#[test]
fn a_report_says_which_calls_a_profile_denied_and_which_one_kills() {
    let _turn = Turn::share();
    let home = Home::new();
    home.file(
        "odd.json",
        r#"{"defaultAction": "SCMP_ACT_ALLOW", "syscalls": [
            {"names": ["rseq"], "action": "SCMP_ACT_ERRNO"},
            {"names": ["eventfd2"], "action": "SCMP_ACT_KILL_PROCESS"}]}"#,
    );
    let (html, markdown) = (home.path("r.html"), home.path("r.md"));
    let words = "compare seccomp:profile=odd.json -w getppid -w eventfd --pairs 8 --no-detail";
    let mut words: Vec<&str> = words.split(' ').collect();
    words.extend(["--html", html.to_str().unwrap(), "--markdown", markdown.to_str().unwrap()]);
    let outcome = home.run(&words);
    assert_eq!(outcome.code, Some(2), "{outcome:#?}");
    let json = home.json();
    let killed = json["failures"][0]["reason"].as_str();
    let killed = killed.unwrap_or_else(|| panic!("{outcome:#?} {json:#}"));
    assert!(killed.contains("`eventfd2` (kills the process)"), "{killed}");
    let row = row(&json, "getppid");
    let calls = "`rseq` (EPERM; glibc works without it)";
    assert_eq!(row["evidence"]["denied_calls"], calls, "{row:#}");
    assert!(
        row["notes"].as_array().unwrap().contains(&format!("the filter denied {calls}").into())
    );
    outcome.assert_says(&["the filter denied `rseq`"]);
    let page = fs::read_to_string(html).unwrap();
    assert!(page.contains("the filter denied `rseq` (EPERM; glibc works without it)"));
    let text = fs::read_to_string(markdown).unwrap();
    assert!(text.contains("glibc works without it"), "{text}");
}

/// Nothing of the program was measured, and its report is lost with it.
#[test]
fn a_profile_under_which_no_program_begins_is_named_by_its_call() {
    let _turn = Turn::share();
    let home = Home::new();
    let profile = r#"{"defaultAction": "SCMP_ACT_ALLOW", "syscalls": [
        {"names": ["execve"], "action": "SCMP_ACT_ERRNO"}]}"#;
    home.file("none.json", profile);
    let outcome = home.run("compare seccomp:profile=none.json -w getppid --pairs 8 --no-detail");
    assert_eq!(outcome.code, Some(2), "{outcome:#?}");
    outcome.assert_says(&["the filter denied `execve` (EPERM)"]);
}

/// A command may do more than print: it runs as often as was asked for, also where it fails.
#[test]
fn a_command_is_not_run_once_more_to_find_its_denied_calls() {
    let _turn = Turn::share();
    let home = Home::new();
    let profile = r#"{"defaultAction": "SCMP_ACT_ALLOW", "syscalls": [
        {"names": ["rseq"], "action": "SCMP_ACT_ERRNO"}]}"#;
    home.file("odd.json", profile);
    let runs = |line: &str| {
        home.file("runs", "");
        let options = ["compare", "seccomp:profile=odd.json", "--pairs", "8", "--warmup", "1"];
        let line = format!("echo run >>runs; {line}");
        let outcome =
            home.run(&[&options[..], &["--inconclusive-ok", "--", "sh", "-c", &line]].concat());
        (outcome.code, fs::read_to_string(home.path("runs")).unwrap().lines().count())
    };
    assert_eq!(runs("true"), (Some(0), 2 * (8 + 1)));
    // It fails in the warm-up of the first arm, or in that of the treated one.
    assert_eq!(runs("false"), (Some(2), 1));
    assert_eq!(runs("! grep -q 'Seccomp:.*2' /proc/self/status"), (Some(2), 2));
}

#[test]
fn several_treatments_are_held_against_one_baseline() {
    let _turn = Turn::share();
    let home = Home::new();
    let words = "compare seccomp:compares=2000 none -w getppid --budget 90s --no-detail --json -";
    let outcome = home.measure(words);
    let json = outcome.json();
    let treatments: Vec<&serde_json::Value> =
        json["results"].as_array().unwrap().iter().map(|row| &row["treatment"]).collect();
    assert_eq!(treatments, ["seccomp:compares=2000", "none"]);
    assert_eq!(json["results"][0]["verdict"], "slower");
    // Held against a filter, no filter is faster. The interval says so on every machine; the verdict may wait
    // for old processes on one that is busy.
    home.measure("compare none --base seccomp:compares=2000 -w getppid --budget 90s --no-detail");
    let turned = home.json();
    assert!(row(&turned, "getppid")["low_pct"].as_f64().unwrap() > 0.0, "{turned:#}");
}

#[test]
fn a_second_experiment_at_the_same_time_is_refused() {
    let _turn = Turn::share();
    let home = Home::new();
    let mut first = home.start(home.weigh("compare none -w getppid --pairs 2000"));
    home.wait_for_samples(1, &mut first);
    let pid = first.pid();
    let who = format!("compare none -w getppid --pairs 2000` (process {pid}, for ");
    let said =
        ["another experiment is running on this host: `", who.as_str(), "Use --wait to queue"];
    home.run("compare none -w getppid --pairs 8 --no-detail").assert_error(&said);
    // What is wrong with the input is told before the wait. To be refused takes no unpacked workloads.
    let typo = home.run("compare none -w getpid --wait");
    typo.assert_error(&["no workload or suite `getpid`"]);
    assert!(!typo.stderr.contains("another experiment"), "{typo:#?}");
    let short = home.run("compare none -w app --budget 5s --wait");
    short.assert_error(&["--budget 5 s is too short"]);
    assert!(!short.stderr.contains("another experiment"), "{short:#?}");
    home.run("compare none -w getpid").assert_error(&said[..1]);
    let waited = home.run("compare none -w getppid --wait=1s");
    waited.assert_error(&[
        "Waiting up to 1 s, because another experiment",
        "still busy after waiting 1.0 s: another experiment",
    ]);
    // Reading is no experiment.
    home.succeed("show").assert_says(&["Still measuring"]);
    home.succeed("history").assert_says(&["running"]);
    home.succeed("restore").assert_says(&["Nothing was left behind"]);
    assert!(!first.has_ended());
    let next = home.start(home.weigh("compare none -w getppid --pairs 8 --no-detail --wait"));
    wait_until(Duration::from_secs(60), || next.said().contains("Waiting up to"));
    kill_process(Pid::from_raw(pid).unwrap(), Signal::INT).unwrap();
    first.finish();
    let next = next.finish();
    // A log has a line when the wait begins, and one when it has ended.
    let of_wait = |line: &&str| line.to_lowercase().contains("wait");
    let lines: Vec<&str> = next.stderr.lines().filter(of_wait).collect();
    assert!(
        lines.len() == 2
            && lines[0].starts_with("Waiting up to ")
            && lines[1].starts_with("The wait is over after "),
        "{next:#?}"
    );
    let json = home.json();
    assert_eq!(
        (&json["state"], &row(&json, "getppid")["pairs"]),
        (&"complete".into(), &8.into()),
        "{next:#?}"
    );
}

#[test]
fn an_interrupt_of_the_wait_shows_the_cursor_of_the_terminal_again() {
    if !Path::new("/usr/bin/script").exists() {
        skip("script", "needs script(1)");
        return;
    }
    let _turn = Turn::share();
    let home = Home::new();
    let mut first = home.start(home.weigh("compare none -w getppid --pairs 2000"));
    home.wait_for_samples(1, &mut first);
    let line = format!("{} compare none -w getppid --wait", program().display());
    let mut on_terminal = home.command("script");
    on_terminal.args(["-qec", &line, "/dev/null"]);
    let next = home.start(on_terminal);
    let hidden = "\x1b[?25l";
    assert!(
        wait_until(Duration::from_secs(60), || next.said().contains(hidden)),
        "{}",
        next.said()
    );
    let is_weigh =
        |pid: &i32| fs::read_link(format!("/proc/{pid}/exe")).is_ok_and(|it| it == program());
    let waiting = home.processes_of("getppid --wait").into_iter().find(is_weigh).unwrap();
    signal(waiting, Signal::INT);
    let said = next.finish().stdout;
    assert!(said.rfind("\x1b[?25h") > said.rfind(hidden), "{said:?}");
    signal(first.pid(), Signal::INT);
    first.finish();
}

#[test]
fn another_promise_and_another_length_are_kept_with_the_experiment() {
    let _turn = Turn::share();
    let home = Home::new();
    let how = ["--fdr", "--sample", "20ms", "--budget", "4s", "--no-detail", "--json", "-"];
    let outcome = home.measure(&[&["compare", "none", "-w", "getppid"], &how[..]].concat());
    let report = outcome.json();
    assert_eq!(report["multiplicity"], "e-bh");
    let again = report["command"].as_str().unwrap();
    assert!(again.contains(" --fdr") && again.contains(" --sample 20ms"), "{again}");
    home.run("compare none --fdr --pairs 20").assert_error(&["--fdr", "--pairs"]);
    home.run("compare none --sample 5ms").assert_error(&["10ms to 60s"]);
}

#[test]
fn two_processes_are_weighed_on_one_cpu_and_on_two() {
    let _turn = Turn::share();
    let home = Home::new();
    let arguments =
        ["compare", "none", "-w", "context1", "--pairs", "8", "--no-detail", "--json", "-"];
    let report = home.run(&arguments).json();
    let rows = report["results"].as_array().unwrap();
    let names: Vec<&str> = rows.iter().map(|row| row["workload"].as_str().unwrap()).collect();
    assert_eq!(names, ["context1@cross-cpu", "context1@same-cpu"]);
    // That they are where their names say is looked up in tests/weighing/workload_contract.rs.
    assert!(rows.iter().all(|row| row["baseline"].as_f64().unwrap() > 0.0), "{rows:#?}");
}
