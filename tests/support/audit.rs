//! The kernel's audit configuration as a test finds it, and has to leave it.

use std::time::Duration;

use weighbridge::audit::netlink::Client;
use weighbridge::audit::rule::Rule;
use weighbridge::audit::status::Status;
use weighbridge::treatment::audit::{BASELINE_LOGINUID, TREATED_LOGINUID};

use super::{Turn, is_root, wait_until};

/// The configuration when a test took its turn.
pub struct Audit {
    before: Configuration,
    _turn: Turn,
}

/// What `weigh` has to leave as it was.
#[derive(Clone, Debug, PartialEq)]
struct Configuration {
    enabled: u32,
    failure: u32,
    pid: u32,
    backlog_limit: u32,
    rate_limit: u32,
    backlog_wait_time: u32,
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
            rules: client.rules()?,
        })
    }
}

impl Audit {
    /// A turn at the audit configuration; `None`, with the reason printed, where it cannot be
    /// changed.
    pub fn take() -> Option<Audit> {
        if !is_root() {
            println!("skipped: needs root");
            return None;
        }
        let turn = Turn::take();
        match Configuration::read() {
            Ok(before) => Some(Audit { before, _turn: turn }),
            Err(error) => {
                println!("skipped: no kernel auditing here: {error}");
                None
            }
        }
    }

    /// Everything is as it was, at the latest when the guard has done its work.
    #[track_caller]
    pub fn assert_restored(&self) {
        let mut now = Configuration::read().unwrap();
        wait_until(Duration::from_secs(10), || {
            now = Configuration::read().unwrap();
            now == self.before
        });
        assert_eq!(now, self.before, "the audit configuration was changed");
    }

    /// The status now.
    pub fn status(&self) -> Status {
        Client::open().unwrap().status().unwrap()
    }

    /// Takes away the rule that makes the treated processes' records.
    pub fn remove_treated_rule(&self) {
        remove(&Rule::always_exit(TREATED_LOGINUID, "weigh"));
    }

    /// Takes away the rule that exempts the baseline.
    pub fn remove_baseline_rule(&self) {
        remove(&Rule::never_task(BASELINE_LOGINUID));
    }
}

fn remove(unwanted: &Rule) {
    let mut client = Client::open().unwrap();
    let listed = client.rules().unwrap();
    let rule = listed.iter().find(|rule| rule.same_as(unwanted)).expect("the rule is loaded");
    client.delete_rule(rule).unwrap();
}
