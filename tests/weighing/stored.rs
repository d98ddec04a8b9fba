//! Stored experiments of every kind (`experiments.db.gz`) are shown with the numbers that are beside them,
//! which were exported when they were measured.

use std::fs;

use crate::support::Home;
use crate::support::stored::{fixtures, stored};
use serde_json::Value;
use weigh_model::format;

/// Ids, and what the fixture has of them in files that end like this.
fn expected(ending: &str) -> Vec<(String, String)> {
    let files = fs::read_dir(fixtures()).unwrap().map(|entry| entry.unwrap().path());
    let of_kind = files.filter_map(|path| {
        let id = path.file_name()?.to_str()?.strip_suffix(ending)?.to_owned();
        Some((id, fs::read_to_string(&path).unwrap()))
    });
    let found: Vec<(String, String)> = of_kind.collect();
    assert!(found.len() > 4, "{ending}: {}", found.len());
    found
}

/// Where the two differ. What is new may be there, and what was there has to be.
fn differences(was: &Value, is: &Value, path: &str, found: &mut Vec<String>) {
    match (was, is) {
        (Value::Object(was), Value::Object(_)) => {
            for (key, value) in was {
                differences(value, &is[key], &format!("{path}.{key}"), found);
            }
        }
        (Value::Array(was), Value::Array(is)) if was.len() == is.len() => {
            for (index, (was, is)) in was.iter().zip(is).enumerate() {
                differences(was, is, &format!("{path}[{index}]"), found);
            }
        }
        (Value::Number(was), Value::Number(is)) => {
            let (was, is) = (was.as_f64().unwrap(), is.as_f64().unwrap());
            if (was - is).abs() > 1e-9 * was.abs() {
                found.push(format!("{path}: {was} was {is}"));
            }
        }
        _ if was == is => {}
        _ => found.push(format!("{path}: {was} is now {is}")),
    }
}

#[test]
fn every_experiment_has_the_numbers_that_it_was_exported_with() {
    let home = stored();
    for (id, was) in expected(".json") {
        let outcome = home.run(&["export", &id, "--json"]);
        assert_eq!(outcome.code, Some(0), "{id}: {}", outcome.stderr);
        let [was, is]: [Value; 2] =
            [&was, &outcome.stdout].map(|text| serde_json::from_str(text).unwrap());
        let mut found = Vec::new();
        differences(&was, &is, &id, &mut found);
        // Sentences may be worded anew; that there are as many of them is compared.
        let is_worded =
            |path: &str| [".schema: ", ".notes[", ".warnings["].iter().any(|at| path.contains(at));
        found.retain(|difference| !is_worded(difference));
        assert!(found.is_empty(), "{}", found.join("\n"));
    }
}

#[test]
fn the_history_and_the_report_count_the_same_samples() {
    let home = stored();
    let history: Value = home.succeed("history --json").json();
    let mut counted = 0;
    for entry in history["experiments"].as_array().unwrap() {
        let (id, samples) = (entry["id"].as_str().unwrap(), entry["samples"].as_u64().unwrap());
        if samples > 0 {
            let all = format::plural(samples as usize, "sample");
            home.succeed(&["show", "-v", id]).assert_says(&[&all]);
            counted += 1;
        }
    }
    assert!(counted > 4, "{history:#}");
}

#[test]
fn in_a_pipe_no_text_is_cut_and_the_result_is_there_once() {
    let home = stored();
    for (id, was) in expected(".json") {
        let shown = home.succeed(&["show", &id]).stdout;
        assert!(!shown.contains('…'), "{id}: {shown}");
        let was: Value = serde_json::from_str(&was).unwrap();
        // Other reports begin with a table.
        if was["schema"].as_str().unwrap().starts_with("weighbridge/experiment/") {
            let first = shown.lines().next().unwrap();
            assert_eq!(shown.matches(first).count(), 1, "{id}: {shown}");
        }
    }
    // Its warnings are longer than a line of 100 characters.
    let shown = home.succeed("show 5kgm3e").stdout;
    let warnings = shown.lines().filter(|line| line.starts_with("Warning: ")).count();
    let all = home.succeed("export 5kgm3e --json").json();
    assert_eq!(warnings, all["warnings"].as_array().unwrap().len(), "{shown}");
}

#[test]
fn tables_of_other_suites_are_printed_as_before() {
    let home = stored();
    for (id, was) in expected(".unixbench.txt") {
        let outcome = home.run(&["show", &id, "--as", "unixbench"]);
        assert_eq!(outcome.stdout, was, "{id}: {}", outcome.stderr);
    }
}

/// Checks the rates of runs and of baselines, from the first to the last.
#[test]
fn a_trend_has_the_rates_of_a_workload_in_all_experiments() {
    let home = stored();
    let shown = home.succeed("history --trend --workload pipe").stdout;
    let head = shown.lines().position(|line| line == "pipe, ops/s").unwrap();
    let points: Vec<&str> =
        shown.lines().skip(head + 1).take_while(|line| !line.is_empty()).collect();
    assert!(points.len() > 1 && points.is_sorted(), "{shown}");
    assert!(
        !points[0].contains('%') && points[1..].iter().all(|line| line.contains('%')),
        "{shown}"
    );
    let outcome = home.succeed("history --trend --workload nothing-of-the-kind");
    outcome.assert_says(&["No experiment matches that has a rate."]);
}

#[test]
fn exported_json_can_be_imported() {
    let home = Home::new();
    for (id, _) in expected(".json") {
        let file = fixtures().join(format!("{id}.json"));
        home.succeed(&["import", file.to_str().unwrap()]);
    }
}
