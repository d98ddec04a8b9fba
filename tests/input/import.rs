//! `weigh import`: every format, what is said of it, and the way of an experiment from one machine to
//! another.

use crate::support::import::{effect, fixture, import};
use crate::support::{Home, Turn, row};
use serde_json::{Value, json};

#[test]
fn an_import_says_so_everywhere() {
    let home = Home::new();
    import(&home, &["redhat-4.1.txt", "lunar-4.1.txt"], &[]).assert_says(&[
        "Imported, not measured here: from",
        "(UnixBench 4.1.0)",
        "have no interval and no verdict",
        "381",
    ]);
    let id = home.query_text("SELECT id FROM experiment");
    home.succeed("history").assert_says(&[&id, "imported", "weigh import"]);
    for format in ["--text", "--markdown", "--html"] {
        let text = home.succeed(&["export", &id, format]);
        text.assert_says(&["Imported, not measured here", "Process Creation", "5159.6"]);
        // The style sheet of HTML knows all verdicts.
        let page = text.stdout.split("</style>").last().unwrap();
        assert!(!page.contains("inconclusive"), "{format}: {page}");
    }
    let json = home.json();
    assert_eq!(json["schema"], "weighbridge/experiment/2");
    assert_eq!(json["imported"]["files"][1]["format"], "UnixBench 4.1.0");
    assert_eq!(json["imported"]["files"][1]["arm"], "lunar-4.1");
    for row in json["results"].as_array().unwrap() {
        assert_eq!((&row["verdict"], &row["low_pct"]), (&"inconclusive".into(), &Value::Null));
    }
    home.run(&["export", &id, "--csv"]).assert_error(&["has no pairs", "--json"]);
    import(&home, &["redhat-4.1.txt", "lunar-4.1.txt"], &[]);
    home.run(&["diff", &id, "latest"])
        .assert_error(&["results of a different program", "`weigh import A B`"]);
    home.run("show --as nitzberg").assert_error(&["two sets"]);
    home.run("show --as byte").assert_error(&["lmbench, nitzberg, reaim, reaim-csv, smalley"]);
}

#[test]
fn runs_bear_an_interval_and_no_verdict() {
    let home = Home::new();
    for files in [&["hyperfine-both.json"][..], &["hyperfine-old.json", "hyperfine-new.json"]] {
        import(&home, files, &[])
            .assert_says(&["No verdict: the runs were not paired", "against `./old`"]);
        let json = home.json();
        let row = row(&json, "command");
        // Every time of ./new is 1.1 times one of ./old.
        assert!((row["effect_pct"].as_f64().unwrap() + 100.0 / 11.0).abs() < 1e-3, "{row:#}");
        let (low, high) = (row["low_pct"].as_f64().unwrap(), row["high_pct"].as_f64().unwrap());
        assert!(-10.1 < low && low < -9.1 && -9.0 < high && high < -8.1, "[{low}, {high}]");
        assert_eq!(row["verdict"], "inconclusive");
    }
    import(&home, &["unixbench-off.log", "unixbench-on.log"], &[]);
    let json = home.json();
    assert!(row(&json, "System Call Overhead")["low_pct"].is_number());
    let three = row(&json, "Shell Scripts (8 concurrent):copies=2");
    assert!(three["low_pct"].is_null(), "three passes bound nothing: {three:#}");
}

#[test]
fn lmbench_and_perf_stat_are_compared() {
    let home = Home::new();
    import(&home, &["lmbench.txt"], &["--base", "on"]);
    // 0.33 µs with auditing, 0.09 without: a rate of 3.67 times.
    assert!((effect(&home.json(), "null call") - (0.33 / 0.09 - 1.0) * 100.0).abs() < 1e-9);
    let shown = home.succeed("show --as lmbench");
    shown.assert_says(&["Processor, Processes", "on 0.330", "off 1690 1700"]);
    assert!(!shown.stdout.contains("Context switching"), "{}", shown.stdout);
    import(&home, &["perf-base.csv", "perf-patched.csv"], &[]);
    let json = home.json();
    assert_eq!(json["results"].as_array().unwrap().len(), 2, "context switches are no cost");
    assert!((effect(&json, "task-clock") + 100.0 / 11.0).abs() < 1e-3);
}

/// As people have them: made by the program itself, with what it printed besides, several in a file.
#[test]
fn result_files_as_they_are_kept_are_compared() {
    let home = Home::new();
    let raw = std::fs::read_to_string(fixture("lmbench-raw.0")).unwrap();
    home.file("on.0", raw.replace("Simple syscall: 0.1200", "Simple syscall: 0.2400"));
    home.succeed(&["import", &fixture("lmbench-raw.0"), "on.0"]);
    assert!((effect(&home.json(), "null call") + 50.0).abs() < 1e-9);
    home.succeed("show --as lmbench").assert_says(&["Context switching", "on 0.240 0.250 1.10"]);
    let report = std::fs::read_to_string(fixture("unixbench-6.0.0.txt")).unwrap();
    let faster = report.replace("868972.0", "955869.2");
    home.file("both.txt", format!("make all\ngcc -O3 -c x.c\n{report}\nmake all\n{faster}"));
    home.run("import both.txt").assert_says(&["report 2", "System Call Overhead"]);
    home.file(
        "failed.json",
        r#"{"results":[{"command":"a","mean":1.0,"exit_codes":[0]},
            {"command":"b","mean":2.0,"exit_codes":[0]},{"command":"c","mean":0.1,"exit_codes":[2]}]}"#,
    );
    home.succeed("import failed.json").assert_says(&["Not imported: \"c\" failed in 1 of 1 run"]);
    home.file("fio.json", r#"{"fio version": "fio-3.33", "jobs": []}"#);
    home.run("import fio.json").assert_error(&["fio.json: this is the JSON of fio, which weigh"]);
}

#[test]
fn files_and_labels_that_do_not_fit_are_refused() {
    let home = Home::new();
    let [off, on] = ["redhat-4.1.txt", "lunar-4.1.txt"].map(fixture);
    let table = fixture("smalley-table9.csv");
    for (arguments, part) in [
        (vec![off.as_str(), &on, "--as", "a,b,c"], "3 labels do not fit 2 results"),
        (vec![&off, &on, "--base", "x"], "no result has the label \"x\""),
        (vec![&off, &on, &off, "--as", "a,b,a"], "has 2 results and \"b\" has 1"),
        (vec![&off, &table], "no test is in all files"),
        (vec!["/nowhere"], "cannot read /nowhere"),
        (vec!["/proc/self/exe"], "/proc/self/exe"),
        (vec![&off, "--format", "html"], "expected one of hyperfine"),
        (vec![&off, "--format", "hyperfine"], "not the JSON of hyperfine"),
    ] {
        let outcome = home.run(&[&["import"], &arguments[..]].concat());
        outcome.assert_error(&[part]);
    }
    assert_eq!(home.succeed("history").stdout, "");
}

/// Tests that names in a foreign file reach neither the terminal's commands nor the page's markup.
#[test]
fn foreign_names_are_only_shown() {
    let home = Home::new();
    home.file("t.csv", "test,unit,a\u{1b}[31m,<b>\n<i>x\u{1b}[0m,us,1,2\n");
    let imported = home.succeed("import t.csv --color never").stdout;
    let id = home.query_text("SELECT id FROM experiment");
    let mut said = vec![imported, home.succeed("history").stdout];
    for dialect in ["smalley", "unixbench", "lmbench", "nitzberg", "whitcher"] {
        let outcome = home.run(&["show", "--as", dialect]);
        said.push(outcome.stdout + &outcome.stderr);
    }
    let page = home.succeed(&["export", &id, "--html"]).stdout;
    assert!(page.contains("&lt;i&gt;x") && !page.contains("<i>"), "{page}");
    said.push(page);
    for text in said {
        assert!(!text.contains('\u{1b}'), "{text}");
    }
}

#[test]
fn an_experiment_of_weigh_survives_the_journey() {
    let _turn = Turn::share();
    let (home, other) = (Home::new(), Home::new());
    let command =
        ["compare", "none", "-w", "getppid", "--pairs", "8", "--no-detail", "--json", "r.json"];
    home.run(&command);
    let file = home.json();
    let path = home.path("r.json").display().to_string();
    let imported = other.succeed(&["import", &path]);
    let original = file["id"].as_str().unwrap();
    imported.assert_says(&["Imported, not measured here", original, "cannot evaluate them again"]);
    let again = other.json();
    assert_eq!(again["results"], file["results"]);
    assert_eq!(again["imported"]["original"], original);
    assert_ne!(again["id"], original);
    // The table is the same to the letter.
    let table = |text: &str| -> Vec<String> {
        let lines = text.lines().skip_while(|line| !line.starts_with("workload  "));
        lines.take_while(|line| !line.is_empty()).map(String::from).collect()
    };
    let here = table(&home.succeed("show -v").stdout);
    assert!(here.len() > 1);
    assert_eq!(table(&other.succeed(&["show", "-v"]).stdout), here);
    let table = fixture("redhat-4.1.txt");
    other.run(&["import", &path, &table]).assert_error(&["`weigh import", "`weigh diff ID ID`"]);
}

/// Audit on two machines, as Nitzberg would choose between two vendors: each effect has the interval that its
/// machine found, and what differs between the two is an interval of both.
#[test]
fn experiments_of_two_machines_are_set_beside_each_other() {
    let _turn = Turn::share();
    let (home, other) = (Home::new(), Home::new());
    let command = ["compare", "none", "-w", "getppid", "-w", "stat", "--pairs", "8", "--no-detail"];
    home.run(&command);
    let mut one = home.json();
    one["results"].as_array_mut().unwrap().truncate(1);
    let mut two = one.clone();
    two["machine"]["hostname"] = "another-vendor".into();
    for (report, rate, effect) in [(&mut one, 3e6, -20.0), (&mut two, 4e6, -60.0)] {
        let row = &mut report["results"][0];
        (row["baseline"], row["effect_pct"]) = (rate.into(), effect.into());
        (row["low_pct"], row["high_pct"]) = ((effect - 1.0).into(), (effect + 1.0).into());
        row["treated"] = (rate * (1.0 + effect / 100.0)).into();
    }
    let mut named = two["results"][0].clone();
    named["workload"] = "pipe".into();
    two["results"].as_array_mut().unwrap().push(named);
    let files = [("a.json", &one), ("b.json", &two)]
        .map(|(name, json)| other.file(name, json.to_string()).display().to_string());
    let text = other.succeed(&["import", &files[0], &files[1]]);
    text.assert_says(&[
        "The experiments were not paired",
        "1 of 1 effect changed by more than the noise",
        "its rates have no interval",
        "−20.0 %",
        "−60.0 %",
        "hostname: ",
        "→ another-vendor",
        "pipe under none",
        "Stored: `weigh show ",
    ]);
    let history = other.succeed(&["history"]).stdout;
    assert_eq!(history.matches("imported").count(), 2, "{history}");
    let diff = other.succeed(&["diff", "latest~1", "latest", "--json"]).json();
    let effect = &diff["results"][0]["effect"];
    // 0.4/0.8, and the ends of both intervals against each other.
    let close = |value: &Value, expected: f64| (value.as_f64().unwrap() - expected).abs() < 1e-9;
    assert!(close(&effect["change_pct"], -50.0) && effect["is_beyond_noise"] == true, "{diff:#}");
    assert!(close(&effect["low_pct"], 100.0 * (0.39 / 0.81 - 1.0)), "{diff:#}");
    assert!(close(&effect["high_pct"], 100.0 * (0.41 / 0.79 - 1.0)), "{diff:#}");
    assert!(
        diff["results"][0]["rate"]["low_pct"].is_null() && close(&diff["alpha"], 0.1),
        "{diff:#}"
    );
    assert_eq!(diff["only_in_one"].as_array().unwrap().len(), 1, "{diff:#}");
}

/// A document of `weigh load --json`: users, jobs per minute and their interval, where there is one.
fn load_of(points: &[(u64, f64, Option<[f64; 2]>)], best: u64) -> String {
    let row = |users: u64, rate: f64| {
        json!({"workload": "load:short", "load": {"axis": "users", "value": users}, "unit": "jobs/min",
            "rate": rate})
    };
    let results = points.iter().map(|(users, rate, _)| row(*users, *rate)).collect::<Vec<_>>();
    let points = points.iter().map(|(users, rate, interval)| {
        let mut point = json!({"users": users, "jobs_per_min": rate, "samples": 9, "elapsed_s": 2.0,
            "user_s": 1.5, "system_s": 0.25, "deviation_s": 0.1, "job_timing_index": 95.0,
            "first_finish_s": 1.9});
        if let Some([low, high]) = interval {
            point["jobs_per_min_low"] = (*low).into();
            point["jobs_per_min_high"] = (*high).into();
        }
        point
    });
    let load =
        json!({"mix": "load:short", "points": points.collect::<Vec<_>>(), "peak": {"users": best}});
    json!({"schema": "weighbridge/run/2", "results": results, "loads": [load]}).to_string()
}

#[test]
fn load_points_of_two_systems_are_set_side_by_side_with_their_intervals() {
    let home = Home::new();
    let old = [
        (1, 1000.0, Some([900.0, 1100.0])),
        (4, 3000.0, Some([2900.0, 3100.0])),
        (8, 2500.0, None),
    ];
    let new = [
        (1, 1200.0, Some([1100.0, 1300.0])),
        (4, 3300.0, Some([3200.0, 3400.0])),
        (6, 3100.0, None),
    ];
    home.file("old.json", load_of(&old, 4));
    home.file("new.json", load_of(&new, 4));
    home.succeed("import old.json new.json").assert_says(&[
        "load:short:users=1 1000 [900, 1100] 1200 [1100, 1300] jobs/min +20.0 %",
        "so it is one of 90 %",
        "2 tests are missing from some files",
    ]);
    let json = home.json();
    assert_eq!((json["results"].as_array().unwrap().len(), &json["alpha"]), (2, &0.1.into()));
    let row = row(&json, "load:short:users=4");
    let near = |value: &Value, wanted: f64| (value.as_f64().unwrap() - wanted).abs() < 1e-9;
    assert!(near(&row["effect_pct"], 10.0), "{row:#}");
    assert!(near(&row["low_pct"], (3200.0 / 3100.0 - 1.0) * 100.0), "{row:#}");
    assert!(near(&row["high_pct"], (3400.0 / 2900.0 - 1.0) * 100.0), "{row:#}");
    let shown = home.succeed("show --as reaim");
    shown.assert_says(&[
        "Num Forked JPM old interval JPM new interval delta new interval",
        "4 3000.00 [2900.00, 3100.00] 3300.00 [3200.00, 3400.00] +10.0 % [+3.23, +17.2]",
        "Max Jobs per minute old - 3000.00 (4 users) new - 3300.00 (4 users)",
        "old 1 2.00 0.25 1.50 1000.00",
        "new 1 2.00 0.25 1.50 1200.00",
    ]);
    // Both forms can be read again.
    let csv = home.succeed("show --as reaim-csv").stdout;
    for (name, text) in [("table.txt", shown.stdout), ("two.csv", csv)] {
        home.file(name, text);
        home.succeed(&["import", name])
            .assert_says(&["4 users, jobs per minute 3000 3300 jobs/min"]);
    }
    for wrong in [[1000.0, 900.0], [0.0, 1100.0], [1050.0, 1100.0]] {
        home.file("wrong.json", load_of(&[(2, 1000.0, Some(wrong))], 2));
        home.run("import wrong.json")
            .assert_error(&["\"load:short\" with 2 users: jobs per minute"]);
    }
}

/// The tables that are made of what was measured here.
#[test]
fn what_was_measured_is_shown_as_the_old_tables() {
    let _turn = Turn::share();
    let home = Home::new();
    let command = "compare none -w getppid -w stat -w syscall --pairs 8 --no-detail";
    let measured = home.run(&*format!("{command} --sets 2 --as smalley"));
    measured.assert_says(&["Overhead", "getppid"]);
    home.succeed("show --as nitzberg").assert_says(&["Delta-3", "getppid"]);
    home.succeed("show --as smalley").assert_says(&["Overhead", "%", "µs"]);
    home.succeed("show --as lmbench").assert_says(&["null call stat none"]);
    home.succeed("show --as unixbench").assert_says(&[
        "System Call Overhead",
        "FINAL SCORE (partial only)",
        "not measured by UnixBench",
    ]);
    let id = home.query_text("SELECT id FROM experiment");
    home.succeed(&["export", &id, "--as", "smalley", "-o", "t.txt"]);
    assert!(std::fs::read_to_string(home.path("t.txt")).unwrap().contains("Overhead"));
    home.succeed("run syscall --samples 3");
    home.succeed("show --as unixbench").assert_says(&["15000.0", "FINAL SCORE"]);
    home.succeed("run syscall --samples 3 --copies 1,2");
    home.succeed("show --as unixbench").assert_says(&[
        "none; running 1 parallel copy of tests TEST",
        "none; running 2 parallel copies of tests TEST",
        "15000.0",
    ]);
    home.run("show --as nitzberg").assert_error(&["two sets"]);
}
