//! `weigh calibrate`, and that the next comparison starts from what it found.

use crate::support::{Home, Turn};
use serde_json::Value;

/// s₀ of the only workload of every experiment in the order made: of sequential pairs, and of interleaved
/// pairs.
fn start_scales(home: &Home) -> Vec<[f64; 2]> {
    let database = home.open_database();
    let scales = "SELECT start_scale, interleaved_scale FROM work ORDER BY rowid";
    let mut query = database.prepare(scales).unwrap();
    let rows = query.query_map([], |row| Ok([row.get(0)?, row.get(1)?])).unwrap();
    rows.collect::<Result<_, _>>().unwrap()
}

fn calibrate(home: &Home, more: &[&str]) -> Value {
    let arguments = ["calibrate", "-w", "getppid", "--budget", "20s", "--json", "-"];
    home.succeed(&[&arguments[..], more].concat()).json()
}

#[test]
fn calibrations_add_up_and_the_next_comparison_starts_from_them() {
    let _turn = Turn::share();
    let home = Home::new();
    let first = calibrate(&home, &["--interleave=off"]);
    assert_eq!(first["schema"], "weighbridge/calibration/1");
    assert_eq!(first["experiment_alarms"]["of"], 1);
    let both = calibrate(&home, &["--interleave=off"]);
    assert_eq!(both["experiments"].as_array().unwrap().len(), 2);
    assert_eq!(both["experiment_alarms"]["of"], 2);
    assert_eq!(both["these"]["experiment_alarms"]["of"], 1, "{both:#}");
    assert_eq!(both["these"]["experiments"][0], both["experiments"][0]);
    let [once, twice] = [&first, &both].map(|json| &json["workloads"][0]);
    assert_eq!((&twice["workload"], &twice["experiments"]), (&"getppid".into(), &2.into()));
    assert!(twice["pairs"].as_u64() > once["pairs"].as_u64());
    assert!(twice["pair_s"].as_f64().unwrap() > 0.0);
    let shown = &twice["smallest_effect_pct"];
    assert!(shown[0].as_f64().unwrap() > shown[2].as_f64().unwrap(), "{twice:#}");

    let compared = home.measure("compare none -w getppid --pairs 8 --json -");
    let noise = |row: &Value| row["noise_pct"].as_f64().unwrap() / 100.0;
    let scales = start_scales(&home);
    for (scale, expected) in scales.iter().zip([0.01, noise(once), noise(twice)]) {
        assert!((scale[0] / expected - 1.0).abs() < 1e-9, "{scales:?}");
    }
    assert_eq!(scales.len(), 3);
    assert_eq!(compared.json(), home.json(), "what is stored says the same again");
    assert_eq!(home.leftovers(), Vec::<std::path::PathBuf>::new());
}

/// Interleaved pairs scatter less than sequential pairs, so neither predicts the other.
#[test]
fn pairs_are_taken_as_a_comparison_takes_them_and_each_scheme_has_its_noise() {
    let _turn = Turn::share();
    let home = Home::new();
    calibrate(&home, &["--interleave=off"]);
    let both = calibrate(&home, &[]);
    let rows = both["workloads"].as_array().unwrap();
    let schemes: Vec<&str> = rows.iter().map(|row| row["scheme"].as_str().unwrap()).collect();
    assert_eq!(schemes, ["sequential", "interleaved"], "{both:#}");
    assert!(rows.iter().all(|row| row["experiments"] == 1), "{both:#}");
    let noise: Vec<f64> =
        rows.iter().map(|row| row["noise_pct"].as_f64().unwrap() / 100.0).collect();
    home.run("compare none -w getppid --budget 2s --no-detail");
    let scales = start_scales(&home);
    assert_eq!(scales[0], [0.01, 0.002], "nothing was known");
    assert!((scales[2][1] / noise[1] - 1.0).abs() < 1e-9, "{scales:?} {noise:?}");
}

/// Half as much work more, which a busy machine shows too.
#[test]
fn a_planted_effect_is_found_and_is_no_part_of_the_noise() {
    let _turn = Turn::share();
    let home = Home::new();
    let arguments = ["calibrate", "-w", "getppid", "-w", "shell1", "--planted", "50%"];
    let more = ["--budget", "120s", "--seed", "7", "--json", "-"];
    let outcome = home.succeed(&[&arguments[..], &more].concat());
    outcome.assert_says(&[
        "Experiment 1 of 3: identical arms",
        "Experiment 2 of 3: one arm does 50% more work in each slice",
        "Experiment 3 of 3: one arm does 5% more work, all in every fifth slice",
    ]);
    let json = outcome.json();
    let planted = &json["planted"];
    assert_eq!(planted["share_pct"], 50.0);
    assert!((planted["true_effect_pct"].as_f64().unwrap() + 100.0 / 3.0).abs() < 1e-9);
    let row = &planted["workloads"][0];
    assert_eq!((&row["workload"], &row["covered"]["of"]), (&"getppid".into(), &1.into()));
    assert_eq!((&row["found"]["count"], &planted["found"]["of"]), (&1.into(), &1.into()));
    assert!(row["pairs"].as_f64().unwrap() >= 8.0, "{planted:#}");
    let why = planted["left_out"]["shell1"].as_str().unwrap();
    assert!(why.starts_with("too few operations to plant 50 %: rounding needs at least "), "{why}");

    // What counts for noise and false alarms is the other experiment.
    assert_eq!(json["experiments"].as_array().unwrap().len(), 1);
    assert_eq!(json["experiment_alarms"]["of"], 1);
    assert_ne!(planted["experiments"][0], json["experiments"][0]);
    let periodic = &planted["periodic"];
    assert_eq!((&periodic["every"], &periodic["denied"]["of"]), (&5.into(), &1.into()));
    assert_eq!(periodic["denied"]["count"], 0, "called equivalent or faster: {planted:#}");
    let shown = home.json();
    assert_eq!(shown["id"], periodic["experiments"][0]);
    assert_eq!(shown["treatments"][0]["label"], "planted:share=5%,every=5");
    assert!(shown["command"].as_str().unwrap().contains("--planted 50%"), "{shown:#}");
    let after = calibrate(&home, &[]);
    assert_eq!(after["experiments"].as_array().unwrap().len(), 2);
    assert!(after.get("planted").is_none());
}

/// The experiments of one command take equally long, so it is said once.
#[test]
fn a_budget_that_is_too_small_is_told_once_for_all_experiments() {
    let _turn = Turn::share();
    let home = Home::new();
    let workloads = ["-w", "getppid", "-w", "stat", "-w", "pipe", "-w", "mremap"];
    let arguments = [&["calibrate", "--planted", "50%", "--budget", "1s"][..], &workloads].concat();
    let outcome = home.run(&arguments);
    let told = outcome.stderr.matches("decides few rows").count();
    assert_eq!(told, 1, "{outcome:#?}");
}

#[test]
fn workloads_with_too_few_operations_are_told_with_what_to_do() {
    let _turn = Turn::share();
    let home = Home::new();
    let outcome = home.run("calibrate -w shell1 --planted 1% --budget 4s");
    outcome.assert_says(&["no effect was planted in any of these workloads (too few operations"]);
    outcome.assert_says(&["use a larger --planted, or workloads with shorter operations"]);
    assert!(!outcome.stderr.contains("every workload failed"), "{outcome:#?}");
}

#[test]
fn what_cannot_be_planted_is_refused() {
    let home = Home::new();
    for share in ["0", "-1%", "51%", "nan"] {
        let refused = home.run(&["calibrate", "--planted", share]);
        assert_eq!(refused.code, Some(2), "{refused:#?}");
        refused.assert_says(&["takes a percentage from 0.1% to 50%"]);
    }
    let command = home.run("compare planted -- true");
    assert_eq!(command.code, Some(2), "{command:#?}");
    command.assert_says(&["`planted` changes only weigh's own workloads"]);
}

#[test]
fn the_text_is_a_sentence_and_a_table_and_show_knows_the_experiment() {
    let _turn = Turn::share();
    let home = Home::new();
    let outcome = home.succeed("calibrate -w stat --repeat 2 --budget 30s");
    outcome.assert_says(&[
        "this machine detects a change of",
        "of these 2 experiments raised a false alarm",
        "(5 % expected; chance explains up to 1 of 2)",
        "All calibrations of this machine",
        "detected, 10 s",
    ]);
    let latest = home.json()["id"].as_str().unwrap().to_owned();
    outcome.assert_says(&[&format!("Stored as {latest}, ")]);
    let again = outcome.stdout.lines().find(|line| line.starts_with("again: ")).unwrap();
    let all = "again: weigh calibrate -w stat --repeat 2 --budget 30s --seed ";
    let seed: u64 = again.strip_prefix(all).expect(again).parse().unwrap();
    // The stored seeds count up from it.
    assert_eq!(home.json()["seed"], seed + 1);
    home.succeed("show").assert_says(&["weigh calibrate -w stat --budget 30s"]);
    home.succeed("history").assert_says(&["weigh calibrate -w stat --budget 30s"]);
}
