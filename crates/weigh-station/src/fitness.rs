//! Checks of the machine, for `weigh doctor` and for the report of every experiment.

use std::path::{Path, PathBuf};

use linux_audit::netlink::Client;
use linux_audit::status::Status;
use weigh_host::machine::probes::AuditProbe;
use weigh_host::machine::{Probes, audit_contexts, check, disk_speed, hardware_speed};
use weigh_model::facts::Facts;
use weigh_model::result::warning::Warning;
use weigh_treatment::guest;

/// The machine as a report has it, with what is worth knowing of it; and what disturbs a measurement now.
/// `scratch` is [`Facts::scratch`].
pub fn look(scratch: Option<String>, data_directory: &Path) -> (Facts, Vec<Warning>, AuditSeen) {
    let disk = disk_speed::known(data_directory, &std::env::temp_dir());
    let mut machine = Facts { scratch, disk, ..weigh_host::machine::facts::read() };
    machine.hardware = hardware_speed::known(data_directory, &machine);
    let probes = probe(data_directory);
    let findings = check::check(&machine, &probes);
    machine.worth_knowing = check::worth_knowing(&findings);
    let audit =
        AuditSeen { enabled: probes.audit.map(|it| it.enabled), contexts: probes.audit_contexts };
    (machine, check::warnings(&findings), audit)
}

/// The state of auditing at one moment, as far as it affects baselines; `None` is unknown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AuditSeen {
    enabled: Option<u32>,
    contexts: Option<bool>,
}

impl AuditSeen {
    /// The state after this one. Contexts are looked for only if there were none: they stay until the next
    /// boot, and the check takes time.
    pub fn later(self) -> AuditSeen {
        let had_none = self.contexts == Some(false);
        AuditSeen {
            enabled: audit_status().map(|status| status.enabled),
            contexts: if had_none { audit_contexts::are_made() } else { self.contexts },
        }
    }

    /// The change from this state to `now`, `None` if unchanged.
    /// If `is_ours`, this process had auditing on meanwhile.
    pub fn changed_to(self, now: AuditSeen, is_ours: bool) -> Option<Warning> {
        let on = |seen: AuditSeen| seen.enabled.map(|enabled| enabled > 0);
        let change = match (on(self).zip(on(now)), self.contexts.zip(now.contexts)) {
            (Some((false, true)), _) => "switched on",
            (Some((true, false)), _) => "switched off",
            (_, Some((false, true))) if !is_ours => "switched on for a time",
            _ => return None,
        };
        Some(Warning::AuditingChanged { change: change.into() })
    }
}

fn audit_status() -> Option<Status> {
    Client::open().and_then(|mut client| client.status()).ok()
}

/// Tries what reading a file does not show: the audit status, which the crate `weigh-host` does not know, and
/// the free space for workloads and for a database in this directory.
pub fn probe(data_directory: &Path) -> Probes {
    let audit =
        audit_status().map(|status| AuditProbe { enabled: status.enabled, daemon_pid: status.pid });
    let mut places = vec![std::env::temp_dir(), existing(data_directory)];
    places.dedup();
    Probes { audit, guests_lack: Some(guest::lacking()), ..Probes::read(&places) }
}

/// The directory that holds what does not exist yet.
fn existing(directory: &Path) -> PathBuf {
    let ancestor = directory.ancestors().find(|ancestor| ancestor.exists()).map(PathBuf::from);
    ancestor.filter(|found| !found.as_os_str().is_empty()).unwrap_or_else(|| ".".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_room_is_that_of_the_scratch_directory_and_of_the_database() {
        let directory = tempfile::tempdir().unwrap();
        let probes = probe(&directory.path().join("not/yet"));
        let places: Vec<PathBuf> = probes.space.into_iter().map(|space| space.place).collect();
        assert_eq!(places, [std::env::temp_dir(), directory.path().to_owned()]);
        assert_eq!(existing(Path::new("no-such-directory")), Path::new("."));
    }

    #[test]
    fn what_others_do_to_auditing_meanwhile_is_told() {
        let seen =
            |enabled, contexts| AuditSeen { enabled: Some(enabled), contexts: Some(contexts) };
        let (never, off, on) = (seen(0, false), seen(0, true), seen(1, true));
        let changed = |change: &str| Some(Warning::AuditingChanged { change: change.into() });
        for (before, after) in [(never, on), (off, on)] {
            assert_eq!(before.changed_to(after, true), changed("switched on"));
        }
        assert_eq!(on.changed_to(off, false), changed("switched off"));
        // If we switched it on ourselves, contexts stay, as after any switching on.
        assert_eq!(never.changed_to(off, false), changed("switched on for a time"));
        assert_eq!(never.changed_to(off, true), None);
        let hidden = AuditSeen { enabled: None, contexts: None };
        let same = [(never, never), (off, off), (on, on), (hidden, on), (on, hidden)];
        assert!(same.iter().all(|(before, after)| before.changed_to(*after, false).is_none()));
    }
}
