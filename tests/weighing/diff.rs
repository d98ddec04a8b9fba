//! `weigh diff`: two stored experiments, on a workload whose rate the test decides.

use std::os::unix::fs::PermissionsExt;

use crate::support::{Home, Outcome, Turn};

/// A home with a command that prints the rate that `operations` holds.
fn home() -> Home {
    let home = Home::new();
    let script = home.file(
        "work",
        // The process number, so that no two samples are equal.
        "#!/bin/sh\nread n < operations\n\
         echo \"{\\\"operations\\\":$n,\\\"elapsed_ns\\\":100000,\\\"rate\\\":$n.0$$}\"\n",
    );
    std::fs::set_permissions(script, std::fs::Permissions::from_mode(0o755)).unwrap();
    home
}

/// Weighs nothing at this rate, and gives the experiment's id.
fn measure(home: &Home, operations: u32) -> String {
    home.file("operations", format!("{operations}\n"));
    let outcome = home.run("compare none --pairs 10 --json - -- ./work");
    outcome.json()["id"].as_str().unwrap().to_owned()
}

fn diff(home: &Home, ids: [&str; 2], more: &[&str]) -> Outcome {
    home.run(&[&["diff", ids[0], ids[1]], more].concat())
}

#[test]
fn a_rate_that_changed_is_told_with_the_caveat() {
    let _turn = Turn::share();
    let home = home();
    let (before, after) = (measure(&home, 1000), measure(&home, 900));
    let outcome = diff(&home, [&before, &after], &[]);
    assert_eq!(outcome.code, Some(0), "{outcome:#?}");
    outcome.assert_says(&[
        "1 of 1 baseline rate changed by more than the noise, and 0 of 1 effect.",
        "The experiments were not paired",
        "two experiments cannot show how much",
    ]);
    let json = diff(&home, [&before, &after], &["--json"]).json();
    assert_eq!(json["schema"], "weighbridge/diff/2");
    let row = &json["results"][0];
    assert_eq!((&row["workload"], &row["unit"]), (&"./work".into(), &"ops/s".into()));
    // The rates differ by the process number behind the point, a tenth in a thousand at most.
    assert!((row["rate"]["change_pct"].as_f64().unwrap() + 10.0).abs() < 0.02, "{row:#}");
    assert_eq!(row["rate"]["is_beyond_noise"], true);
    assert!(row["effect"]["change_pct"].as_f64().unwrap().abs() < 0.02, "{row:#}");
    let back = diff(&home, [&after, &before], &["--json"]).json();
    let change = back["results"][0]["rate"]["change_pct"].as_f64().unwrap();
    assert!((change - 100.0 / 9.0).abs() < 0.02, "{change}");
}

#[test]
fn the_exit_status_of_two_runs_is_about_their_rates() {
    let _turn = Turn::share();
    let home = Home::new();
    let run = || {
        let run = ["run", "getppid", "--samples", "8", "--json", "-"];
        home.succeed(&run).json()["id"].as_str().unwrap().to_owned()
    };
    let (before, after) = (run(), run());
    // No rate can fall by more than all of it.
    let outcome = diff(&home, [&before, &after], &["--fail-above", "99.9%"]);
    assert_eq!(outcome.code, Some(0), "{outcome:#?}");
    // Were the second half as fast, the exit status would say so.
    let database = home.open_database();
    for (id, rate) in [(&before, 1000), (&after, 500)] {
        let set = "UPDATE sample SET sample = json_set(sample, '$.rate', ?2) WHERE experiment = ?1";
        database.execute(set, (id, rate)).unwrap();
    }
    let outcome = diff(&home, [&before, &after], &["--fail-above", "5%", "--json"]);
    assert_eq!(outcome.code, Some(1), "{outcome:#?}");
    assert_eq!(outcome.json()["results"][0].get("effect"), None);
    assert_eq!(diff(&home, [&after, &before], &["--fail-above", "5%"]).code, Some(0));
}

#[test]
fn a_row_that_is_gone_does_not_pass_a_limit() {
    let _turn = Turn::share();
    let home = Home::new();
    let run = |samples: &str, workloads: &[&str]| {
        let run =
            [&["run", "--samples", samples, "--sample", "20ms", "--json", "-"], workloads].concat();
        home.succeed(&run).json()["id"].as_str().unwrap().to_owned()
    };
    let (before, after) = (run("8", &["getppid", "stat"]), run("8", &["getppid"]));
    let outcome = diff(&home, [&before, &after], &["--fail-above", "99%"]);
    assert_eq!(outcome.code, Some(2), "{outcome:#?}");
    let gone = format!("1 row got worse cannot be told: stat (ops/s): {after} has no such row");
    assert!(outcome.stderr.contains(&gone), "{outcome:#?}");
    outcome.assert_says(&["In only one experiment"]);
    for (ids, more) in [([&before, &after], &[][..]), ([&after, &before], &["--fail-above", "99%"])]
    {
        let passed = diff(&home, ids.map(String::as_str), more);
        assert_eq!(passed.code, Some(0), "{passed:#?}");
    }
    // Nor does one that has no interval.
    let few = run("3", &["getppid"]);
    let open = diff(&home, [&few, &after], &["--fail-above", "99%"]);
    assert_eq!(open.code, Some(2), "{open:#?}");
    assert!(open.stderr.contains("3 samples and 8 samples are too few"), "{open:#?}");
}

#[test]
fn what_cannot_be_held_against_each_other_is_refused() {
    let _turn = Turn::share();
    let home = home();
    let own = measure(&home, 1000);
    let stat = home.run("compare none -w stat --pairs 8 --json -").json();
    let stat = stat["id"].as_str().unwrap();
    diff(&home, [&own, stat], &[]).assert_error(&["no workload in common"]);
    let run = home.succeed("run stat --samples 3 --json -").json();
    let run = run["id"].as_str().unwrap();
    diff(&home, [stat, run], &[]).assert_error(&["use two experiments of the same command"]);
    diff(&home, [stat, "zzzzzz"], &[]).assert_error(&["no experiment `zzzzzz`"]);
    diff(&home, [stat, stat], &[]).assert_error(&["was given twice", "`weigh history`"]);
    diff(&home, [run, "latest"], &[]).assert_error(&["are both the experiment"]);
}

#[test]
fn rows_of_different_schemes_are_not_compared() {
    let _turn = Turn::share();
    let home = Home::new();
    let measure = |scheme: &str| {
        let compare = ["compare", "none", "-w", "getppid", "--no-detail", "--pairs", "8", scheme];
        let outcome = home.run(&[&compare[..], &["--json", "-"]].concat());
        outcome.json()["id"].as_str().unwrap().to_owned()
    };
    let (before, after) = (measure("--interleave=on"), measure("--interleave=off"));
    let outcome = diff(&home, [&before, &after], &[]);
    outcome.assert_error(&[
        "getppid",
        "its pairs were interleaved in",
        "but sequential in",
        "--interleave=on",
    ]);
    let again = measure("--interleave=on");
    assert_eq!(diff(&home, [&before, &again], &[]).code, Some(0));
}
