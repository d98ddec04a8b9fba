//! The parent's side of the sink: starting it, and learning what came out of the kernel's queue.

use std::net::TcpStream;
use std::os::fd::AsRawFd;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use super::receiver::Receiver;
use super::wait::{SEND_AGAIN_EVERY, Wait};
use super::{BASELINE_LOGINUID, TREATED_LOGINUID, needs, system};
use crate::{ApplyContext, TreatmentError};
use linux_audit::netlink::Client;
use linux_audit::sink::{MISSED_TRIES, SinkReply, SinkRequest};
use linux_audit::tally::RecordCounts;
use trust::start;
use weigh_host::lines::{LinesError, PROMPTLY};
use weigh_host::machine::cpu_time;
use weigh_host::machine::stat::family;
use weigh_host::own_program;
use weigh_host::own_program::Helper;
use weigh_testbed::Collector;
use weigh_workload::setup::kind::allowed_cpus::AllowedCpus;

const LOOK_UP: Duration = Duration::from_millis(100);

/// The hidden subcommand that turns `weigh` into a sink.
pub const SUBCOMMAND: &str = "__sink";
/// Kernel thread that sends the records, or prints them.
const KERNEL_THREAD: &str = "kauditd";

/// The stream of audit records, as seen by a sink process.
pub struct Stream {
    sink: Helper,
    marker: String,
    number: u64,
    /// Whose records count from the next marker on.
    pub treated_loginuid: u32,
    receiver: Receiver,
    /// The processes that receive the records, and those that they started.
    processes: Vec<u32>,
    kauditd: Option<u32>,
    interrupted: Arc<AtomicBool>,
}

/// CPU time of those that handle the records, in nanoseconds; `None` where it is not known.
#[derive(Clone, Copy, Debug, Default)]
pub struct Cpu {
    sink_ns: Option<u64>,
    kauditd_ns: Option<u64>,
}

impl Stream {
    /// Starts a sink: as the receiver of the records, or as a listener beside another.
    pub fn start(
        context: &ApplyContext,
        canary: &Path,
        receiver: Receiver,
    ) -> Result<Stream, TreatmentError> {
        let marker = format!("weigh-marker-{}", std::process::id());
        let is_own = matches!(receiver, Receiver::Own);
        let mut command = own_program::command(SUBCOMMAND);
        let connection = match &receiver {
            Receiver::Remote(collector) => Some(ship(collector, context, &mut command)?),
            _ => None,
        };
        let request = SinkRequest {
            connection: connection.as_ref().map(AsRawFd::as_raw_fd),
            log: is_own.then(|| context.place.scratch.join("audit.log")),
            treated_loginuid: TREATED_LOGINUID,
            exempt_loginuid: BASELINE_LOGINUID,
            canary: canary.to_owned(),
            marker: marker.clone(),
        };
        let mut sink = Helper::start(command).map_err(system)?;
        sink.lines.send(&request).map_err(system)?;
        match sink.lines.receive(context.interrupted, Instant::now() + PROMPTLY) {
            Ok(SinkReply::Ready) => {}
            Ok(SinkReply::Error(problem)) => return Err(system(problem)),
            Ok(SinkReply::Counts(_)) => {
                return Err(system(
                    "the receiver of the records sent a count before weigh asked for one",
                ));
            }
            Err(LinesError::Interrupted) => return Err(TreatmentError::Interrupted),
            Err(other) => return Err(system(other)),
        }
        let processes =
            receiver.pid(sink.pid()).map(|pid| family(&[pid], None)).unwrap_or_default();
        let kauditd = cpu_time::kernel_thread(KERNEL_THREAD);
        let interrupted = Arc::clone(context.interrupted);
        let treated_loginuid = TREATED_LOGINUID;
        let number = 0;
        Ok(Stream {
            sink,
            marker,
            number,
            treated_loginuid,
            receiver,
            processes,
            kauditd,
            interrupted,
        })
    }

    /// Returns the counts of the records that came out since the last call.
    ///
    /// It returns when everything that was queued until now has been drained and written. So no
    /// record of one sample is left for the next.
    pub fn window(&mut self, client: &mut Client) -> Result<RecordCounts, TreatmentError> {
        self.number += 1;
        let marker = format!("{} {} {}", self.marker, self.number, self.treated_loginuid);
        client.send_text(&marker).map_err(needs)?;
        let counts = self.counts(client, &marker)?;
        self.receiver.wait_until_written(client, &marker, &self.interrupted)?;
        Ok(counts)
    }

    fn counts(
        &mut self,
        client: &mut Client,
        marker: &str,
    ) -> Result<RecordCounts, TreatmentError> {
        let mut wait = Wait::new(&self.interrupted, self.receiver.drain_limit());
        // The wait itself looks at the user's.
        let interrupted = AtomicBool::new(false);
        let mut sent = Instant::now();
        loop {
            match self.sink.lines.receive(&interrupted, Instant::now() + LOOK_UP) {
                Ok(SinkReply::Counts(counts)) if counts.marker == self.number => return Ok(counts),
                Ok(SinkReply::Counts(_) | SinkReply::Ready) => {}
                Ok(SinkReply::Error(problem)) => return Err(TreatmentError::NotKept(problem)),
                Err(LinesError::TimedOut) if wait.goes_on()? => {
                    if sent.elapsed() > SEND_AGAIN_EVERY {
                        client.send_text(marker).map_err(needs)?;
                        sent = Instant::now();
                    }
                }
                Err(problem) => {
                    return Err(TreatmentError::NotInForce(format!(
                        "audit records no longer arrive ({problem}): auditing may be off, a different \
                         process may have the audit socket, or the log's disk may be full"
                    )));
                }
            }
        }
    }

    /// Returns true if these counts may lack records that the kernel does not count as lost.
    pub fn has_missed(&self, counts: &RecordCounts) -> bool {
        let enough = if self.receiver.is_ours() { MISSED_TRIES } else { 1 };
        counts.failed_tries >= enough
    }

    /// Explains why records may be missing from the counts.
    pub fn why_not_counted(&self) -> &'static str {
        match self.receiver {
            Receiver::Own | Receiver::Remote(_) => {
                "the receiver of the records stalled, so some may be missing"
            }
            Receiver::Nobody => "records came faster than weigh could read them",
            _ => "records came faster than weigh could read them; the audit daemon has them all",
        }
    }

    /// CPU time so far of those that handle the records.
    pub fn cpu(&self) -> Cpu {
        let used = |pid| cpu_time::of_process_ns(pid).ok();
        let times = self.processes.iter().map(|pid| used(*pid));
        Cpu { sink_ns: times.sum(), kauditd_ns: self.kauditd.and_then(used) }
    }

    /// The process of an auditd that we started.
    pub fn own_auditd(&self) -> Option<u32> {
        match &self.receiver {
            Receiver::Auditd(auditd) => Some(auditd.pid()),
            Receiver::Own | Receiver::Remote(_) | Receiver::Host(_) | Receiver::Nobody => None,
        }
    }

    /// Who drains and stores the records.
    pub fn fact(&self) -> String {
        self.receiver.fact()
    }
}

/// Connects to W_passive, and has the sink inherit that, on the CPUs of W_test whose cost it is.
fn ship(
    collector: &Collector,
    context: &ApplyContext,
    command: &mut Command,
) -> Result<TcpStream, TreatmentError> {
    let connection = collector.connect().map_err(|error| {
        system(format!("W_passive ({}) does not accept audit records: {error}", collector.address))
    })?;
    start::hand_over(command, vec![connection.as_raw_fd()]);
    let cpus = context.surroundings.get::<AllowedCpus>().map(|allowed| allowed.cpus.clone());
    if let Some(cpus) = cpus {
        // SAFETY: it makes system calls alone.
        unsafe { command.pre_exec(move || wire::stay_on(&cpus)) };
    }
    Ok(connection)
}

impl Cpu {
    pub fn since(self, earlier: Cpu) -> Cpu {
        let grew = |now: Option<u64>, then: Option<u64>| Some(now?.saturating_sub(then?));
        Cpu {
            sink_ns: grew(self.sink_ns, earlier.sink_ns),
            kauditd_ns: grew(self.kauditd_ns, earlier.kauditd_ns),
        }
    }

    /// CPU time of the processes that receive the records, in seconds.
    pub fn sink_s(self) -> Option<f64> {
        self.sink_ns.map(|ns| ns as f64 / 1e9)
    }

    /// CPU time of the kernel thread that sends the records, in seconds.
    pub fn kauditd_s(self) -> Option<f64> {
        self.kauditd_ns.map(|ns| ns as f64 / 1e9)
    }
}
