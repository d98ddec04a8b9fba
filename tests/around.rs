//! What is run around a command (`--prepare` and its kin), and the launchers that run the command itself.

mod support;

use std::collections::BTreeSet;
use std::fs;

use support::{Home, Turn};

/// Hyperfine's meanings: all in order, the warm-ups prepared too, and in the command to do it again.
#[test]
fn all_is_run_when_it_should_be() {
    let _turn = Turn::share();
    let home = Home::new();
    let outcome = home.run(&[
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
    assert!(matches!(outcome.code, Some(0 | 3)), "{outcome:#?}");
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
    home.run(&["compare", "none", "-w", "getppid", "--prepare", "true"]).assert_error(&["COMMAND"]);
}

/// `/proc/self/status` shows the filter that the treated command has.
#[test]
fn what_prepares_is_neither_treated_nor_timed() {
    let _turn = Turn::share();
    let home = Home::new();
    let outcome = home.run(&[
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
    assert!(matches!(outcome.code, Some(0 | 3)), "{outcome:#?}");
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
        let around = ["compare", "none", "--timeout", "1s", option, line, "--", "true"];
        home.run(&around).assert_error(&[option, said]);
        assert!(home.processes().is_empty(), "{:#?}", home.describe_processes());
        assert_eq!(home.samples(), 0);
    }
    let cleanup = ["compare", "none", "--pairs", "8", "--cleanup", "exit 5", "--", "true"];
    let outcome = home.run(&cleanup);
    assert!(matches!(outcome.code, Some(0 | 3)), "{outcome:#?}");
    let warnings = home.json()["warnings"].to_string();
    assert!(warnings.contains("`--cleanup` (exit 5): it exited with status 5"), "{warnings}");
}

/// Where a launcher lies in memory would otherwise be the same in all samples of an arm.
#[test]
fn every_pair_has_new_launchers() {
    let _turn = Turn::share();
    let home = Home::new();
    let outcome =
        home.run(&["compare", "none", "--pairs", "8", "--", "sh", "-c", "echo $PPID >> parents"]);
    assert!(matches!(outcome.code, Some(0 | 3)), "{outcome:#?}");
    let text = fs::read_to_string(home.path("parents")).unwrap();
    let parents: BTreeSet<&str> = text.lines().collect();
    assert_eq!((text.lines().count(), parents.len()), (16, 16), "{text}");
}
