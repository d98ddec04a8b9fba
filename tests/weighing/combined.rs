//! Several treatments in one arm: both in force, both proved, and all of it put back.

use crate::support::audit::Audit;
use crate::support::{Home, row};
use serde_json::Value;

#[test]
fn two_treatments_in_one_arm_are_both_in_force_and_give_evidence() {
    let Some(audit) = Audit::take() else { return };
    let home = Home::new();
    let arguments = ["compare", "audit+seccomp:compares=200", "-w", "getppid", "-w", "open-close"];
    let outcome =
        home.measure(&[&arguments[..], &["--pairs", "8", "--no-detail", "--json", "-"]].concat());
    audit.assert_restored();
    assert_eq!(home.leftovers(), Vec::<std::path::PathBuf>::new());
    let json = outcome.json();
    let treatment = &json["treatments"][0];
    assert_eq!(treatment["label"], "audit+seccomp:compares=200");
    let facts = treatment["facts"].to_string();
    for fact in
        ["Every system call of the treated processes is audited", "compares its first argument 200"]
    {
        assert!(facts.contains(fact), "{facts}");
    }
    assert_eq!(json["baseline_state"], "clean");
    for workload in ["getppid", "open-close"] {
        let evidence = &row(&json, workload)["evidence"];
        assert!(evidence["records_per_op"].as_f64().unwrap() > 2.9, "{evidence:#}");
        assert!(evidence["lost"].is_u64(), "{evidence:#}");
        // As many as weigh itself has, and one.
        let filters =
            evidence["seccomp_filters"].as_str().and_then(|text| text.parse::<u32>().ok());
        assert!(filters >= Some(1), "{evidence:#}");
    }
}

/// A part beside the same treatment in an arm of its own, in one experiment.
#[test]
fn a_part_may_be_in_another_arm_too() {
    let Some(audit) = Audit::take() else { return };
    let home = Home::new();
    let arguments = ["compare", "--base", "audit", "audit+seccomp", "seccomp", "-w", "getppid"];
    let outcome =
        home.measure(&[&arguments[..], &["--pairs", "8", "--no-detail", "--json", "-"]].concat());
    audit.assert_restored();
    let json = outcome.json();
    let records = |row: &Value| row["evidence"]["records_per_op"].as_f64();
    let rows = json["results"].as_array().unwrap();
    assert_eq!(rows.len(), 2, "{json:#}");
    assert!(records(&rows[0]) > Some(2.9), "{json:#}");
    assert!(records(&rows[1]).is_none(), "{json:#}");
    assert!(rows.iter().all(|row| row["evidence"]["seccomp_filters"].is_string()), "{json:#}");
}

#[test]
fn an_arm_with_a_treatment_that_did_not_take_is_no_evidence_of_the_other() {
    let Some(audit) = Audit::take() else { return };
    let home = Home::new();
    let arguments = ["compare", "audit+seccomp", "-w", "getppid", "--pairs", "500"];
    let mut running = home.start(home.weigh(&arguments));
    home.wait_for_samples(6, &mut running);
    audit.remove_treated_rule();
    let outcome = running.finish();
    outcome.assert_error(&["The experiment failed", "No verdict", "audit rules were changed"]);
    audit.assert_restored();
    assert_eq!(home.leftovers(), Vec::<std::path::PathBuf>::new());
    assert_eq!(row(&home.json(), "getppid")["verdict"], "inconclusive");
}

#[test]
fn what_cannot_be_in_one_arm_is_refused_with_the_way_out() {
    let home = Home::new();
    let refused = |label: &str, parts: &[&str]| {
        home.run(&["compare", label, "-w", "getppid"]).assert_error(parts);
    };
    refused("seccomp+seccomp:compares=5", &["`seccomp` occurs twice in one arm", "two arms"]);
    refused("seccomp+none", &["`none` cannot be combined"]);
    refused("seccomp+", &["a name is missing", "^ character 9"]);
    refused("cm:kernel=x::seccomp", &["no such place `cm`"]);
    refused("vm:kernel=x::seccomp", &["Compare guests with guests: --base vm"]);
}
