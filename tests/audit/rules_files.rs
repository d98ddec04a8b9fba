//! `weigh rules` on files as people have them: those that a distribution ships, what is broken or far too
//! long, and on hosts where something is in the way.

use std::path::Path;

use crate::support::audit::Audit;
use crate::support::audit::host_rules::HostRules;
use crate::support::{Home, skip};
use serde_json::{Value, json};
use weigh_host::machine::counter::Counter;

const SHIPPED: &str = "/usr/share/doc/auditd/examples/rules";
/// Sets in their names' first letters: OSPP is one file for each of its chapters.
const SETS: [&str; 4] = ["30-stig", "30-nispom", "30-pci-dss", "30-ospp"];

fn lines(json: &Value) -> &[Value] {
    json["lines"].as_array().unwrap()
}

fn number(cost: &Value) -> f64 {
    cost["value"].as_f64().unwrap_or_else(|| panic!("{cost:#}"))
}

/// Loaded, or there is a reason.
#[track_caller]
fn assert_accounted_for(line: &Value) {
    let fate = &line["fate"];
    let reason = fate["refused"].as_str().or(fate["skipped"].as_str());
    let is_loaded = fate["loaded"]["per_syscall"]["value"].is_f64();
    assert!(is_loaded || reason.is_some_and(|reason| reason.len() > 10), "{line:#}");
}

fn files_of(set: &str) -> Vec<String> {
    let Ok(entries) = std::fs::read_dir(SHIPPED) else { return Vec::new() };
    let paths = entries.map(|entry| entry.unwrap().path().display().to_string());
    let mut files: Vec<String> =
        paths.filter(|path| path.starts_with(&format!("{SHIPPED}/{set}"))).collect();
    files.sort();
    files
}

fn wanted(files: &[String]) -> Vec<String> {
    let texts = files.iter().map(|file| std::fs::read_to_string(file).unwrap());
    let all = texts.collect::<Vec<_>>().join("\n");
    let lines =
        all.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines.map(String::from).collect()
}

#[test]
fn every_line_of_the_sets_that_debian_ships_is_accounted_for() {
    let Some(audit) = Audit::take() else { return };
    let home = Home::new();
    for set in SETS {
        let files = files_of(set);
        if files.is_empty() {
            skip("audit", "Debian's rule sets are not installed");
            return;
        }
        // Where it is exact, every rule of the first set is left out: what is confirmed is held against the
        // whole.
        let is_exact = Counter::works() && set == SETS[0];
        let (top, budget) = if is_exact { ("400", "10s") } else { ("3", "1s") };
        let mut arguments: Vec<&str> = files.iter().map(String::as_str).collect();
        arguments.extend(["--top", top, "--budget", budget]);
        let json = audit.weigh_rules(&home, &arguments);
        let texts: Vec<&str> = lines(&json).iter().map(|l| l["text"].as_str().unwrap()).collect();
        assert_eq!(texts, wanted(&files), "{set}");
        lines(&json).iter().for_each(assert_accounted_for);
        let loaded = lines(&json).iter().filter(|line| line["fate"]["loaded"].is_object());
        assert!(loaded.count() >= 20, "{set}: {json:#}");
        let [clean, full] = ["clean", "full"].map(|level| number(&json["operations"][0][level]));
        assert!(full > 1.2 * clean, "{set}: {clean} {full}");
        if is_exact {
            let of_rules = number(&json["total"]) - number(&json["armed"]);
            let confirmed = &json["sum_of_confirmed"];
            let [low, high] = ["low", "high"].map(|bound| confirmed[bound].as_f64().unwrap());
            assert!(
                low < 1.1 * of_rules && 0.9 * of_rules < high,
                "{set}: {confirmed:#} {of_rules}"
            );
            assert!(high - low < of_rules, "{set}: it says nothing: {confirmed:#}");
        }
    }
}

#[test]
fn broken_lines_cost_just_themselves() {
    let Some(audit) = Audit::take() else { return };
    let home = Home::new();
    let text = "-w /etc/passwd -p wa -k a\r\n# c\r\ninclude other.rules\r\n-a always,exit -S\r\n\
                -a always,exit -F arch=b64 -S nosuchcall\r\n-a always\r\n-w\r\n-a always,exit -F\r\n\
                -a always,exit -F arch=b64 -S read -F auid=77\r\n";
    let file = home.file("my.rules", text);
    let json = audit.weigh_rules(&home, &[file.to_str().unwrap(), "--top", "3", "--budget", "1s"]);
    lines(&json).iter().for_each(assert_accounted_for);
    let of = |fate: &str| {
        let with = lines(&json).iter().filter(|line| !line["fate"][fate].is_null());
        with.map(|line| line["number"].as_u64().unwrap()).collect::<Vec<_>>()
    };
    assert_eq!(of("loaded"), [1, 9], "{json:#}");
    assert_eq!(of("skipped"), [3], "{json:#}");
    assert_eq!(of("refused"), [4, 5, 6, 7, 8], "{json:#}");
}

#[test]
fn what_is_no_rule_file_is_refused() {
    let home = Home::new();
    let refused = |name: &str, content: Vec<u8>, expected: &str| {
        let file = home.file(name, content);
        home.run(&["rules", file.to_str().unwrap()]).assert_error(&[expected]);
    };
    refused("random.rules", [0xff_u8, 0, 13, 200, 10, 7].repeat(50), "is this a rule file?");
    refused("twig.rules", b"-a always,exit -S {{ call }}\n".to_vec(), "line 1: it has a template");
    refused("mark.rules", "\u{feff}-w /etc -p wa\n".into(), "begins with a byte-order mark");
    refused("empty.rules", b"# nothing\n-D\n".to_vec(), "no rule in");
    refused(
        "include.rules",
        b"include a.rules\r\n".to_vec(),
        "cannot include a file from a different file",
    );
    let many = (0..10_000).map(|auid| format!("-a always,exit -S kexec_load -F auid={auid}\n"));
    let many: String = many.collect();
    refused("many.rules", many.into(), "these files have 10,000 rules");
    home.run("rules /nonexistent/x.rules").assert_error(&["/nonexistent/x.rules"]);
}

/// Where the kernel is told to collect no names of files there, that one was opened is not recorded.
#[test]
fn rules_that_hide_what_proves_auditing_do_not_cost_the_report() {
    let Some(audit) = Audit::take() else { return };
    if !Path::new("/dev/shm").is_dir() {
        skip("shm", "there is no /dev/shm");
        return;
    }
    let home = Home::new();
    let file = home.file(
        "my.rules",
        "-w /etc/passwd -p wa\n-a always,exclude -F msgtype=PATH\n-a always,exclude -F msgtype=SYSCALL\n",
    );
    let directory = tempfile::tempdir_in("/dev/shm").unwrap();
    let mut command =
        home.weigh(&["rules", "--json", "-", "--budget", "10s", file.to_str().unwrap()]);
    let output = command.env("TMPDIR", directory.path()).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    audit.assert_restored();
    let json: Value = serde_json::from_slice(&output.stdout).unwrap();
    let rewrites = json["rewrites"].as_array().unwrap().iter();
    let titles: Vec<&str> = rewrites.map(|rewrite| rewrite["title"].as_str().unwrap()).collect();
    assert!(titles.contains(&"record no paths on tmpfs"), "{json:#}");
    assert!(lines(&json).iter().all(|line| line["fate"]["loaded"].is_object()), "{json:#}");
}

/// Exemptions are weighed, but only of our own processes; where that cannot be, they are left out.
#[test]
fn nothing_is_loaded_that_would_blind_the_rules_of_a_host() {
    let Some(audit) = Audit::take() else { return };
    let home = Home::new();
    let rules = home.file(
        "my.rules",
        "-a always,exit -F arch=b64 -S all -F auid=77\n-a always,exclude -F msgtype=CWD\n\
         -A never,exit -F arch=b64 -S read\n-a never,filesystem -F fstype=tracefs\n",
    );
    let host = HostRules::load(&["-a always,exit -F arch=b64 -S mount -F auid=78"], 1);
    let arguments = ["rules", "--json", "-", "--budget", "1s", rules.to_str().unwrap()];
    let outcome = home.run(&arguments);
    assert_eq!(outcome.code, Some(0), "{outcome:#?}");
    host.assert_untouched();
    drop(host);
    audit.assert_restored();
    let json = outcome.json();
    assert!(lines(&json).iter().take(3).all(|line| line["fate"]["loaded"].is_object()), "{json:#}");
    assert_eq!(lines(&json)[0]["warnings"], json!([]), "{json:#}");
    for line in &lines(&json)[1..3] {
        let warnings = line["warnings"].to_string();
        assert!(warnings.contains("for the measured processes only"), "{line:#}");
    }
    let why = lines(&json)[3]["fate"]["skipped"].as_str().unwrap_or_default();
    assert!(why.contains("so the result does not cover the whole file"), "{json:#}");
}

/// A second of CPU time in which so many calls were made.
fn profile(calls: Value) -> String {
    json!({
        "schema": "weighbridge/profile/1", "command": ["server"], "calls": calls,
        "elapsed_s": 1.0, "user_s": 0.5, "system_s": 0.5,
    })
    .to_string()
}

#[test]
fn a_profile_is_answered_with_what_its_program_pays() {
    let Some(audit) = Audit::take() else { return };
    let home = Home::new();
    let calls = json!({"read": 90_000, "execve": 1_000, "clone": 1_000, "getppid": 8_000});
    let server = home.file("server.json", profile(calls));
    let rules = home.file(
        "my.rules",
        "-a always,exit -F arch=b64 -S getppid\n-a always,exit -F arch=b64 -S read -F auid=77\n",
    );
    let page = home.path("rules.html");
    let [server, rules, html] = [&server, &rules, &page].map(|path| path.to_str().unwrap());
    let arguments = [rules, "--profile", server, "--budget", "1s", "--html", html];
    let json = audit.weigh_rules(&home, &arguments);
    // 100,000 calls in a second: what one of them pays, in ns, is so many ten-thousandths. Of two rules,
    // which a noisy exec outweighs, that may be less than nothing.
    let [cpu, total] = ["profile_cpu_pct", "total_ns"].map(|name| number(&json[name]));
    assert!(total != 0.0 && (cpu - total / 100.0).abs() < 1e-6 * cpu.abs(), "{json:#}");
    let weight = |name: &str| {
        let operations = json["operations"].as_array().unwrap();
        let operation = operations.iter().find(|operation| operation["name"] == name).unwrap();
        operation["weight"].as_f64().unwrap()
    };
    assert!((weight("exec") - 0.01).abs() < 1e-9, "{json:#}");
    // Each exec has a fork in it.
    assert!(weight("fork").abs() < 0.001, "{json:#}");
    let records = &json["profile_records"];
    assert_eq!(records["calls"], json!(["getppid"]), "{json:#}");
    let matched = &lines(&json)[0]["fate"]["loaded"]["matched"];
    // Eight thousand in a second.
    let expected = matched["elapsed_ns"].as_f64().unwrap() * 8000.0 / 1e9 * 100.0;
    let pct = records["cpu_pct"].as_f64().unwrap();
    assert!(pct > 0.0 && (pct - expected).abs() <= 1e-6 * expected, "{pct} {expected}");
    let page = std::fs::read_to_string(&page).unwrap();
    assert!(page.contains("Records of rules with conditions are not included"), "{page}");
}
