//! What `weigh doctor` tries, for `weigh doctor` and for the report of every experiment.

use std::path::{Path, PathBuf};

use crate::machine::disk_speed::DiskSpeed;
use crate::machine::probes::AuditProbe;
use crate::machine::{Facts, Probes, check};
use crate::treatment::guest;
use linux_audit::netlink::Client;

/// The machine as a report has it, with what is worth knowing of it; and what disturbs a measurement now, in
/// whole sentences. `scratch` is [`Facts::scratch`].
pub fn look(scratch: Option<String>, data_directory: &Path) -> (Facts, Vec<String>) {
    let disk = DiskSpeed::known(data_directory, &std::env::temp_dir());
    let mut machine = Facts { scratch, disk, ..Facts::read() };
    let findings = check::check(&machine, &probe(data_directory));
    machine.worth_knowing = check::worth_knowing(&findings);
    (machine, check::warnings(&findings))
}

/// Tries on this machine what more than reading a file takes: the audit status too, which the machine's
/// own room does not know, and the room for workloads and for a database in this directory.
pub fn probe(data_directory: &Path) -> Probes {
    let audit = Client::open().and_then(|mut client| client.status()).ok();
    let audit = audit.map(|status| AuditProbe { enabled: status.enabled, daemon_pid: status.pid });
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
}
