//! The kernel's audit configuration as a test finds it, and has to leave it.

use std::path::PathBuf;
use std::time::Duration;

use linux_audit::netlink::Client;
use linux_audit::rule::Rule;
use linux_audit::status::{AuditSetting, Status};
use serde_json::Value;
use weigh_host::undo::claim::{AUDIT, claim};
use weigh_treatment::audit::{BASELINE_LOGINUID, LOGINUIDS, TREATED_LOGINUID};

use super::{Home, Turn, is_root, wait_until};

pub mod auditd;
pub mod host_rules;

/// Set while rules are weighed, so that they are deleted fast.
const RCU_EXPEDITED: &str = "/sys/kernel/rcu_expedited";

/// The configuration when a test took its turn.
pub struct Audit {
    before: Configuration,
    _turn: Turn,
}

/// Configuration that `weigh` has to leave unchanged.
#[derive(Clone, Debug, PartialEq)]
struct Configuration {
    enabled: u32,
    failure: u32,
    pid: u32,
    backlog_limit: u32,
    rate_limit: u32,
    backlog_wait_time: u32,
    /// `/sys/kernel/rcu_expedited`; empty where the kernel has none.
    rcu_expedited: String,
    rules: Vec<Rule>,
}

impl Configuration {
    fn read() -> std::io::Result<Configuration> {
        let mut client = Client::open()?;
        let status = client.status()?;
        Ok(Configuration {
            enabled: status.enabled,
            failure: status.failure,
            pid: status.pid,
            backlog_limit: status.backlog_limit,
            rate_limit: status.rate_limit,
            backlog_wait_time: status.backlog_wait_time,
            rcu_expedited: std::fs::read_to_string(RCU_EXPEDITED).unwrap_or_default(),
            rules: client.rules()?,
        })
    }
}

fn skip(why: &str) -> Option<Audit> {
    super::skip("audit", why);
    None
}

impl Audit {
    /// The audit configuration to itself; `None`, with the reason printed, where it cannot be
    /// changed.
    pub fn take() -> Option<Audit> {
        if !is_root() {
            return skip("needs root");
        }
        let turn = Turn::with("audit");
        // Somebody may be using the program itself on this host.
        let is_free = wait_until(Duration::from_secs(300), || !is_in_use());
        assert!(is_free, "another experiment does not leave the audit configuration alone");
        remove_what_the_dead_left();
        match Configuration::read() {
            Ok(before) => Some(Audit { before, _turn: turn }),
            Err(error) => skip(&format!("no kernel auditing here: {error}")),
        }
    }

    /// Everything is as it was, at the latest when the guard has done its work.
    #[track_caller]
    pub fn assert_restored(&self) {
        let mut now = Configuration::read().unwrap();
        wait_until(Duration::from_secs(50), || {
            now = Configuration::read().unwrap();
            now == self.before
        });
        assert_eq!(now, self.before, "the audit configuration was changed");
    }

    /// Runs `weigh rules` with these arguments, and returns its report; it leaves nothing behind.
    #[track_caller]
    pub fn weigh_rules(&self, home: &Home, arguments: &[&str]) -> Value {
        let outcome = home.run(&[&["rules", "--json", "-"], arguments].concat());
        assert_eq!(outcome.code, Some(0), "{outcome:#?}");
        self.assert_restored();
        assert_eq!(home.leftovers(), Vec::<PathBuf>::new());
        let json = outcome.json();
        let stored = home.json();
        assert!(!json["id"].as_str().unwrap().is_empty(), "{json:#}");
        for part in ["id", "command", "metric", "mix", "notes"] {
            assert_eq!(stored[part], json[part], "what is stored says the same again");
        }
        assert_eq!(
            stored["lines"].as_array().map(Vec::len),
            json["lines"].as_array().map(Vec::len)
        );
        json
    }

    /// The status now.
    pub fn status(&self) -> Status {
        Client::open().unwrap().status().unwrap()
    }

    /// Takes away the rule that makes the treated processes' records.
    pub fn remove_treated_rule(&self) {
        remove(TREATED_LOGINUID, |_| ());
    }

    /// Takes away the rule that exempts the baseline.
    pub fn remove_baseline_rule(&self) {
        remove(BASELINE_LOGINUID, |_| ());
    }

    /// Takes it away and loads it again at once: the list of rules is then as before.
    pub fn remove_and_reload_treated_rule(&self) {
        let rule = Rule::always_exit(TREATED_LOGINUID, "weigh");
        remove(TREATED_LOGINUID, |client| client.add_rule(&rule).unwrap());
    }

    /// As `auditctl -e 0` does.
    pub fn switch_off(&self) {
        let mut client = Client::open().unwrap();
        wake_others(&mut client);
        client.set(AuditSetting::Enabled(0)).unwrap();
    }

    /// Puts `enabled` back where a test, or an audit daemon of a test, changed it.
    pub fn put_back_enabled(&self) {
        Client::open().unwrap().set(AuditSetting::Enabled(self.before.enabled)).unwrap();
    }
}

/// A guard keeps its claim until all is put back.
fn is_in_use() -> bool {
    claim(AUDIT).is_err()
}

/// Rules of ours that nobody claims are of a `weigh` that was killed together with its guard, and its
/// journal may be gone with the directory that it was in.
fn remove_what_the_dead_left() {
    let Ok(mut client) = Client::open() else { return };
    for rule in client.rules().unwrap_or_default() {
        if LOGINUIDS.clone().any(|loginuid| is_about(&rule, loginuid)) {
            println!("removing a rule that a dead experiment left: {rule:?}");
            client.delete_rule(&rule).unwrap();
        }
    }
}

/// Returns true if a listed rule has this login uid among its values.
fn is_about(rule: &Rule, loginuid: u32) -> bool {
    rule.as_bytes().chunks_exact(4).any(|word| word == loginuid.to_ne_bytes())
}

fn remove(loginuid: u32, then: impl Fn(&mut Client)) {
    let mut client = Client::open().unwrap();
    let listed = client.rules().unwrap();
    let rule = listed.iter().find(|rule| is_about(rule, loginuid)).expect("the rule is loaded");
    client.delete_rule(rule).unwrap();
    then(&mut client);
    wake_others(&mut client);
}

/// Our requests may have waited for room in the kernel's queue, and whoever waited behind us is
/// woken only by another record.
fn wake_others(client: &mut Client) {
    for _ in 0..5 {
        client.send_text("weigh test").unwrap();
        std::thread::sleep(Duration::from_millis(5));
    }
}
