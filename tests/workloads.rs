//! Workloads of every kind, through `weigh run`: each checks its own result, and gives a rate.

mod support;

use std::collections::BTreeSet;

use support::{Home, Turn};

#[test]
fn every_kind_of_workload_gives_a_rate() {
    let _turn = Turn::take();
    let home = Home::new();
    let listed = home.succeed(&["list", "workloads", "--json"]).json();
    let workloads = listed["workloads"].as_array().unwrap();
    assert!(workloads.len() >= 150, "{}", workloads.len());
    // Of a sweep one point; `tests/kernels.rs` runs them all.
    let mut curves = BTreeSet::new();
    let is_first = |w: &&serde_json::Value| match w["series"].as_str() {
        Some(series) => curves.insert(series.to_owned()),
        None => true,
    };
    let names: Vec<&str> =
        workloads.iter().filter(is_first).map(|w| w["name"].as_str().unwrap()).collect();
    // In parts: all of them take longer than a test waits for one command.
    for part in names.chunks(30) {
        let mut arguments = vec!["run", "--samples", "3", "--sample", "20ms", "--json", "-"];
        arguments.extend(part);
        let report = home.succeed(&arguments).json();
        assert_eq!(report["schema"], "weighbridge/run/1");
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
fn every_unixbench_has_its_index() {
    let _turn = Turn::take();
    let home = Home::new();
    let suites = ["unixbench", "unixbench-3.11", "unixbench-4.1"];
    let options = ["--samples", "3", "--sample", "20ms", "--json", "-"];
    let report = home.succeed(&[&["run"], &suites[..], &options[..]].concat()).json();
    for (suite, items) in suites.into_iter().zip([12, 6, 11]) {
        let indices = report["indices"].as_array().unwrap();
        let index = indices.iter().find(|index| index["suite"] == suite).unwrap();
        assert!(index["index"].as_f64().unwrap() > 0.0, "{index:#}");
        assert_eq!(index["items"].as_array().unwrap().len(), items, "{index:#}");
    }
    home.succeed(&["show"]).assert_says(&[
        "compatible with the formula of UnixBench 6.0.0",
        "compatible with the formula of UnixBench 3.11",
    ]);
    assert_eq!(home.leftovers(), Vec::<std::path::PathBuf>::new());
}

#[test]
fn every_suite_names_workloads_that_there_are() {
    let home = Home::new();
    let listed = home.succeed(&["list", "--json"]).json();
    let names: Vec<&serde_json::Value> =
        listed["workloads"].as_array().unwrap().iter().map(|workload| &workload["name"]).collect();
    let suites = listed["suites"].as_array().unwrap();
    for known in ["quick", "unixbench", "unixbench-3.11", "unixbench-4.1", "unixbench-all"] {
        assert!(suites.iter().any(|suite| suite["name"] == known), "{known}");
    }
    for suite in suites {
        for name in suite["workloads"].as_array().unwrap() {
            assert!(names.contains(&name), "{} names {name}", suite["name"]);
        }
    }
}
