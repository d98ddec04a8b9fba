//! Workloads that are broken on purpose, in every way that we could think of: each is reported with its
//! arm and the reason, and the sound one beside it is none the worse.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::time::Duration;

use crate::support::audit::Audit;
use crate::support::build::with_more;
use crate::support::{Home, Outcome, Turn, row, wait_until};
use serde_json::Value;

const PAIRS: usize = 8;
/// Samples of all pairs of the sound workload, two per pair.
const SAMPLES: i64 = 2 * PAIRS as i64;

fn build() -> &'static Path {
    static BUILD: OnceLock<PathBuf> = OnceLock::new();
    BUILD.get_or_init(|| with_more("broken", concat!(env!("WORKSPACE"), "/tests/broken")))
}

/// Compares the broken workloads together with a sound one.
fn compare(home: &Home, broken: &[&str], more: &[&str]) -> crate::support::Running {
    let mut command = home.weigh("compare");
    command.env("WEIGH_WORKLOADS", build()).args(more);
    command.args(broken.iter().flat_map(|name| ["-w", name]));
    command.args(["-w", "getppid", "--pairs", &PAIRS.to_string(), "--no-detail", "--json", "-"]);
    home.start(command)
}

/// The sound workload was measured as if alone, the failures are an error, and nothing is left.
#[track_caller]
fn assert_unharmed(home: &Home, outcome: &Outcome) -> Value {
    outcome.assert_error(&["there is no result for broken-"]);
    let json = outcome.json();
    assert_eq!(row(&json, "getppid")["pairs"], PAIRS, "{json:#}");
    let samples = "SELECT CAST(count(*) AS TEXT) FROM sample
                   JOIN work ON work.number = sample.work WHERE name = 'getppid'";
    assert_eq!(home.query_text(samples), SAMPLES.to_string());
    assert_nothing_left(home);
    json
}

#[track_caller]
fn assert_nothing_left(home: &Home) {
    let is_quiet = wait_until(Duration::from_secs(10), || home.processes().is_empty());
    assert!(is_quiet, "{:#?}", home.describe_processes());
    assert_eq!(home.leftovers(), Vec::<PathBuf>::new());
}

/// Just one failure of this workload, in this arm, for this reason; and no row.
#[track_caller]
fn assert_failed(json: &Value, workload: &str, arm: &str, reason: &str) {
    let of_it = |list: &str| -> Vec<Value> {
        let all = json[list].as_array().unwrap().iter();
        all.filter(|one| one["workload"] == workload).cloned().collect()
    };
    let failures = of_it("failures");
    assert_eq!(failures.len(), 1, "{workload}: {failures:#?}");
    assert_eq!(failures[0]["arm"], arm, "{workload}");
    let said = failures[0]["reason"].as_str().unwrap();
    assert!(said.contains(reason), "{workload}: `{reason}` is not in {said}");
    assert!(said.chars().count() < 400 && !said.contains(char::is_control), "{workload}: {said}");
    assert!(of_it("results").is_empty(), "{workload} has a result: {json:#}");
}

/// Compares all of them at once, and finds each failed for its reason.
fn assert_all_fail(broken: &[(&str, &str)], more: &[&str]) {
    let names: Vec<&str> = broken.iter().map(|(name, _)| *name).collect();
    let home = Home::new();
    let outcome = compare(&home, &names, &[&["none"], more].concat()).finish();
    let json = assert_unharmed(&home, &outcome);
    for (name, reason) in broken {
        assert_failed(&json, name, "none", reason);
    }
}

#[test]
fn a_wrong_result_or_a_bad_end_is_a_failure() {
    let _turn = Turn::share();
    let broken = [
        ("broken-wrong", "were done"),
        ("broken-early", "it printed no result"),
        ("broken-status", "it exited with status 3"),
        ("broken-crash", "it was killed by signal 11"),
    ];
    assert_all_fail(&broken, &[]);
}

#[test]
fn a_sample_that_cannot_be_is_a_failure() {
    let _turn = Turn::share();
    let broken = [
        ("broken-zero", "it reported 0 operations in 70000000 ns"),
        ("broken-nan", "it printed no result, but {\"operations\":NaN"),
        ("broken-fast", "more than any CPU can do"),
        (
            "broken-rate",
            "a rate of 1000000000 ops/s, but its operations and their time give 1000000",
        ),
        ("broken-negative", "a rate of -1000000, which is not a valid measurement"),
        ("broken-unit", "it reported `KBps`, but declares `ops/s`"),
    ];
    assert_all_fail(&broken, &[]);
}

#[test]
fn what_hangs_is_killed_with_all_that_it_started() {
    let _turn = Turn::share();
    let reason = "it did not end within 15 s and was killed (see `--timeout`)";
    let broken = ["broken-hang", "broken-stop", "broken-session"].map(|name| (name, reason));
    assert_all_fail(&broken, &["--timeout", "15s"]);
}

#[test]
fn a_flood_of_output_takes_no_memory_and_is_a_failure() {
    let _turn = Turn::share();
    let home = Home::new();
    let broken = ["broken-stdout", "broken-stderr", "broken-chatter"];
    let mut running = compare(&home, &broken, &["none"]);
    let mut most_kib = 0;
    while !running.has_ended() {
        most_kib = most_kib.max(memory_of_launchers(&home));
        std::thread::sleep(Duration::from_millis(10));
    }
    let json = assert_unharmed(&home, &running.finish());
    let printed = "it printed 2048 MiB instead of one line with the result";
    assert_failed(&json, "broken-stdout", "none", printed);
    assert_failed(&json, "broken-chatter", "none", printed);
    let ended = "it exited with status 4 after printing 2048 MiB: \u{fffd}";
    assert_failed(&json, "broken-stderr", "none", ended);
    assert!((1..100 << 10).contains(&most_kib), "{most_kib} KiB");
}

/// The most that any launcher has taken so far; what it took stays visible while it lives.
fn memory_of_launchers(home: &Home) -> u64 {
    let peak_kib = |pid: i32| -> Option<u64> {
        let read = |file: &str| fs::read_to_string(format!("/proc/{pid}/{file}")).ok();
        read("cmdline")?.contains("__launcher").then_some(())?;
        let status = read("status")?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
        line.trim().strip_suffix(" kB")?.parse().ok()
    };
    home.processes().into_iter().filter_map(peak_kib).max().unwrap_or(0)
}

/// It would seem that no two operations fit the target; and the clock would be read around each.
#[test]
fn a_first_operation_that_is_held_up_leaves_the_sample_as_it_is() {
    let _turn = Turn::share();
    let directory = tempfile::tempdir().unwrap();
    let sample = Command::new(build())
        .args(["run", "broken-slow-start", "--target-ms", "20", "--slices"])
        .current_dir(directory.path())
        .output()
        .unwrap();
    let sample: Value = serde_json::from_slice(&sample.stdout).unwrap();
    // At most a hundred of the batches are told: of short ones they would be a small part.
    let batches = sample["slices_ns"].as_array().unwrap();
    let told: u64 = batches.iter().map(|batch| batch.as_u64().unwrap()).sum();
    assert!(10 * told > sample["elapsed_ns"].as_u64().unwrap(), "{sample:#}");
}

#[test]
fn what_fails_later_keeps_the_samples_that_it_made() {
    let _turn = Turn::share();
    let home = Home::new();
    let outcome = compare(&home, &["broken-later"], &["none"]).finish();
    let json = assert_unharmed(&home, &outcome);
    let failures = &json["failures"];
    assert_eq!(failures[0]["workload"], "broken-later", "{json:#}");
    assert_eq!(
        failures[0]["reason"],
        "it exited with status 1: broken-later: launch 5 is too much"
    );
    // Four launches went well: one in each arm to try it, and the first pair.
    assert_eq!(home.samples(), SAMPLES + 2);
}

#[test]
fn the_arm_in_which_it_fails_is_named() {
    let _turn = Turn::share();
    let home = Home::new();
    let outcome = compare(&home, &["broken-filter"], &["seccomp"]).finish();
    let json = assert_unharmed(&home, &outcome);
    assert_failed(&json, "broken-filter", "seccomp", "not under a filter");
}

#[test]
fn auditing_is_put_back_whatever_the_workload_does() {
    let Some(audit) = Audit::take() else { return };
    let home = Home::new();
    let broken = ["broken-crash", "broken-hang", "broken-later"];
    let outcome = compare(&home, &broken, &["audit", "--timeout", "3s"]).finish();
    assert_unharmed(&home, &outcome);
    audit.assert_restored();
}

/// Neither is a wrong result: the sample is good, and the rest is ours to clear away.
#[test]
fn a_process_and_files_that_a_workload_leaves_are_removed() {
    let _turn = Turn::share();
    let home = Home::new();
    let outcome =
        compare(&home, &["broken-child", "broken-files"], &["none", "--inconclusive-ok"]).finish();
    assert_eq!(outcome.code, Some(0), "{outcome:#?}");
    for workload in ["broken-child", "broken-files", "getppid"] {
        assert_eq!(row(&outcome.json(), workload)["pairs"], PAIRS);
    }
    assert_nothing_left(&home);
}

#[test]
fn the_report_says_whose_workloads_were_measured() {
    let _turn = Turn::share();
    let home = Home::new();
    let path = build().canonicalize().unwrap().display().to_string();
    let warning = format!("The workloads come from {path}, not from this build of `weigh`.");
    let command = format!("WEIGH_WORKLOADS={path} weigh ");
    let outcome = compare(&home, &[], &["none"]).finish();
    assert!(outcome.json()["warnings"].to_string().contains(&warning), "{outcome:#?}");
    home.succeed("show -v").assert_says(&[&warning, &command]);
    let mut run = home.weigh("run getppid --samples 3");
    run.env("WEIGH_WORKLOADS", build());
    home.start(run).finish().assert_says(&[&warning, &command]);

    // By the former name of the variable, which the present one overrules.
    let mut run = home.weigh("run getppid --samples 3");
    run.env("WEIGH_KERNELS", build());
    home.start(run).finish().assert_says(&[&warning, &command]);
    let mut run = home.weigh("run getppid --samples 3");
    run.env("WEIGH_KERNELS", "/nonexistent").env("WEIGH_WORKLOADS", build());
    home.start(run).finish().assert_says(&[&warning]);
}

#[test]
fn a_file_that_is_no_build_is_refused() {
    let home = Home::new();
    home.file("text", "hello\n");
    home.file("empty-list", "#!/bin/sh\n");
    home.file("other-list", "#!/bin/sh\necho apples\n");
    home.file("complaint", "#!/bin/sh\necho no such library >&2\nexit 1\n");
    home.file("endless", "#!/bin/sh\nexec yes\n");
    for (file, reason) in [
        ("missing", "cannot read it: No such file"),
        (".", "it is a directory"),
        ("text", "Exec format error"),
        ("empty-list", "it lists no workloads"),
        ("other-list", "printed an invalid list entry"),
        ("complaint", "no such library"),
        ("endless", "create one with `make -C workloads OUT=DIR`"),
    ] {
        for arguments in [["compare", "none"], ["run", "getppid"], ["list", "workloads"]] {
            let mut command = home.weigh(&arguments);
            command.env("WEIGH_WORKLOADS", file);
            let outcome = home.start(command).finish();
            outcome.assert_error(&[&format!("WEIGH_WORKLOADS={file}: "), reason]);
        }
        assert_nothing_left(&home);
    }
}
