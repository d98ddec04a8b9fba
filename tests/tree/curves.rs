//! Curves: sizes that a suite sweeps and numbers of copies, from the store to every report.

use std::fs;

use crate::support::{Home, Turn};
use serde_json::Value;

const SHORT: [&str; 4] = ["--samples", "3", "--sample", "10ms"];

fn rows(report: &Value) -> Vec<(String, f64, String)> {
    let row = |row: &Value| {
        let text = |key: &str| row[key].as_str().unwrap().to_owned();
        (text("series"), row["x"].as_f64().unwrap(), text("x_unit"))
    };
    report["results"].as_array().unwrap().iter().map(row).collect()
}

#[test]
fn several_numbers_of_copies_are_a_curve() {
    let _turn = Turn::share();
    let home = Home::new();
    let report = home
        .succeed(&[&["run", "getppid", "--copies", "1..2", "--json", "-"][..], &SHORT].concat())
        .json();
    let of = |x| ("getppid".to_owned(), x, "copies".to_owned());
    assert_eq!(rows(&report), [of(1.0), of(2.0)]);
    let [one, two] = [0, 1].map(|row| &report["results"][row]);
    assert_eq!((&one["workload"], &two["workload"]), (&"getppid".into(), &"getppid".into()));
    assert_eq!((one.get("load"), &two["load"]["axis"]), (None, &"copies".into()));
    assert_eq!(two["load"]["value"], 2.0);
    let rate = |row: &Value| row["rate"].as_f64().unwrap();
    let efficiency = 100.0 * rate(two) / 2.0 / rate(one);
    assert!((two["efficiency_pct"].as_f64().unwrap() / efficiency - 1.0).abs() < 1e-9);
    assert_eq!(one["efficiency_pct"], 100.0);
    assert!(report["command"].as_str().unwrap().contains("--copies 1,2"));
    home.succeed("show").assert_says(&["copies", "efficiency", "100 %", "█"]);
}

#[test]
fn a_sweep_is_a_table_in_the_text_and_a_curve_in_the_html() {
    let _turn = Turn::share();
    let home = Home::new();
    let page = home.path("r.html");
    let names = [
        "lat-mem-rd-64-4k",
        "lat-mem-rd-64-16k",
        "lat-mem-rd-64-64k",
        "lat-mem-rd-random-4k",
        "lat-mem-rd-random-16k",
        "lat-mem-rd-random-64k",
    ];
    let arguments = [&["run", "--html", page.to_str().unwrap()][..], &names, &SHORT].concat();
    let text = home.succeed(&arguments);
    text.assert_says(&[
        "memory latency, 64 bytes on bytes per operation rate, ops/s",
        "at random",
        " 64K ",
        " ns ",
    ]);
    let html = fs::read_to_string(&page).unwrap();
    assert_eq!(html.matches("<figure class=\"chart").count(), 1, "both orders are in one chart");
    assert_eq!(html.matches("class=\"estimate\"").count(), names.len());
    assert!(html.find("<figure").unwrap() < html.find("<h2>Results").unwrap());
    assert!(html.contains("prefers-color-scheme") && html.contains("lat-mem-rd-random-64k</td>"));
    let id = home.query_text("SELECT id FROM experiment");
    assert_eq!(home.succeed(&["export", &id, "--html"]).stdout, html);
}

#[test]
fn a_comparison_of_a_sweep_has_a_chart_of_its_effects() {
    let _turn = Turn::share();
    let home = Home::new();
    home.measure(&[
        "compare",
        "none",
        "-w",
        "lat-fs-1k",
        "-w",
        "lat-fs-4k",
        "-w",
        "lat-fs-10k",
        "-w",
        "getppid",
        "--pairs",
        "8",
        "--sample",
        "10ms",
        "--no-detail",
        "--html",
        "r.html",
        "--json",
        "r.json",
    ]);
    let report: Value = serde_json::from_slice(&fs::read(home.path("r.json")).unwrap()).unwrap();
    assert_eq!(report["results"][0]["series"], "file creation and removal");
    assert_eq!(
        (&report["results"][0]["x"], &report["results"][3].get("x")),
        (&1024.0.into(), &None)
    );
    let html = fs::read_to_string(home.path("r.html")).unwrap();
    assert_eq!(html.matches("<figure class=\"chart").count(), 1);
    assert!(html.contains("effect on the rate over bytes"));
}

#[test]
fn a_list_of_copies_that_is_none_is_refused() {
    let home = Home::new();
    home.run("run getppid --copies 4..2").assert_error(&["4", "before it begins"]);
    home.run("run getppid --copies 1,x").assert_error(&["takes a number", "1..all"]);
}
