//! `audit:live`: the rules that somebody else loaded are weighed, and none of them is ever missing.

use crate::support::audit::Audit;
use crate::support::audit::auditd::Auditd;
use crate::support::audit::host_rules::{Changes, HostRules};
use crate::support::{Home, assert_slows, row};
use linux_audit::netlink::Client;
use linux_audit::rule::Rule;
use serde_json::Value;

/// Host rules of every list and kind, in an order that matters: an exemption comes before the rules
/// that it exempts from.
const HOST: [&str; 9] = [
    "-a never,exit -F arch=b64 -S getuid -F auid>=1000",
    "-a always,exit -F arch=b64 -S getppid -F auid>=1000 -F auid!=unset -F key=host-call",
    "-w /etc/passwd -p wa -k host-file",
    "-w /etc/ssl/ -p wa -k host-directory",
    "-a always,exit -F arch=b64 -S all -F exe=/bin/true -F key=host-program",
    "-a always,exit -F arch=b64 -C auid!=uid -S setuid -F key=host-compare",
    "-a always,exit -F arch=b32 -S ptrace -F key=host-32",
    "-a never,filesystem -F fstype=tracefs",
    "-a always,exclude -F msgtype=CWD",
];
/// Opens a file that is watched by `HOST`, for writing, and so makes a record.
const COMMAND: [&str; 4] = [
    "--",
    "sh",
    "-c",
    ": >> /etc/passwd; i=0; while [ $i -lt 9999 ]; do \
                            i=$((i+1)); done",
];

/// All changes that were recorded are the loading and unloading of three rules of ours.
#[track_caller]
fn assert_only_ours(changes: &[String]) {
    let of = |what: &str| changes.iter().filter(|change| change.contains(what)).count();
    // The rule of the list `user` (0) has no key.
    assert_eq!((of("key=\"weigh\""), of("key=(null) list=0")), (4, 2), "{changes:#?}");
    assert_eq!((of("op=add_rule"), of("op=remove_rule"), changes.len()), (3, 3, 6), "{changes:#?}");
}

fn weigh(home: &Home, what: &[&str]) -> Value {
    let mut arguments = vec!["compare", "audit:live", "--pairs", "8", "--json", "-"];
    arguments.extend(what);
    let outcome = home.measure(&arguments);
    assert_eq!(home.leftovers(), Vec::<std::path::PathBuf>::new());
    outcome.json()
}

fn weigh_live(audit: &Audit, home: &Home) -> String {
    let host = HostRules::load(&HOST, 1);
    let status = audit.status();
    let changes = Changes::watch();
    let json = weigh(home, &["-w", "getppid", "-w", "dhry2reg", "--no-detail"]);
    let command = weigh(home, &COMMAND);
    let changes = changes.finish();
    host.assert_untouched();
    let now = audit.status();
    assert_eq!(
        (now.enabled, now.backlog_limit, now.backlog_wait_time, now.pid),
        (status.enabled, status.backlog_limit, status.backlog_wait_time, status.pid)
    );
    let (first, second) = changes.split_at(changes.len() / 2);
    assert_only_ours(first);
    assert_only_ours(second);
    // SYSCALL, PROCTITLE and the end of the event: the host excludes no other.
    let records = row(&json, "getppid")["evidence"]["records_per_op"].as_f64().unwrap();
    assert!((2.9..3.1).contains(&records), "{json:#}");
    assert_slows(row(&json, "getppid"), 30.0);
    assert!(row(&json, "dhry2reg")["evidence"]["records_per_op"].as_f64() < Some(0.01));
    // An operation of a command is a run of it.
    let records = command["results"][0]["evidence"]["records_per_op"].as_f64().unwrap();
    assert!(records >= 4.0, "{command:#}");
    assert_eq!(command["baseline_state"], "clean");
    json["treatments"][0]["facts"].to_string()
}

#[test]
fn the_rules_of_a_host_are_weighed_and_none_is_ever_missing() {
    let Some(audit) = Audit::take() else { return };
    let facts = weigh_live(&audit, &Home::new());
    audit.assert_restored();
    assert!(facts.contains("9 audit rules of this host stay loaded throughout"), "{facts}");
    assert!(facts.contains("No process receives the records"), "{facts}");
}

#[test]
fn an_audit_daemon_of_the_host_keeps_its_socket() {
    let Some(audit) = Audit::take() else { return };
    let home = Home::new();
    let Some(daemon) = Auditd::start(&home, &audit) else { return };
    let facts = weigh_live(&audit, &home);
    let still_holds = daemon.holds_socket(&audit);
    let pid = daemon.pid();
    drop(daemon);
    audit.put_back_enabled();
    audit.assert_restored();
    assert!(still_holds && facts.contains(&format!("process {pid}")), "{facts}");
    let log = std::fs::read_to_string(home.path("auditd/audit.log")).unwrap();
    assert!(log.contains("key=\"host-call\"") && log.contains("key=\"host-file\""));
}

#[test]
fn a_host_that_has_nothing_to_weigh_is_told_what_to_do() {
    let Some(audit) = Audit::take() else { return };
    let home = Home::new();
    let live = ["compare", "audit:live", "-w", "getppid"];
    let host = HostRules::load(&HOST, 0);
    home.run(&live).assert_error(&["auditing is off", "`auditctl -e 1`"]);
    drop(host);
    let host = HostRules::load(&[], 1);
    home.run(&live).assert_error(&["no audit rule is loaded", "`auditctl -R FILE`"]);
    drop(host);
    let host = HostRules::load(&["-a never,task -F auid=77", "-w /etc/passwd -p wa -k a"], 1);
    home.run(&live).assert_error(&["`-a never,task`", "remove this rule first"]);
    host.assert_untouched();
    drop(host);
    audit.assert_restored();
    // What dead experiments of ours left is no rule of the host.
    let host = HostRules::load(&["-a never,task -F auid=1994000001"], 1);
    home.run(&live).assert_error(&["no audit rule is loaded"]);
    drop(host);
    audit.assert_restored();
}

#[test]
fn a_host_without_another_login_uid_is_told_what_to_do() {
    let Some(audit) = Audit::take() else { return };
    let home = Home::new();
    let host = HostRules::load(&HOST, 1);
    let fixed = crate::support::audit::host_rules::ImmutableLoginuid::switch_on();
    let outcome = home.run("compare audit:live -w getppid");
    drop(fixed);
    outcome.assert_error(&["`loginuid_immutable`", "`audit:rules=FILE` on a similar machine"]);
    host.assert_untouched();
    drop(host);
    audit.assert_restored();
}

#[test]
fn a_rule_of_the_host_taken_away_meanwhile_fails_it() {
    let Some(audit) = Audit::take() else { return };
    let home = Home::new();
    let host = HostRules::load(&HOST, 1);
    let mut running = home.start(home.weigh("compare audit:live -w stat --pairs 500"));
    home.wait_for_samples(4, &mut running);
    let gone: &Rule = host.listed.last().unwrap();
    Client::open().unwrap().delete_rule(gone).unwrap();
    running
        .finish()
        .assert_error(&["audit rules were changed during the measurement", "No verdict"]);
    drop(host);
    audit.assert_restored();
    assert_eq!(home.leftovers(), Vec::<std::path::PathBuf>::new());
}
