//! Every workload runs here, checks its own result, and gives a rate.

mod support;

use support::{Home, Turn};

#[test]
fn every_workload_gives_a_rate() {
    let _turn = Turn::take();
    let home = Home::new();
    let listed = home.succeed(&["list", "workloads", "--json"]).json();
    let workloads = listed["workloads"].as_array().unwrap();
    let names: Vec<&str> = workloads.iter().map(|w| w["name"].as_str().unwrap()).collect();
    assert!(names.len() >= 19, "{names:?}");
    // In parts: all of them take longer than a test waits for one command.
    for part in names.chunks(30) {
        let mut arguments = vec!["run", "--samples", "3", "--json", "-"];
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
fn the_whole_of_unixbench_has_an_index() {
    let _turn = Turn::take();
    let home = Home::new();
    let report = home.succeed(&["run", "unixbench", "--samples", "3", "--json", "-"]).json();
    assert!(report["unixbench_index"].as_f64().unwrap() > 0.0);
    home.succeed(&["show"]).assert_says(&["compatible with UnixBench's formula"]);
}

#[test]
fn every_suite_names_workloads_that_there_are() {
    let home = Home::new();
    let listed = home.succeed(&["list", "--json"]).json();
    let names: Vec<&serde_json::Value> =
        listed["workloads"].as_array().unwrap().iter().map(|workload| &workload["name"]).collect();
    let suites = listed["suites"].as_array().unwrap();
    assert!(suites.iter().any(|suite| suite["name"] == "unixbench"));
    assert!(suites.iter().any(|suite| suite["name"] == "quick"));
    for suite in suites {
        for name in suite["workloads"].as_array().unwrap() {
            assert!(names.contains(&name), "{} names {name}", suite["name"]);
        }
    }
}
