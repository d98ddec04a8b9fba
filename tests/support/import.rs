//! Importing the files of `tests/fixtures/import`, and looking at what came of it.

use std::path::Path;

use serde_json::Value;

use super::{Home, Outcome, row};

pub fn fixture(name: &str) -> String {
    let path = Path::new(env!("WORKSPACE")).join("tests/fixtures/import").join(name);
    path.display().to_string()
}

pub fn import(home: &Home, files: &[&str], more: &[&str]) -> Outcome {
    let files: Vec<String> = files.iter().map(|file| fixture(file)).collect();
    let files: Vec<&str> = files.iter().map(String::as_str).collect();
    home.succeed(&[&["import"], &files[..], more].concat())
}

pub fn effect(json: &Value, workload: &str) -> f64 {
    row(json, workload)["effect_pct"].as_f64().unwrap()
}
