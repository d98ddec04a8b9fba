//! Who receives the records while we measure: ourselves, an audit daemon of the host, one that we
//! started, or nobody.

use std::io;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use super::needs;
use super::wait::{SEND_AGAIN_EVERY, Wait};
use crate::TreatmentError;
use linux_audit::auditd::{Auditd, LogFormat};
use linux_audit::netlink::Client;
use weigh_host::machine::cpu_time;
use weigh_host::machine::process::unless_gone;
use weigh_host::machine::stat::family;
use weigh_testbed::Collector;

/// Beyond [`Receiver::Own`], our own process only listens and counts.
pub enum Receiver {
    /// Our own process, which writes a log as auditd does by default.
    Own,
    /// Our own process, which ships the records to W_passive and waits until W_passive has them.
    Remote(Collector),
    /// The audit daemon that this host had before.
    Host(u32),
    /// An auditd that we started.
    Auditd(Auditd),
    /// The kernel prints them to its own log.
    Nobody,
}

/// With `flush = sync` and a slow disk a full backlog takes minutes.
pub(super) const AUDITD_LIMIT: Duration = Duration::from_secs(300);
const LOOK_EVERY: Duration = Duration::from_micros(500);
/// A full default backlog drains in well under a second.
const LIMIT: Duration = Duration::from_secs(30);

impl Receiver {
    /// Returns true if the receiver is our own process, and the kernel's only receiver.
    pub fn is_ours(&self) -> bool {
        matches!(self, Receiver::Own | Receiver::Remote(_))
    }

    /// How long it may take to write out what waits.
    pub fn drain_limit(&self) -> Duration {
        if matches!(self, Receiver::Auditd(_)) { AUDITD_LIMIT } else { LIMIT }
    }

    /// The process that receives the records, `own` where that is ours.
    pub fn pid(&self, own: u32) -> Option<u32> {
        match self {
            Receiver::Own | Receiver::Remote(_) => Some(own),
            Receiver::Host(pid) => Some(*pid),
            Receiver::Auditd(auditd) => Some(auditd.pid()),
            Receiver::Nobody => None,
        }
    }

    /// Waits until an auditd of ours has done all its work up to this marker, which the kernel has sent
    /// already: the log written, the plugin's pipe read.
    pub fn wait_until_written(
        &mut self,
        client: &mut Client,
        marker: &str,
        interrupted: &AtomicBool,
    ) -> Result<(), TreatmentError> {
        let Receiver::Auditd(auditd) = self else { return Ok(()) };
        let mut wait = Wait::new(interrupted, AUDITD_LIMIT);
        let mut sent = Instant::now();
        // The kernel writes the text between quotes, so that 1 is not found in 12.
        let quoted = format!("{marker}'");
        let unreadable = |error: io::Error| {
            TreatmentError::NotInForce(format!("cannot check what auditd has written: {error}"))
        };
        let log = loop {
            if let Some(log) = auditd.written_until(&quoted).map_err(unreadable)? {
                break log;
            }
            if auditd.has_ended() {
                return Err(TreatmentError::NotInForce(
                    "auditd ended during the measurement".into(),
                ));
            }
            if !wait.goes_on()? {
                return Err(TreatmentError::NotInForce(
                    "auditd no longer writes its log: the disk may be full, or something stopped auditd"
                        .into(),
                ));
            }
            if sent.elapsed() > SEND_AGAIN_EVERY {
                client.send_text(marker).map_err(needs)?;
                sent = Instant::now();
            }
            std::thread::sleep(LOOK_EVERY);
        };
        let wanted = auditd.configuration().format;
        // A sample without records of calls, such as the baseline's, does not show it.
        if let Some(found) = LogFormat::of_log(&log).filter(|found| *found != wanted) {
            return Err(TreatmentError::NotInForce(format!(
                "auditd writes its log in the format {} instead of {}",
                found.word(),
                wanted.word()
            )));
        }
        if !auditd.has_its_plugin().map_err(unreadable)? {
            return Err(TreatmentError::NotInForce(
                "auditd's plugin has ended, and auditd may have started another one: run the plugin by hand \
                 to see why. It has to read all records until the end of its input"
                    .into(),
            ));
        }
        // Its dispatcher may have dropped the marker, as its queue was full.
        loop {
            if auditd.plugin_has_read(&quoted).map_err(unreadable)? {
                break;
            }
            if !wait.goes_on()? {
                return Err(TreatmentError::NotInForce(
                    "auditd's plugin has not read the sample's records: use a shorter delay="
                        .into(),
                ));
            }
            if sent.elapsed() > SEND_AGAIN_EVERY {
                client.send_text(marker).map_err(needs)?;
                sent = Instant::now();
            }
            std::thread::sleep(LOOK_EVERY);
        }
        wait_until_at_rest(auditd, &mut wait)
    }

    /// For the report.
    pub fn fact(&self) -> String {
        match self {
            Receiver::Own => {
                "weigh drains the records and writes them to a file, as auditd does by default."
                    .into()
            }
            Receiver::Remote(collector) => format!(
                "A process on W_test's CPUs drains the records and ships them over the LAN to {}, \
                 W_passive. W_passive writes them to a file and reports their number with every sample.",
                collector.address
            ),
            Receiver::Host(pid) => format!(
                "The audit daemon of this host (process {pid}) drains and stores the records; weigh \
                 counts its own records separately. {COPIES}"
            ),
            Receiver::Auditd(auditd) => {
                let configuration = auditd.configuration();
                let plugin = match &configuration.plugin {
                    Some(plugin) => {
                        format!("a dispatcher with one plugin, which {}", plugin.what())
                    }
                    None => "no plugin".into(),
                };
                format!(
                    "The records go to an auditd that weigh started (process {}): log_format = {}, \
                     flush = {}, {plugin}. weigh counts the workloads' records separately, with the bytes \
                     that they take in the format RAW. {COPIES}",
                    auditd.pid(),
                    configuration.format.word(),
                    configuration.flush.word(),
                )
            }
            Receiver::Nobody => format!(
                "No process receives the records: the kernel prints as many as its message rate limit \
                 allows and drops the rest, without counting them as lost. weigh only counts. {COPIES}"
            ),
        }
    }
}

/// CPU time of those that still run.
fn used_ns(family: &[u32]) -> io::Result<u64> {
    let times = family.iter().map(|pid| unless_gone(cpu_time::of_process_ns(*pid)));
    Ok(times.collect::<io::Result<Vec<_>>>()?.into_iter().flatten().sum())
}

/// Waits until neither auditd nor its plugin runs or waits for the disk.
fn wait_until_at_rest(auditd: &Auditd, wait: &mut Wait) -> Result<(), TreatmentError> {
    let family = family(&[auditd.pid()], None);
    let unreadable = |problem| {
        TreatmentError::NotInForce(format!("cannot read the CPU time of auditd: {problem}"))
    };
    // A dispatcher and a plugin that wait for each other rest in turns, so a look is not enough.
    loop {
        let before = used_ns(&family).map_err(unreadable)?;
        std::thread::sleep(LOOK_EVERY * 4);
        let rest = family.iter().map(|pid| cpu_time::is_at_rest(*pid));
        let all_rest = rest.collect::<io::Result<Vec<bool>>>().map_err(unreadable)?;
        let is_unused = used_ns(&family).map_err(unreadable)? == before;
        if is_unused && all_rest.into_iter().all(|rests| rests) {
            return Ok(());
        }
        if !wait.goes_on()? {
            return Err(TreatmentError::NotInForce(
                "auditd stays busy after it has written the sample's records".into(),
            ));
        }
    }
}

const COPIES: &str = "To count, the kernel thread kauditd copies each record, which is part of its CPU \
                      time; weigh's own CPU time for counting is not shown.";
