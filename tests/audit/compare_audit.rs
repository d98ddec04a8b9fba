//! `weigh compare audit` on this very kernel: what it measures, and what it leaves behind.

use crate::support::audit::Audit;
use crate::support::audit::auditd::Auditd;
use crate::support::{Home, assert_slows, row};
use serde_json::Value;

/// Weighs with eight pairs per row and gives the JSON.
fn weigh(audit: &Audit, home: &Home, treatment: &str, workloads: &[&str]) -> Value {
    let mut arguments = vec!["compare", treatment, "--pairs", "8", "--no-detail", "--json", "-"];
    workloads.iter().for_each(|workload| arguments.extend(["-w", workload]));
    let outcome = home.measure(&arguments);
    audit.assert_restored();
    assert_eq!(home.leftovers(), Vec::<std::path::PathBuf>::new());
    outcome.json()
}

/// Slower by more than half, with the three records that a system call without a path makes.
#[track_caller]
fn assert_every_call_is_audited(row: &Value) {
    assert_slows(row, 50.0);
    let records = row["evidence"]["records_per_op"].as_f64().unwrap();
    assert!((2.9..3.1).contains(&records), "{row:#}");
    let bytes = row["evidence"]["log_bytes_per_op"].as_f64().unwrap();
    assert!((200.0..1000.0).contains(&bytes), "{row:#}");
}

#[test]
fn auditing_slows_system_calls_and_the_evidence_says_what_it_produced() {
    let Some(audit) = Audit::take() else { return };
    let home = Home::new();
    let json = weigh(&audit, &home, "audit", &["getppid", "dhry2reg"]);
    assert_eq!(json["baseline_state"], "clean");
    let getppid = row(&json, "getppid");
    assert_every_call_is_audited(getppid);
    assert_eq!(getppid["evidence"]["syscalls_per_op"], 1.0);
    assert!(getppid["evidence"]["lost"].is_u64(), "{getppid:#}");
    assert!(getppid["evidence"]["backlog_wait_s"].is_f64(), "{getppid:#}");
    // A workload without system calls makes no records.
    let dhrystone = row(&json, "dhry2reg");
    assert!(dhrystone["evidence"]["records_per_op"].as_f64().unwrap() < 0.01, "{dhrystone:#}");
    let facts = json["treatments"][0]["facts"].to_string();
    assert!(facts.contains("Every system call of the treated processes is audited"), "{facts}");
    home.succeed("show -v").assert_says(&["`audit`", "records/op"]);
    home.succeed("show").assert_says(&["Storage: ", "records per operation"]);
}

#[test]
fn the_backlog_limit_is_a_parameter() {
    let Some(audit) = Audit::take() else { return };
    let home = Home::new();
    let json = weigh(&audit, &home, "audit:backlog=64", &["getppid"]);
    assert_every_call_is_audited(row(&json, "getppid"));
    let facts = json["treatments"][0]["facts"].to_string();
    assert!(facts.contains("backlog limit is 64 records"), "{facts}");
}

/// Sums over all samples of the treated arm: the records that arrived, the records that the kernel
/// counted as lost, and three for each operation.
fn records_of_treated(home: &Home) -> [f64; 3] {
    let database = home.open_database();
    let mut query = database.prepare("SELECT sample, evidence FROM sample WHERE arm = 1").unwrap();
    let rows = query.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).unwrap();
    let mut sums = [0.0; 3];
    for row in rows {
        let (sample, evidence): (String, String) = row.unwrap();
        let [sample, evidence] =
            [sample, evidence].map(|text| serde_json::from_str::<Value>(&text).unwrap());
        let number = |value: &Value| value.as_f64().unwrap();
        sums[0] += number(&evidence["records"]);
        sums[1] += number(&evidence["lost"]);
        sums[2] += 3.0 * number(&sample["total_operations"]);
    }
    sums
}

/// With so few places in the queue, and nobody who waits for one, a flood is mostly dropped.
#[test]
fn a_cost_that_is_low_because_records_were_dropped_is_called_so_everywhere() {
    let Some(audit) = Audit::take() else { return };
    let home = Home::new();
    let json = weigh(&audit, &home, "audit:backlog=64,wait=0", &["getppid"]);
    let row = row(&json, "getppid");
    assert!(row["evidence"]["lost"].as_u64() > Some(0), "{row:#}");
    let lost_pct = row["evidence"]["lost_pct"].as_f64().unwrap();
    assert!(lost_pct > 0.0 && lost_pct < 100.0, "{row:#}");
    // All system calls make three records. One that the kernel counts as lost may stand for all three.
    let [records, lost, made] = records_of_treated(&home);
    let is_between = 0.9 * (records + lost) < made && made < 1.1 * (records + 3.0 * lost);
    assert!(is_between, "{records} arrived and {lost} were lost of {made}: {row:#}");
    let shown = row["evidence"]["records_per_op"].as_f64().unwrap();
    assert!(0.0 < shown && shown < 3.02, "{row:#}");
    let said = "% of the records were dropped";
    assert!(row["notes"].to_string().contains(said), "{row:#}");
    let facts = json["treatments"][0]["facts"].to_string();
    assert!(facts.contains("wait time 0"), "{facts}");
    home.succeed("show").assert_says(&["`getppid` came out cheaper because", said]);
    let id = json["id"].as_str().unwrap();
    home.succeed(&["export", id, "--markdown"]).assert_says(&[said]);
    home.succeed(&["export", id, "--html"]).assert_says(&[said]);
}

/// Asserts that every compared sample of this arm lost records, and that some arrived as well.
#[track_caller]
fn assert_rate_is_limited(home: &Home, arm: usize, row: &Value) {
    assert!(row["evidence"]["lost"].as_u64() > Some(0), "{row:#}");
    assert!(row["notes"].to_string().contains("% of the records were dropped"), "{row:#}");
    let samples = |condition: &str| -> u64 {
        let count = home.query_text(&format!(
            "SELECT CAST(count(*) AS TEXT) FROM sample
             WHERE arm = {arm} AND role = 'compared' AND {condition}"
        ));
        count.parse().unwrap()
    };
    let with_both =
        "json_extract(evidence, '$.records') > 0 AND json_extract(evidence, '$.lost') > 0";
    assert!(samples(with_both) >= row["pairs"].as_u64().unwrap(), "{row:#}");
    assert_eq!(samples("coalesce(json_extract(evidence, '$.lost'), 0) = 0"), 0, "{row:#}");
}

/// A flood makes many more records than the kernel accepts at the start of a sample.
#[test]
fn records_beyond_the_rate_limit_are_dropped_and_counted_and_the_limit_is_lifted() {
    let Some(audit) = Audit::take() else { return };
    let home = Home::new();
    let json = weigh(&audit, &home, "audit:rate=300", &["getppid"]);
    assert_rate_is_limited(&home, 1, row(&json, "getppid"));
    let facts = json["treatments"][0]["facts"].to_string();
    assert!(facts.contains("the kernel accepts 300 records per second"), "{facts}");
}

/// If the limit were in force in samples of the other arm, these would lack most of their records.
#[test]
fn a_rate_limit_is_in_force_only_in_the_samples_of_its_own_arm() {
    let Some(audit) = Audit::take() else { return };
    for (treatments, limited) in [("audit audit:rate=300", 1), ("audit:rate=300 audit", 0)] {
        let home = Home::new();
        home.measure(format!("compare {treatments} -w getppid --pairs 8 --no-detail").as_str());
        audit.assert_restored();
        assert_eq!(home.leftovers(), Vec::<std::path::PathBuf>::new());
        let json = home.json();
        let rows = json["results"].as_array().unwrap();
        assert_eq!(rows.len(), 2, "{json:#}");
        assert_rate_is_limited(&home, limited + 1, &rows[limited]);
        assert_every_call_is_audited(&rows[1 - limited]);
    }
}

#[test]
fn what_auditing_leaves_behind_costs_something_too() {
    let Some(audit) = Audit::take() else { return };
    let home = Home::new();
    // A sixth: on a busy machine, eight pairs do not show that.
    let arguments = ["compare", "audit:residual", "-w", "getppid", "--budget", "60s"];
    home.measure(&[&arguments[..], &["--no-detail"]].concat());
    if row(&home.json(), "getppid")["verdict"] == "inconclusive" {
        home.measure("compare --continue latest --budget 600s");
    }
    audit.assert_restored();
    assert_eq!(home.leftovers(), Vec::<std::path::PathBuf>::new());
    let json = home.json();
    assert_eq!(row(&json, "getppid")["verdict"], "slower", "{json:#}");
    assert_eq!(json["baseline_state"], "clean");
}

#[test]
fn two_treatments_that_need_the_same_are_refused() {
    let home = Home::new();
    home.run("compare audit audit:residual -w getppid")
        .assert_error(&["both need the kernel's audit configuration, in different ways"]);
}

#[test]
fn auditing_is_weighed_beside_seccomp() {
    let Some(audit) = Audit::take() else { return };
    let home = Home::new();
    home.measure("compare audit seccomp -w getppid --pairs 8");
    audit.assert_restored();
    let json = home.json();
    let rows = json["results"].as_array().unwrap();
    assert_eq!(rows.len(), 2, "{json:#}");
    assert_every_call_is_audited(&rows[0]);
    assert!(rows[1]["effect_pct"].as_f64().unwrap() > -90.0, "seccomp's arm is not audited");
}

#[test]
fn a_healthy_audit_daemon_keeps_the_socket_and_its_log() {
    let Some(audit) = Audit::take() else { return };
    let home = Home::new();
    let Some(daemon) = Auditd::start(&home, &audit) else { return };
    let (pid, log) = (daemon.pid(), home.path("auditd/audit.log"));

    let outcome = home.measure("compare audit -w getppid --pairs 8 --json -");
    let still_holds = daemon.holds_socket(&audit);
    drop(daemon);
    audit.put_back_enabled();
    audit.assert_restored();

    assert!(still_holds, "auditd lost the socket");
    let json = outcome.json();
    assert_every_call_is_audited(row(&json, "getppid"));
    let facts = json["treatments"][0]["facts"].to_string();
    assert!(facts.contains(&format!("audit daemon of this host (process {pid})")), "{facts}");
    let logged = std::fs::read_to_string(log).unwrap();
    assert!(logged.contains("type=SYSCALL") && logged.contains("key=\"weigh\""));
    assert_eq!(home.leftovers(), Vec::<std::path::PathBuf>::new());
}
