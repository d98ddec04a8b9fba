//! Small programs in interpreted languages: two interpreters against each other, with proof of which was
//! executed, and what is said where there is none.

use std::fs;
use std::path::PathBuf;

use crate::support::{Home, Outcome, Turn, skip};
use serde_json::Value;

/// Where a program of the system is; `None`, with a sentence, where it is not installed.
fn installed(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap();
    let found = std::env::split_paths(&path).map(|at| at.join(name)).find(|file| file.is_file());
    if found.is_none() {
        skip(name, "it is not installed");
    }
    found
}

fn said(outcome: &Outcome) -> String {
    format!("{}\n{}", outcome.stdout, outcome.stderr)
}

fn sentences(facts: &Value) -> String {
    facts
        .as_array()
        .unwrap()
        .iter()
        .map(|fact| fact.as_str().unwrap())
        .collect::<Vec<_>>()
        .join("\n")
}

#[test]
fn the_interpreter_of_each_arm_is_its_own_and_tells_its_configuration() {
    let Some(perl) = installed("perl") else { return };
    let home = Home::new();
    let _turn = Turn::share();
    for name in ["perl-one", "perl-two"] {
        fs::copy(&perl, home.path("tmp").join(name)).unwrap();
    }
    let mut command = home.weigh(&[
        "compare",
        "with:perl=./perl-two",
        "--base",
        "with:perl=./perl-one",
        "-w",
        "interp:perl.hash-get",
        "-w",
        "interp:perl.startup-noprog",
        "--pairs",
        "8",
        "--json",
        "-",
    ]);
    command.current_dir(home.path("tmp"));
    let outcome = home.start(command).finish();
    let json = outcome.json();
    assert_eq!(json["results"].as_array().unwrap().len(), 2, "{outcome:#?}");
    let baseline = sentences(&json["baseline_facts"]);
    let treated = sentences(&json["treatments"][0]["facts"]);
    assert!(baseline.contains("/tmp/perl-one, 5."), "{baseline}");
    assert!(baseline.contains("threads: ") && baseline.contains("DEBUGGING: "), "{baseline}");
    assert!(
        treated.contains("/tmp/perl-two") || treated.contains("has the same configuration"),
        "{treated}"
    );
}

#[test]
fn another_language_than_the_programs_is_refused_before_anything_is_measured() {
    let home = Home::new();
    home.run("compare with:perl=perl -w interp:python.fib")
        .assert_error(&["has no effect on `interp:python.fib`", "interp-perl"]);
    home.run("compare with:perl=perl -w getppid").assert_error(&["has no effect on `getppid`"]);
    home.run("compare with:n=1 -w getppid")
        .assert_error(&["workloads do not contain it", "perl, python"]);
    home.run("run interp:perl.fib:copies=2").assert_error(&["remove the number of copies"]);
}

#[test]
fn a_missing_interpreter_is_one_sentence_and_the_rest_runs() {
    let home = Home::new();
    let _turn = Turn::share();
    let bin = home.path("tmp").join("bin");
    fs::create_dir(&bin).unwrap();
    std::os::unix::fs::symlink("/bin/sh", bin.join("sh")).unwrap();
    let mut command = home.weigh("run interp:lua interp:sh.startup --samples 3");
    command.env("PATH", &bin);
    let said = said(&home.start(command).finish());
    let words = said.split_whitespace().collect::<Vec<_>>().join(" ");
    let missing =
        "interp:lua.fib and 8 others gave no result: lua is not installed: apt-get install lua5.4";
    assert!(words.contains(missing), "{said}");
    assert!(words.contains("interp:sh.startup"), "{said}");
}

#[test]
fn a_program_with_a_wrong_result_has_no_rate() {
    let Some(perl) = installed("perl") else { return };
    let home = Home::new();
    let _turn = Turn::share();
    // As perl, but 6765 is 6766 in all that it prints.
    let script = format!("#!/bin/sh\n{} \"$@\" | sed s/6765/6766/\n", perl.display());
    let wrong = home.file("tmp/wrong-perl", script);
    let mut permissions = fs::metadata(&wrong).unwrap().permissions();
    std::os::unix::fs::PermissionsExt::set_mode(&mut permissions, 0o755);
    fs::set_permissions(&wrong, permissions).unwrap();
    let label = format!("with:perl={}", wrong.display());
    let compare = ["compare", &label, "-w", "interp:perl.fib", "--pairs", "8", "--json", "-"];
    let json = home.run(&compare).json();
    assert_eq!(json["failures"][0]["reason"], "its result is `6766`, not `6765`", "{json:#}");
}

#[test]
fn whitchers_programs_are_in_seconds_also_of_one_perl() {
    if installed("perl").is_none() {
        return;
    }
    let home = Home::new();
    let _turn = Turn::share();
    let programs = ["fib-28", "fib-32", "fib-32-wall", "movavg-100k", "movavg-25k"]
        .map(|program| format!("interp:perl.{program}"));
    let programs = programs.each_ref().map(String::as_str);
    let outcome =
        home.succeed(&[&["run", "--samples", "3", "--as", "whitcher"][..], &programs].concat());
    let rows = ["fib 28", "fib 32 (opt'n by Larry Wall)", "moving avg calc", "smaller is better"];
    outcome.assert_says(&rows);
    assert!(!outcome.stdout.contains("Difference"), "{outcome:#?}");
    home.run("run interp:perl.loop-while --samples 3 --as whitcher")
        .assert_says(&["need two perls"]);
}
