//! A treatment that is no longer in force fails the experiment: no number, no verdict, exit 2.

use std::time::Duration;

use crate::support::Home;
use crate::support::audit::Audit;

/// Starts an experiment, interferes once it has measured, and expects it to say so and to fail.
fn interfere(audit: &Audit, said: &[&str], interference: impl Fn(&Audit)) {
    let home = Home::new();
    let mut running = home.start(home.weigh("compare audit -w getppid -w stat --pairs 500"));
    home.wait_for_samples(6, &mut running);
    interference(audit);
    let outcome = running.finish();
    outcome.assert_error(&["The experiment failed", "No verdict"]);
    outcome.assert_says(said);
    audit.assert_restored();
    assert_eq!(home.leftovers(), Vec::<std::path::PathBuf>::new());
    assert!(home.processes().is_empty());
    assert_no_verdict(&home, said);
}

fn assert_no_verdict(home: &Home, said: &[&str]) {
    let json = home.json();
    assert_eq!(json["state"], "failed");
    let failure = json["failure"].as_str().unwrap();
    assert!(said.iter().all(|part| failure.contains(part)), "{failure}");
    for row in json["results"].as_array().unwrap() {
        assert_eq!(row["verdict"], "inconclusive", "{row:#}");
    }
    let shown = home.succeed("show");
    shown.assert_says(&["The experiment failed", "No verdict"]);
    shown.assert_says(said);
    for verdict in ["slower", "faster", "equivalent"] {
        assert!(!shown.stdout.contains(verdict), "{}", shown.stdout);
    }
    home.succeed("history").assert_says(&["failed"]);
}

#[test]
fn the_rule_that_audits_removed_in_mid_experiment_fails_it() {
    let Some(audit) = Audit::take() else { return };
    interfere(&audit, &["audit rules were changed"], Audit::remove_treated_rule);
}

#[test]
fn the_rule_that_exempts_the_baseline_removed_in_mid_experiment_fails_it() {
    let Some(audit) = Audit::take() else { return };
    interfere(&audit, &["audit rules were changed"], Audit::remove_baseline_rule);
}

#[test]
fn auditing_switched_off_in_mid_experiment_fails_it() {
    let Some(audit) = Audit::take() else { return };
    interfere(&audit, &["auditing was switched off"], Audit::switch_off);
}

/// Also when it is on again before anybody looks: what the sample cost is not what it would have.
#[test]
fn a_rule_removed_and_loaded_again_within_a_sample_fails_it() {
    let Some(audit) = Audit::take() else { return };
    interfere(&audit, &["audit rules were changed"], |audit| {
        // In the middle of a sample, whichever arm it is of.
        std::thread::sleep(Duration::from_millis(30));
        audit.remove_and_reload_treated_rule();
    });
}
