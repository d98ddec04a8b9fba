//! The parent's side of the sink: starting it, and learning what came out of the kernel's queue.

use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use super::{TREATED_LOGINUID, needs, system};
use crate::audit::netlink::Client;
use crate::audit::sink::{Reply, Request};
use crate::audit::tally::Counts;
use crate::own_program::{self, Helper};
use crate::treatment::{Bench, Error};

/// The hidden subcommand that turns `weigh` into a sink.
pub const SUBCOMMAND: &str = "__sink";
/// A full default backlog drains in well under a second.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(30);

/// The stream of audit records, as seen by a sink process.
pub struct Stream {
    sink: Helper,
    marker: String,
    number: u64,
    /// The audit daemon that writes the log, where it is not our sink.
    daemon: Option<u32>,
}

impl Stream {
    /// Starts a sink: as the audit daemon, or as a listener beside one.
    ///
    /// # Errors
    /// Where the kernel refuses it the records.
    pub fn start(bench: &Bench, canary: &Path, daemon: Option<u32>) -> Result<Stream, Error> {
        let marker = format!("weigh-marker-{}", std::process::id());
        let request = Request {
            log: daemon.is_none().then(|| bench.scratch.join("audit.log")),
            treated_loginuid: TREATED_LOGINUID,
            canary: canary.to_owned(),
            marker: marker.clone(),
        };
        let mut sink = Helper::start(SUBCOMMAND).map_err(system)?;
        sink.send(&request).map_err(system)?;
        match sink.receive(bench.interrupted, None) {
            Ok(Reply::Ready) => Ok(Stream { sink, marker, number: 0, daemon }),
            Ok(Reply::Error(problem)) => Err(system(problem)),
            Ok(Reply::Counts(_)) => Err(system("the sink counts before it was asked")),
            Err(own_program::Error::Interrupted) => Err(Error::Interrupted),
            Err(other) => Err(system(other)),
        }
    }

    /// What came out since the last call. Returns when everything that was queued until now has
    /// been drained and written, so that no record of one sample is left for the next.
    ///
    /// # Errors
    /// [`Error::NotInForce`] where the records do not arrive.
    pub fn window(&mut self, client: &mut Client) -> Result<Counts, Error> {
        self.number += 1;
        client.send_text(&format!("{} {}", self.marker, self.number)).map_err(needs)?;
        let deadline = Instant::now() + DRAIN_TIMEOUT;
        // An interrupt ends the workload first; a drain takes only moments.
        let interrupted = AtomicBool::new(false);
        loop {
            match self.sink.receive(&interrupted, Some(deadline)) {
                Ok(Reply::Counts(counts)) if counts.marker == self.number => return Ok(counts),
                Ok(Reply::Counts(_) | Reply::Ready) => {}
                Ok(Reply::Error(problem)) => return Err(Error::NotInForce(problem)),
                Err(problem) => {
                    return Err(Error::NotInForce(format!(
                        "audit records no longer arrive ({problem}): auditing may have been switched \
                         off, the audit socket taken over, or the log's disk be full"
                    )));
                }
            }
        }
    }

    /// Who drains and stores the records.
    pub fn fact(&self) -> String {
        match self.daemon {
            Some(pid) => format!(
                "The audit daemon of this host (process {pid}) drains and stores the records; ours are \
                 counted beside it."
            ),
            None => {
                "The records are drained and written to a file as auditd does by default.".into()
            }
        }
    }
}
