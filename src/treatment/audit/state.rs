//! The audit configuration of a host: what it takes to change it, how it is put back, and what
//! earlier auditing left behind.

use std::io;
use std::path::Path;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{BASELINE_LOGINUID, TREATED_LOGINUID, needs, system};
use crate::audit::netlink::Client;
use crate::audit::rule::Rule;
use crate::audit::status::{Setting, Status};
use crate::treatment::guard::Guard;
use crate::treatment::{Error, Probe};

const KIND: &str = "audit";

/// The configuration as it was found, and what was added to it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Snapshot {
    pub status: Status,
    /// In hexadecimal.
    rules: Vec<String>,
    /// The rules that are ours; `None` while a rule file is being loaded, when all that are not in
    /// `rules` are.
    pub added: Option<Vec<String>>,
    /// Whether `enabled` and the backlog limit are as we set them, and so ours to put back.
    pub has_switched: bool,
}

/// What it takes, found out by asking the kernel and by opening the login uid for writing.
pub fn probe() -> Probe {
    let status = Client::open().and_then(|mut client| client.status());
    match status {
        Err(error) if error.raw_os_error() == Some(libc::EPERM) => {
            Probe::NeedsRoot(needs(error).to_string())
        }
        Err(error) => Probe::Broken(needs(error).to_string()),
        Ok(status) => match refusal(&status) {
            Some(why) => Probe::Conflict(why),
            None if cfg!(any(target_arch = "x86_64", target_arch = "aarch64")) => Probe::Available,
            None => Probe::Broken("auditing is weighed on x86-64 and AArch64 only".into()),
        },
    }
}

/// Configurations that we do not touch.
fn refusal(status: &Status) -> Option<String> {
    match (status.enabled, status.failure) {
        (2, _) => Some("the audit configuration is locked (`enabled 2`) until the next boot".into()),
        (_, 2) => Some(
            "this host panics when an audit record is lost (`failure 2`); set `auditctl -f 1` first".into(),
        ),
        _ => None,
    }
}

impl Snapshot {
    /// Reads the configuration.
    ///
    /// # Errors
    /// Where it may not be changed.
    pub fn take(client: &mut Client) -> Result<Snapshot, Error> {
        let status = client.status().map_err(needs)?;
        if let Some(why) = refusal(&status) {
            return Err(Error::Unavailable(why));
        }
        delete_left_behind(client)?;
        let rules = client.rules().map_err(needs)?;
        if rules.iter().any(Rule::is_never_task) {
            return Err(Error::Unavailable(
                "this host has a rule that exempts processes from auditing when they are started \
                 (`-a never,task`, see `auditctl -l`), so treated processes would not be audited; \
                 remove that rule first"
                    .into(),
            ));
        }
        let rules = rules.iter().map(hex).collect();
        Ok(Snapshot { status, rules, added: Some(Vec::new()), has_switched: false })
    }

    /// Reads it from a journal.
    ///
    /// # Errors
    /// Where the journal was damaged.
    pub fn from_journal(state: &Value) -> Result<Snapshot, String> {
        serde_json::from_value(state.clone()).map_err(|error| format!("the audit journal: {error}"))
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
        if self.healthy_daemon().is_none() {
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
        if self.has_switched && now.backlog_limit != self.status.backlog_limit {
            client
                .set(Setting::BacklogLimit(self.status.backlog_limit))
                .map_err(|error| say("the backlog limit", error))?;
        }
        self.release_socket(&mut client).map_err(|error| say("the audit socket", error))?;
        client
            .set(Setting::BacklogWaitTime(self.status.backlog_wait_time))
            .map_err(|error| say("the backlog wait time", error))?;
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
        if matches!(rule.loginuid(), Some(BASELINE_LOGINUID | TREATED_LOGINUID)) {
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
        let ours = Rule::always_exit(8, "weigh");
        assert_eq!(read.not_in(&[before, ours.clone()]), [hex(&ours)]);
        assert!(Snapshot::from_journal(&Value::Null).is_err());
    }

    #[test]
    fn locked_and_panicking_hosts_are_left_alone() {
        let status = |enabled, failure| Status { enabled, failure, ..Status::default() };
        assert!(refusal(&status(2, 1)).unwrap().contains("locked"));
        assert!(refusal(&status(0, 2)).unwrap().contains("panics"));
        assert_eq!(refusal(&status(1, 1)), None);
    }
}
