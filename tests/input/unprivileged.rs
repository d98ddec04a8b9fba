//! Actions that an ordinary user can take, and the messages where the user cannot.

use std::fs;
use std::os::unix::fs::{PermissionsExt, chown};
use std::process::Command;

use crate::support::{
    Home, NOBODY, Outcome, Turn, as_nobody, assert_slows, is_root, program, row, skip,
};

/// A home that belongs to a user without privileges, with a copy of the program that he can read.
fn home_of_nobody() -> Home {
    let home = Home::new();
    fs::copy(program(), home.path("weigh")).unwrap();
    fs::set_permissions(home.path("weigh"), fs::Permissions::from_mode(0o755)).unwrap();
    fs::set_permissions(home.directory.path(), fs::Permissions::from_mode(0o755)).unwrap();
    if is_root() {
        let whole = ["", "data", "state", "tmp"].map(|name| home.path(name));
        whole.iter().for_each(|path| chown(path, Some(NOBODY), Some(NOBODY)).unwrap());
    }
    home
}

fn command(home: &Home, arguments: &[&str]) -> Command {
    let mut command = home.command(home.path("weigh"));
    command.args(arguments);
    as_nobody(&mut command);
    command
}

fn run(home: &Home, arguments: &[&str]) -> Outcome {
    home.start(command(home, arguments)).finish()
}

/// As [`Home::measure`].
fn measure(home: &Home, arguments: &[&str]) -> Outcome {
    let outcome = run(home, &[arguments, &["--inconclusive-ok"]].concat());
    assert_eq!(outcome.code, Some(0), "{outcome:#?}");
    outcome
}

#[test]
fn seccomp_is_weighed_without_root() {
    let _turn = Turn::share();
    let home = home_of_nobody();
    // Many comparisons: a call takes several times as long.
    let outcome = measure(
        &home,
        &["compare", "seccomp:compares=2000", "-w", "getppid", "--pairs", "8", "--json", "-"],
    );
    let json = outcome.json();
    assert_slows(row(&json, "getppid"), 30.0);
    assert_eq!(home.leftovers(), Vec::<std::path::PathBuf>::new());
}

#[test]
fn the_default_filter_is_weighed_without_root() {
    let _turn = Turn::share();
    let home = home_of_nobody();
    let outcome = measure(&home, &["compare", "seccomp", "-w", "getppid", "--pairs", "8"]);
    outcome.assert_says(&["getppid"]);
}

/// In a user namespace, where that is allowed; otherwise the reason is given.
#[test]
fn a_server_is_measured_without_root() {
    if !std::path::Path::new("/usr/bin/redis-server").exists() {
        return skip("redis", "redis-server is not installed");
    }
    let _turn = Turn::share();
    let home = home_of_nobody();
    let outcome = run(&home, &["run", "app:kv.get-set", "--samples", "3"]);
    if outcome.code == Some(2) {
        return outcome.assert_says(&["user namespaces are not permitted"]);
    }
    assert_eq!(outcome.code, Some(0), "{outcome:#?}");
    outcome.assert_says(&["app:kv.get-set@redis"]);
    assert_eq!(home.leftovers(), Vec::<std::path::PathBuf>::new());
    assert_eq!(home.describe_processes(), Vec::<String>::new());
}

#[test]
fn auditing_is_refused_and_what_is_missing_is_named() {
    let home = home_of_nobody();
    let outcome = run(&home, &["compare", "audit", "-w", "getppid", "--pairs", "8"]);
    outcome.assert_error(&["cannot weigh `audit` here", "root", "CAP_AUDIT_CONTROL", "sudo"]);
    assert_eq!(home.leftovers(), Vec::<std::path::PathBuf>::new());
}

#[test]
fn a_listener_for_files_is_refused() {
    let home = home_of_nobody();
    let outcome = run(&home, &["compare", "fanotify", "-w", "getppid", "--pairs", "8"]);
    outcome.assert_error(&["cannot weigh `fanotify` here", "fanotify needs root", "sudo"]);
    assert_eq!(home.leftovers(), Vec::<std::path::PathBuf>::new());
}

#[test]
fn a_bpf_program_is_refused() {
    let home = home_of_nobody();
    let outcome = run(&home, &["compare", "bpf", "-w", "getppid", "--pairs", "8"]);
    outcome.assert_error(&["cannot weigh `bpf` here", "BPF needs root", "sudo"]);
    assert_eq!(home.leftovers(), Vec::<std::path::PathBuf>::new());
}

#[test]
fn without_a_treatment_seccomp_is_weighed_and_the_reason_given() {
    let _turn = Turn::share();
    let home = home_of_nobody();
    let outcome = measure(&home, &["compare", "-w", "getppid", "--pairs", "8"]);
    outcome.assert_says(&["Weighing `seccomp` instead of `audit`", "CAP_AUDIT_CONTROL"]);
    let shown = run(&home, &["show"]);
    assert_eq!(shown.code, Some(0), "{shown:#?}");
    shown.assert_says(&["seccomp"]);
}

#[test]
fn the_list_says_what_works_here() {
    let home = home_of_nobody();
    let listed = run(&home, &["list", "treatments"]);
    assert_eq!(listed.code, Some(0), "{listed:#?}");
    listed.assert_says(&["not here: auditing needs root", "works here"]);
    let json = run(&home, &["list", "treatments", "--json"]).json();
    let state = |name: &str| {
        let kinds = json["treatments"].as_array().unwrap();
        kinds.iter().find(|kind| kind["name"] == name).unwrap()["here"]["state"].clone()
    };
    assert_eq!(state("audit"), "needs-root");
    assert_eq!(state("seccomp"), "available");
    assert_eq!(state("none"), "available");
}

#[test]
fn a_database_that_may_not_be_written_is_named() {
    if !is_root() {
        skip("root", "needs root");
        return;
    }
    let home = home_of_nobody();
    let others = Home::new();
    fs::set_permissions(others.directory.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let database = others.path("data/weigh.db");
    let path = database.to_str().unwrap();
    // Who only reads needs nothing, and makes nothing.
    run(&home, &["--database", path, "history"]).assert_error(&[path, "does not exist"]);
    let deeper = others.path("data/deeper/weigh.db");
    let deeper = ["--database", deeper.to_str().unwrap()];
    run(&home, &[&deeper[..], &["show"]].concat()).assert_error(&["deeper", "does not exist"]);
    run(&home, &[&deeper[..], &["compare", "none", "-w", "getppid"]].concat())
        .assert_error(&["cannot create", "deeper"]);
    let run_there = ["--database", path, "compare", "none", "-w", "getppid", "--pairs", "8"];
    run(&home, &run_there).assert_error(&[path, "--database FILE"]);
}

/// As on a read-only file system: neither the file nor anything beside it can be written.
#[test]
fn a_database_that_can_only_be_read_is_shown() {
    let _turn = Turn::share();
    let home = home_of_nobody();
    let compare = ["compare", "none", "-w", "getppid", "--pairs", "8", "--no-detail"];
    measure(&home, &compare);
    let directory = home.path("data/weighbridge");
    fs::set_permissions(home.database(), fs::Permissions::from_mode(0o444)).unwrap();
    fs::set_permissions(&directory, fs::Permissions::from_mode(0o555)).unwrap();
    let before = fs::read(home.database()).unwrap();
    for command in [&["show"][..], &["history"]] {
        let outcome = run(&home, command);
        assert_eq!(outcome.code, Some(0), "{outcome:#?}");
    }
    let id = run(&home, &["history"]).stdout.lines().nth(1).unwrap()[..6].to_owned();
    assert_eq!(run(&home, &["export", &id, "--json"]).json()["id"], id.as_str());
    run(&home, &["diff", &id, "latest"]).assert_error(&["are both the experiment"]);
    run(&home, &compare).assert_error(&["weigh.db", "--database FILE"]);
    assert_eq!(fs::read(home.database()).unwrap(), before);
    assert_eq!(
        fs::read_dir(&directory).unwrap().count(),
        2,
        "more than the database and the reports"
    );
    fs::set_permissions(&directory, fs::Permissions::from_mode(0o755)).unwrap();
}
