//! `weigh import`, from files to the tables of the papers that they are from.

mod support;

use std::path::Path;

use serde_json::Value;
use support::{Home, Outcome, Turn};

fn fixture(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/import").join(name);
    path.display().to_string()
}

fn import(home: &Home, files: &[&str], more: &[&str]) -> Outcome {
    let files: Vec<String> = files.iter().map(|file| fixture(file)).collect();
    let files: Vec<&str> = files.iter().map(String::as_str).collect();
    home.succeed(&[&["import"], &files[..], more].concat())
}

fn row<'a>(json: &'a Value, workload: &str) -> &'a Value {
    let rows = json["results"].as_array().unwrap();
    rows.iter().find(|row| row["workload"] == workload).unwrap()
}

fn effect(json: &Value, workload: &str) -> f64 {
    row(json, workload)["effect_pct"].as_f64().unwrap()
}

/// Digits as the thesis has them: it cuts off, where others round.
fn cut(value: f64, decimals: usize) -> f64 {
    let scale = 10_f64.powi(decimals as i32);
    // What is 7 in binary fractions may be a little less.
    (value.abs() * scale + 1e-6).floor() / scale
}

fn decimals(printed: &str) -> usize {
    printed.split_once('.').map_or(0, |(_, fraction)| fraction.len())
}

#[test]
fn table_2_of_the_thesis_is_reproduced() {
    let home = Home::new();
    let runs = ["nitzberg-RUN1.txt", "nitzberg-RUN2.txt", "nitzberg-RUN3.txt", "nitzberg-RUN4.txt"];
    import(&home, &runs, &["--as", "on,off", "--base", "off"]);
    let json = home.json();
    let table = std::fs::read_to_string(fixture("nitzberg-table2.csv")).unwrap();
    let (mut without_sign, mut rows) = (Vec::new(), 0);
    for line in table.lines().filter(|line| !line.starts_with('#')) {
        let mut printed = line.rsplitn(4, ',');
        let (third, second, first) =
            (printed.next().unwrap(), printed.next().unwrap(), printed.next().unwrap());
        let test = printed.next().unwrap();
        let set = |n: usize| row(&json, test)["sets"][n]["effect_pct"].as_f64().unwrap();
        let (delta_1, delta_2) = (set(0), set(1));
        // Delta-3 holds the signs that the other two were printed without.
        for (delta, printed) in [(delta_1, first), (delta_2, second), (delta_1 - delta_2, third)] {
            let digits: f64 = printed.trim_start_matches('-').parse().unwrap();
            assert_eq!(cut(delta, decimals(printed)), digits, "{test}: {delta} is not {printed}");
        }
        for (number, delta, printed) in [(1, delta_1, first), (2, delta_2, second)] {
            if delta < 0.0 && !printed.starts_with('-') {
                without_sign.push(format!("{test}, Delta-{number}"));
            }
            assert!(!(delta > 0.0 && printed.starts_with('-')), "{test}: {delta} is not {printed}");
        }
        rows += 1;
    }
    assert_eq!(rows, 27);
    // Where the thesis says that something got faster, and its own rates say slower. The two rows
    // that have their sign are the C compiler's (Delta-1) and two shell scripts'.
    let both = |test: &str| [format!("{test}, Delta-1"), format!("{test}, Delta-2")];
    let expected = [
        vec!["Dhrystone 2 without register variables, Delta-2".to_owned()],
        both("Arithmetic Test (type = arithoh)").to_vec(),
        vec!["Arithmetic Test (type = register), Delta-1".to_owned()],
        both("System Call Overhead Test").to_vec(),
        both("Pipe Throughput Test").to_vec(),
        both("Pipebased Context Switching Test").to_vec(),
        both("Process Creation Test").to_vec(),
        both("Execl Throughput Test").to_vec(),
        vec!["File Read (10 seconds), Delta-2".to_owned()],
        both("File Read (30 seconds)").to_vec(),
        vec!["File Write (30 seconds), Delta-2".to_owned()],
        both("Shell scripts (1 concurrent)").to_vec(),
        both("Dc: sqrt(2) to 99 decimal places").to_vec(),
    ];
    assert_eq!(without_sign, expected.concat());
    home.succeed(&["show", "--as", "nitzberg"]).assert_says(&[
        "Delta-1 Delta-2 Delta-3",
        "−85.219440 −84.796742 0.422699",
        "4.000000 −7.692308 11.692308",
    ]);
    assert!(row(&json, "System Call Overhead Test")["sets"][0]["low_pct"].is_null());
}

/// The index of 3.11 is a linear average, of baselines of its own.
#[test]
fn the_thesis_s_indices_are_those_of_its_report() {
    let home = Home::new();
    import(&home, &["nitzberg-RUN1.txt"], &[]).assert_says(&["nothing to hold it against"]);
    let shown = home.succeed(&["show", "--as", "unixbench"]);
    shown.assert_says(&["SUM of 6 items", "6.5", "AVERAGE", "1.1"]);
    assert_eq!(home.json()["warnings"], Value::Array(Vec::new()));
}

#[test]
fn table_9_of_smalley_is_reproduced() {
    let home = Home::new();
    import(&home, &["smalley-table9.csv"], &[]);
    let shown = home.succeed(&["show", "--as", "smalley"]).stdout;
    // All eight overheads as printed: the time of the same work, also where the table has throughput.
    for line in [
        "file copy 4KB      49.5     48.6        2%  MB/s",
        "file copy 1KB      40.4     38.6        5%  MB/s",
        "file copy 256B     23.0     21.0       10%  MB/s",
        "pipe               6.17     7.17       16%  µs",
        "pipe switching     12.7     15.0       18%  µs",
        "process creation    485      494        2%  µs",
        "execl              2480     2610        5%  µs",
        "shell scripts (8)   659      684        4%  ms",
    ] {
        assert!(shown.contains(line), "{line} is not in\n{shown}");
    }
}

#[test]
fn the_reports_of_lunar_and_red_hat_contradict_their_table() {
    let home = Home::new();
    let files = ["redhat-4.1.txt", "lunar-4.1.txt"];
    import(&home, &files, &["--as", "Lunar", "--base", "RedHat"]);
    let reports = home.json();
    // Every index and both final scores are sound.
    assert_eq!(reports["warnings"], Value::Array(Vec::new()));
    let shown = home.succeed(&["show", "--as", "unixbench"]);
    shown.assert_says(&["204.1", "277.7", "not of the same tests, and cannot be compared"]);
    import(&home, &["whitcher-unixbench.csv"], &[]);
    let table = home.json();
    let printed = [
        ("file copy 4KB", "File Copy 4096 bufsize 8000 maxblocks", 23.0),
        ("file copy 1KB", "File Copy 1024 bufsize 2000 maxblocks", 74.0),
        ("file copy 256B", "File Copy 256 bufsize 500 maxblocks", 122.0),
        ("pipe", "Pipe Throughput", -6.0),
        ("process creation", "Process Creation", -22.0),
        ("execl", "Execl Throughput", 7.0),
        ("shell scripts (8)", "Shell Scripts (8 concurrent)", 381.0),
    ];
    let differing = |of: &dyn Fn(&str, &str) -> f64| -> Vec<&str> {
        let wrong = |row: &&(&str, &str, f64)| of(row.0, row.1).round() != row.2;
        printed.iter().filter(wrong).map(|row| row.0).collect()
    };
    // 322.5 over 144.7 is 122.9 % more: cut off, not rounded.
    assert_eq!(differing(&|name, _| effect(&table, name)), ["file copy 256B"]);
    // The pipe's 279.1 is the index of the line below it, context switching. Its own is 297.6, and the
    // difference +0.1 %.
    assert_eq!(differing(&|_, title| effect(&reports, title)), ["file copy 256B", "pipe"]);
    assert_eq!(effect(&reports, "Pipe Throughput").round(), 0.0);
    // "n/a", though the report has a rate for it among its results (but not in its index): a loss.
    assert_eq!(effect(&reports, "Pipe-based Context Switching").round(), -22.0);
    assert!(table["results"].as_array().unwrap().iter().all(|r| r["workload"] != "pipe switching"));
}

#[test]
fn an_import_says_so_everywhere() {
    let home = Home::new();
    import(&home, &["redhat-4.1.txt", "lunar-4.1.txt"], &[]).assert_says(&[
        "Imported, not measured here: from",
        "(UnixBench 4.1.0)",
        "No interval and no verdict",
        "381",
    ]);
    let id = home.query_text("SELECT id FROM experiment");
    home.succeed(&["history"]).assert_says(&[&id, "imported", "weigh import"]);
    for format in ["--text", "--markdown", "--html"] {
        let text = home.succeed(&["export", &id, format]);
        text.assert_says(&["Imported, not measured here", "Process Creation", "5159.6"]);
        // The style sheet of HTML knows all verdicts.
        let page = text.stdout.split("</style>").last().unwrap();
        assert!(!page.contains("inconclusive"), "{format}: {page}");
    }
    let json = home.json();
    assert_eq!(json["schema"], "weighbridge/experiment/1");
    assert_eq!(json["imported"]["files"][1]["format"], "UnixBench 4.1.0");
    assert_eq!(json["imported"]["files"][1]["arm"], "lunar-4.1");
    for row in json["results"].as_array().unwrap() {
        assert_eq!((&row["verdict"], &row["low_pct"]), (&"inconclusive".into(), &Value::Null));
    }
    home.run(&["export", &id, "--csv"]).assert_error(&["has no pairs", "--json"]);
    home.run(&["diff", &id, &id]).assert_error(&["was imported and has no samples"]);
    home.run(&["show", "--as", "nitzberg"]).assert_error(&["two sets"]);
    home.run(&["show", "--as", "byte"]).assert_error(&["unixbench, lmbench, nitzberg, smalley"]);
}

#[test]
fn runs_bear_an_interval_and_no_verdict() {
    let home = Home::new();
    for files in [&["hyperfine-both.json"][..], &["hyperfine-old.json", "hyperfine-new.json"]] {
        import(&home, files, &[])
            .assert_says(&["No verdict: they were not paired", "against `./old`"]);
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
    let three = row(&json, "Shell Scripts (8 concurrent) (2 copies)");
    assert!(three["low_pct"].is_null(), "three passes bound nothing: {three:#}");
}

#[test]
fn lmbench_and_perf_stat_are_compared() {
    let home = Home::new();
    import(&home, &["lmbench.txt"], &["--base", "on"]);
    // 0.33 µs with auditing, 0.09 without: a rate of 3.67 times.
    assert!((effect(&home.json(), "null call") - (0.33 / 0.09 - 1.0) * 100.0).abs() < 1e-9);
    let shown = home.succeed(&["show", "--as", "lmbench"]);
    shown.assert_says(&["Processor, Processes", "on 0.330", "off 1690 1700"]);
    assert!(!shown.stdout.contains("Context switching"), "{}", shown.stdout);
    import(&home, &["perf-base.csv", "perf-patched.csv"], &[]);
    let json = home.json();
    assert_eq!(json["results"].as_array().unwrap().len(), 2, "context switches are no cost");
    assert!((effect(&json, "task-clock") + 100.0 / 11.0).abs() < 1e-3);
}

#[test]
fn files_and_labels_that_do_not_fit_are_refused() {
    let home = Home::new();
    let [off, on] = ["redhat-4.1.txt", "lunar-4.1.txt"].map(fixture);
    let table = fixture("smalley-table9.csv");
    for (arguments, part) in [
        (vec![off.as_str(), &on, "--as", "a,b,c"], "3 labels do not fit 2 results"),
        (vec![&off, &on, "--base", "x"], "no result is called \"x\""),
        (vec![&off, &on, &off, "--as", "a,b,a"], "has 2 results and \"b\" has 1"),
        (vec![&off, &table], "no result in common"),
        (vec!["/nowhere"], "cannot read /nowhere"),
        (vec!["/proc/self/exe"], "/proc/self/exe"),
        (vec![&off, "--format", "html"], "it is one of unixbench"),
        (vec![&off, "--format", "hyperfine"], "no JSON of hyperfine"),
    ] {
        let outcome = home.run(&[&["import"], &arguments[..]].concat());
        outcome.assert_error(&[part]);
    }
    assert_eq!(home.succeed(&["history"]).stdout, "");
}

#[test]
fn an_experiment_of_weigh_survives_the_journey() {
    let _turn = Turn::take();
    let (home, other) = (Home::new(), Home::new());
    let command = ["compare", "none", "-w", "getppid", "--pairs", "8", "--json", "r.json"];
    home.run(&command);
    let file = home.json();
    let path = home.path("r.json").display().to_string();
    let imported = other.succeed(&["import", &path]);
    let original = file["id"].as_str().unwrap();
    imported.assert_says(&["Imported, not measured here", original, "cannot be judged anew"]);
    let again = other.json();
    assert_eq!(again["results"], file["results"]);
    assert_eq!(again["imported"]["original"], original);
    assert_ne!(again["id"], original);
    // The table is the same to the letter.
    let table = |text: &str| -> Vec<String> {
        let lines = text.lines().skip_while(|line| !line.starts_with("workload"));
        lines.take_while(|line| !line.is_empty()).map(String::from).collect()
    };
    let here = table(&home.succeed(&["show"]).stdout);
    assert!(here.len() > 1);
    assert_eq!(table(&other.succeed(&["show"]).stdout), here);
    let second = other.run(&["import", &path, &path]);
    second.assert_error(&["imported by itself"]);
}

/// The tables that are made of what was measured here.
#[test]
fn what_was_measured_is_shown_as_the_old_tables() {
    let _turn = Turn::take();
    let home = Home::new();
    let command =
        ["compare", "none", "-w", "getppid", "-w", "stat", "-w", "syscall", "--pairs", "8"];
    home.run(&[&command[..], &["--sets", "2"]].concat());
    home.succeed(&["show", "--as", "nitzberg"]).assert_says(&["Delta-3", "getppid"]);
    home.succeed(&["show", "--as", "smalley"]).assert_says(&["Overhead", "%", "µs"]);
    home.succeed(&["show", "--as", "lmbench"]).assert_says(&["null call", "stat"]);
    home.succeed(&["show", "--as", "unixbench"]).assert_says(&[
        "System Call Overhead",
        "FINAL SCORE (partial only)",
        "not measured by UnixBench",
    ]);
    let id = home.query_text("SELECT id FROM experiment");
    home.succeed(&["export", &id, "--as", "smalley", "-o", "t.txt"]);
    assert!(std::fs::read_to_string(home.path("t.txt")).unwrap().contains("Overhead"));
    home.succeed(&["run", "syscall", "--samples", "3"]);
    home.succeed(&["show", "--as", "unixbench"]).assert_says(&["15000.0", "FINAL SCORE"]);
    home.succeed(&["run", "syscall", "--samples", "3", "--copies", "2"]);
    home.succeed(&["show", "--as", "unixbench"]).assert_says(&["none, 2 copies", "15000.0"]);
    home.run(&["show", "--as", "nitzberg"]).assert_error(&["two sets"]);
}
