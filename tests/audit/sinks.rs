//! Who receives the records is a parameter: the real auditd with a configuration of its own, or nobody.

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use crate::support::audit::Audit;
use crate::support::grid::small;
use crate::support::{Home, row, skip, wait_until};
use serde_json::Value;

/// Returns true if auditd is installed; it must be where the tests of auditing have to run.
fn has_auditd() -> bool {
    let is_there = ["/usr/sbin/auditd", "/sbin/auditd"].iter().any(|path| Path::new(path).exists());
    if !is_there {
        skip("audit", "auditd is not installed");
    }
    is_there
}

/// Weighs getppid with eight pairs and gives its row and the facts.
fn weigh(audit: &Audit, treatment: &str) -> (Value, String) {
    let home = Home::new();
    let outcome = home.measure(&[
        "compare",
        treatment,
        "-w",
        "getppid",
        "--pairs",
        "8",
        "--sample",
        "20ms",
        "--no-detail",
        "--json",
        "-",
    ]);
    let waits = outcome.stderr.contains("waits until auditd has written the records");
    assert_eq!(waits, treatment.contains("auditd"), "{outcome:#?}");
    assert_eq!(home.processes(), Vec::<i32>::new());
    audit.assert_restored();
    assert_eq!(home.leftovers(), Vec::<PathBuf>::new());
    home.succeed("show -v").assert_says(&["CPU spent elsewhere/op", "kauditd"]);
    let json = outcome.json();
    let facts = json["treatments"][0]["facts"].to_string();
    (row(&json, "getppid")["evidence"].clone(), facts)
}

#[track_caller]
fn number(evidence: &Value, field: &str) -> f64 {
    evidence[field].as_f64().unwrap_or_else(|| panic!("no {field}: {evidence:#}"))
}

#[track_caller]
fn assert_three_records_and_cpu(evidence: &Value) {
    let records = number(evidence, "records_per_op");
    assert!((2.9..3.1).contains(&records), "{evidence:#}");
    assert!(number(evidence, "kauditd_cpu_s") > 0.0, "{evidence:#}");
    let bytes = number(evidence, "log_bytes_per_op");
    assert!((200.0..1000.0).contains(&bytes), "{evidence:#}");
}

#[test]
fn the_real_auditd_receives_the_records_and_its_cpu_time_counts() {
    let Some(audit) = Audit::take() else { return };
    if !has_auditd() {
        return;
    }
    let (evidence, facts) = weigh(&audit, "audit:sink=auditd");
    assert_three_records_and_cpu(&evidence);
    assert!(number(&evidence, "sink_cpu_s") > 0.0, "{evidence:#}");
    assert!(
        facts.contains("an auditd that weigh started")
            && facts.contains("flush = incremental_async"),
        "{facts}"
    );

    let (evidence, facts) = weigh(&audit, "audit:sink=auditd+dispatcher,flush=none");
    assert_three_records_and_cpu(&evidence);
    assert!(number(&evidence, "sink_cpu_s") > 0.0, "{evidence:#}");
    assert!(facts.contains("a dispatcher") && facts.contains("flush = none"), "{facts}");
}

/// A program of the user's gets all records; a slow plugin has read them before the next sample begins.
#[test]
fn the_plugin_of_the_dispatcher_is_chosen() {
    let Some(audit) = Audit::take() else { return };
    if !has_auditd() {
        return;
    }
    let (evidence, facts) = weigh(&audit, "audit:sink=auditd+dispatcher,plugin=\"/usr/bin/wc -l\"");
    assert_three_records_and_cpu(&evidence);
    assert!(facts.contains("one plugin, which is /") && facts.contains("wc -l."), "{facts}");
    // Without a class, the canary's records are all that it waits for.
    let (_, facts) = weigh(&audit, "audit:class=none,sink=auditd+dispatcher,delay=20ms");
    assert!(facts.contains("one plugin, which waits 20 ms or more for each record"), "{facts}");
}

/// Counts the records of system calls that programs send to this port, until one sends `end`.
fn received(listener: &TcpListener) -> usize {
    let mut count = 0;
    loop {
        let (stream, _) = listener.accept().unwrap();
        for line in BufReader::new(stream).lines() {
            let line = line.unwrap();
            if line == "end" {
                return count;
            }
            count += usize::from(line.contains("type=SYSCALL"));
        }
    }
}

/// Another machine is a listener on the loopback here.
#[test]
fn a_plugin_ships_the_records_of_any_workload_to_another_machine() {
    let Some(audit) = Audit::take() else { return };
    if !has_auditd() {
        return;
    }
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let far = thread::spawn(move || received(&listener));
    let home = Home::new();
    let port = address.port();
    let text = format!("#!/bin/bash\nexec cat >/dev/tcp/127.0.0.1/{port}\n");
    let plugin = home.file("ship", text);
    fs::set_permissions(&plugin, fs::Permissions::from_mode(0o700)).unwrap();
    let treatment = format!("audit:sink=auditd+dispatcher,plugin={}", plugin.display());
    let (evidence, facts) = weigh(&audit, &treatment);
    TcpStream::connect(address).unwrap().write_all(b"end\n").unwrap();
    let shipped = far.join().unwrap();
    assert_three_records_and_cpu(&evidence);
    assert!(facts.contains("one plugin, which is /"), "{facts}");
    assert!(shipped > 1000, "{shipped} of {evidence:#}");
}

#[test]
fn a_plugin_that_ends_at_once_is_no_plugin() {
    let Some(audit) = Audit::take() else { return };
    if !has_auditd() {
        return;
    }
    let home = Home::new();
    let plugin = "audit:sink=auditd+dispatcher,plugin=/usr/bin/true";
    home.run(&["compare", plugin, "-w", "getppid", "--pairs", "8"])
        .assert_says(&["auditd's plugin has ended"]);
    assert_eq!(home.samples(), 0);
    audit.assert_restored();
}

/// Counts each record that the treated arm writes itself; those of the baseline are dropped, which is checked
/// with every sample.
#[test]
fn records_that_a_program_writes_itself_are_counted() {
    let Some(audit) = Audit::take() else { return };
    let home = Home::new();
    let arguments = ["compare", "audit:class=none", "-w", "audit-user", "--pairs", "8"];
    let outcome = home
        .measure(&[&arguments[..], &["--sample", "20ms", "--no-detail", "--json", "-"]].concat());
    audit.assert_restored();
    let json = outcome.json();
    let records = number(&row(&json, "audit-user")["evidence"], "records_per_op");
    assert!((0.9..1.1).contains(&records), "{json:#}");
    assert!(json["treatments"][0]["facts"].to_string().contains("never,user"), "{json:#}");
}

/// weigh reads the format of a record in auditd's log at every sample, and fails if it is another.
#[test]
fn auditd_writes_the_format_that_was_asked_for() {
    let Some(audit) = Audit::take() else { return };
    if !has_auditd() {
        return;
    }
    for (format, word) in [("raw", "RAW"), ("enriched", "ENRICHED")] {
        let (evidence, facts) = weigh(&audit, &format!("audit:sink=auditd,format={format}"));
        assert_three_records_and_cpu(&evidence);
        assert!(facts.contains(&format!("log_format = {word}")), "{facts}");
    }
}

#[test]
fn with_nobody_to_receive_them_the_records_are_counted_all_the_same() {
    let Some(audit) = Audit::take() else { return };
    let (evidence, facts) = weigh(&audit, "audit:sink=none");
    assert_three_records_and_cpu(&evidence);
    assert_eq!(number(&evidence, "sink_cpu_s"), 0.0, "{evidence:#}");
    assert!(facts.contains("No process receives the records"), "{facts}");
}

#[test]
fn our_own_sink_computes_as_well() {
    let Some(audit) = Audit::take() else { return };
    let (evidence, _) = weigh(&audit, "audit");
    assert_three_records_and_cpu(&evidence);
    assert!(number(&evidence, "sink_cpu_s") > 0.0, "{evidence:#}");
}

#[test]
fn records_are_shipped_to_w_passive_and_counted_there() {
    if !Path::new("/dev/net/tun").exists() {
        skip("tun", "there is no /dev/net/tun");
        return;
    }
    let Some(audit) = Audit::take() else { return };
    let home = Home::new();
    home.file("small.toml", small("activity-cpu", &[("Video", 65536)]));
    let arguments = ["compare", "audit:sink=remote", "-w", "net:./small.toml", "--pairs", "8"];
    let outcome = home.measure(&[&arguments[..], &["--no-detail", "--json", "-"]].concat());
    audit.assert_restored();
    assert_eq!((home.processes(), home.leftovers()), (Vec::new(), Vec::new()));
    let json = outcome.json();
    let facts = json["treatments"][0]["facts"].to_string();
    assert!(facts.contains("198.19.2.2") && facts.contains("W_passive"), "{facts}");
    // Of each sample there: all of its records but their ends, which no log has, and the canary's.
    let sum = |name: &str| -> i64 {
        let sql =
            format!("SELECT sum(json_extract(evidence, '$.{name}')) FROM sample WHERE arm = 1");
        home.open_database().query_row(&sql, [], |row| row.get(0)).unwrap()
    };
    let (shipped, received) = (sum("shipped"), sum("received"));
    assert!(shipped > 8 * 1000 && shipped < received, "{shipped} of {received}");
}

#[test]
fn without_a_w_passive_nothing_can_be_shipped() {
    let Some(audit) = Audit::take() else { return };
    let home = Home::new();
    let arguments = ["compare", "audit:sink=remote", "-w", "getppid", "--pairs", "8"];
    home.run(&arguments).assert_error(&["W_passive, which only `net:` workloads have"]);
    audit.assert_restored();
    assert_eq!(home.leftovers(), Vec::<PathBuf>::new());
}

#[test]
fn auditd_ends_with_us_whatever_ends_us() {
    let Some(audit) = Audit::take() else { return };
    if !has_auditd() {
        return;
    }
    for _ in 0..3 {
        let home = Home::new();
        let arguments = [
            "compare",
            "audit:sink=auditd+dispatcher",
            "-w",
            "getppid",
            "--budget",
            "60s",
            "--no-detail",
        ];
        let mut running = home.start(home.weigh(&arguments));
        home.wait_for_samples(1, &mut running);
        assert_ne!(audit.status().pid, 0);
        running.kill();
        let all_gone = wait_until(Duration::from_secs(50), || {
            running.has_ended() && home.processes().is_empty()
        });
        assert!(all_gone, "still running: {:#?}", home.describe_processes());
        audit.assert_restored();
        assert_eq!(home.leftovers(), Vec::<PathBuf>::new(), "{}", running.said());
    }
}

#[test]
fn what_makes_no_sense_is_refused_before_anything_is_changed() {
    let home = Home::new();
    home.run("compare audit:sink=rsyslog -w getppid").assert_error(&["auditd+dispatcher"]);
    home.run("compare audit:sink=none,flush=sync -w getppid")
        .assert_error(&["it needs sink=auditd"]);
    home.run("compare audit:sink=auditd,delay=1ms -w getppid")
        .assert_error(&["they need sink=auditd+dispatcher"]);
    home.run("compare audit:format=enriched -w getppid").assert_error(&["it needs sink=auditd"]);
}
