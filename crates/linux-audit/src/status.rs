//! `struct audit_status` of `include/uapi/linux/audit.h`: 44 bytes since Linux 5.10.

use serde::{Deserialize, Serialize};

/// Status of auditing, as `auditctl -s` shows it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Status {
    /// 0 off, 1 on, 2 on and locked until the next boot.
    pub enabled: u32,
    /// On failure: 0 silent, 1 printk, 2 panic.
    pub failure: u32,
    /// The audit daemon's process id, 0 for none.
    pub pid: u32,
    /// Records a second that the kernel allows, 0 for no limit.
    pub rate_limit: u32,
    /// Records that may wait in the kernel's queue, 0 for no limit.
    pub backlog_limit: u32,
    /// Records dropped since boot or the last reset.
    pub lost: u32,
    /// Records waiting now.
    pub backlog: u32,
    /// Longest time that a process waits for room in the queue, in jiffies.
    pub backlog_wait_time: u32,
    /// Time that processes did wait since boot, in jiffies; `None` before Linux 5.10.
    pub backlog_wait_time_actual: Option<u32>,
}

impl Status {
    /// Reads the kernel's answer; `None` where it is shorter than Linux 4.18's.
    pub fn parse(bytes: &[u8]) -> Option<Status> {
        let word = |index: usize| {
            bytes.get(index * 4..)?.first_chunk().map(|chunk| u32::from_ne_bytes(*chunk))
        };
        Some(Status {
            enabled: word(1)?,
            failure: word(2)?,
            pid: word(3)?,
            rate_limit: word(4)?,
            backlog_limit: word(5)?,
            lost: word(6)?,
            backlog: word(7)?,
            backlog_wait_time: word(9)?,
            backlog_wait_time_actual: word(10),
        })
    }
}

/// A field of the status that may be set, with its new value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AuditSetting {
    /// 0 is off, 1 on, 2 on and locked until the next boot.
    Enabled(u32),
    /// Reaction to a lost record: 0 nothing, 1 a message of the kernel, 2 a panic.
    Failure(u32),
    /// Records a second, 0 for no limit.
    RateLimit(u32),
    /// The caller's own process id, or 0 to leave.
    Pid(u32),
    /// How many records may wait for the receiver; 0 for no limit.
    BacklogLimit(u32),
    /// In jiffies; 0 to let nobody wait.
    BacklogWaitTime(u32),
}

impl AuditSetting {
    /// The status message that sets just this field: `mask` names it.
    pub fn encode(self) -> [u8; 44] {
        let (mask, word, value) = match self {
            AuditSetting::Enabled(value) => (0x01u32, 1, value),
            AuditSetting::Failure(value) => (0x02, 2, value),
            AuditSetting::Pid(value) => (0x04, 3, value),
            AuditSetting::RateLimit(value) => (0x08, 4, value),
            AuditSetting::BacklogLimit(value) => (0x10, 5, value),
            AuditSetting::BacklogWaitTime(value) => (0x20, 9, value),
        };
        let mut bytes = [0u8; 44];
        bytes[..4].copy_from_slice(&mask.to_ne_bytes());
        bytes[word * 4..word * 4 + 4].copy_from_slice(&value.to_ne_bytes());
        bytes
    }
}

/// Seconds that a number of the kernel's jiffies last.
pub fn jiffies_to_s(jiffies: u32) -> f64 {
    f64::from(jiffies) * jiffy_s()
}

/// The fewest of the kernel's jiffies that last as long as this many seconds.
pub fn s_to_jiffies(seconds: f64) -> u32 {
    // A hair less, so that what is whole is not rounded up for its last binary digit.
    (seconds / jiffy_s() - 1e-6).ceil() as u32
}

/// The coarse clock ticks once a jiffy, so its resolution is 1/HZ, whatever the kernel was built with.
fn jiffy_s() -> f64 {
    let tick = rustix::time::clock_getres(rustix::time::ClockId::MonotonicCoarse);
    tick.tv_sec as f64 + tick.tv_nsec as f64 / 1e9
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_word_lands_in_its_field() {
        let bytes: Vec<u8> = (0u32..11).flat_map(u32::to_ne_bytes).collect();
        let status = Status::parse(&bytes).unwrap();
        assert_eq!((status.enabled, status.failure, status.pid), (1, 2, 3));
        assert_eq!((status.rate_limit, status.backlog_limit), (4, 5));
        assert_eq!((status.lost, status.backlog, status.backlog_wait_time), (6, 7, 9));
        assert_eq!(status.backlog_wait_time_actual, Some(10));
    }

    #[test]
    fn an_older_kernels_answer_has_no_actual_wait() {
        assert_eq!(Status::parse(&[0; 40]).unwrap().backlog_wait_time_actual, None);
        assert_eq!(Status::parse(&[0; 39]), None);
    }

    #[test]
    fn a_time_is_rounded_up_to_whole_jiffies() {
        assert_eq!(s_to_jiffies(0.0), 0);
        assert_eq!(s_to_jiffies(1e-6), 1);
        let whole = s_to_jiffies(10.0);
        assert!((jiffies_to_s(whole) - 10.0).abs() < jiffies_to_s(2), "{whole}");
    }

    #[test]
    fn a_setting_names_only_its_own_field() {
        let bytes = AuditSetting::BacklogLimit(8192).encode();
        let status = Status::parse(&bytes).unwrap();
        assert_eq!(
            status,
            Status { backlog_limit: 8192, backlog_wait_time_actual: Some(0), ..Status::default() }
        );
        assert_eq!(bytes[0], 0x10);
    }

    #[test]
    fn a_second_has_as_many_jiffies_as_kernels_are_built_with() {
        let jiffies = s_to_jiffies(1.0);
        // With 300, each is rounded down to whole nanoseconds, so it takes one more.
        assert!([100, 250, 301, 1000].contains(&jiffies), "{jiffies}");
    }
}
