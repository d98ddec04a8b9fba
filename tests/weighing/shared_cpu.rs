//! `weigh versus` with commands that run at the same time on one CPU, by loops of a known length.

use std::path::PathBuf;

use crate::interleaved::nothing_is_left_of;
use crate::support::busy::Busy;
use crate::support::{Home, Turn};
use serde_json::Value;

/// A shell that does nothing but count: about 20 ms for 20,000.
fn count_to(steps: u32) -> String {
    format!("i=0; while [ $i -lt {steps} ]; do i=$((i+1)); done")
}

fn row(json: &Value) -> &Value {
    assert_eq!(json["failures"], Value::Array(Vec::new()), "{json:#}");
    &json["results"][0]
}

/// How many samples shared a CPU.
fn interleaved(home: &Home) -> usize {
    let count = home.query_text("SELECT count(*) || '' FROM sample WHERE scheme = 'interleaved'");
    count.trim().parse().unwrap()
}

#[test]
fn a_longer_loop_is_found_beside_hogs_by_its_cpu_time() {
    let _turn = Turn::take();
    let home = Home::new();
    let _busy = Busy::start(&home, 2);
    let [short, long] = [20_000, 30_000].map(count_to);
    let words = ["versus", "-n", "short", "-n", "long", &short, &long, "--budget", "90s"];
    home.succeed(&words).assert_says(&[
        "`long` is slower than `short`: it takes",
        "more CPU time",
        "both commands of a pair shared one CPU",
        "They are CPU-bound",
    ]);
    let json = home.json();
    let row = row(&json);
    assert_eq!((&row["verdict"], &row["scheme"]), (&"slower".into(), &"interleaved".into()));
    // Half as much more makes the rate a third lower; the start of the shell is the same.
    let effect_pct = row["effect_pct"].as_f64().unwrap();
    assert!((-40.0..-20.0).contains(&effect_pct), "{row:#}");
    let pairs = row["pairs"].as_u64().unwrap() as usize;
    assert!(interleaved(&home) >= 2 * pairs, "{json:#}");
    // Their times are those of the runs that had no partner.
    let runs = json["versus"]["commands"][0]["times_s"].as_array().unwrap().len();
    assert_eq!(2 * runs + interleaved(&home), home.samples() as usize, "{json:#}");
    assert_eq!(home.leftovers(), Vec::<PathBuf>::new());
}

/// A sleep alone, and one that is five times as long as the work before it.
#[test]
fn commands_that_wait_are_compared_by_their_time() {
    let _turn = Turn::share();
    let home = Home::new();
    let [short, long] = ["0.1", "0.3"].map(|time| format!("{}; sleep {time}", count_to(20_000)));
    for [first, second] in [["sleep 0.02", "sleep 0.1"], [&*short, &*long]] {
        let outcome =
            home.succeed(&["versus", first, second, "--budget", "30s", "--margin", "10%"]);
        assert!(outcome.stdout.contains("more time"), "{outcome:#?}");
        assert!(!outcome.stdout.contains("more CPU time"), "{outcome:#?}");
        assert!(!outcome.stdout.contains("CPU-bound"), "{outcome:#?}");
        let json = home.json();
        let row = row(&json);
        assert_eq!((&row["verdict"], &row["scheme"]), (&"slower".into(), &"sequential".into()));
        assert!(!json["warnings"].to_string().contains("sequential"), "{json:#}");
    }
    assert_eq!(interleaved(&home), 0);
}

/// Equal loops are not different, whatever they print.
#[test]
fn equal_loops_are_not_different() {
    let _turn = Turn::share();
    let home = Home::new();
    let command = format!("{}; echo $i", count_to(20_000));
    let words =
        ["versus", &command, &command, "--same-output", "--margin", "10%", "--budget", "10s"];
    // One may be wrong by chance, of one in twenty at most; two of three have a chance of less than 1 %.
    let is_right = || {
        home.measure(&words);
        let json = home.json();
        let row = row(&json);
        assert_eq!(row["scheme"], "interleaved", "{json:#}");
        ["equivalent", "inconclusive"].contains(&row["verdict"].as_str().unwrap())
    };
    let (first, second) = (is_right(), is_right());
    assert!(if first == second { first } else { is_right() }, "{:#}", home.json());
}

#[test]
fn commands_that_cannot_run_together_run_one_after_the_other() {
    let _turn = Turn::take();
    let home = Home::new();
    let lock = home.file("lock", "");
    let locked =
        |steps| format!("exec flock -nF {} /bin/sh -c '{}'", lock.display(), count_to(steps));
    let [short, long] = [40_000, 80_000].map(locked);
    let words = ["versus", "-n", "short", "-n", "long", &short, &long, "--budget", "60s"];
    home.succeed(&words);
    let json = home.json();
    let row = row(&json);
    assert_eq!((&row["verdict"], &row["scheme"]), (&"slower".into(), &"sequential".into()));
    let said = json["warnings"].to_string();
    let why = "`long` changed to sequential pairs: a command failed while it shared a CPU";
    assert!(said.contains(why), "{said}");
}

#[test]
fn the_option_keeps_commands_in_sequence() {
    let _turn = Turn::share();
    let home = Home::new();
    let [short, long] = [20_000, 40_000].map(count_to);
    let words = ["versus", &short, &long, "--budget", "3s"];
    home.measure(&[&words[..], &["--interleave=off"]].concat());
    assert_eq!(interleaved(&home), 0);
    assert!(row(&home.json())["scheme"].is_null(), "{:#}", home.json());
    home.run("show").assert_says(&["Method: one sample ran after the other (sequential pairs)."]);
    home.run(&[&words[..], &["--interleave=on"]].concat())
        .assert_error(&["--interleave=on: commands need sequential pairs"]);
    // What runs before each launch cannot run before two at once.
    home.measure(&[&words[..], &["--prepare", "true"]].concat());
    assert_eq!(interleaved(&home), 0);
}

#[test]
fn killed_at_any_moment_nothing_is_left_of_two_commands() {
    let [one, other] = [100_000, 150_000].map(count_to);
    nothing_is_left_of(&["versus", &one, &other], 41, 500..3000);
}
