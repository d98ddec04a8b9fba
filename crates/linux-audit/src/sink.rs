//! The process that drains audit records while we measure, as a daemon would: one `poll`, one
//! `recv` and one `write` per record, a thread that flushes the file every 50 records (auditd's
//! `INCREMENTAL_ASYNC`, `freq = 50`), 8 MiB files. It counts what the treated processes caused.
//!
//! Protocol: the first line of stdin is a [`SinkRequest`]; every reply is a line of JSON on stdout.
//! The parent sends a marker through the kernel's queue; when it comes out here, all records that
//! were queued before it have been drained, and their [`RecordCounts`] are the reply. End of input:
//! leave the audit socket and exit.

use std::io::{self, BufRead, Write};
use std::net::TcpStream;
use std::os::fd::{FromRawFd, OwnedFd, RawFd};
use std::path::PathBuf;

use rustix::event::{PollFd, PollFlags, poll};
use serde::{Deserialize, Serialize};

use super::log_file::LogFile;
use super::message;
use super::netlink::{Client, Message, failed_tries, join_readlog, receive};
use super::shipping::Shipment;
use super::status::AuditSetting;
use super::tally::{RecordCounts, RecordTally};

/// Request of the parent.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SinkRequest {
    /// Where to write the log.
    pub log: Option<PathBuf>,
    /// An open connection to another machine, to which records are shipped in place of a log. With neither,
    /// records are counted beside a healthy audit daemon, which writes its own log.
    pub connection: Option<RawFd>,
    /// The login uid of the processes whose records count, until a marker names another.
    pub treated_loginuid: u32,
    /// Login uid of processes that must make no records.
    pub exempt_loginuid: u32,
    /// The file whose opening proves that auditing works; its own records are not counted.
    pub canary: PathBuf,
    /// Markers are text that starts with this.
    pub marker: String,
}

/// Reply of the sink, as a line.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SinkReply {
    /// It receives records now.
    Ready,
    /// It cannot go on; a sentence.
    Error(String),
    /// A marker came out of the queue; what came since the one before.
    Counts(RecordCounts),
}

/// Number of tries after which the kernel drops records of its own receiver without counting them
/// as lost. Each try waits a tenth of a second for room, and repeats the first record that found no
/// room. After the last try, the kernel drops the records that wait behind it (`UNICAST_RETRIES`,
/// `kauditd_send_queue` and `kauditd_hold_skb` in kernel/audit.c). Before that, its count includes
/// all missing records. A multicast is tried once.
pub const MISSED_TRIES: u32 = 5;

impl SinkRequest {
    /// Returns true if the kernel sends the records to this process, and to no other.
    fn is_receiver(&self) -> bool {
        self.log.is_some() || self.connection.is_some()
    }
}

struct Sink {
    request: SinkRequest,
    log: Option<LogFile>,
    shipment: Option<Shipment>,
    tally: RecordTally,
    /// The number of the last marker that was answered.
    answered: u64,
    /// Up to then.
    failed_tries: u32,
}

/// Runs the sink on stdin and stdout until end of input.
///
/// # Errors
/// Where stdin, stdout or the log file fail; the parent is told through [`SinkReply::Error`] first.
pub fn run() -> io::Result<()> {
    let mut line = String::new();
    io::stdin().lock().read_line(&mut line)?;
    let request: SinkRequest = serde_json::from_str(&line)?;
    let socket = match open(&request) {
        Ok(socket) => socket,
        Err(error) => return say(&SinkReply::Error(error.to_string())),
    };
    let log = request.log.as_deref().map(LogFile::create).transpose()?;
    // SAFETY: the parent left it open for this, and nothing else of this process knows it.
    let connection = request.connection.map(|fd| unsafe { TcpStream::from_raw_fd(fd) });
    let shipment = connection.map(Shipment::over).transpose()?;
    let owns_socket = request.is_receiver();
    let loginuids = (request.treated_loginuid, request.exempt_loginuid);
    let tally = RecordTally::new(loginuids.0, loginuids.1, request.canary.clone());
    let mut sink = Sink { request, log, shipment, tally, answered: 0, failed_tries: 0 };
    say(&SinkReply::Ready)?;
    let result = sink.drain(&socket);
    if let Err(error) = &result {
        let place = sink.request.log.as_ref().map(|log| format!(" in {}", log.display()));
        let place = place.unwrap_or_default();
        say(&SinkReply::Error(format!("cannot store the audit records{place}: {error}")))?;
    }
    if owns_socket {
        Client::open()?.set(AuditSetting::Pid(0))?;
    }
    result
}

fn open(request: &SinkRequest) -> io::Result<OwnedFd> {
    let mut client = Client::open()?;
    if request.is_receiver() {
        // Records are sent to the very socket that this request comes from.
        client.set(AuditSetting::Pid(std::process::id()))?;
        return Ok(client.into_socket());
    }
    let socket = client.into_socket();
    join_readlog(&socket)?;
    const BUFFER_BYTES: usize = 64 << 20;
    // A multicast reader cannot hold the kernel back: what does not fit is lost to it.
    rustix::net::sockopt::set_socket_recv_buffer_size_force(&socket, BUFFER_BYTES)?;
    Ok(socket)
}

fn say(reply: &SinkReply) -> io::Result<()> {
    let mut line = serde_json::to_vec(reply)?;
    line.push(b'\n');
    let mut stdout = io::stdout().lock();
    stdout.write_all(&line)?;
    stdout.flush()
}

impl Sink {
    fn drain(&mut self, socket: &OwnedFd) -> io::Result<()> {
        let stdin = io::stdin();
        loop {
            let mut ready =
                [PollFd::new(socket, PollFlags::IN), PollFd::new(&stdin, PollFlags::IN)];
            match poll(&mut ready, None) {
                Err(rustix::io::Errno::INTR) => continue,
                other => other?,
            };
            let [records_ready, parent_gone] = ready.map(|fd| !fd.revents().is_empty());
            if records_ready {
                match receive(socket) {
                    Ok(message) => self.take(&message, socket)?,
                    // How often that was is asked of the kernel when the window closes.
                    Err(error) if error.raw_os_error() == Some(libc::ENOBUFS) => {}
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                    Err(error) => return Err(error),
                }
            } else if parent_gone {
                return Ok(());
            }
        }
    }

    fn take(&mut self, message: &Message, socket: &OwnedFd) -> io::Result<()> {
        if !(message::FIRST_USER_MSG..=message::LAST_KERNEL_ANOM_MSG).contains(&message.kind) {
            return Ok(()); // an acknowledgement, or the kernel asking whether we live
        }
        let text = message.payload.strip_suffix(b"\0").unwrap_or(&message.payload);
        let mut log_bytes = 0;
        // auditd does not store the end-of-event record either.
        if message.kind != message::EOE {
            let head = format!("type={} msg=", type_name(message.kind));
            log_bytes = (head.len() + text.len() + 1) as u64;
            if let Some(log) = &mut self.log {
                log.write(&[head.as_bytes(), text, b"\n"].concat())?;
            }
            if let Some(shipment) = &mut self.shipment {
                shipment.send(&[head.as_bytes(), text, b"\n"].concat())?;
            }
        }
        self.tally.count(message.kind, text, log_bytes);
        if message.kind == message::TRUSTED_APP
            && let Some((number, treated_loginuid)) = marker(text, &self.request.marker)
            // The parent sends a marker again that takes long to come out.
            && number > self.answered
        {
            self.answered = number;
            self.reply(number, treated_loginuid, socket)?;
        }
        Ok(())
    }

    fn reply(&mut self, marker: u64, treated_loginuid: u32, socket: &OwnedFd) -> io::Result<()> {
        if let Some(log) = &self.log {
            log.wait_until_flushed();
        }
        let shipped = self.shipment.as_mut().map(Shipment::receipt).transpose()?;
        let failed_tries = failed_tries(socket)?;
        let since = failed_tries.wrapping_sub(self.failed_tries);
        self.failed_tries = failed_tries;
        say(&SinkReply::Counts(RecordCounts {
            failed_tries: since,
            shipped,
            ..self.tally.close_window(marker, treated_loginuid)
        }))
    }
}

/// The two numbers of `audit(…): pid=… msg='MARKER NUMBER LOGINUID'`.
fn marker(text: &[u8], marker: &str) -> Option<(u64, u32)> {
    let text = std::str::from_utf8(text).ok()?;
    let (_, rest) = text.split_once(marker)?;
    let mut numbers = rest.trim_start().split(|c: char| !c.is_ascii_digit());
    Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
}

/// The names that auditd writes for the kernel's types of events; others by number, as it does too.
fn type_name(kind: u16) -> String {
    let name = match kind {
        1121 => "TRUSTED_APP",
        1300 => "SYSCALL",
        1302 => "PATH",
        1303 => "IPC",
        1304 => "SOCKETCALL",
        1305 => "CONFIG_CHANGE",
        1306 => "SOCKADDR",
        1307 => "CWD",
        1309 => "EXECVE",
        1311 => "IPC_SET_PERM",
        1312 => "MQ_OPEN",
        1313 => "MQ_SENDRECV",
        1314 => "MQ_NOTIFY",
        1315 => "MQ_GETSETATTR",
        1316 => "KERNEL_OTHER",
        1317 => "FD_PAIR",
        1318 => "OBJ_PID",
        1319 => "TTY",
        1320 => "EOE",
        1321 => "BPRM_FCAPS",
        1322 => "CAPSET",
        1323 => "MMAP",
        1324 => "NETFILTER_PKT",
        1325 => "NETFILTER_CFG",
        1326 => "SECCOMP",
        1327 => "PROCTITLE",
        1328 => "FEATURE_CHANGE",
        1329 => "REPLACE",
        1330 => "KERN_MODULE",
        1331 => "FANOTIFY",
        1332 => "TIME_INJOFFSET",
        1333 => "TIME_ADJNTPVAL",
        1334 => "BPF",
        1335 => "EVENT_LISTENER",
        1336 => "URINGOP",
        1337 => "OPENAT2",
        1338 => "DM_CTRL",
        1339 => "DM_EVENT",
        1400 => "AVC",
        _ => return format!("UNKNOWN[{kind}]"),
    };
    name.to_owned()
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixDatagram;
    use std::path::Path;

    use super::*;

    fn request(log: Option<PathBuf>, connection: Option<RawFd>) -> SinkRequest {
        let (canary, marker) = ("/canary".into(), "weigh-1".into());
        SinkRequest { log, connection, treated_loginuid: 7, exempt_loginuid: 8, canary, marker }
    }

    fn sink(log: Option<&Path>) -> Sink {
        let request = request(log.map(Path::to_owned), None);
        let tally = RecordTally::new(7, 8, request.canary.clone());
        let log = log.map(|log| LogFile::create(log).unwrap());
        Sink { request, log, shipment: None, tally, answered: 0, failed_tries: 0 }
    }

    fn take(sink: &mut Sink, kind: u16, text: &str) {
        let socket = OwnedFd::from(UnixDatagram::pair().unwrap().0);
        let message = Message { kind, sequence: 0, payload: text.into() };
        sink.take(&message, &socket).unwrap();
    }

    /// The parent sends one again that takes long to come out. The answer goes to the test's output.
    #[test]
    fn a_marker_that_comes_twice_is_answered_once() {
        let mut sink = sink(None);
        take(&mut sink, message::TRUSTED_APP, "audit(1.2:1): pid=9 msg='weigh-1 1 7'");
        take(&mut sink, message::SYSCALL, "audit(1.2:3): pid=9 auid=7");
        take(&mut sink, message::TRUSTED_APP, "audit(1.2:4): pid=9 msg='weigh-1 1 7'");
        assert_eq!((sink.answered, sink.tally.close_window(2, 7).treated_events), (1, 1));
    }

    #[test]
    fn who_logs_or_ships_is_the_receiver_and_who_only_counts_is_not() {
        assert!(request(Some("log".into()), None).is_receiver());
        assert!(request(None, Some(3)).is_receiver() && !request(None, None).is_receiver());
    }

    #[test]
    fn records_are_logged_with_their_types_and_counted_by_their_bytes_there() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("audit.log");
        let mut sink = sink(Some(&path));
        for (kind, text) in [
            (2, "an acknowledgement"),
            (message::SYSCALL, "audit(1.2:3): pid=9 auid=7\0"),
            (message::EOE, "audit(1.2:3): "),
            (1800, "audit(1.2:4): pid=9 auid=7"),
            (message::TRUSTED_APP, "audit(1.2:5): pid=9 msg='weigh-2 1 7'"),
        ] {
            take(&mut sink, kind, text);
        }
        let of_syscall = "type=SYSCALL msg=audit(1.2:3): pid=9 auid=7\n";
        let of_another = "type=TRUSTED_APP msg=audit(1.2:5): pid=9 msg='weigh-2 1 7'\n";
        assert_eq!(std::fs::read_to_string(&path).unwrap(), [of_syscall, of_another].concat());
        let counts = sink.tally.close_window(1, 7);
        let bytes = of_syscall.len() as u64;
        assert_eq!((counts.treated_records, counts.treated_log_bytes), (2, bytes));
        assert_eq!((counts.received, sink.answered), (2, 0));
    }

    #[test]
    fn a_marker_is_known_by_its_own_text() {
        let text = b"audit(1.2:3): pid=7 uid=0 msg='weigh-1 42 1994000003'";
        assert_eq!(marker(text, "weigh-1"), Some((42, 1_994_000_003)));
        assert_eq!(marker(text, "weigh-2"), None);
    }

    #[test]
    fn types_have_the_names_of_the_kernels_header() {
        assert_eq!([type_name(1313), type_name(1315)], ["MQ_SENDRECV", "MQ_GETSETATTR"]);
        let others = [1121, 1400, 1999].map(type_name);
        assert_eq!(others, ["TRUSTED_APP", "AVC", "UNKNOWN[1999]"]);
        let Ok(header) = std::fs::read_to_string("/usr/include/linux/audit.h") else {
            needs::skip("headers", "linux/audit.h is not installed");
            return;
        };
        for line in header.lines() {
            let mut words = line.split_whitespace();
            let (Some("#define"), Some(name), Some(number)) =
                (words.next(), words.next(), words.next())
            else {
                continue;
            };
            let (Some(name), Ok(kind)) = (name.strip_prefix("AUDIT_"), number.parse()) else {
                continue;
            };
            // A later header may have more.
            if (1300..1340).contains(&kind) {
                assert_eq!(type_name(kind), name, "{kind}");
            }
        }
    }
}
