//! `weigh compare audit` on this very kernel: what it measures, and what it leaves behind.

mod support;

use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use support::audit::Audit;
use support::{Home, row, wait_until};

/// Weighs with eight pairs per row and gives the JSON.
fn weigh(audit: &Audit, home: &Home, treatment: &str, workloads: &[&str]) -> Value {
    let mut arguments = vec!["compare", treatment, "--pairs", "8", "--json", "-"];
    workloads.iter().for_each(|workload| arguments.extend(["-w", workload]));
    let outcome = home.run(&arguments);
    assert!(matches!(outcome.code, Some(0 | 3)), "{outcome:#?}");
    audit.assert_restored();
    assert_eq!(home.leftovers(), Vec::<std::path::PathBuf>::new());
    outcome.json()
}

/// Slower by more than half, with the three records that a system call without a path makes.
#[track_caller]
fn assert_every_call_is_audited(row: &Value) {
    assert_eq!(row["verdict"], "slower", "{row:#}");
    assert!(row["effect_pct"].as_f64().unwrap() < -50.0, "{row:#}");
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
    home.succeed(&["show"]).assert_says(&["`audit` slows", "records/op"]);
}

#[test]
fn the_backlog_limit_is_a_parameter() {
    let Some(audit) = Audit::take() else { return };
    let home = Home::new();
    let json = weigh(&audit, &home, "audit:backlog=64", &["getppid"]);
    assert_every_call_is_audited(row(&json, "getppid"));
    let facts = json["treatments"][0]["facts"].to_string();
    assert!(facts.contains("lets 64 records wait"), "{facts}");
}

#[test]
fn what_auditing_leaves_behind_costs_something_too() {
    let Some(audit) = Audit::take() else { return };
    let home = Home::new();
    let json = weigh(&audit, &home, "audit:residual", &["getppid"]);
    assert_eq!(row(&json, "getppid")["verdict"], "slower", "{json:#}");
    assert_eq!(json["baseline_state"], "clean");
}

#[test]
fn two_treatments_that_need_the_same_are_refused() {
    let home = Home::new();
    home.run(&["compare", "audit", "audit:backlog=64", "-w", "getppid"])
        .assert_error(&["both need the kernel's audit configuration"]);
}

#[test]
fn auditing_is_weighed_beside_seccomp() {
    let Some(audit) = Audit::take() else { return };
    let home = Home::new();
    let outcome = home.run(&["compare", "audit", "seccomp", "-w", "getppid", "--pairs", "8"]);
    assert!(matches!(outcome.code, Some(0 | 3)), "{outcome:#?}");
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
    let Ok(auditd) = find_auditd() else {
        println!("skipped: auditd is not installed");
        return;
    };
    let home = Home::new();
    std::fs::create_dir_all(home.path("auditd/plugins.d")).unwrap();
    let log = home.path("auditd/audit.log");
    home.file(
        "auditd/auditd.conf",
        format!(
            "log_file = {}\nplugin_dir = {}\nlog_format = RAW\nwrite_logs = yes\nflush = INCREMENTAL_ASYNC\n\
             freq = 50\nmax_log_file = 64\nnum_logs = 2\nmax_log_file_action = ROTATE\n\
             space_left = 75\nspace_left_action = IGNORE\nadmin_space_left = 50\n\
             admin_space_left_action = IGNORE\ndisk_full_action = IGNORE\n\
             disk_error_action = IGNORE\n",
            log.display(),
            home.path("auditd/plugins.d").display()
        ),
    );
    let mut command = home.command(auditd);
    command.args(["-n", "-s", "nochange", "-c"]).arg(home.path("auditd"));
    let mut daemon = home.start(command);
    let pid = daemon.pid();
    let holds = || audit.status().pid == pid as u32;
    let registered = wait_until(Duration::from_secs(10), || holds() || daemon.has_ended());
    assert!(registered && holds(), "auditd does not start: {}", daemon.said());

    let outcome = home.run(&["compare", "audit", "-w", "getppid", "--pairs", "8", "--json", "-"]);
    let still_holds = holds();
    kill_process(Pid::from_raw(pid).unwrap(), Signal::TERM).unwrap();
    daemon.finish();
    audit.put_back_enabled();
    audit.assert_restored();

    assert!(still_holds, "auditd lost the socket");
    assert!(matches!(outcome.code, Some(0 | 3)), "{outcome:#?}");
    let json = outcome.json();
    assert_every_call_is_audited(row(&json, "getppid"));
    let facts = json["treatments"][0]["facts"].to_string();
    assert!(facts.contains(&format!("audit daemon of this host (process {pid})")), "{facts}");
    let logged = std::fs::read_to_string(log).unwrap();
    assert!(logged.contains("type=SYSCALL") && logged.contains("key=\"weigh\""));
    assert_eq!(home.leftovers(), Vec::<std::path::PathBuf>::new());
}

fn find_auditd() -> Result<&'static str, ()> {
    ["/usr/sbin/auditd", "/sbin/auditd"]
        .into_iter()
        .find(|path| std::path::Path::new(path).exists())
        .ok_or(())
}
