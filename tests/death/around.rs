//! Commands that run around a command (`--prepare` and its kin), and the launchers that run the
//! command itself.

use std::collections::BTreeSet;
use std::fs;
use std::time::Duration;

use rustix::process::Signal;

use crate::support::processes::signal;
use crate::support::{Home, Turn, wait_until};

const LIMIT: Duration = Duration::from_secs(60);

/// Hyperfine's meanings: all in order, the warm-ups prepared too, and in the command to do it again.
#[test]
fn all_is_run_when_it_should_be() {
    let _turn = Turn::share();
    let home = Home::new();
    home.measure(&[
        "compare",
        "none",
        "--pairs",
        "8",
        "--warmup",
        "2",
        "--setup",
        "echo setup >> log",
        "--prepare",
        "echo prepare >> log",
        "--cleanup",
        "echo cleanup >> log",
        "--",
        "sh",
        "-c",
        "echo run >> log",
    ]);
    let log = fs::read_to_string(home.path("log")).unwrap();
    let launches = 2 * (8 + 2);
    assert_eq!(log, format!("setup\n{}cleanup\n", "prepare\nrun\n".repeat(launches)));
    assert_eq!(home.samples(), 16);
    let command = home.json()["command"].as_str().unwrap().to_owned();
    for words in
        ["--prepare 'echo prepare >> log'", "--setup 'echo", "--cleanup 'echo", "--warmup 2"]
    {
        assert!(command.contains(words), "{command}");
    }
    home.run("compare none -w getppid --prepare true").assert_error(&["COMMAND"]);
}

/// `/proc/self/status` shows the filter that the treated command has.
#[test]
fn what_prepares_is_neither_treated_nor_timed() {
    let _turn = Turn::share();
    let home = Home::new();
    home.measure(&[
        "compare",
        "seccomp",
        "--pairs",
        "8",
        "--prepare",
        "grep Seccomp: /proc/self/status >> before; sleep 0.3",
        "--",
        "sh",
        "-c",
        "grep Seccomp: /proc/self/status >> within",
    ]);
    let kinds = |file: &str| -> BTreeSet<String> {
        fs::read_to_string(home.path(file)).unwrap().lines().map(str::to_owned).collect()
    };
    assert_eq!((kinds("before").len(), kinds("within").len()), (1, 2), "{:?}", kinds("before"));
    let shortest = "SELECT CAST(min(json_extract(sample, '$.elapsed_ns')) AS TEXT) FROM sample";
    let shortest_ns: u64 = home.query_text(shortest).parse().unwrap();
    assert!(shortest_ns < 300_000_000, "{shortest_ns}");
}

#[test]
fn what_fails_or_hangs_is_named_and_ended() {
    let _turn = Turn::share();
    let home = Home::new();
    for (option, line, said) in [
        ("--prepare", "echo no such thing >&2; exit 3", "exited with status 3: no such thing"),
        ("--prepare", "setsid sleep 7005 & sleep 7006", "did not end within 1 s"),
        ("--setup", "exit 4", "exited with status 4"),
    ] {
        let limit = if line.contains("sleep") { "1s" } else { "30s" };
        let around = ["compare", "none", "--timeout", limit, option, line, "--", "true"];
        home.run(&around).assert_error(&[option, said]);
        assert!(home.processes().is_empty(), "{:#?}", home.describe_processes());
        assert_eq!(home.samples(), 0);
    }
    let cleanup = ["compare", "none", "--pairs", "8", "--cleanup", "exit 5", "--", "true"];
    home.measure(&cleanup);
    let warnings = home.json()["warnings"].to_string();
    assert!(warnings.contains("`--cleanup` (exit 5): it exited with status 5"), "{warnings}");
}

/// The shell dies with its launcher. The program that it waits for does not.
#[test]
fn what_setup_runs_is_ended_by_restore_where_all_else_was_killed() {
    let _turn = Turn::share();
    let home = Home::new();
    let line = "sh -c 'touch begun; sleep 600; touch made'; true";
    let command = ["compare", "none", "--pairs", "8", "--setup", line, "--", "true"];
    let mut running = home.start(home.weigh(&command));
    assert!(wait_until(LIMIT, || home.path("begun").exists()), "{}", running.said());
    // Or `weigh` would end in good order when its launcher is gone.
    signal(running.pid(), Signal::STOP);
    for role in ["__guard", "__launcher"] {
        home.processes_of(role).into_iter().for_each(|pid| signal(pid, Signal::KILL));
    }
    running.kill();
    running.finish();
    assert!(!home.processes().is_empty(), "nothing of --setup is left that could be ended");
    home.succeed("restore").assert_says(&["Put back"]);
    assert!(wait_until(LIMIT, || home.processes().is_empty()), "{:#?}", home.describe_processes());
    assert!(!home.path("made").exists() && home.leftovers().is_empty());
}

/// Where a launcher lies in memory would otherwise be the same in all samples of an arm.
#[test]
fn every_pair_has_new_launchers() {
    let _turn = Turn::share();
    let home = Home::new();
    home.measure(&["compare", "none", "--pairs", "8", "--", "sh", "-c", "echo $PPID >> parents"]);
    let text = fs::read_to_string(home.path("parents")).unwrap();
    let parents: BTreeSet<&str> = text.lines().collect();
    assert_eq!((text.lines().count(), parents.len()), (16, 16), "{text}");
}
