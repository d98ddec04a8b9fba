//! `build:`: the workloads built again, by whatever compiler is here.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::support::{Home, Turn, assert_slows, row, wait_until};
use rustix::process::{Pid, Signal, kill_process, test_kill_process};

fn has(program: &str) -> bool {
    ["/usr/bin", "/bin"].iter().any(|directory| Path::new(directory).join(program).exists())
}

/// The hash that a report has of a build's first link.
fn sha256(facts: &str) -> &str {
    let (_, hashes) = facts.split_once("SHA-256 of the executables: 0 ").expect(facts);
    hashes.split(',').next().unwrap()
}

#[test]
fn what_is_built_without_optimisation_is_slower_and_the_report_says_what_it_is() {
    let _turn = Turn::share();
    let home = Home::new();
    let label = "build:cflags=-O0 -DUNUSED_WORDS='a b;$(false)'";
    // It ends with the verdict, however many pairs that takes beside others.
    let arguments =
        ["compare", label, "-w", "dhry2reg", "--budget", "90s", "--no-detail", "--seed", "7"];
    let outcome = home.measure(&[&arguments[..], &["--json", "-"]].concat());
    assert_eq!(home.leftovers(), Vec::<PathBuf>::new());
    let json = outcome.json();
    assert_eq!(row(&json, "dhry2reg")["verdict"], "slower", "{json:#}");
    assert_slows(row(&json, "dhry2reg"), 20.0);
    let facts = json["treatments"][0]["facts"].as_array().unwrap();
    let facts: Vec<&str> = facts.iter().map(|fact| fact.as_str().unwrap()).collect();
    let facts = facts.join("\n");
    assert!(
        facts.contains("/cc (") && facts.contains(" with -O0 '-DUNUSED_WORDS=a b;$(false)'."),
        "{facts}"
    );
    assert!(facts.contains("An arm without `build` runs the embedded build: "), "{facts}");
    assert_eq!(sha256(&facts).len(), 64, "{facts}");
    assert_eq!(
        (&json["baseline"], &json["baseline_state"]),
        (&"build".into(), &"built here".into())
    );
    home.succeed("show").assert_says(&["Compared with `build`."]);
    assert!(json["command"].as_str().unwrap().contains(" --base build"), "{}", json["command"]);
    let database = home.open_database();
    let evidence = "SELECT evidence FROM sample WHERE arm = 1 AND work = 0";
    let mut query = database.prepare(evidence).unwrap();
    let links = query.query_map([], |row| row.get::<_, String>(0)).unwrap();
    let links: BTreeSet<String> = links.map(Result::unwrap).collect();
    assert!(links.iter().all(|link| link.contains("\"link\"")), "{links:?}");
    assert!(links.len() > 2, "each pair draws its link: {links:?}");
}

#[test]
fn the_same_flags_are_the_same_build_and_another_compiler_is_another() {
    let _turn = Turn::share();
    let home = Home::new();
    // Without optimisation a build takes half as long.
    let mut arms = vec!["build:cflags=-O0"];
    arms.extend(has("clang").then_some("build:cc=clang,cflags=-O0"));
    let measured =
        ["--base", "build:cc=cc,cflags=-O0", "-w", "spawn", "--pairs", "8", "--no-detail"];
    let outcome = home.measure(&[&["compare"], &arms[..], &measured, &["--json", "-"]].concat());
    let json = outcome.json();
    let facts = |value: &serde_json::Value| value["facts"].to_string();
    let treatments = json["treatments"].as_array().unwrap();
    let baseline = &json["baseline_facts"].to_string();
    assert_eq!(sha256(&facts(&treatments[0])), sha256(baseline));
    if let Some(clang) = treatments.get(1) {
        assert!(facts(clang).contains("clang version"), "{clang:#}");
        assert_ne!(sha256(&facts(clang)), sha256(baseline));
    }
    assert_eq!(json["baseline_state"], "built here");
    assert_eq!(home.leftovers(), Vec::<PathBuf>::new());
}

#[test]
fn a_compiler_that_fails_is_quoted_and_nothing_is_measured() {
    let home = Home::new();
    let refused = |label: &str, parts: &[&str]| {
        // Without the placebo, which would be built before.
        let outcome = home.run(&["compare", label, "--base", "none", "-w", "getppid"]);
        outcome.assert_error(parts);
        assert_eq!(home.leftovers(), Vec::<PathBuf>::new());
    };
    refused(
        "build:cflags=-O2 -Wno-such-thing -fno-such-flag",
        &["failed with status", "-fno-such-flag"],
    );
    refused("build:cflags=-O0,ldflags=-lno-such-library", &["failed with", "no-such-library"]);
    refused("build:cc=no-such-cc", &["there is no program `no-such-cc` here"]);
    refused("build:cc=/bin/false", &["`/bin/false -std=gnu11", "failed with status 1"]);
    refused("build:cc=/bin/true", &["cannot build the workloads in", "No such file"]);
    refused("build:cflags=\"'-O2\"", &["a quote is not closed"]);
    refused("build:flags=-O2", &["`build` does not take `flags=`; it takes cc=NAME"]);
    assert_eq!(home.samples(), 0);
}

#[test]
fn a_command_is_nobodys_build_and_nothing_is_built_for_it() {
    let home = Home::new();
    let outcome = home.run("compare build --pairs 8 -- /bin/echo x");
    outcome.assert_error(&[
        "`build` changes only weigh's own workloads, and `/bin/echo x` is not one",
    ]);
    assert!(!outcome.stderr.contains("Building"), "{outcome:#?}");
}

#[test]
fn an_executable_that_is_replaced_meanwhile_is_no_evidence() {
    let _turn = Turn::share();
    let home = Home::new();
    let arguments =
        ["compare", "build:cflags=-O0", "--base", "none", "-w", "getppid", "--pairs", "900"];
    let mut running = home.start(home.weigh(&arguments));
    home.wait_for_samples(6, &mut running);
    let scratch = fs::read_dir(home.path("tmp")).unwrap().next().unwrap().unwrap().path();
    for link in fs::read_dir(scratch.join("build-1")).unwrap() {
        let copy = scratch.join("copy");
        fs::copy(scratch.join("weigh-workloads"), &copy).unwrap();
        fs::rename(copy, link.unwrap().path().join("weigh-workloads")).unwrap();
    }
    let outcome = running.finish();
    outcome.assert_error(&[
        "The experiment failed",
        "it is the embedded build",
        "something replaced its executable",
    ]);
    assert_eq!(row(&home.json(), "getppid")["verdict"], "inconclusive");
    assert_eq!(home.leftovers(), Vec::<PathBuf>::new());
}

/// By the user while it compiles, or by SIGKILL: nothing is left, not the compiler either.
#[test]
fn a_build_ends_when_its_user_gives_up() {
    let home = Home::new();
    let compiler = home.file("slow-cc", "#!/bin/sh\necho $$ > $TMPDIR/began\nexec sleep 600\n");
    fs::set_permissions(&compiler, fs::Permissions::from_mode(0o755)).unwrap();
    let label = format!("build:cc={}", compiler.display());
    for signal in [Signal::INT, Signal::KILL] {
        let running =
            home.start(home.weigh(&["compare", &label, "--base", "none", "-w", "getppid"]));
        let mut pid = None;
        let began = || {
            pid = fs::read_dir(home.path("tmp")).unwrap().find_map(|scratch| {
                let began = scratch.unwrap().path().join("build-1/sources/began");
                Pid::from_raw(fs::read_to_string(began).ok()?.trim().parse().ok()?)
            });
            pid.is_some()
        };
        assert!(wait_until(Duration::from_secs(60), began), "{}", running.said());
        kill_process(Pid::from_raw(running.pid()).unwrap(), signal).unwrap();
        running.finish();
        let is_clean = || home.leftovers().is_empty() && test_kill_process(pid.unwrap()).is_err();
        assert!(wait_until(Duration::from_secs(60), is_clean), "{:?}", home.describe_processes());
    }
}
