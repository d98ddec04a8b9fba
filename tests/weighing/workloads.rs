//! Workloads of every kind, through `weigh run`: each checks its own result, and gives a rate.

use std::collections::BTreeSet;

use crate::support::{Home, SETTINGS, Turn};
use serde_json::Value;

#[test]
fn every_kind_of_workload_of_one_half_gives_a_rate() {
    assert_gives_rates(0);
}

#[test]
fn every_kind_of_workload_of_the_other_half_gives_a_rate() {
    assert_gives_rates(1);
}

fn assert_gives_rates(half: usize) {
    // Another test may forbid huge pages for a while.
    let _turn = Turn::with(SETTINGS);
    let home = Home::new();
    let listed = home.succeed("list workloads --json").json();
    let workloads = listed["workloads"].as_array().unwrap();
    assert!(workloads.len() >= 150, "{}", workloads.len());
    // Of a sweep one point; `tests/weighing/workload_contract.rs` runs them all.
    let mut curves = BTreeSet::new();
    let is_first = |w: &&serde_json::Value| match w["series"].as_str() {
        Some(series) => curves.insert(series.to_owned()),
        None => true,
    };
    // Servers and interpreters may not be installed: tests/servers/servers.rs and tests/weighing/interp.rs.
    let alone = workloads.iter().filter(|w| w["needs"].is_null() && w["group"] != "interp");
    let names: Vec<&str> = alone.filter(is_first).map(|w| w["name"].as_str().unwrap()).collect();
    // In parts: all of them take longer than a test waits for one command.
    for part in names.chunks(20).skip(half).step_by(2) {
        let mut arguments = vec!["run", "--samples", "3", "--sample", "10ms", "--json", "-"];
        arguments.extend(part);
        let report = home.succeed(&arguments).json();
        assert_eq!(report["schema"], "weighbridge/run/2");
        assert_eq!(report["state"], "complete");
        assert_eq!(report["failures"], serde_json::json!([]), "{report:#}");
        let results = report["results"].as_array().unwrap();
        assert_eq!(results.len(), part.len());
        for row in results {
            assert_eq!(row["samples"], 3, "{row:#}");
            let [rate, lowest, highest] =
                ["rate", "lowest", "highest"].map(|field| row[field].as_f64().unwrap());
            assert!(0.0 < lowest && lowest <= rate && rate <= highest, "{row:#}");
        }
    }
    assert_eq!(home.leftovers(), Vec::<std::path::PathBuf>::new());
}

#[test]
fn a_run_ends_with_its_budget() {
    let _turn = Turn::share();
    let home = Home::new();
    let run = |options: &str| home.run(&*format!("run getppid pipe --samples 1000 {options}"));
    let report = run("--sample 20ms --budget 1s --seed 7 --json -").json();
    let samples = |row: &Value| row["samples"].as_u64().unwrap();
    let rows = report["results"].as_array().unwrap();
    assert!(
        rows.len() == 2 && rows.iter().all(|row| (1..900).contains(&samples(row))),
        "{rows:#?}"
    );
    let warnings = report["warnings"].to_string();
    assert!(warnings.contains("The budget ended in pass"), "{warnings}");
    let refused = home.run("run getppid --budget 1s --classic");
    refused.assert_error(&["'--budget <TIME>' cannot be used with"]);
}

#[test]
fn every_unixbench_has_its_index() {
    let _turn = Turn::share();
    let home = Home::new();
    let suites = ["unixbench", "unixbench-3.11", "unixbench-4.1"];
    let options = ["--samples", "3", "--sample", "10ms", "--json", "-"];
    let report = home.succeed(&[&["run"], &suites[..], &options[..]].concat()).json();
    let cpus = std::thread::available_parallelism().unwrap().get();
    let counts: Vec<usize> = if cpus > 1 { vec![1, cpus] } else { vec![1] };
    let indices = report["indices"].as_array().unwrap();
    for (suite, items) in suites.into_iter().zip([12, 6, 11]) {
        let of_suite: Vec<&Value> =
            indices.iter().filter(|index| index["suite"] == suite).collect();
        let found: Vec<&Value> = of_suite.iter().map(|index| &index["copies"]).collect();
        assert_eq!(found, counts, "as UnixBench: one copy, and one per CPU");
        for (index, count) in of_suite.iter().zip(&counts) {
            let value = index["index"].as_f64().unwrap();
            assert!(value > 0.0, "{index:#}");
            assert_eq!(index["items"].as_array().unwrap().len(), items, "{index:#}");
            if let Some(efficiency_pct) = index["efficiency_pct"].as_f64() {
                let alone = of_suite[0]["index"].as_f64().unwrap();
                let per_copy = value / *count as f64;
                assert!((efficiency_pct / 100.0 / (per_copy / alone) - 1.0).abs() < 1e-9);
            }
            assert_eq!(index.get("efficiency_pct").is_some(), cpus > 1, "{index:#}");
        }
    }
    assert!(indices.iter().all(|index| counts.iter().any(|count| index["copies"] == *count)));
    if cpus > 1 {
        let with_all = format!("unixbench with {cpus} copies, efficiency");
        let all = format!("{cpus} copies of each workload at once");
        home.succeed("show").assert_says(&["One copy of each", "with 1 copy (", &with_all, &all]);
        let running = format!("running {cpus} parallel copies of tests");
        home.succeed("show --as unixbench").assert_says(&[
            "running 1 parallel copy of tests",
            "System Call Overhead",
            &running,
            "FINAL SCORE",
        ]);
    }
    assert!(report["command"].as_str().unwrap().contains(" --samples 3"));
    home.succeed("show").assert_says(&[
        "compatible with the formula of UnixBench 6.0.0",
        "compatible with the formula of UnixBench 3.11",
    ]);
    assert_eq!(home.leftovers(), Vec::<std::path::PathBuf>::new());
}

/// The file is gone when the report is asked for again. It has the name of a suite of weigh's, which is
/// another.
#[test]
fn a_suite_of_ones_own_has_its_index() {
    let _turn = Turn::share();
    let home = Home::new();
    let file = home.path("my suite.toml");
    let member = |name: &str, baseline: f64| {
        format!("[[workload]]\nname = \"{name}\"\nbaseline = {baseline}\n")
    };
    let head = "name = \"unixbench\"\nsummary = \"Two\"\nindex = \"arithmetic-mean\"\nbaseline_index = 5.0\n";
    std::fs::write(&file, [head, &member("getppid", 1e6), &member("stat", 1e5)].concat()).unwrap();
    let file = file.to_str().unwrap();
    let run = ["run", file, "--samples", "3", "--sample", "20ms", "--json", "-"];
    let report = home.succeed(&run).json();
    let cpus = std::thread::available_parallelism().unwrap().get();
    let rows = report["results"].as_array().unwrap();
    let indices = report["indices"].as_array().unwrap();
    assert_eq!((rows.len(), indices.len()), if cpus > 1 { (4, 2) } else { (2, 1) });
    assert_eq!(indices[0]["copies"], 1);
    assert_eq!(indices.last().unwrap()["copies"], cpus);
    let number = |value: &Value| value.as_f64().unwrap();
    let rate = |workload: &str| {
        number(&rows.iter().find(|row| row["workload"] == workload).unwrap()["rate"])
    };
    let index = 5.0 * (rate("getppid") / 1e6 + rate("stat") / 1e5) / 2.0;
    assert!((number(&indices[0]["index"]) / index - 1.0).abs() < 1e-9, "{indices:#?}");
    assert_eq!((&indices[0]["suite"], &indices[0]["file"]), (&"unixbench".into(), &file.into()));
    assert!(rows.iter().all(|row| row["index"].is_number()), "{rows:#?}");

    std::fs::remove_file(file).unwrap();
    let id = report["id"].as_str().unwrap();
    assert_eq!(home.succeed(&["export", id, "--json"]).json()["indices"], report["indices"]);
    let html = home.succeed(&["export", id, "--html"]).stdout;
    let results = html.find("<h2>Results").unwrap();
    assert!(html.find("<figure").is_none_or(|chart| results < chart), "an index is of its table");
    let (sentence, whose) =
        (format!("Index {index:.1} of unixbench"), format!("as defined in {file}"));
    home.succeed("show").assert_says(&[&sentence, &whose]);
    home.run(&run).assert_error(&["cannot read the suite"]);
}

#[test]
fn every_suite_names_workloads_that_there_are() {
    let home = Home::new();
    let listed = home.succeed("list --json").json();
    let names: Vec<&serde_json::Value> =
        listed["workloads"].as_array().unwrap().iter().map(|workload| &workload["name"]).collect();
    let suites = listed["suites"].as_array().unwrap();
    for known in ["quick", "unixbench", "unixbench-3.11", "unixbench-4.1", "unixbench-all"] {
        assert!(suites.iter().any(|suite| suite["name"] == known), "{known}");
    }
    for suite in suites {
        for name in suite["workloads"].as_array().unwrap() {
            // The server of one that asks a server is found when that is resolved.
            let (base, _) = name.as_str().unwrap().split_once('@').unwrap_or_default();
            let is_there = names.iter().any(|known| *known == name || *known == base);
            assert!(is_there, "{} names {name}", suite["name"]);
        }
    }
}
