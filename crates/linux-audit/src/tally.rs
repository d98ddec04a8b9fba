//! Which of the records that come out of the queue belong to treated processes, and what they
//! amount to.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::{message, record};

/// Counts of the records that came out of the queue between two markers.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecordCounts {
    /// The number of the marker that closed this window.
    pub marker: u64,
    /// Records of treated processes between the two canaries, the end-of-event records included.
    pub records: u64,
    /// Bytes that these take in the log.
    pub log_bytes: u64,
    /// All records, of whomever, but for the markers.
    pub received: u64,
    /// Events of treated processes, also before, between and after the canaries.
    pub treated_events: u64,
    /// Records of these, without the canaries' own.
    pub treated_records: u64,
    /// Bytes that those take in the log.
    pub treated_log_bytes: u64,
    /// Processes that opened the canary and were audited doing so, also those that should not have been.
    pub canaries: Vec<u32>,
    /// Records that exempt processes wrote themselves and that were kept all the same.
    #[serde(default)]
    pub exempt_messages: u64,
    /// Changes to the audit configuration that were recorded, by whomever.
    pub config_changes: Vec<String>,
    /// How often the kernel tried to send a record here and found no room.
    pub failed_tries: u32,
    /// Records, of whomever, that another machine has written down; `None` where none are shipped.
    pub shipped: Option<u64>,
}

#[derive(Default)]
struct Event {
    pid: u32,
    is_treated: bool,
    /// It began between the canaries: before the first a worker is only being made, and after the second
    /// it is over. Its end tells nothing, as that may be lost.
    is_of_sample: bool,
    records: u64,
    log_bytes: u64,
    is_canary: bool,
}

/// Counts records by the event that they belong to.
pub struct RecordTally {
    treated_loginuid: u32,
    /// Login uid of processes that should be exempt. Of their records, only an opened canary is
    /// looked for.
    exempt_loginuid: u32,
    canary: PathBuf,
    /// A treated process has opened the canary, and not yet again.
    is_between_canaries: bool,
    /// Events whose end has not come yet, by serial number.
    open_events: HashMap<u64, Event>,
    counts: RecordCounts,
}

impl RecordTally {
    /// Counts processes of the first login uid, and the opening of this file apart, by processes of either.
    pub fn new(treated_loginuid: u32, exempt_loginuid: u32, canary: PathBuf) -> RecordTally {
        RecordTally {
            treated_loginuid,
            exempt_loginuid,
            canary,
            is_between_canaries: false,
            open_events: HashMap::new(),
            counts: RecordCounts::default(),
        }
    }

    /// Takes a record; `log_bytes` is what it takes in the log.
    pub fn count(&mut self, kind: u16, text: &[u8], log_bytes: u64) {
        let Some(serial) = record::serial(text) else { return };
        self.counts.received += u64::from(kind != message::TRUSTED_APP);
        if is_users(kind) {
            return self.count_users(text, log_bytes);
        }
        if kind == message::SYSCALL {
            let loginuid = record::number(text, "auid");
            let is = |wanted: u32| loginuid == Some(u64::from(wanted));
            let is_treated = is(self.treated_loginuid);
            if is_treated || is(self.exempt_loginuid) {
                let pid = record::number(text, "pid").unwrap_or(0) as u32;
                let is_of_sample = is_treated && self.is_between_canaries;
                let event = Event { pid, is_treated, is_of_sample, ..Event::default() };
                self.open_events.insert(serial, event);
                self.counts.treated_events += u64::from(is_treated);
            }
        }
        if kind == message::CONFIG_CHANGE {
            self.counts.config_changes.push(String::from_utf8_lossy(text).into_owned());
        }
        let Some(event) = self.open_events.get_mut(&serial) else { return };
        event.records += 1;
        event.log_bytes += log_bytes;
        if kind == message::PATH && !event.is_canary && names(text, &self.canary) {
            event.is_canary = true;
            self.is_between_canaries ^= event.is_treated;
        }
        if kind == message::EOE
            && let Some(event) = self.open_events.remove(&serial)
        {
            self.close(&event);
        }
    }

    /// A record that a program wrote itself: an event of its own, which has no end.
    fn count_users(&mut self, text: &[u8], log_bytes: u64) {
        let loginuid = record::number(text, "auid");
        self.counts.exempt_messages += u64::from(loginuid == Some(u64::from(self.exempt_loginuid)));
        if loginuid == Some(u64::from(self.treated_loginuid)) {
            let is_of_sample = self.is_between_canaries;
            let (records, is_treated) = (1, true);
            self.counts.treated_events += 1;
            self.close(&Event { is_treated, is_of_sample, records, log_bytes, ..Event::default() });
        }
    }

    fn close(&mut self, event: &Event) {
        if event.is_canary {
            self.counts.canaries.push(event.pid);
            return;
        }
        if event.is_treated {
            self.counts.treated_records += event.records;
            self.counts.treated_log_bytes += event.log_bytes;
        }
        if event.is_of_sample {
            self.counts.records += event.records;
            self.counts.log_bytes += event.log_bytes;
        }
    }

    /// Returns the counts since the last call. From now on, processes of this login uid are the
    /// treated ones.
    pub fn close_window(&mut self, marker: u64, treated_loginuid: u32) -> RecordCounts {
        // An event without its end lost it; what did arrive still counts.
        let unfinished: Vec<Event> = self.open_events.drain().map(|(_, event)| event).collect();
        for event in &unfinished {
            self.close(event);
        }
        self.is_between_canaries = false;
        self.treated_loginuid = treated_loginuid;
        self.counts.marker = marker;
        std::mem::take(&mut self.counts)
    }
}

/// Returns true if programs write records of this kind. The marker's kind is ours.
fn is_users(kind: u16) -> bool {
    (message::FIRST_USER_MSG..=message::LAST_USER_MSG).contains(&kind)
        && kind != message::TRUSTED_APP
}

/// Returns true if a PATH record names this file; the kernel writes names with odd bytes in hex.
fn names(text: &[u8], path: &Path) -> bool {
    use std::os::unix::ffi::OsStrExt;
    let Some(name) = record::field(text, "name") else { return false };
    let bytes = path.as_os_str().as_bytes();
    name == bytes || name == bytes.iter().map(|b| format!("{b:02X}")).collect::<String>().as_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(tally: &mut RecordTally, serial: u64, auid: u32, path: &str) {
        let texts = [
            (message::SYSCALL, format!("audit(1.2:{serial}): arch=c syscall=2 pid=9 auid={auid}")),
            (message::PATH, format!("audit(1.2:{serial}): item=0 name=\"{path}\" inode=5")),
            (message::EOE, format!("audit(1.2:{serial}): ")),
        ];
        for (kind, text) in texts {
            tally.count(kind, text.as_bytes(), 10);
        }
    }

    #[test]
    fn only_treated_processes_are_counted_and_only_between_the_canaries() {
        let mut tally = RecordTally::new(4244, 4243, "/tmp/canary".into());
        event(&mut tally, 1, 4244, "/etc/before");
        event(&mut tally, 2, 4244, "/tmp/canary");
        event(&mut tally, 3, 4244, "/etc/passwd");
        event(&mut tally, 4, 4243, "/etc/passwd");
        event(&mut tally, 5, 4244, "/tmp/canary");
        event(&mut tally, 6, 4244, "/etc/after");
        tally.count(message::CONFIG_CHANGE, b"audit(1.2:7): op=remove_rule", 10);
        let counts = tally.close_window(1, 4244);
        assert_eq!(counts.config_changes, ["audit(1.2:7): op=remove_rule"]);
        assert_eq!((counts.records, counts.log_bytes), (3, 30));
        assert_eq!(counts.canaries, [9, 9]);
        assert_eq!((counts.received, counts.treated_events), (19, 5));
        assert_eq!((counts.treated_records, counts.treated_log_bytes), (9, 90));
        let nothing = RecordCounts { marker: 2, ..RecordCounts::default() };
        assert_eq!(tally.close_window(2, 4244), nothing);
    }

    /// A server that an arm left idle may do something while another arm is measured.
    #[test]
    fn processes_of_another_arm_are_no_part_of_a_sample() {
        let mut tally = RecordTally::new(4244, 4243, "/tmp/canary".into());
        for (marker, own, other) in [(1, 4244, 4245), (2, 4245, 4244)] {
            event(&mut tally, 1, other, "/etc/passwd");
            event(&mut tally, 2, own, "/tmp/canary");
            event(&mut tally, 3, own, "/etc/passwd");
            event(&mut tally, 4, other, "/tmp/canary");
            event(&mut tally, 5, other, "/etc/passwd");
            event(&mut tally, 6, own, "/tmp/canary");
            let counts = tally.close_window(marker, other);
            assert_eq!((counts.records, counts.treated_events), (3, 3));
            assert_eq!(counts.canaries, [9, 9]);
        }
    }

    #[test]
    fn records_that_programs_write_themselves_count_as_those_of_calls() {
        const USER_CMD: u16 = 1123;
        let mut tally = RecordTally::new(4244, 4243, "/tmp/canary".into());
        let write = |tally: &mut RecordTally, kind, auid| {
            let text = format!("audit(1.2:8): pid=9 uid=0 auid={auid} ses=1 msg='cmd=6C73'");
            tally.count(kind, text.as_bytes(), 10);
        };
        write(&mut tally, USER_CMD, 4244);
        event(&mut tally, 1, 4244, "/tmp/canary");
        write(&mut tally, USER_CMD, 4244);
        write(&mut tally, USER_CMD, 4243);
        write(&mut tally, message::TRUSTED_APP, 4244);
        event(&mut tally, 2, 4244, "/tmp/canary");
        let counts = tally.close_window(1, 4244);
        assert_eq!((counts.records, counts.log_bytes, counts.exempt_messages), (1, 10, 1));
        assert_eq!((counts.treated_records, counts.treated_events), (2, 4));
    }

    #[test]
    fn an_exempt_process_that_is_audited_all_the_same_is_seen() {
        let mut tally = RecordTally::new(4244, 4243, "/tmp/canary".into());
        event(&mut tally, 1, 4243, "/tmp/canary");
        event(&mut tally, 2, 4243, "/etc/passwd");
        event(&mut tally, 3, 77, "/tmp/canary");
        let counts = tally.close_window(1, 4244);
        assert_eq!((counts.canaries, counts.records, counts.treated_events), (vec![9], 0, 0));
    }

    #[test]
    fn an_event_that_lost_its_end_counts_as_far_as_it_came() {
        let mut tally = RecordTally::new(4244, 4243, "/tmp/canary".into());
        event(&mut tally, 1, 4244, "/tmp/canary");
        tally.count(message::SYSCALL, b"audit(1.2:7): pid=9 auid=4244", 10);
        event(&mut tally, 8, 4244, "/tmp/canary");
        assert_eq!(tally.close_window(1, 4244).records, 1);
    }

    #[test]
    fn a_name_in_hex_is_the_same_name() {
        let canary = Path::new("/tmp/a b");
        assert!(names(b"audit(1.2:3): item=0 name=2F746D702F612062 inode=4", canary));
    }
}
