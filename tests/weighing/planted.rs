//! Planted faults of a machine. A command prints samples with a noise of its own, knows its arm,
//! and goes through the whole of `weigh compare`. The truth is known, so the report can be compared
//! with it.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use crate::support::busy::{Busy, load_average};
use crate::support::{Home, Turn, number};
use paired::binomial::FalseAlarms;
use serde_json::Value;

/// Number of experiments of each kind in every test run.
const EXPERIMENTS: usize = 6;

fn fake() -> &'static Path {
    static FAKE: OnceLock<PathBuf> = OnceLock::new();
    FAKE.get_or_init(|| {
        let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join("planted-fake");
        let compiled = Command::new("cc")
            .args(["-O1", "-Wall", "-Werror", "-o"])
            .arg(&program)
            .arg(concat!(env!("WORKSPACE"), "/tests/planted/fake.c"))
            .arg("-lm")
            .status()
            .unwrap();
        assert!(compiled.success());
        program
    })
}

/// Statements of an experiment: its row, and its report as text.
struct Said {
    row: Value,
    report: String,
}

impl Said {
    fn verdict(&self) -> &str {
        self.row["verdict"].as_str().unwrap()
    }

    fn withheld(&self) -> Option<&str> {
        self.row["withheld"]["verdict"].as_str()
    }
}

/// Experiments with what `mode` plants.
fn experiments(mode: &str, count: usize, budget: &str) -> Vec<Said> {
    let _turn = Turn::share();
    let home = Home::new();
    (0..count)
        .map(|seed| {
            let state = home.file("state.txt", format!("{} 0 0 0.000000000\n", seed * 7919 + 1));
            let [fake, state] = [fake(), &state].map(|path| path.to_str().unwrap());
            let arguments =
                ["compare", "seccomp", "--budget", budget, "--no-detail", "--", fake, mode, state];
            let mut outcome = home.measure(&arguments);
            let mut json = home.json();
            // A busy machine takes longer for the pairs that a verdict needs.
            for _ in 0..20 {
                if json["results"][0]["pairs"].as_u64().is_some_and(|pairs| pairs >= 8) {
                    break;
                }
                outcome = home.measure(&["compare", "--continue", "latest", "--budget", budget]);
                json = home.json();
            }
            // Lines are wrapped anywhere.
            let report = outcome.stdout.replace('\n', " ");
            Said { row: json["results"][0].clone(), report }
        })
        .collect()
}

/// Returns true if each experiment has enough pairs for a verdict.
fn has_enough_pairs(said: &[Said]) -> bool {
    said.iter().all(|said| said.row["pairs"].as_u64().is_some_and(|pairs| pairs >= 8))
}

fn of_verdict(said: &[Said], verdict: &str) -> usize {
    said.iter().filter(|said| said.verdict() == verdict).count()
}

/// At a chance of 5 % each, more than two of six have a chance of 0.2 %.
#[test]
fn what_treated_samples_leave_behind_is_not_called_faster() {
    for mode in ["after-any", "after-baseline"] {
        let said = experiments(mode, EXPERIMENTS, "1500ms");
        assert!(has_enough_pairs(&said) && of_verdict(&said, "faster") <= 2, "{mode}");
        // The reason is said wherever the interval would have borne the verdict.
        for one in said.iter().filter(|said| said.withheld().is_some()) {
            assert!(one.report.contains("is not reported as"), "{}", one.report);
            assert_eq!(one.verdict(), "inconclusive");
        }
    }
}

#[test]
fn a_second_launch_that_is_simply_slower_takes_no_verdict_away() {
    let said = experiments("second-launch", EXPERIMENTS, "1500ms");
    let taken = said.iter().filter(|said| said.withheld() == Some("slower")).count();
    assert!(taken <= 1, "{taken} of {EXPERIMENTS}");
    assert_eq!(of_verdict(&said, "faster"), 0);
}

/// 5 % of the treated samples take three times as long.
#[test]
fn what_is_equivalent_says_which_stalls_are_not_excluded() {
    let said = experiments("stalls", EXPERIMENTS, "1500ms");
    let equivalent = said.iter().filter(|said| said.verdict() == "equivalent");
    let mut unsaid = 0;
    for one in equivalent {
        let stalls = &one.row["stalls"];
        unsaid += usize::from(stalls["treated_at_most_pct"].as_f64().unwrap() < 5.0);
        assert!(one.report.contains("Rare stalls: "), "{}", one.report);
    }
    assert!(has_enough_pairs(&said) && unsaid <= 2, "{unsaid}");
}

/// Few pairs, as `LOAD` hogs (0) leave to an experiment: what is decided before the contrast could be.
/// `WEIGH_PLANTED` experiments of each kind, else 10.
#[test]
#[ignore = "a table of many experiments: minutes"]
fn carry_over_at_a_load_is_not_called_faster() {
    let count = number("WEIGH_PLANTED", 10);
    let home = Home::new();
    let _busy = Busy::start(&home, number("LOAD", 0));
    println!(
        "| left behind | pairs | experiments | slower | faster | equivalent | withheld | load |"
    );
    println!("|---|---|---|---|---|---|---|---|");
    let mut faster = 0;
    let kinds = ["after-any", "after-baseline"];
    for mode in kinds {
        let said = experiments(mode, count, "40s");
        assert!(has_enough_pairs(&said), "{mode}: too few pairs for a verdict");
        let verdicts = ["slower", "faster", "equivalent"].map(|verdict| of_verdict(&said, verdict));
        let withheld = said.iter().filter(|said| said.withheld().is_some()).count();
        let ([slower, wrong, equivalent], load) = (verdicts, load_average());
        let pairs: u64 = said.iter().map(|said| said.row["pairs"].as_u64().unwrap()).sum();
        let mean = pairs / count as u64;
        println!(
            "| {mode} | {mean} | {count} | {slower} | {wrong} | {equivalent} | {withheld} | {load} |"
        );
        faster += wrong;
    }
    let found = FalseAlarms::new(faster, kinds.len() * count, 0.05);
    assert!(found.is_within(), "{found:?}");
}

/// Equal arms are called different in at most 5 % of experiments, whatever the noise is: `WEIGH_PLANTED`
/// experiments of each kind, else 40.
#[test]
#[ignore = "null experiments: a quarter of an hour"]
fn equal_arms_are_equal_in_any_noise() {
    let count = number("WEIGH_PLANTED", 40);
    println!("| noise | experiments | slower | faster | equivalent | pairs |");
    println!("|---|---|---|---|---|---|");
    let mut alarms = 0;
    let kinds = ["nothing", "drifting", "regimes", "skewed", "bimodal"];
    for mode in kinds {
        let said = experiments(mode, count, "4s");
        assert!(has_enough_pairs(&said), "{mode}");
        let [slower, faster, equivalent] =
            ["slower", "faster", "equivalent"].map(|verdict| of_verdict(&said, verdict));
        let pairs: u64 = said.iter().map(|said| said.row["pairs"].as_u64().unwrap()).sum();
        let mean = pairs / count as u64;
        println!("| {mode} | {count} | {slower} | {faster} | {equivalent} | {mean} |");
        alarms += slower + faster;
    }
    let found = FalseAlarms::new(alarms, count * kinds.len(), 0.05);
    assert!(found.is_within(), "{found:?}");
}

/// Prints a table: `WEIGH_PLANTED` experiments of each kind, else 100.
#[test]
#[ignore = "a table of many experiments: minutes"]
fn print_what_is_said_of_the_planted() {
    let count = number("WEIGH_PLANTED", 100);
    println!("| planted | slower | faster | equivalent | withheld | pairs |");
    println!("|---|---|---|---|---|---|");
    for mode in ["nothing", "after-any", "after-baseline", "second-launch", "stalls"] {
        let said = experiments(mode, count, "3s");
        let verdicts = ["slower", "faster", "equivalent"].map(|verdict| of_verdict(&said, verdict));
        let withheld = said.iter().filter(|said| said.withheld().is_some()).count();
        let pairs: u64 = said.iter().map(|said| said.row["pairs"].as_u64().unwrap()).sum();
        let [slower, faster, equivalent] = verdicts;
        let mean = pairs / count as u64;
        println!("| {mode} | {slower} | {faster} | {equivalent} | {withheld} | {mean} |");
    }
}
