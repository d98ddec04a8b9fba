//! A full disk, wherever it is: a sentence, exit status 2, what was stored is kept, and the system
//! is as it was. The disks are tmpfs of a few kilobytes in a mount namespace of their own.

use crate::support::audit::Audit;
use crate::support::{Home, Outcome, Turn, is_root, skip};

/// Runs `weigh` with a small file system mounted on a directory of the home.
fn run_on_small_disk(home: &Home, directory: &str, size: &str, arguments: &[&str]) -> Outcome {
    let script = format!(
        "mount -t tmpfs -o size={size} none '{}' && shift && \"$0\" \"$@\"; code=$?; \
         cp data/weighbridge/weigh.db* kept/ 2>/dev/null; \
         find tmp state -path '*weigh*' ! -type d ! -name lock >left; exit $code",
        home.path(directory).display()
    );
    std::fs::create_dir(home.path("kept")).unwrap();
    let mut command = home.command("unshare");
    command
        .args(["-m", "sh", "-c", &script])
        .arg(crate::support::program())
        .arg("-")
        .args(arguments);
    let outcome = home.start(command).finish();
    // On the small disk too, which nobody sees any more.
    assert_eq!(std::fs::read_to_string(home.path("left")).unwrap(), "", "{outcome:#?}");
    outcome
}

fn may_mount() -> bool {
    if !is_root() {
        skip("root", "needs root");
    }
    is_root()
}

#[test]
fn of_the_database_ends_the_experiment_and_keeps_what_was_stored() {
    if !may_mount() {
        return;
    }
    let _turn = Turn::share();
    let home = Home::new();
    let experiment = ["compare", "none", "-w", "getppid", "--pairs", "2000"];
    let outcome = run_on_small_disk(&home, "data", "300k", &experiment);
    outcome.assert_error(&["the disk that holds the database", "weigh.db is full", "is kept"]);
    // What was measured until then has its verdict, which is valid whenever measuring stops.
    outcome.assert_says(&["these results are partial", "getppid"]);
    assert_eq!(home.leftovers(), Vec::<std::path::PathBuf>::new());
    let kept = rusqlite::Connection::open(home.path("kept/weigh.db")).unwrap();
    let samples: i64 = kept.query_row("SELECT count(*) FROM sample", [], |row| row.get(0)).unwrap();
    assert!(samples > 0);
}

#[test]
fn of_the_database_from_the_start_is_said_at_once() {
    if !may_mount() {
        return;
    }
    let home = Home::new();
    let outcome = run_on_small_disk(
        &home,
        "data",
        "8k",
        &["compare", "none", "-w", "getppid", "--pairs", "8"],
    );
    outcome.assert_error(&["data"]);
    assert_eq!(home.leftovers(), Vec::<std::path::PathBuf>::new());
}

#[test]
fn of_the_temporary_directory_is_said_with_the_directory() {
    if !may_mount() {
        return;
    }
    let home = Home::new();
    let outcome = run_on_small_disk(
        &home,
        "tmp",
        "16k",
        &["compare", "none", "-w", "getppid", "--pairs", "8"],
    );
    outcome.assert_error(&[home.path("tmp").to_str().unwrap(), "No space left"]);
    assert_eq!(home.leftovers(), Vec::<std::path::PathBuf>::new());
}

#[test]
fn of_the_state_directory_stops_before_anything_is_changed() {
    let Some(audit) = Audit::take() else { return };
    let home = Home::new();
    // One page: enough for a file, not for a journal and its successor.
    let outcome = run_on_small_disk(
        &home,
        "state",
        "4k",
        &["compare", "audit", "-w", "getppid", "--pairs", "8"],
    );
    let journal = home.path("state/weighbridge").display().to_string();
    outcome.assert_error(&["No space left", "the journal", &journal, "XDG_STATE_HOME"]);
    assert!(!outcome.stderr.contains("guard process"), "{outcome:#?}");
    audit.assert_restored();
    assert_eq!(home.leftovers(), Vec::<std::path::PathBuf>::new());
}

#[test]
fn of_the_audit_log_ends_the_experiment_and_keeps_the_verdict() {
    let Some(audit) = Audit::take() else { return };
    let home = Home::new();
    // Room for the workloads, and for the records of some pairs, also of a slow machine.
    let outcome = run_on_small_disk(
        &home,
        "tmp",
        "8m",
        &["compare", "audit", "-w", "getppid", "--pairs", "200"],
    );
    let log = home.path("tmp").display().to_string();
    outcome.assert_error(&["cannot store the audit records in", &log, "No space left"]);
    outcome.assert_says(&["these results are partial", "getppid"]);
    audit.assert_restored();
    assert!(home.processes().is_empty());
    assert_eq!(home.leftovers(), Vec::<std::path::PathBuf>::new());
}

#[test]
fn of_the_reports_keeps_nothing_from_the_terminal() {
    let _turn = Turn::share();
    let home = Home::new();
    let kinds: [&[&str]; 2] = [
        &["compare", "none", "-w", "getppid", "--pairs", "8"],
        &["run", "getppid", "--samples", "3"],
    ];
    for command in kinds {
        let outcome = home.run(&[command, &["--html", "/dev/full"]].concat());
        outcome.assert_error(&["cannot write /dev/full: No space left", "weigh show"]);
        assert!(outcome.stdout.contains("getppid"), "{outcome:#?}");
    }
}

/// Half an hour of rules, or a budget, would have to be measured again.
#[test]
fn of_the_json_keeps_nothing_from_the_terminal() {
    let home = Home::new();
    {
        let _turn = Turn::share();
        let calibrate = ["calibrate", "-w", "getppid", "--budget", "10s", "--json", "/dev/full"];
        let outcome = home.run(&calibrate);
        outcome.assert_error(&["cannot write /dev/full: No space left"]);
        assert!(outcome.stdout.contains("getppid"), "{outcome:#?}");
    }
    let Some(audit) = Audit::take() else { return };
    let rules = home.file("my.rules", "-a always,exit -S mkdirat -k weigh-full-disk\n");
    let rules = ["rules", rules.to_str().unwrap(), "--budget", "2s", "--json", "/dev/full"];
    let budget = ["budget", "-w", "getppid", "--burst", "100", "--json", "/dev/full"];
    for (command, shown) in [(&rules[..], "weigh-full-disk"), (&budget, "log")] {
        let outcome = home.run(command);
        outcome.assert_error(&["cannot write /dev/full: No space left"]);
        assert!(outcome.stdout.contains(shown), "{outcome:#?}");
        audit.assert_restored();
    }
}

/// Whatever it is that cannot be opened, the message says why.
#[test]
fn too_few_open_files_are_called_that() {
    let _turn = Turn::share();
    let home = Home::new();
    let mut refused = 0;
    for limit in (4..28).step_by(3) {
        let mut command = home.command("sh");
        let script =
            format!("ulimit -n {limit}; exec \"$0\" compare none -w getppid --pairs 8 --no-detail");
        command.args(["-c", &script]).arg(crate::support::program());
        let outcome = home.start(command).finish();
        if outcome.code == Some(2) {
            refused += 1;
            let said = outcome.stderr.to_lowercase();
            assert!(said.contains("too many open files"), "{limit}: {outcome:#?}");
            assert!(!said.contains("choose a different") && !said.contains("damaged"), "{said}");
        }
        assert_eq!(home.leftovers(), Vec::<std::path::PathBuf>::new(), "{limit}");
    }
    assert!(refused > 2, "the limits were none");
}
