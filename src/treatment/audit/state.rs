//! The audit configuration of a host as it was found, and how it is put back.

use std::collections::BTreeSet;
use std::io;
use std::path::Path;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::probe::{conflict, is_about_ours};
use super::{BASELINE_LOGINUID, needs, system};
use crate::audit::netlink::Client;
use crate::audit::rule::Rule;
use crate::audit::status::{Setting, Status};
use crate::treatment::Error;
use crate::treatment::guard::Guard;

const KIND: &str = "audit";

/// The configuration as it was found, and what was added to it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Snapshot {
    pub status: Status,
    /// In hexadecimal.
    rules: Vec<String>,
    /// The rules that are ours, as the kernel lists them; `None` while a rule file is being loaded,
    /// when all that are not in `rules` are.
    pub added: Option<Vec<String>>,
    /// Whether `enabled`, the limits of the backlog and the audit socket are as we set them, and so
    /// ours to put back.
    pub has_switched: bool,
}

impl Snapshot {
    /// Reads the configuration.
    ///
    /// # Errors
    /// Where it may not be changed.
    pub fn take(client: &mut Client) -> Result<Snapshot, Error> {
        if let Some(why) = conflict(client).map_err(needs)? {
            return Err(Error::Unavailable(why));
        }
        let status = client.status().map_err(needs)?;
        delete_left_behind(client)?;
        let rules = client.rules().map_err(needs)?;
        let rules = rules.iter().map(hex).collect();
        Ok(Snapshot { status, rules, added: Some(Vec::new()), has_switched: false })
    }

    /// Reads it from a journal.
    ///
    /// # Errors
    /// Where the journal was damaged, or holds what no host can have had when we changed it.
    pub fn from_journal(state: &Value) -> Result<Snapshot, String> {
        let snapshot: Snapshot = serde_json::from_value(state.clone())
            .map_err(|error| format!("the audit journal: {error}"))?;
        match snapshot.impossible() {
            None => Ok(snapshot),
            Some(what) => Err(format!("the audit journal: {what}, so it is not put back")),
        }
    }

    /// What of it is not of a host that we change: one that is locked, or panics, is left alone; and what was
    /// there before is none of ours.
    fn impossible(&self) -> Option<String> {
        let Status { enabled, failure, .. } = self.status;
        if enabled > 1 || failure > 1 {
            return Some(format!(
                "`enabled {enabled}`, `failure {failure}` cannot have been found"
            ));
        }
        let added = self.added.as_deref().unwrap_or_default();
        let is_theirs = added.iter().any(|rule| self.rules.contains(rule));
        is_theirs.then(|| "a rule of the host is among ours".into())
    }

    /// Tells the guard how to undo what comes next.
    ///
    /// # Errors
    /// Where the journal cannot be written.
    pub fn write_down(&self, guard: &mut Guard) -> Result<(), Error> {
        let state = serde_json::to_value(self).map_err(system)?;
        guard.write_down(KIND, state).map_err(system)
    }

    /// The process id of an audit daemon that is alive.
    pub fn healthy_daemon(&self) -> Option<u32> {
        let pid = self.status.pid;
        (pid != 0 && is_alive(pid)).then_some(pid)
    }

    /// The rule that exempts the baseline and these, which are as the kernel lists them, in
    /// hexadecimal.
    pub fn ours(rules: impl IntoIterator<Item = Rule>) -> Vec<String> {
        let exemption = Rule::never_task(BASELINE_LOGINUID).listed();
        let ours: BTreeSet<String> =
            std::iter::once(exemption).chain(rules).map(|rule| hex(&rule)).collect();
        ours.into_iter().collect()
    }

    /// Whether these are the rules that were there before, in the same order, and ours.
    pub fn is_all_but_ours(&self, rules: &[Rule]) -> bool {
        let ours = self.added.as_deref().unwrap_or_default();
        let all = rules.iter().map(hex);
        all.filter(|rule| !ours.contains(rule)).eq(self.rules.iter().cloned())
    }

    /// How many rules were there before.
    pub fn host_rules(&self) -> usize {
        self.rules.len()
    }

    /// Those of `rules` that were not there before, in hexadecimal.
    pub fn not_in(&self, rules: &[Rule]) -> Vec<String> {
        rules.iter().map(hex).filter(|rule| !self.rules.contains(rule)).collect()
    }

    /// Puts the configuration back: auditing, the backlog limit, our rules, a dead sink's claim to
    /// the socket. Rules of others are not touched, also when they came later.
    ///
    /// # Errors
    /// A sentence that says what is left.
    pub fn undo(&self) -> Result<(), String> {
        let say = |what: &str, error: io::Error| format!("cannot put back {what}: {error}");
        let mut client = Client::open().map_err(|error| needs(error).to_string())?;
        if self.has_switched && self.healthy_daemon().is_none() {
            // Nobody is to wait for room in a queue that nobody drains: that would take a minute.
            client.set(Setting::BacklogWaitTime(0)).map_err(|error| needs(error).to_string())?;
            wake_waiting(&mut client).map_err(|error| say("the queue", error))?;
        }
        let now = client.status().map_err(|error| needs(error).to_string())?;
        if self.has_switched && now.enabled != self.status.enabled {
            client.set(Setting::Enabled(self.status.enabled)).map_err(|e| say("`enabled`", e))?;
        }
        if self.added.is_none() {
            // An `auditctl` that was started just before the end may still be loading its line.
            std::thread::sleep(Duration::from_millis(200));
        }
        let loaded = client.rules().map_err(|error| say("the rules", error))?;
        let ours = self.added.clone().unwrap_or_else(|| self.not_in(&loaded));
        for rule in loaded.iter().filter(|rule| ours.contains(&hex(rule))) {
            match client.delete_rule(rule) {
                Err(error) if error.raw_os_error() == Some(libc::ENOENT) => {}
                other => other.map_err(|error| say("the rules", error))?,
            }
        }
        if self.has_switched {
            client
                .set(Setting::BacklogLimit(self.status.backlog_limit))
                .map_err(|error| say("the backlog limit", error))?;
        }
        self.release_socket(&mut client).map_err(|error| say("the audit socket", error))?;
        if self.has_switched {
            client
                .set(Setting::BacklogWaitTime(self.status.backlog_wait_time))
                .map_err(|error| say("the backlog wait time", error))?;
        }
        self.check(&mut client, &ours)
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
                client.set(Setting::Pid(std::process::id()))?;
                return client.set(Setting::Pid(0));
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        Ok(()) // an audit daemon that was started meanwhile keeps it
    }

    fn check(&self, client: &mut Client, ours: &[String]) -> Result<(), String> {
        let status = client.status().map_err(|error| needs(error).to_string())?;
        let rules = client.rules().map_err(|error| needs(error).to_string())?;
        let left = rules.iter().filter(|rule| ours.contains(&hex(rule))).count();
        if left > 0 {
            return Err(format!("{left} audit rules of ours are still loaded; see `auditctl -l`"));
        }
        let settings = |s: &Status| (s.enabled, s.backlog_limit, s.backlog_wait_time);
        if self.has_switched && settings(&status) != settings(&self.status) {
            let (enabled, limit, wait) = settings(&self.status);
            return Err(format!(
                "the audit status is not as it was: `auditctl -e {enabled} -b {limit} \
                 --backlog_wait_time {wait}` puts it back"
            ));
        }
        Ok(())
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
fn delete_left_behind(client: &mut Client) -> Result<(), Error> {
    for rule in client.rules().map_err(needs)? {
        if is_about_ours(&rule) {
            client.delete_rule(&rule).map_err(needs)?;
        }
    }
    Ok(())
}

fn is_alive(pid: u32) -> bool {
    Path::new("/proc").join(pid.to_string()).exists()
}

fn hex(rule: &Rule) -> String {
    use std::fmt::Write as _;
    rule.as_bytes().iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_snapshot_survives_its_journal_and_knows_its_own_rules() {
        let before = Rule::never_task(7);
        let snapshot = Snapshot {
            status: Status::default(),
            rules: vec![hex(&before)],
            added: None,
            has_switched: false,
        };
        let journal = serde_json::to_value(&snapshot).unwrap();
        let read = Snapshot::from_journal(&journal).unwrap();
        let ours = Rule::always_exit(8, "weigh").listed();
        assert_eq!(read.not_in(&[before, ours.clone()]), [hex(&ours)]);
        assert!(Snapshot::from_journal(&Value::Null).is_err());
    }

    #[test]
    fn a_journal_that_would_lock_or_panic_the_host_or_take_its_rules_is_refused() {
        let snapshot = |status, added| {
            let rules = vec![hex(&Rule::never_task(7))];
            let snapshot = Snapshot { status, rules, added: Some(added), has_switched: true };
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
