//! Several audit treatments in one experiment: each arm is measured with its own rules and limits, and
//! the host's own stay where they are.

use crate::support::audit::Audit;
use crate::support::audit::auditd::Auditd;
use crate::support::audit::host_rules::{HostRules, Listener};
use crate::support::{Home, assert_slows};
use linux_audit::netlink::Client;
use linux_audit::rule::Rule;
use serde_json::Value;

/// Rules of the host: `MINE` is also in one of the files.
const HOST: [&str; 2] = ["-w /etc/hostname -p wa -k host", MINE];
const MINE: &str = "-a always,exit -F arch=b64 -S swapoff -F key=host-too";
const MATCHES: &str = "-a always,exit -F arch=b64 -S getppid -F auid>=1000 -F key=matches";

/// Three files: one matches `getppid`; one has the same rule behind one that exempts it, and one for the
/// front of the list; one matches nothing and has a rule that the host has as well.
fn write_files(home: &Home) -> [String; 3] {
    let never = "-A never,exit -F arch=b64 -S getppid -F auid>=1000";
    let others: Vec<String> = (0..40)
        .map(|number| format!("-a always,exit -F arch=b64 -S mount -F a0={number} -k other"))
        .collect();
    home.file("matches.rules", format!("{MATCHES}\n-w /etc/passwd -p wa -k other\n"));
    home.file("exempt.rules", format!("-w /etc/passwd -p wa -k other\n{MATCHES}\n{never}\n"));
    home.file("others.rules", format!("{}\n{MINE}\n", others.join("\n")));
    ["matches", "exempt", "others"].map(|name| format!("audit:rules={name}.rules"))
}

fn compare(home: &Home, arms: &[&str]) -> Value {
    let mut arguments = vec!["compare"];
    arguments.extend(arms);
    arguments.extend(["-w", "getppid", "--pairs", "8", "--sample", "20ms", "--no-detail"]);
    arguments.extend(["--json", "-"]);
    let outcome = home.measure(&arguments);
    outcome.json()
}

#[track_caller]
fn records_per_op(row: &Value) -> f64 {
    row["evidence"]["records_per_op"].as_f64().unwrap_or_else(|| panic!("{row:#}"))
}

#[test]
fn each_of_three_rule_files_is_in_force_for_its_own_arm_only() {
    let Some(audit) = Audit::take() else { return };
    let host = HostRules::load(&HOST, 1);
    let home = Home::new();
    let arms = write_files(&home);
    let json = compare(&home, &arms.each_ref().map(String::as_str));
    host.assert_untouched();
    drop(host);
    audit.assert_restored();
    assert_eq!(home.leftovers(), Vec::<std::path::PathBuf>::new());

    let rows = json["results"].as_array().unwrap();
    assert_eq!(rows.len(), 3, "{json:#}");
    assert!((2.9..3.1).contains(&records_per_op(&rows[0])), "{:#}", rows[0]);
    assert!(records_per_op(&rows[1]) < 0.01, "{:#}", rows[1]);
    assert!(records_per_op(&rows[2]) < 0.01, "{:#}", rows[2]);
    for (index, loaded) in
        ["2 rules loaded", "3 rules loaded", "40 rules loaded"].iter().enumerate()
    {
        let facts = json["treatments"][index]["facts"].to_string();
        assert!(facts.contains(loaded) && facts.contains("The arms alternate"), "{facts}");
    }
    let facts = json["treatments"][2]["facts"].to_string();
    assert!(facts.contains("1 already present on this host"), "{facts}");
}

#[test]
fn one_rule_file_is_weighed_against_another() {
    let Some(audit) = Audit::take() else { return };
    let home = Home::new();
    let [matches, exempt, _] = write_files(&home);
    let json = compare(&home, &["--base", &exempt, &matches]);
    audit.assert_restored();
    assert_slows(&json["results"][0], 30.0);
    assert!((2.9..3.1).contains(&records_per_op(&json["results"][0])), "{json:#}");
    assert_eq!(json["baseline_state"], "audited");
    let facts = json["baseline_facts"].to_string();
    assert!(facts.contains("3 rules loaded"), "{facts}");
}

/// `mkdir` is in the class `create` and `rmdir` in `delete`; `open` has three records, and more by its path.
#[test]
fn an_event_class_records_its_own_calls_and_no_others() {
    let Some(audit) = Audit::take() else { return };
    let home = Home::new();
    let degrees =
        ["none", "delete", "delete,open", "all"].map(|class| format!("audit:class={class}"));
    let arguments = ["-w", "open-close", "-w", "mkdir-rmdir", "--pairs", "8", "--sample", "20ms"];
    let arms = degrees.iter().map(String::as_str);
    let arguments: Vec<&str> = std::iter::once("compare").chain(arms).chain(arguments).collect();
    let outcome = home.measure(&[&arguments[..], &["--no-detail", "--json", "-"]].concat());
    audit.assert_restored();
    assert_eq!(home.leftovers(), Vec::<std::path::PathBuf>::new());
    let json = outcome.json();
    let recorded = |workload: &str| -> Vec<u64> {
        let rows = json["results"].as_array().unwrap().iter();
        let rows = rows.filter(|row| row["workload"] == workload);
        rows.map(|row| records_per_op(row).round() as u64).collect()
    };
    assert_eq!(recorded("open-close"), [0, 0, 5, 8]);
    assert_eq!(recorded("mkdir-rmdir"), [0, 6, 6, 12]);
    let facts = json["treatments"][1]["facts"].to_string();
    assert!(facts.contains("delete (msgctl, rmdir, semctl, unlinkat)"), "{facts}");
    home.succeed("show -v").assert_says(&["Cost and storage by degree", "audit:class=delete,open"]);
}

#[test]
fn an_unknown_event_class_is_refused_with_the_names_of_all() {
    let home = Home::new();
    home.run("compare audit:class=delete,opne -w getppid")
        .assert_error(&["class=opne", "admin, close, create, delete, ipcclose"]);
    home.run("compare audit:class=uevent1 -w getppid").assert_error(&["AUDIT_USER"]);
}

/// A limit belongs to its arm as its rules do; also beside an audit daemon, whose socket it stays.
#[test]
fn the_limits_of_two_arms_differ() {
    let Some(audit) = Audit::take() else { return };
    let home = Home::new();
    let Some(daemon) = Auditd::start(&home, &audit) else { return };
    // A daemon that others keep from the CPU for half a second loses records of a long queue, too.
    let mut json = compare(&home, &["audit", "audit:backlog=100,wait=0"]);
    for _ in 0..2 {
        if json["results"][0]["evidence"]["lost"] == 0 {
            break;
        }
        json = compare(&home, &["audit", "audit:backlog=100,wait=0"]);
    }
    let still_holds = daemon.holds_socket(&audit);
    drop(daemon);
    audit.put_back_enabled();
    audit.assert_restored();
    assert!(still_holds, "auditd lost the socket");
    let rows = json["results"].as_array().unwrap();
    assert_eq!(rows[0]["evidence"]["lost"], 0, "{json:#}");
    assert!(rows[1]["evidence"]["lost"].as_u64() > Some(0), "{json:#}");
    let facts = json["treatments"][1]["facts"].to_string();
    assert!(facts.contains("backlog limit is 100 records"), "{facts}");
}

#[test]
fn a_rule_that_somebody_adds_or_takes_away_meanwhile_fails_it() {
    let Some(audit) = Audit::take() else { return };
    let home = Home::new();
    let arms = write_files(&home);
    let foreign = Rule::always_exit(77, "foreign");
    // Seen in the list, and seen in the records alone.
    for stays in [true, false] {
        let mut arguments = vec!["compare", &arms[0], &arms[1], &arms[2]];
        arguments.extend(["-w", "getppid", "-w", "stat", "--pairs", "500"]);
        let mut running = home.start(home.weigh(&arguments));
        let samples = home.samples();
        home.wait_for_samples(samples + 9, &mut running);
        let mut client = Client::open().unwrap();
        client.add_rule(&foreign).unwrap();
        if !stays {
            client.delete_rule(&foreign).unwrap();
        }
        let outcome = running.finish();
        let removed = if stays { client.delete_rule(&foreign) } else { Ok(()) };
        outcome.assert_error(&["audit rules were changed during the measurement", "No verdict"]);
        assert!(removed.is_ok(), "{removed:?}: {outcome:#?}");
        audit.assert_restored();
    }
}

#[test]
fn arms_that_cannot_share_are_refused() {
    let Some(audit) = Audit::take() else { return };
    let host = HostRules::load(&HOST, 1);
    let home = Home::new();
    home.run("compare audit audit:live -w getppid")
        .assert_error(&["both need the kernel's audit configuration, in different ways"]);
    home.run("compare audit audit:sink=none -w getppid").assert_error(&["use the same `sink=`"]);
    host.assert_untouched();
    drop(host);
    audit.assert_restored();
}

/// Checks the records of a host while weighed rules would exempt everybody from the host's own
/// rules.
#[test]
fn exemptions_in_a_weighed_file_take_nothing_from_what_a_host_records() {
    let Some(audit) = Audit::take() else { return };
    // `reboot` with arguments that the kernel refuses: a call that nobody else makes.
    const REBOOT: &str = "-a always,exit -F arch=b64 -S reboot -k host-key";
    let host = HostRules::load(&[REBOOT], 1);
    let home = Home::new();
    home.file(
        "blind.rules",
        "-A never,exit -F arch=b64 -S reboot -F auid!=4\n-A always,exit -F arch=b64 -S reboot -k another\n\
         -a always,exclude -F msgtype=PROCTITLE -F auid!=4\n-a never,user -F auid!=4\n\
         -a never,filesystem -F fstype=tracefs\n-a always,exit -F arch=b64 -S swapoff -F auid=77\n",
    );
    let listener = Listener::start();
    let mut running = home.start(home.weigh(&[
        "compare",
        "audit:rules=blind.rules",
        "-w",
        "getppid",
        "--pairs",
        "12",
        "--json",
        "-",
    ]));
    home.wait_for_samples(2, &mut running);
    // SAFETY: without its magic numbers the call does nothing.
    let status = unsafe { libc::syscall(libc::SYS_reboot, 0, 0, 0, 0) };
    assert_eq!(status, -1, "the kernel took it for a wish to reboot");
    Client::open().unwrap().send_text("said by a program of the host").unwrap();
    let outcome = running.finish();
    let records = listener.finish();
    host.assert_untouched();
    drop(host);
    audit.assert_restored();

    let pid = format!(" pid={} ", std::process::id());
    let recorded =
        records.iter().filter(|record| record.contains(&pid) && record.contains("syscall="));
    let recorded: Vec<&String> = recorded.collect();
    let event = recorded.iter().find(|record| record.contains("key=\"host-key\""));
    let event = event.unwrap_or_else(|| panic!("no record for the host's rule: {recorded:#?}"));
    // All records of an event begin with its time and number.
    let (stamp, _) = event.split_once("): ").unwrap();
    let is_title = |record: &String| record.starts_with(stamp) && record.contains("proctitle=");
    assert!(records.iter().any(is_title), "a record of the host's event is missing");
    assert!(records.iter().any(|record| record.contains("said by a program of the host")));
    let facts = outcome.json()["treatments"][0]["facts"].to_string();
    for line in 1..=4 {
        assert!(facts.contains(&format!("Line {line} confined to login uid")), "{line}: {facts}");
    }
    assert!(facts.contains("Line 5 skipped (this host is already audited"), "{facts}");
    assert!(facts.contains("so the result does not cover the whole file"), "{facts}");
}
