//! Rule files as people have them, loaded into this very kernel: every line is accounted for, every
//! rule is known by the kernel's own bytes, and nothing stays loaded.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use crate::support::audit::Audit;
use crate::support::{Home, skip};
use linux_audit::netlink::Client;
use linux_audit::rewrite::proposals;
use linux_audit::rule::Rule;
use linux_audit::rule_load::{Watcher, find_auditctl};
use linux_audit::rule_set::{LineOutcome, RuleLine, RuleSet};

const DEBIAN: &str = "/usr/share/doc/auditd/examples/rules";

/// Rules loaded by a test, which go when it ends, however it ends.
struct Loaded {
    before: Vec<Rule>,
    lines: Vec<RuleLine>,
    progress: Vec<(usize, usize)>,
}

impl Loaded {
    fn load(paths: &[PathBuf]) -> Option<Loaded> {
        let Ok(auditctl) = find_auditctl() else {
            skip("audit", "no auditctl here");
            return None;
        };
        let set = RuleSet::read(paths).unwrap();
        let mut client = Client::open().unwrap();
        let before = client.rules().unwrap();
        let mut loaded = Loaded { before, lines: Vec::new(), progress: Vec::new() };
        let mut progress = Vec::new();
        let mut watcher = Watcher {
            progress: &mut |done, lines| progress.push((done, lines)),
            is_interrupted: &|| false,
            run: &|mut command| command.output(),
        };
        let lines = set.load(&auditctl, &mut client, &mut watcher);
        loaded.lines = lines.unwrap();
        loaded.progress = progress;
        Some(loaded)
    }

    fn new_rules(&self) -> Vec<Rule> {
        let listed = Client::open().unwrap().rules().unwrap();
        listed.into_iter().filter(|rule| !self.before.contains(rule)).collect()
    }

    /// Every rule that came belongs to one line, and every line has what it says.
    #[track_caller]
    fn assert_accounted_for(&self) {
        let bytes = |rules: &mut dyn Iterator<Item = &Rule>| -> BTreeSet<Vec<u8>> {
            rules.map(|rule| rule.as_bytes().to_vec()).collect()
        };
        let of_lines = bytes(&mut self.lines.iter().flat_map(|line| &line.rules));
        let of_kernel = bytes(&mut self.new_rules().iter());
        assert!(of_lines == of_kernel, "{} of {} rules", of_lines.len(), of_kernel.len());
        let mut owned = 0;
        for line in &self.lines {
            assert_eq!(line.outcome == LineOutcome::Loaded, !line.rules.is_empty(), "{line:?}");
            owned += line.rules.len();
            line.rules.iter().for_each(|rule| assert_belongs(rule, line));
        }
        assert_eq!(owned, of_kernel.len());
    }

    fn outcomes(&self) -> Vec<&LineOutcome> {
        self.lines.iter().map(|line| &line.outcome).collect()
    }
}

impl Drop for Loaded {
    fn drop(&mut self) {
        let mut client = Client::open().unwrap();
        // Every deletion waits for a grace period: two minutes for ten thousand.
        let expedited = "/sys/kernel/rcu_expedited";
        let was = fs::read_to_string(expedited).unwrap();
        fs::write(expedited, "1").unwrap();
        for rule in self.new_rules() {
            client.delete_rule(&rule).unwrap();
        }
        fs::write(expedited, was.trim()).unwrap();
    }
}

/// The rule's key and path are words of the line.
#[track_caller]
fn assert_belongs(rule: &Rule, line: &RuleLine) {
    for text in rule.decode().fields.iter().filter_map(|field| field.text.as_deref()) {
        assert!(line.text.contains(text), "`{text}` is not in {line:?}");
    }
}

fn debian(names: &[&str]) -> Option<Vec<PathBuf>> {
    let paths: Vec<PathBuf> = names.iter().map(|name| Path::new(DEBIAN).join(name)).collect();
    if paths.iter().all(|path| path.exists()) {
        return Some(paths);
    }
    skip("audit", &format!("{DEBIAN} lacks {names:?}"));
    None
}

#[test]
fn every_line_of_the_rule_sets_of_debian_is_accounted_for() {
    let Some(audit) = Audit::take() else { return };
    for names in [
        &["30-stig.rules"][..],
        &["30-pci-dss-v31.rules"],
        &["30-nispom.rules"],
        &[
            "30-ospp-v42.rules",
            "30-ospp-v42-1-create-failed.rules",
            "30-ospp-v42-4-delete-failed.rules",
        ],
    ] {
        let Some(paths) = debian(names) else { continue };
        let Some(loaded) = Loaded::load(&paths) else { return };
        loaded.assert_accounted_for();
        let count = loaded.lines.iter().filter(|line| line.outcome == LineOutcome::Loaded).count();
        assert!(count >= 20, "{count} rules of {names:?}: {:#?}", loaded.outcomes());
        let written: usize = paths.iter().map(|path| written_lines(path)).sum();
        assert_eq!(loaded.lines.len(), written, "{names:?}");
        assert_eq!(loaded.progress.last(), Some(&(written, written)));
        drop(loaded);
        audit.assert_restored();
    }
}

fn written_lines(path: &Path) -> usize {
    let text = fs::read_to_string(path).unwrap();
    let is_said = |line: &&str| !line.trim().is_empty() && !line.trim().starts_with('#');
    text.lines().filter(is_said).count()
}

#[test]
fn every_rule_is_removed_and_added_again_without_auditctl() {
    let Some(audit) = Audit::take() else { return };
    let home = Home::new();
    home.file(
        "order.rules",
        "-a always,exit -S getppid -F auid=71 -k a\n-A always,exit -S getppid -F auid=72 -k b\n\
         -w /etc/passwd -p wa -k c\n-a never,exclude -F msgtype=CWD\n-A always,exit -S getppid -F auid=73\n\
         -a never,filesystem -F fstype=tracefs\n-a always,exit -F dir=/etc -F perm=wa -F auid=74 -k d\n",
    );
    let Some(loaded) = Loaded::load(&[home.directory.path().join("order.rules")]) else { return };
    loaded.assert_accounted_for();
    assert!(loaded.lines.iter().all(|line| line.rules.len() == 1), "{:#?}", loaded.outcomes());
    let listed = loaded.new_rules();
    let mut client = Client::open().unwrap();
    let rules =
        || loaded.lines.iter().flat_map(|line| line.rules.iter().map(move |rule| (line, rule)));
    rules().for_each(|(_, rule)| client.delete_rule(rule).unwrap());
    assert!(loaded.new_rules().is_empty());
    for (line, rule) in rules() {
        let rule = if line.is_prepended { rule.prepended() } else { rule.clone() };
        client.add_rule(&rule).unwrap();
    }
    assert!(loaded.new_rules() == listed, "another order, or other bytes");
    drop(loaded);
    audit.assert_restored();
}

#[test]
fn what_is_wrong_with_a_line_is_said_in_words() {
    let Some(audit) = Audit::take() else { return };
    let home = Home::new();
    let long = "x".repeat(6000);
    let lines = [
        ("-w /etc/passwd -p wa -k twice".to_owned(), ""),
        ("-w  /etc/passwd  -p wa  -k twice".into(), "the same as line 1"),
        ("-a always,exit -S getppid -F auid=nosuchuser".into(), "Unknown user: nosuchuser"),
        ("-a always,exit -S no_such_call".into(), "Syscall name unknown: no_such_call"),
        ("-a always,exit -S getppid -F nosuch=1".into(), "unknown field: nosuch"),
        ("-a always,exit -S getppid -F dir=/nonexistent/d".into(), "does not exist"),
        ("-w /etc/hosts -p wa -D".into(), "`-D` is not valid in a rule"),
        ("-w relative".into(), "The path must start with '/'"),
        ("-a always".into(), "always"),
        (format!("-w /{long} -p wa"), ""),
        ("-w {{ path }} -p wa -k x".into(), "it has a template placeholder"),
        ("echo done".into(), "it is a line of a shell script"),
        ("-w /etc/group -p wa\t-k x".into(), "`x` is not valid in a rule; the line has a tab"),
        ("-w /etc/group -p wa -k tab\tin".into(), ""),
        ("-a always,exit -S getppid -F auid=75 -k last".into(), ""),
    ];
    let text: Vec<&str> = lines.iter().map(|(text, _)| text.as_str()).collect();
    home.file("bad.rules", text.join("\r\n"));
    let Some(loaded) = Loaded::load(&[home.directory.path().join("bad.rules")]) else { return };
    loaded.assert_accounted_for();
    for (line, (_, said)) in loaded.lines.iter().zip(&lines) {
        match &line.outcome {
            LineOutcome::Refused(reason) => {
                assert!(reason.contains(said), "{reason}: {}", line.text)
            }
            outcome => assert!(*outcome == LineOutcome::Loaded && said.is_empty(), "{line:?}"),
        }
    }
    let outcomes = loaded.outcomes();
    assert!(matches!(outcomes[9], LineOutcome::Refused(_)), "{:?}", outcomes[9]);
    assert_eq!([outcomes[0], outcomes[13], outcomes[14]], [&LineOutcome::Loaded; 3]);
    let tab = "so the value of `-k` contains a tab: `tab\\tin`. Replace the tab with a space";
    assert!(loaded.lines[13].warnings[0].ends_with(tab), "{:?}", loaded.lines[13]);
    drop(loaded);
    audit.assert_restored();
}

#[test]
fn another_spelling_of_a_line_is_told_from_a_rule_of_the_host() {
    let Some(audit) = Audit::take() else { return };
    let home = Home::new();
    let path = |name: &str| vec![home.directory.path().join(name)];
    home.file("host.rules", "-a always,exit -F path=/etc/hosts -F perm=wa -F key=host\n");
    home.file(
        "twice.rules",
        "-a always,exit -S getppid -F auid!=unset -k a\n-w /etc/passwd -p wa -k id\n\
         -A always,exit -S getppid -F auid=78 -k first\n-w /etc/hosts -p wa -k host\n\
         -a always,exit -S getppid -F auid!=4294967295 -k a\n\
         -a always,exit -F path=/etc/passwd -F perm=wa -F key=id\n",
    );
    let Some(host) = Loaded::load(&path("host.rules")) else { return };
    let loaded = Loaded::load(&path("twice.rules")).unwrap();
    loaded.assert_accounted_for();
    let same_as = |line| LineOutcome::Refused(format!("the same as line {line}"));
    let [loaded_here, present] = [LineOutcome::Loaded, LineOutcome::Present];
    let expected = [&loaded_here, &loaded_here, &loaded_here, &present, &same_as(1), &same_as(2)];
    assert_eq!(loaded.outcomes(), expected);
    let keys: Vec<String> = loaded
        .new_rules()
        .iter()
        .map(|rule| rule.decode().fields.last().and_then(|field| field.text.clone()).unwrap())
        .collect();
    assert_eq!(keys, ["first", "a", "id"], "the order in which they were loaded");
    drop(loaded);
    drop(host);
    audit.assert_restored();
}

#[test]
fn every_rewrite_is_accepted() {
    let Some(audit) = Audit::take() else { return };
    let home = Home::new();
    let file = home.directory.path().join("rewritten.rules");
    home.file(
        "slow.rules",
        "-w /etc/ -p rwxa -k all\n-a always,exit -F dir=/usr -F perm=wa -F auid>=1000 -k usr\n\
         -a always,exit -F arch=b64 -S getppid -F exe=/bin/true -F auid=76 -k exe\n\
         -a always,exit -F arch=b64 -S getpid -F exe=/bin/true -F auid=76 -k exe\n\
         -a always,exit -S all -F auid=77\n",
    );
    let slow = home.directory.path().join("slow.rules");
    let Some(loaded) = Loaded::load(std::slice::from_ref(&slow)) else { return };
    let proposals = proposals(&loaded.lines, &[], &[("read", 0), ("futex", 202), ("openat", 257)]);
    drop(loaded);
    let is_x86 = cfg!(target_arch = "x86_64");
    assert_eq!(proposals.len(), if is_x86 { 7 } else { 4 }, "{proposals:#?}");
    for proposal in &proposals {
        home.file("rewritten.rules", proposal.with.join("\n"));
        let loaded = Loaded::load(std::slice::from_ref(&file)).unwrap();
        loaded.assert_accounted_for();
        let outcomes = loaded.outcomes();
        assert!(outcomes.iter().all(|o| **o == LineOutcome::Loaded), "{proposal:#?}: {outcomes:?}");
        assert_eq!(outcomes.len(), proposal.with.len());
    }
    let exemption = proposals.last().unwrap();
    assert_eq!(exemption.with, ["-A never,exit -F arch=b64 -S read,futex"], "openat is needed");
    audit.assert_restored();
}

#[test]
fn two_thousand_rules_are_loaded_and_all_known() {
    let Some(audit) = Audit::take() else { return };
    let home = Home::new();
    let rules: String =
        (0..2_000).map(|n| format!("-a always,exit -F arch=b64 -S getppid -F a0={n}\n")).collect();
    home.file("many.rules", rules);
    let Some(loaded) = Loaded::load(&[home.directory.path().join("many.rules")]) else { return };
    loaded.assert_accounted_for();
    assert_eq!(loaded.new_rules().len(), 2_000);
    let values: Vec<u32> =
        loaded.lines.iter().map(|line| line.rules[0].decode().fields[1].number).collect();
    assert!(values.iter().copied().eq(0..2_000), "rules were taken for those of other lines");
    drop(loaded);
    audit.assert_restored();
}

#[test]
fn files_that_are_none_are_named() {
    let home = Home::new();
    let fifo = home.directory.path().join("pipe.rules");
    rustix::fs::mkfifoat(rustix::fs::CWD, &fifo, rustix::fs::Mode::RUSR).unwrap();
    fs::create_dir(home.directory.path().join("bare")).unwrap();
    home.file("zip.rules", b"\x1f\x8b\x08\x00");
    home.file("nul.rules", b"-w /etc/passwd\n-w /etc/sha\0dow\n");
    home.file("include.rules", "include 30-stig.rules\n");
    for (name, said) in [
        ("pipe.rules", "not a regular file"),
        ("bare", "no file `*.rules`"),
        ("zip.rules", "gunzip"),
        ("nul.rules", "nul.rules:2"),
        ("include.rules", "line 1: `auditctl` cannot include a file"),
        ("/dev/zero", "not a regular file"),
    ] {
        home.run(&["compare", &format!("audit:rules={name}"), "-w", "getppid"])
            .assert_error(&[name, said]);
    }
}
