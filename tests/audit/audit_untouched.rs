//! Whatever a rule file holds, and whatever is done to the audit configuration meanwhile: afterwards every
//! setting and every rule of the host is as it was.
//!
//! This kernel gets no file of these tests that could lock it or have it panic, also where our checks fail:
//! there is no digit `2` in one, so neither `-e 2` nor `-f 2`, and no long option that begins with `--l`.
//! A program that only writes down its arguments gets those, too.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use crate::support::audit::Audit;
use crate::support::audit::host_rules::HostRules;
use crate::support::{Home, skip};
use linux_audit::netlink::Client;
use linux_audit::rule::Rule;
use linux_audit::rule_load::{Watcher, find_auditctl};
use linux_audit::rule_set::{RuleLine, RuleSet};
use linux_audit::status::{AuditSetting, Status};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestCaseError, TestRunner};

/// In this order; none is at an end of its list but the first and the last.
const HOST: [&str; 5] = [
    "-a always,exit -F arch=b64 -S mount -F auid=78 -k first",
    "-w /etc/hostname -p wa -k second",
    "-a always,exit -F arch=b64 -S swapoff -k third",
    "-w /etc/ssl/ -p wa -k fourth",
    "-a never,user -F auid=79",
];

/// The status as the kernel tells it, and all rules.
fn configuration() -> (Status, Vec<Rule>) {
    let mut client = Client::open().unwrap();
    let status = client.status().unwrap();
    // What was dropped or waits now is no setting.
    (
        Status { backlog: 0, lost: 0, backlog_wait_time_actual: None, ..status },
        client.rules().unwrap(),
    )
}

/// Puts the settings back that a failing test has changed.
struct Settings(Status);

impl Drop for Settings {
    fn drop(&mut self) {
        let mut client = Client::open().unwrap();
        for setting in [
            AuditSetting::Enabled(self.0.enabled),
            AuditSetting::Failure(self.0.failure),
            AuditSetting::RateLimit(self.0.rate_limit),
            AuditSetting::BacklogLimit(self.0.backlog_limit),
            AuditSetting::BacklogWaitTime(self.0.backlog_wait_time),
        ] {
            client.set(setting).unwrap();
        }
    }
}

/// Loads a file as an experiment does; `None` where it is refused before.
fn load(file: &Path, auditctl: &Path) -> Option<Vec<RuleLine>> {
    let set = RuleSet::read(&[file.to_owned()]).ok()?;
    let mut watcher = Watcher {
        progress: &mut |_, _| {},
        is_interrupted: &|| false,
        run: &|mut command| command.output(),
    };
    Some(set.load(auditctl, &mut Client::open().unwrap(), &mut watcher).unwrap())
}

fn unload(lines: &[RuleLine]) {
    let mut client = Client::open().unwrap();
    lines.iter().flat_map(|line| &line.rules).for_each(|rule| client.delete_rule(rule).unwrap());
}

/// All that `auditctl` knows, and ways to write it.
const OPTIONS: &str = "-D -f -r -b -e -k -F -i -c -t -p -S -C -w -W -d -- - -kD -tD -iD -aD -k-D -Fkey=-D \
    --reset-lost --res --reset --backlog_wait_time --b --backlog_wait_time=7 -r77 -f0 -b7 -e0";
const VALUES: &str = "0|1|7|77|x|k|-D|-f|key=x|auid=74|wa|/etc/group|\
    always,exit|never,task|always,exit -D|'-D'|\"a|#|";

/// A rule that loads, and what somebody may put behind it who wants more.
fn line() -> impl Strategy<Value = Vec<u8>> {
    let beginning = prop::sample::select(vec![
        "-w /etc/passwd -p wa",
        "-a always,exit -F arch=b64 -S kexec_load -F auid=77",
        "-A always,exit -F arch=b64 -S kexec_load -F auid=76 -k front",
        "-a always,exclude -F msgtype=CWD -F auid=75",
        "-a always,exit",
        "-w /etc/hosts",
        "",
    ]);
    let odd = prop::sample::select(vec![
        " ", "  ", "\t", " \t", "\t ", "\r", "\x0b", "\x0c", "\0", "\u{a0}", "\u{85}", "\u{3000}",
        "\\ ", "\\", "\"", "'", "\x1b", "\x07", "",
    ]);
    let separator = prop_oneof![4 => Just(" "), 1 => odd];
    let option = prop::sample::select(OPTIONS.split(' ').collect::<Vec<_>>());
    let value = prop::sample::select(VALUES.split('|').collect::<Vec<_>>());
    let tail = prop::collection::vec(
        (
            separator,
            option,
            prop_oneof![9 => Just(" "), 1 => prop::sample::select(vec!["\t", ""])],
            value,
        ),
        0..4,
    );
    // The place at which auditctl cuts a line, and those beside it: before the first option or its value.
    let padding = prop_oneof![12 => Just(None), 1 => (6138usize..6148, 0..2usize).prop_map(Some)];
    (beginning, tail, padding).prop_map(|(beginning, tail, padding)| {
        let mut line = beginning.as_bytes().to_vec();
        for (place, (separator, option, before, value)) in tail.into_iter().enumerate() {
            for (part, text) in
                [format!("{separator}{option}"), format!("{before}{value}")].iter().enumerate()
            {
                match padding {
                    Some((bytes, padded)) if (place, part) == (0, padded) => {
                        line.resize(bytes, b' ')
                    }
                    _ => {}
                }
                line.extend(text.as_bytes());
            }
        }
        line
    })
}

fn file() -> impl Strategy<Value = Vec<u8>> {
    let noise = prop::collection::vec(any::<u8>(), 0..40);
    let line = prop_oneof![20 => line(), 1 => noise];
    let ending = prop::sample::select(vec!["\n", "\r\n", "\n\n"]);
    prop::collection::vec((line, ending), 1..4).prop_map(|lines| {
        let mut bytes = b"-a always,exit -F arch=b64 -S kexec_load -F auid=73\n".to_vec();
        for (line, ending) in lines {
            bytes.extend(line);
            bytes.extend(ending.as_bytes());
        }
        bytes
    })
}

/// Returns true if the bytes could lock this kernel, or make it panic, if they got there.
fn is_dangerous(bytes: &[u8]) -> bool {
    bytes.contains(&b'2') || bytes.windows(3).any(|part| part == b"--l")
}

fn check(
    cases: u32,
    strategy: impl Strategy<Value = Vec<u8>>,
    test: impl Fn(Vec<u8>) -> Result<(), TestCaseError>,
) {
    let config =
        Config { cases, failure_persistence: None, max_shrink_iters: 200, ..Config::default() };
    if let Err(failure) = TestRunner::new(config).run(&strategy, test) {
        panic!("{failure}");
    }
}

#[test]
fn whatever_bytes_are_a_rule_file_the_host_is_as_before() {
    let Some(audit) = Audit::take() else { return };
    let Ok(auditctl) = find_auditctl() else { return skip("audit", "no auditctl here") };
    let host = HostRules::load(&HOST, 1);
    let settings = Settings(audit.status());
    let before = configuration();
    let home = Home::new();
    let loads = std::cell::Cell::new(0);
    check(300, file().prop_filter("may lock this kernel", |bytes| !is_dangerous(bytes)), |bytes| {
        let path = home.file("any.rules", &bytes);
        if let Some(lines) = load(&path, &auditctl) {
            loads.set(loads.get() + 1);
            unload(&lines);
        }
        prop_assert!(
            configuration() == before,
            "changed by {:?}",
            bytes.escape_ascii().to_string()
        );
        Ok(())
    });
    assert!(loads.get() > 60, "hardly any file was loaded: {loads:?}");
    drop(settings);
    host.assert_untouched();
    drop(host);
    audit.assert_restored();
}

/// Writes down what it is given, and does nothing.
fn recorder(home: &Home) -> (PathBuf, PathBuf) {
    let (program, record) = (home.path("auditctl"), home.path("record"));
    let text = format!("#!/bin/sh\nprintf '%s\\0' \"$#\" \"$@\" >> {}\n", record.display());
    fs::write(&program, text).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o700)).unwrap();
    (program, record)
}

#[test]
fn auditctl_is_given_options_of_a_rule_and_nothing_else() {
    let Some(audit) = Audit::take() else { return };
    let home = Home::new();
    let (program, record) = recorder(&home);
    let dangerous = prop::sample::select(vec![
        "-w /etc -k\t -e 2",
        "-w /etc -p wa -f2",
        "-w /etc --loginuid-immutable",
        "-w /etc --l",
        "-e 2",
        "-a always,exit -S all -k -e 2",
        "-w /etc -k\\ -e 2",
    ]);
    let dangerous = (file(), dangerous).prop_map(|(mut bytes, line)| {
        bytes.extend(line.as_bytes());
        bytes
    });
    let runs = std::cell::Cell::new(0);
    check(500, prop_oneof![file(), dangerous], |bytes| {
        let _ = fs::remove_file(&record);
        load(&home.file("any.rules", &bytes), &program);
        let Ok(said) = fs::read_to_string(&record) else { return Ok(()) };
        let mut words = said.split_terminator('\0');
        while let Some(count) = words.next() {
            let arguments: Vec<&str> = words.by_ref().take(count.parse().unwrap()).collect();
            runs.set(runs.get() + 1);
            prop_assert_eq!(arguments.len() % 2, 0, "{:?}", arguments);
            let (options, values): (Vec<_>, Vec<_>) =
                arguments.chunks(2).map(|pair| (pair[0], pair[1])).unzip();
            let is_beginning = |option: &&str| ["-a", "-A", "-w"].contains(option);
            prop_assert!(is_beginning(&options[0]), "{:?}", arguments);
            let is_of_rule = |option: &&str| ["-p", "-k", "-F", "-C", "-S"].contains(option);
            prop_assert!(options[1..].iter().all(is_of_rule), "{:?}", arguments);
            // A tab within a value is part of it, as in the file.
            let is_foreign = |c: char| c.is_control() && c != '\t';
            prop_assert!(!values.iter().any(|value| value.contains(is_foreign)));
        }
        Ok(())
    });
    assert!(runs.get() > 300, "auditctl was hardly ever run: {runs:?}");
    audit.assert_restored();
}

/// An administrator, or another program, changes what `weigh` found; all of it is undone and told.
#[test]
fn what_is_changed_of_a_host_meanwhile_fails_the_experiment_and_is_put_back() {
    let Some(audit) = Audit::take() else { return };
    let host = HostRules::load(&HOST, 1);
    let settings = Settings(audit.status());
    let before = configuration();
    let home = Home::new();
    home.file("my.rules", "-a always,exit -F arch=b64 -S getppid -F auid>=1000\n");
    let mut running = home.start(home.weigh(&[
        "compare",
        "audit:rules=my.rules",
        "-w",
        "getppid",
        "-w",
        "stat",
        "--pairs",
        "500",
    ]));
    home.wait_for_samples(6, &mut running);
    let mut client = Client::open().unwrap();
    for rule in [&host.listed[0], &host.listed[2], host.listed.last().unwrap()] {
        client.delete_rule(rule).unwrap();
    }
    for setting in
        [AuditSetting::Failure(0), AuditSetting::RateLimit(7777), AuditSetting::BacklogWaitTime(77)]
    {
        client.set(setting).unwrap();
    }
    let outcome = running.finish();
    outcome.assert_error(&["changed during the measurement", "No verdict"]);
    assert!(configuration() == before, "{:?} {:?}", configuration().0, before.0);
    drop(settings);
    host.assert_untouched();
    drop(host);
    audit.assert_restored();
}

/// The kernel takes a watch away with the directory that it watches; what is put back after it is put back
/// all the same, and nothing is left to do for `weigh restore`.
#[test]
fn a_rule_that_cannot_be_put_back_keeps_nothing_else_from_it() {
    let Some(audit) = Audit::take() else { return };
    let settings = Settings(audit.status());
    let home = Home::new();
    let watched = home.path("gone/file");
    fs::create_dir(home.path("gone")).unwrap();
    let watch = format!("-w {} -p wa -k gone", watched.display());
    let host = HostRules::load(&[HOST[0], &watch, HOST[2], HOST[4]], 1);
    let before = configuration();
    home.file("my.rules", "-a always,exit -F arch=b64 -S getppid -F auid>=1000\n");
    let arguments = ["compare", "audit:rules=my.rules", "-w", "getppid", "--pairs", "1000"];
    let mut running = home.start(home.weigh(&arguments));
    home.wait_for_samples(6, &mut running);
    fs::remove_dir(home.path("gone")).unwrap();
    let mut client = Client::open().unwrap();
    client.delete_rule(host.listed.last().unwrap()).unwrap();
    for setting in [AuditSetting::RateLimit(7777), AuditSetting::BacklogWaitTime(77)] {
        client.set(setting).unwrap();
    }
    running.finish().assert_error(&["changed during the measurement", "No verdict"]);
    let mut expected = before.1.clone();
    let is_watch = |rule: &Rule| String::from_utf8_lossy(rule.as_bytes()).contains("gone/file");
    expected.retain(|rule| !is_watch(rule));
    assert_eq!(expected.len() + 1, before.1.len());
    assert!(configuration() == (before.0, expected), "{:?} {:?}", configuration().0, before.0);
    let restored = home.run("restore");
    assert!(restored.stdout.contains("Nothing was left behind"), "{}", restored.stdout);
    drop(settings);
    drop(host);
    audit.assert_restored();
}

#[test]
fn the_files_of_the_review_are_refused_by_line() {
    let Some(audit) = Audit::take() else { return };
    let host = HostRules::load(&HOST, 1);
    let settings = Settings(audit.status());
    let before = configuration();
    let home = Home::new();
    let cut = format!("-w /etc/passwd -p wa -k{}-D", " ".repeat(6143 - 23));
    let good = "-a always,exit -F arch=b64 -S getppid -F auid=77\n";
    let long = format!("{good}{cut}\n");
    for (text, said) in [
        ("-w /etc/passwd -p wa -k\t -f 0\n", "`-f` is not valid in a rule; the line has a tab"),
        ("-w /etc/passwd -p wa -k\t -r 77\n", "`-r` is not valid in a rule; the line has a tab"),
        (&*long, "evil.rules:2: this line has 6145 bytes"),
    ] {
        home.file("evil.rules", text);
        for command in [
            &["compare", "audit:rules=evil.rules", "-w", "getppid"][..],
            &["budget", "audit:rules=evil.rules", "-w", "getppid"],
            &["rules", "evil.rules"],
        ] {
            home.run(command).assert_error(&[said]);
            assert!(configuration() == before, "{text}");
        }
    }
    drop(settings);
    host.assert_untouched();
    drop(host);
    audit.assert_restored();
}
