//! The audit configuration of a host as it was found, and how it is put back.

use std::collections::BTreeSet;
use std::io;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::probe::{conflict, is_about_ours};
use super::{BASELINE_LOGINUID, needs, system};
use crate::TreatmentError;
use linux_audit::config_diff;
use linux_audit::features::Features;
use linux_audit::netlink::Client;
use linux_audit::rule::Rule;
use linux_audit::status::{AuditSetting, Status};
use weigh_host::machine::process::process_start;
use weigh_host::undo::guard::Guard;

const KIND: &str = "audit";
/// The kernel has one configuration, whichever arms share it.
const INSTANCE: &str = "the kernel's";

/// The configuration as it was found, and what was added to it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Snapshot {
    pub status: Status,
    /// `None` where the kernel knows none.
    features: Option<Features>,
    /// In hexadecimal.
    rules: Vec<String>,
    /// The rules that are ours, as the kernel lists them; `None` while a rule file is being loaded,
    /// when all that are not in `rules` are.
    pub added: Option<Vec<String>>,
    /// True if auditing is set by us, so that all of it is ours to put back.
    pub has_switched: bool,
}

impl Snapshot {
    pub fn take(client: &mut Client) -> Result<Snapshot, TreatmentError> {
        if let Some(why) = conflict(client).map_err(needs)? {
            return Err(TreatmentError::Unavailable(why));
        }
        let status = client.status().map_err(needs)?;
        delete_left_behind(client)?;
        let features = client.features().ok();
        let rules = client.rules().map_err(needs)?;
        let rules = rules.iter().map(hex).collect();
        Ok(Snapshot { status, features, rules, added: Some(Vec::new()), has_switched: false })
    }

    pub fn from_journal(state: &Value) -> Result<Snapshot, String> {
        let snapshot: Snapshot = serde_json::from_value(state.clone())
            .map_err(|error| format!("cannot read the audit journal: {error}"))?;
        match snapshot.impossible() {
            None => Ok(snapshot),
            Some(what) => Err(format!(
                "the audit journal is damaged ({what}): weigh does not restore from it; check `auditctl \
                 -s` and `auditctl -l`"
            )),
        }
    }

    /// Returns the property that no host has when we change it, if the snapshot has one.
    ///
    /// We leave a host alone that is locked or panics. Rules that were there before are never ours.
    fn impossible(&self) -> Option<String> {
        let Status { enabled, failure, .. } = self.status;
        if enabled > 1 || failure > 1 {
            return Some(format!("weigh never stores `enabled {enabled}`, `failure {failure}`"));
        }
        let added = self.added.as_deref().unwrap_or_default();
        let is_theirs = added.iter().any(|rule| self.rules.contains(rule));
        is_theirs.then(|| "a rule of the host is listed as weigh's".into())
    }

    /// Tells the guard how to undo what comes next.
    pub fn write_down(&self, guard: &mut Guard) -> Result<(), TreatmentError> {
        let state = serde_json::to_value(self).map_err(system)?;
        guard.write_down(KIND, INSTANCE, state).map_err(system)
    }

    /// Has the guard undo what was written down.
    pub fn put_back(guard: &mut Guard) -> Result<(), TreatmentError> {
        guard.undo(KIND, INSTANCE).map_err(TreatmentError::Unavailable)
    }

    /// The process id of an audit daemon that is alive.
    pub fn healthy_daemon(&self) -> Option<u32> {
        let pid = self.status.pid;
        (pid != 0 && is_alive(pid)).then_some(pid)
    }

    /// The rules that exempt the baseline, and these, which are as the kernel lists them, in
    /// hexadecimal.
    pub fn ours(rules: impl IntoIterator<Item = Rule>) -> Vec<String> {
        let exemptions =
            [Rule::never_task, Rule::never_user].map(|rule| rule(BASELINE_LOGINUID).listed());
        let ours: BTreeSet<String> =
            exemptions.into_iter().chain(rules).map(|rule| hex(&rule)).collect();
        ours.into_iter().collect()
    }

    /// Returns true if these are the rules that were there before, in the same order, and ours.
    pub fn is_all_but_ours(&self, rules: &[Rule]) -> bool {
        let ours = self.added.as_deref().unwrap_or_default();
        let all = rules.iter().map(hex);
        all.filter(|rule| !ours.contains(rule)).eq(self.rules.iter().cloned())
    }

    /// Returns true if this host records something that rules of ours could take from it.
    pub fn is_audited(&self) -> bool {
        self.status.enabled != 0 || !self.rules.is_empty() || self.healthy_daemon().is_some()
    }

    /// Checks that loading rules changed nothing else.
    ///
    /// Every setting is as it was `before` the loading. Everything that we do not set is as it was found.
    pub fn check_loaded(&self, client: &mut Client, before: &Status) -> Result<(), TreatmentError> {
        let now = client.status().map_err(needs)?;
        self.check_changes(client, config_diff::settings(before, &now))
    }

    /// Checks that everything that we do not set is as it was found, even if other rules are loaded.
    ///
    /// It checks the failure mode, the rate limit, the features, and the rules of the host, in order.
    pub fn check_host(&self, client: &mut Client) -> Result<(), TreatmentError> {
        self.check_changes(client, Vec::new())
    }

    fn check_changes(
        &self,
        client: &mut Client,
        mut changes: Vec<String>,
    ) -> Result<(), TreatmentError> {
        let now = client.status().map_err(needs)?;
        let found = Status { failure: now.failure, rate_limit: now.rate_limit, ..self.status };
        for change in config_diff::settings(&self.status, &found) {
            if !changes.contains(&change) {
                changes.push(change);
            }
        }
        if client.features().ok() != self.features {
            changes.push("the features that restrict login uids differ".into());
        }
        let rules = client.rules().map_err(needs)?;
        changes.extend(config_diff::rules(&self.host(), &rules));
        if changes.is_empty() {
            return Ok(());
        }
        Err(TreatmentError::NotInForce(format!(
            "the audit configuration of this host changed during the experiment: {}. weigh restores all \
             of it, including changes that others made",
            changes.join("; ")
        )))
    }

    /// The rules that were there before.
    pub fn host(&self) -> Vec<Rule> {
        self.rules.iter().map(|rule| Rule::from_bytes(unhex(rule))).collect()
    }

    /// How many rules were there before.
    pub fn host_rules(&self) -> usize {
        self.rules.len()
    }

    /// Returns the members of `rules` that were not there before, in hexadecimal.
    pub fn not_in(&self, rules: &[Rule]) -> Vec<String> {
        rules.iter().map(hex).filter(|rule| !self.rules.contains(rule)).collect()
    }

    /// Puts the configuration back: our rules go, and where auditing was switched, every setting and every
    /// rule of the host is as it was found. Rules of others that came later are not touched. A step that
    /// fails keeps none of the others from being done.
    pub fn undo(&self) -> Result<(), String> {
        let mut client = Client::open().map_err(|error| needs(error).to_string())?;
        let mut steps = Steps::default();
        if self.has_switched && self.healthy_daemon().is_none() {
            // Nobody is to wait for room in a queue that nobody drains: that would take a minute.
            steps.set(&mut client, AuditSetting::BacklogWaitTime(0), "the backlog wait time");
            steps.note("the queue", wake_waiting(&mut client));
        }
        let now = steps.note("the status", client.status()).unwrap_or_default();
        if self.has_switched && now.enabled != self.status.enabled {
            steps.set(&mut client, AuditSetting::Enabled(self.status.enabled), "`enabled`");
        }
        let ours = self.delete_ours(&mut client, &mut steps);
        let mut gone = Vec::new();
        if self.has_switched {
            let put_back = config_diff::put_back_rules(&mut client, &self.host());
            gone = steps.note("the rules of this host", put_back).unwrap_or_default();
            self.put_back_settings(&mut client, &now, &mut steps);
        }
        steps.note("the audit socket", self.release_socket(&mut client));
        if self.has_switched {
            let wait = AuditSetting::BacklogWaitTime(self.status.backlog_wait_time);
            steps.set(&mut client, wait, "the backlog wait time");
        }
        steps.end()?;
        self.check(&mut client, &ours, &gone)
    }

    /// Unloads the rules that are ours, which it gives.
    fn delete_ours(&self, client: &mut Client, steps: &mut Steps) -> Vec<String> {
        let loaded = steps.note("the rules", client.rules()).unwrap_or_default();
        let ours = self.added.clone().unwrap_or_else(|| self.not_in(&loaded));
        for rule in loaded.iter().filter(|rule| ours.contains(&hex(rule))) {
            match client.delete_rule(rule) {
                Err(error) if error.raw_os_error() == Some(libc::ENOENT) => {}
                other => drop(steps.note("the rules without weigh's", other)),
            }
        }
        ours
    }

    /// All but those that others may wait for: `enabled` comes before, the wait time after.
    fn put_back_settings(&self, client: &mut Client, now: &Status, steps: &mut Steps) {
        let was = &self.status;
        steps.set(client, AuditSetting::BacklogLimit(was.backlog_limit), "the backlog limit");
        if now.failure != was.failure {
            steps.set(client, AuditSetting::Failure(was.failure), "the failure mode");
        }
        if now.rate_limit != was.rate_limit {
            steps.set(client, AuditSetting::RateLimit(was.rate_limit), "the rate limit");
        }
        if let Some(features) = self.features
            && client.features().ok() != self.features
        {
            let what = "the audit features (locked ones stay until a reboot)";
            steps.note(what, client.set_features(features));
        }
    }

    /// Our sink leaves the socket when it ends; one that was killed is still registered until the
    /// next record. Taking its place and leaving clears that.
    fn release_socket(&self, client: &mut Client) -> io::Result<()> {
        const ATTEMPTS: u32 = 40;
        for _ in 0..ATTEMPTS {
            let holder = client.status()?.pid;
            if holder == self.status.pid || holder == 0 {
                return Ok(());
            }
            if !is_alive(holder) {
                client.set(AuditSetting::Pid(std::process::id()))?;
                return client.set(AuditSetting::Pid(0));
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        Ok(()) // an audit daemon that was started meanwhile keeps it
    }

    /// Checks that all is as it was, except for the rules in `gone`.
    ///
    /// These are gone with the files that they watched.
    fn check(&self, client: &mut Client, ours: &[String], gone: &[Rule]) -> Result<(), String> {
        let status = client.status().map_err(|error| needs(error).to_string())?;
        let rules = client.rules().map_err(|error| needs(error).to_string())?;
        let left = rules.iter().filter(|rule| ours.contains(&hex(rule))).count();
        if left > 0 {
            return Err(format!(
                "audit rules of weigh that are still loaded: {left}. List them with `auditctl -l`, delete \
                 them with `auditctl -d`"
            ));
        }
        if !self.has_switched {
            return Ok(());
        }
        // Of the process that receives records, `release_socket` has said what there is to say.
        let changed =
            config_diff::settings(&self.status, &Status { pid: self.status.pid, ..status });
        if !changed.is_empty() {
            let Status { enabled, failure, rate_limit, backlog_limit, .. } = self.status;
            return Err(format!(
                "the audit status differs from before the experiment ({}): restore it with `auditctl -e \
                 {enabled} -f {failure} -r {rate_limit} -b {backlog_limit} --backlog_wait_time {}`",
                changed.join("; "),
                self.status.backlog_wait_time
            ));
        }
        let mut host = self.host();
        host.retain(|rule| !gone.contains(rule));
        config_diff::rules(&host, &rules).map_or(Ok(()), |changed| {
            Err(format!(
                "the audit rules of this host differ from before the experiment ({changed}): reload \
                 them, for example with `augenrules --load`"
            ))
        })
    }
}

/// Failures so far in putting the configuration back.
#[derive(Default)]
struct Steps(Vec<String>);

impl Steps {
    fn note<T>(&mut self, what: &str, result: io::Result<T>) -> Option<T> {
        result.map_err(|error| self.0.push(format!("cannot restore {what}: {error}"))).ok()
    }

    fn set(&mut self, client: &mut Client, setting: AuditSetting, what: &str) {
        self.note(what, client.set(setting));
    }

    fn end(self) -> Result<(), String> {
        if self.0.is_empty() { Ok(()) } else { Err(self.0.join("; ")) }
    }
}

/// Whenever the kernel has emptied its queue, it wakes one of the processes that wait for room in it.
/// One that waits to make a record makes it, and so has the next woken; one that waits because of a
/// request, as a sink that leaves, does not, and the others sleep on. So we make some records.
fn wake_waiting(client: &mut Client) -> io::Result<()> {
    const RECORDS: u32 = 3;
    const LOOKS: u32 = 100;
    for _ in 0..RECORDS {
        client.send_text("weigh puts the audit configuration back")?;
        for _ in 0..LOOKS {
            if client.status()?.backlog == 0 {
                break;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }
    Ok(())
}

/// Rules for our login uids are of an experiment whose journal was lost, or written elsewhere.
fn delete_left_behind(client: &mut Client) -> Result<(), TreatmentError> {
    for rule in client.rules().map_err(needs)? {
        if is_about_ours(&rule) {
            client.delete_rule(&rule).map_err(needs)?;
        }
    }
    Ok(())
}

/// One that cannot be seen has not ended.
fn is_alive(pid: u32) -> bool {
    !matches!(process_start(pid), Ok(None))
}

fn hex(rule: &Rule) -> String {
    use std::fmt::Write as _;
    rule.as_bytes().iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// Reads the output of [`hex`]; stops at the first part of another text that is not hexadecimal.
fn unhex(text: &str) -> Vec<u8> {
    let digits = text.as_bytes().chunks_exact(2);
    digits.map_while(|pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_snapshot_survives_its_journal_and_knows_its_own_rules() {
        let before = Rule::never_task(7);
        let snapshot = Snapshot {
            status: Status::default(),
            features: None,
            rules: vec![hex(&before)],
            added: None,
            has_switched: false,
        };
        let journal = serde_json::to_value(&snapshot).unwrap();
        let read = Snapshot::from_journal(&journal).unwrap();
        let ours = Rule::always_exit(8, "weigh").listed();
        assert_eq!(read.host(), std::slice::from_ref(&before));
        assert_eq!(read.not_in(&[before, ours.clone()]), [hex(&ours)]);
        assert!(Snapshot::from_journal(&Value::Null).is_err());
        assert!(unhex("zz").is_empty() && unhex("0f\u{e9}") == [15]);
    }

    #[test]
    fn a_journal_that_would_lock_or_panic_the_host_or_take_its_rules_is_refused() {
        let snapshot = |status, added| {
            let rules = vec![hex(&Rule::never_task(7))];
            let snapshot =
                Snapshot { status, features: None, rules, added: Some(added), has_switched: true };
            Snapshot::from_journal(&serde_json::to_value(&snapshot).unwrap())
        };
        let status = |enabled, failure| Status { enabled, failure, ..Status::default() };
        assert!(snapshot(status(1, 1), vec![hex(&Rule::never_task(8))]).is_ok());
        assert!(snapshot(status(2, 1), vec![]).unwrap_err().contains("enabled 2"));
        assert!(snapshot(status(1, 2), vec![]).unwrap_err().contains("failure 2"));
        let theirs = vec![hex(&Rule::never_task(7))];
        assert!(snapshot(status(1, 1), theirs).unwrap_err().contains("rule of the host"));
    }
}
