//! `weigh compare --factorial`: every combination of treatments, what each does, and what they do together.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use crate::support::Home;
use serde_json::Value;

/// With the variable twice as slow, under a filter by half, with both a quarter more than that. It reports
/// less time than its launch takes.
const PROGRAM: &str = "#!/bin/sh\n\
    ns=100000\n\
    filtered=\n\
    grep -q '^Seccomp:.*2' /proc/self/status && filtered=1\n\
    [ -n \"$SLOW\" ] && ns=$((ns * 2))\n\
    [ -n \"$filtered\" ] && ns=$((ns * 3 / 2))\n\
    [ -n \"$SLOW$filtered\" ] && [ \"$SLOW$filtered\" = 11 ] && ns=$((ns * 5 / 4))\n\
    echo \"{\\\"operations\\\":1000,\\\"elapsed_ns\\\":$((ns + $$ % 100))}\"\n";

#[test]
fn each_effect_and_the_interaction_come_back_and_are_stored() {
    let home = Home::new();
    let program = home.file("program", PROGRAM);
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    let program = program.to_str().unwrap();
    let outcome = home.run(&[
        "compare",
        "--factorial",
        "env:SLOW=1",
        "seccomp",
        "--budget",
        "60s",
        "--",
        program,
    ]);
    outcome.assert_says(&["Effects of the factors", "env:SLOW=1 × seccomp", "slower together"]);
    assert_eq!(outcome.code, Some(0), "{outcome:#?}");
    let report = home.json();
    let effects = report["effects"].as_array().unwrap();
    let expected: [(&[&str], f64); 3] = [
        // 1/2, and 1/2 · 4/5 where the other is on: the geometric mean.
        (&["env:SLOW=1"], 0.5 * 0.8_f64.sqrt()),
        (&["seccomp"], 2.0 / 3.0 * 0.8_f64.sqrt()),
        (&["env:SLOW=1", "seccomp"], 0.8),
    ];
    assert_eq!(effects.len(), expected.len());
    for (effect, (factors, ratio)) in effects.iter().zip(expected) {
        assert_eq!(effect["factors"], Value::from(factors.to_vec()));
        let pct = effect["effect_pct"].as_f64().unwrap();
        assert!((pct - 100.0 * (ratio - 1.0)).abs() < 0.2, "{effect:#}");
        assert_eq!(effect["verdict"], "slower", "{effect:#}");
        assert!(effect["rounds"].as_u64().unwrap() >= 8, "{effect:#}");
    }
    let treatments: Vec<&str> = (report["treatments"].as_array().unwrap().iter())
        .map(|treatment| treatment["label"].as_str().unwrap())
        .collect();
    assert_eq!(treatments, ["env:SLOW=1", "seccomp", "env:SLOW=1+seccomp"]);
    home.succeed("show latest").assert_says(&["slower together"]);
    // The same arms without the flag are the same design.
    assert!(report["command"].as_str().unwrap().contains("--factorial"), "{}", report["command"]);
}

#[test]
fn one_treatment_or_five_are_no_design() {
    let home = Home::new();
    for treatments in [&["nice:1"][..], &["nice:1", "cpus:0", "seccomp", "thp:never", "env:A=1"]] {
        let outcome = home.run(&[&["compare", "--factorial"], treatments].concat());
        assert_eq!(outcome.code, Some(2), "{outcome:#?}");
        assert!(
            outcome.stderr.contains("--factorial takes two to four treatments"),
            "{outcome:#?}"
        );
    }
}
