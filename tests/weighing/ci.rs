//! Features for a CI job: the gate in every format, exit statuses, JUnit, GitHub's summary, names,
//! and forgetting.

use std::fs;

use crate::support::{Home, Outcome, Turn};

/// Each sample of the treated arm does half of the work in the same time: a cost of 50 % without noise.
const HALVED: &str = "\
if grep -q 'Seccomp:.*2' /proc/self/status; then n=50; else n=100; fi; \
n=$((n * 1000 + $$ % 7)); echo \"{\\\"operations\\\":$n,\\\"elapsed_ns\\\":1000000}\"";

fn halved(home: &Home, options: &[&str]) -> Outcome {
    let head = ["compare", "seccomp", "--pairs", "10", "--no-detail"];
    home.run(&[&head, options, &["--", "sh", "-c", HALVED]].concat())
}

#[test]
fn the_gate_is_in_the_exit_status_and_in_every_report() {
    let _turn = Turn::share();
    let home = Home::new();
    home.file("summary.md", "before\n");
    let options = ["--fail-above", "10%", "--junit", "j.xml", "--github-summary=summary.md"];
    let outcome =
        halved(&home, &[&options[..], &["--json", "r.json", "--html", "r.html"]].concat());
    assert_eq!(outcome.code, Some(1), "{outcome:#?}");
    outcome.assert_says(&[
        "FAIL: ",
        "costs more than 10 % (95 % confidence)",
        "::error title=weigh::",
    ]);
    let read = |name: &str| fs::read_to_string(home.path(name)).unwrap();
    let json: serde_json::Value = serde_json::from_str(&read("r.json")).unwrap();
    assert_eq!(json["gate"]["passed"], false);
    assert_eq!(json["gate"]["fail_above_pct"], 10.0);
    assert_eq!(json["gate"]["above"][0]["treatment"], "seccomp");
    assert!(read("r.html").contains("costs more than 10"));
    assert!(read("j.xml").contains("failures=\"1\""), "{}", read("j.xml"));
    let summary = read("summary.md");
    assert!(
        summary.starts_with("before\n") && summary.contains("costs more than 10 %"),
        "{summary}"
    );
    // It is stored: a report that is made later says the same.
    assert_eq!(home.json()["gate"], json["gate"]);
    home.succeed("show").assert_says(&["costs more than 10 %"]);
    let outcome = halved(&home, &["--fail-above", "90%"]);
    assert_eq!(outcome.code, Some(0), "{outcome:#?}");
    assert_eq!(home.json()["gate"]["passed"], true);
    halved(&home, &[]);
    assert!(home.json().get("gate").is_none());
    halved(&home, &["--github-summary"]).assert_error(&["GITHUB_STEP_SUMMARY is not set"]);
}

#[test]
fn inconclusive_may_be_good_enough() {
    let _turn = Turn::share();
    let home = Home::new();
    // Three pairs at most, which bear no verdict.
    let short = ["compare", "none", "--budget", "1s", "--no-detail", "--", "sleep", "0.2"];
    assert_eq!(home.run(&short).code, Some(3));
    assert_eq!(home.json()["results"][0]["verdict"], "inconclusive");
    home.measure(&short);
}

#[test]
fn experiments_have_names_and_are_found_by_them() {
    let _turn = Turn::share();
    let home = Home::new();
    let run = |options: &[&str]| {
        home.succeed(&[&["run", "getppid", "--samples", "3"], options].concat());
        home.query_text("SELECT id FROM experiment ORDER BY rowid DESC LIMIT 1")
    };
    let first = run(&["--name", "before", "--tag", "nightly", "--tag", "v6.1"]);
    let second = run(&["--name", "after"]);
    for (wanted, id) in
        [("before", &first), ("after", &second), ("latest", &second), ("latest~1", &first)]
    {
        home.succeed(&["show", wanted]).assert_says(&[id]);
        home.succeed(&["export", wanted, "--json"]).assert_says(&[id]);
    }
    home.succeed("diff before after").assert_says(&[&first, &second]);
    home.run("show nothing").assert_error(&["no experiment `nothing`"]);
    home.run(&["run", "getppid", "--name", "a b"]).assert_error(&["letters, digits"]);
    let history = |filters: &[&str]| {
        let json = home.succeed(&[&["history", "--json"], filters].concat()).json();
        let ids = json["experiments"].as_array().unwrap().iter();
        ids.map(|entry| entry["id"].as_str().unwrap().to_owned()).collect::<Vec<String>>()
    };
    assert_eq!(history(&[]), [second.clone(), first.clone()]);
    assert_eq!(history(&["--tag", "nightly"]), std::slice::from_ref(&first));
    assert_eq!(history(&["--name", "after"]), std::slice::from_ref(&second));
    assert_eq!(history(&["--limit", "1"]), std::slice::from_ref(&second));
    assert_eq!(history(&["--workload", "getpp", "--kind", "run", "--since", "1h"]).len(), 2);
    assert!(
        history(&["--kind", "compare"]).is_empty() && history(&["--workload", "stat"]).is_empty()
    );
    assert!(history(&["--since", "2100-01-01"]).is_empty());
    home.succeed("tag latest --name now --tag x").assert_says(&["[now #x]"]);
    home.succeed("tag now --untag x").assert_says(&["[now]"]);
}

/// The result is derived once: a list of thousands does not judge their samples each time.
#[test]
fn the_history_has_the_result_of_each_experiment_and_keeps_it() {
    let _turn = Turn::share();
    let home = Home::new();
    home.succeed("run getppid --samples 3");
    let result = || {
        let json = home.succeed("history --json").json();
        json["experiments"][0]["result"].as_str().unwrap().to_owned()
    };
    let rate = result();
    assert!(rate.ends_with(" ops/s") && rate.starts_with(|c: char| c.is_ascii_digit()), "{rate}");
    home.succeed("history").assert_says(&["id started result command", &rate, "weigh run getppid"]);
    let kept = "UPDATE outcome SET words = 'kept'";
    assert_eq!(home.open_database().execute(kept, []).unwrap(), 1);
    assert_eq!(result(), "kept");
    // It is derived again where the samples have changed.
    let last = "DELETE FROM sample WHERE number = (SELECT max(number) FROM sample)";
    assert_eq!(home.open_database().execute(last, []).unwrap(), 1);
    assert!(result().ends_with(" ops/s"), "{}", result());
}

#[test]
fn what_is_forgotten_is_gone_and_the_file_gets_shorter() {
    let _turn = Turn::share();
    let home = Home::new();
    home.succeed("run getppid --samples 300 --sample 10ms --name big");
    home.succeed("run getppid --samples 3 --name small");
    let id = home.query_text("SELECT id FROM experiment WHERE name = 'big'");
    let report = home.path(&format!("data/weighbridge/reports/{id}.html"));
    assert!(report.exists());
    home.succeed("forget big --dry-run").assert_says(&[&id, "Nothing was deleted"]);
    home.run("forget big").assert_error(&["use --yes"]);
    home.run("forget big nothing --yes").assert_error(&["no experiment `nothing`"]);
    assert_eq!(home.samples(), 303);
    let size = |home: &Home| fs::metadata(home.database()).unwrap().len();
    let before = size(&home);
    home.succeed(&["forget", "big", &id, "--yes"]).assert_says(&["Deleted 1 experiment."]);
    assert_eq!(home.samples(), 3);
    assert!(size(&home) < before / 2 && !report.exists(), "{before} {}", size(&home));
    home.run(&["show", &id]).assert_error(&["no experiment"]);
    // One that is still measured.
    let mut running = home.start(home.weigh("run getppid --samples 5000 --name now"));
    home.wait_for_samples(4, &mut running);
    home.run("forget now small --yes").assert_error(&["still running"]);
    assert!(home.samples() >= 4 + 3 - 3);
}

#[test]
fn a_run_is_a_table_in_every_format() {
    let _turn = Turn::share();
    let home = Home::new();
    let shown = home.succeed("run syscall --samples 3 --as unixbench");
    shown.assert_says(&["System Call Overhead", "15000.0", "FINAL SCORE"]);
    home.run("run syscall --samples 3 --as lmbench").assert_error(&["--as lmbench: ", "ops/s"]);
    let csv = home.succeed("export latest --csv").stdout;
    let lines: Vec<&str> = csv.lines().collect();
    assert_eq!(lines.len(), 4, "{csv}");
    assert!(lines[0].starts_with("experiment,workload,unit,sample,"), "{csv}");
    assert!(lines[1].contains(",syscall,ops/s,1,"), "{csv}");
    let markdown = home.succeed("export latest --markdown").stdout;
    assert!(markdown.contains("| syscall") && markdown.contains("weigh run syscall"), "{markdown}");
    home.succeed("export latest --junit").assert_says(&["name=\"syscall\"", "failures=\"0\""]);
    let compare = ["compare", "none", "-w", "getppid", "--pairs", "8", "--no-detail"];
    home.succeed(&[&compare[..], &["--inconclusive-ok"]].concat());
    home.succeed("export latest --junit").assert_says(&["<testsuite", "getppid"]);
}
