//! How many records may wait in the kernel's queue, how long a process waits for room in it, and how many
//! records the kernel takes per second.

use std::io;
use std::time::Duration;

use linux_audit::netlink::Client;
use linux_audit::status::{AuditSetting, Status, jiffies_to_s, s_to_jiffies};
use weigh_model::label::Parameters;

/// Backlog limit in the rule files of Debian and Red Hat.
///
/// With the kernel's own 64 we would measure waiting.
const DEFAULT_BACKLOG_LIMIT: u32 = 8192;
/// Ten times its own default: the kernel takes no more.
const LONGEST_WAIT: Duration = Duration::from_secs(600);

/// The lowest rate: the records of a program's start must fit, as they prove that it is audited.
const LEAST_RATE: u32 = 100;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Wanted {
    /// Records.
    pub backlog: Option<u32>,
    /// In jiffies.
    pub wait: Option<u32>,
    /// Records per second.
    pub rate: Option<u32>,
}

/// Limits that are set in the arm's turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Records.
    pub backlog: u32,
    /// In jiffies; with 0 a record that finds no room is dropped at once.
    pub wait: u32,
    /// Records per second, during samples; `None` for the host's limit.
    pub rate: Option<u32>,
}

impl Wanted {
    pub fn read(parameters: &Parameters) -> Result<Wanted, String> {
        Ok(Wanted {
            backlog: parameters.number("backlog", 1..=10_000_000)?,
            wait: parameters.value("wait").map(jiffies).transpose()?,
            rate: parameters.number("rate", LEAST_RATE..=1_000_000)?,
        })
    }

    /// Returns the limits to set on a host with this status.
    pub fn limits(&self, host: &Status, has_daemon: bool) -> Limits {
        let usual = match has_daemon {
            // Its administrator's choice is part of what is weighed.
            true => host.backlog_limit,
            false => host.backlog_limit.max(DEFAULT_BACKLOG_LIMIT),
        };
        Limits {
            backlog: self.backlog.unwrap_or(usual),
            wait: self.wait.unwrap_or(host.backlog_wait_time),
            rate: self.rate,
        }
    }
}

fn jiffies(text: &str) -> Result<u32, String> {
    let parsed: Option<jiff::SignedDuration> = match text {
        "0" => Some(jiff::SignedDuration::ZERO),
        _ => text.parse().ok(),
    };
    parsed
        .and_then(|time| Duration::try_from(time).ok())
        .filter(|time| *time <= LONGEST_WAIT)
        .map(|time| s_to_jiffies(time.as_secs_f64()))
        .ok_or_else(|| format!("wait={text}: takes a time up to 10m, such as 0, 100ms or 60s"))
}

impl Limits {
    /// Sets them, and gives the number of changes that the kernel records.
    pub fn set(self, client: &mut Client) -> io::Result<usize> {
        client.set(AuditSetting::BacklogLimit(self.backlog))?;
        client.set(AuditSetting::BacklogWaitTime(self.wait))?;
        Ok(2)
    }

    /// In words.
    pub fn facts(self) -> Vec<String> {
        let noun = if self.backlog == 1 { "record" } else { "records" };
        let limit = format!("The backlog limit is {} {noun}.", self.backlog);
        let wait = match self.wait {
            0 => "No process blocks when the backlog is full (backlog wait time 0): the record is dropped."
                .into(),
            jiffies => format!(
                "A process blocks when the backlog is full, for at most {} s (backlog wait time).",
                jiffies_to_s(jiffies)
            ),
        };
        let rate = self.rate.map(|rate| {
            format!(
                "During samples the kernel accepts {rate} records per second (rate limit). It drops and \
                 counts the rest. In the first second of a sample it may accept up to twice as many, \
                 because it starts a new count only when the old one has reached the limit."
            )
        });
        [limit, wait].into_iter().chain(rate).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parameters_of;

    fn read(text: &str) -> Result<Wanted, String> {
        Wanted::read(&parameters_of(text))
    }

    #[test]
    fn a_wait_is_a_time_or_none() {
        assert_eq!(read("audit:wait=0").unwrap().wait, Some(0));
        assert_eq!(read("audit:wait=1s").unwrap().wait, Some(s_to_jiffies(1.0)));
        assert_eq!(
            read("audit:backlog=7").unwrap(),
            Wanted { backlog: Some(7), ..Wanted::default() }
        );
        assert_eq!(read("audit:rate=100").unwrap().rate, Some(100));
        assert!(read("audit:rate=99").unwrap_err().contains("from 100 to"));
        for wrong in ["soon", "-1s", "11m", "5"] {
            let said = read(&format!("audit:wait={wrong}")).unwrap_err();
            assert!(said.contains(&format!("wait={wrong}: takes a time up to 10m")), "{said}");
        }
    }

    #[test]
    fn what_is_not_asked_for_is_the_hosts_where_somebody_chose_it() {
        let host = Status { backlog_limit: 64, backlog_wait_time: 9, ..Status::default() };
        let limits = |has_daemon| Wanted::default().limits(&host, has_daemon);
        assert_eq!(limits(true), Limits { backlog: 64, wait: 9, rate: None });
        assert_eq!(limits(false), Limits { backlog: DEFAULT_BACKLOG_LIMIT, wait: 9, rate: None });
        let wanted = Wanted { backlog: Some(1), wait: Some(0), rate: Some(200) };
        assert_eq!(wanted.limits(&host, true), Limits { backlog: 1, wait: 0, rate: Some(200) });
    }
}
