//! The process that drains audit records while we measure, as a daemon would: one `poll`, one
//! `recv` and one `write` per record, a thread that flushes the file every 50 records (auditd's
//! `INCREMENTAL_ASYNC`, `freq = 50`), 8 MiB files. It counts what the treated processes caused.
//!
//! Protocol: the first line of stdin is a [`Request`]; every reply is a line of JSON on stdout.
//! The parent sends a marker through the kernel's queue; when it comes out here, all records that
//! were queued before it have been drained, and their [`Counts`] are the reply. End of input:
//! leave the audit socket and exit.

use std::collections::HashMap;
use std::io::{self, BufRead, Write};
use std::os::fd::OwnedFd;
use std::path::PathBuf;

use rustix::event::{PollFd, PollFlags, poll};
use serde::{Deserialize, Serialize};

use super::log_file::LogFile;
use super::netlink::{Client, Message, join_readlog, receive};
use super::status::Setting;
use super::{message, record};

/// What the parent wants.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Request {
    /// Where to write the log; `None` to count beside a healthy audit daemon, which writes its own.
    pub log: Option<PathBuf>,
    /// The login uid of the processes whose records count.
    pub treated_loginuid: u32,
    /// The file whose opening proves that auditing works; its own records are not counted.
    pub canary: PathBuf,
    /// Markers are text that starts with this.
    pub marker: String,
}

/// What a reply line says.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Reply {
    Ready,
    Error(String),
    Counts(Counts),
}

/// What came out of the queue between two markers.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    /// The number of the marker that closed this window.
    pub marker: u64,
    /// Events of treated processes.
    pub events: u64,
    /// Records of these events, the end-of-event record included.
    pub records: u64,
    /// Bytes that these events take in the log.
    pub log_bytes: u64,
    /// Processes that opened the canary and were audited doing so.
    pub canaries: Vec<u32>,
    /// Changes to the audit configuration that were recorded, by whomever.
    pub config_changes: Vec<String>,
    /// How often the socket's buffer overran, so that records were missed here.
    pub overruns: u64,
}

#[derive(Default)]
struct Event {
    pid: u32,
    records: u64,
    log_bytes: u64,
    is_canary: bool,
}

struct Sink {
    request: Request,
    log: Option<LogFile>,
    open_events: HashMap<u64, Event>,
    counts: Counts,
}

/// Runs the sink on stdin and stdout until end of input.
///
/// # Errors
/// Where stdin, stdout or the log file fail; the parent is told through [`Reply::Error`] first.
pub fn run() -> io::Result<()> {
    let mut line = String::new();
    io::stdin().lock().read_line(&mut line)?;
    let request: Request = serde_json::from_str(&line)?;
    let socket = match open(&request) {
        Ok(socket) => socket,
        Err(error) => return say(&Reply::Error(error.to_string())),
    };
    let log = request.log.as_deref().map(LogFile::create).transpose()?;
    let owns_socket = request.log.is_some();
    let counts = Counts::default();
    let mut sink = Sink { request, log, open_events: HashMap::new(), counts };
    say(&Reply::Ready)?;
    let result = sink.drain(&socket);
    if owns_socket {
        Client::open()?.set(Setting::Pid(0))?;
    }
    result
}

fn open(request: &Request) -> io::Result<OwnedFd> {
    let mut client = Client::open()?;
    if request.log.is_some() {
        // Records are sent to the very socket that this request comes from.
        client.set(Setting::Pid(std::process::id()))?;
        return Ok(client.into_socket());
    }
    let socket = client.into_socket();
    join_readlog(&socket)?;
    const BUFFER_BYTES: usize = 64 << 20;
    // A multicast reader cannot hold the kernel back: what does not fit is lost to it.
    rustix::net::sockopt::set_socket_recv_buffer_size_force(&socket, BUFFER_BYTES)?;
    Ok(socket)
}

fn say(reply: &Reply) -> io::Result<()> {
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
                    Ok(message) => self.take(&message)?,
                    Err(error) if error.raw_os_error() == Some(libc::ENOBUFS) => {
                        self.counts.overruns += 1;
                    }
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                    Err(error) => return Err(error),
                }
            } else if parent_gone {
                return Ok(());
            }
        }
    }

    fn take(&mut self, message: &Message) -> io::Result<()> {
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
        }
        self.count(message.kind, text, log_bytes);
        if message.kind == message::TRUSTED_APP
            && let Some(number) = marker_number(text, &self.request.marker)
        {
            self.reply(number)?;
        }
        Ok(())
    }

    fn count(&mut self, kind: u16, text: &[u8], log_bytes: u64) {
        let Some(serial) = record::serial(text) else { return };
        if kind == message::SYSCALL
            && record::number(text, "auid") == Some(u64::from(self.request.treated_loginuid))
        {
            let pid = record::number(text, "pid").unwrap_or(0) as u32;
            self.open_events.insert(serial, Event { pid, ..Event::default() });
        }
        if kind == message::CONFIG_CHANGE {
            self.counts.config_changes.push(String::from_utf8_lossy(text).into_owned());
        }
        let Some(event) = self.open_events.get_mut(&serial) else { return };
        event.records += 1;
        event.log_bytes += log_bytes;
        if kind == message::PATH {
            event.is_canary |= names(text, &self.request.canary);
        }
        if kind == message::EOE
            && let Some(event) = self.open_events.remove(&serial)
        {
            self.close(&event);
        }
    }

    fn close(&mut self, event: &Event) {
        if event.is_canary {
            self.counts.canaries.push(event.pid);
        } else {
            self.counts.events += 1;
            self.counts.records += event.records;
            self.counts.log_bytes += event.log_bytes;
        }
    }

    fn reply(&mut self, marker: u64) -> io::Result<()> {
        // An event without its end lost it; what did arrive still counts.
        let unfinished: Vec<Event> = self.open_events.drain().map(|(_, event)| event).collect();
        for event in &unfinished {
            self.close(event);
        }
        if let Some(log) = &self.log {
            log.wait_until_flushed();
        }
        self.counts.marker = marker;
        say(&Reply::Counts(std::mem::take(&mut self.counts)))
    }
}

/// `audit(…): pid=… msg='MARKER NUMBER'`.
fn marker_number(text: &[u8], marker: &str) -> Option<u64> {
    let text = std::str::from_utf8(text).ok()?;
    let (_, rest) = text.split_once(marker)?;
    rest.trim_start().split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
}

/// Whether a PATH record names this file; the kernel writes names with odd bytes in hex.
fn names(text: &[u8], path: &std::path::Path) -> bool {
    use std::os::unix::ffi::OsStrExt;
    let Some(name) = record::field(text, "name") else { return false };
    let bytes = path.as_os_str().as_bytes();
    name == bytes || name == bytes.iter().map(|b| format!("{b:02X}")).collect::<String>().as_bytes()
}

/// The names that auditd writes for the types which rules make; others by number, as it does too.
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
        1315 => "MQ_SENDRECV",
        1318 => "OBJ_PID",
        1321 => "BPRM_FCAPS",
        1322 => "CAPSET",
        1323 => "MMAP",
        1326 => "SECCOMP",
        1327 => "PROCTITLE",
        1334 => "BPF",
        1400 => "AVC",
        _ => return format!("UNKNOWN[{kind}]"),
    };
    name.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sink() -> Sink {
        let request = Request {
            log: None,
            treated_loginuid: 4244,
            canary: PathBuf::from("/tmp/canary"),
            marker: "weigh-1".into(),
        };
        let counts = Counts::default();
        Sink { request, log: None, open_events: HashMap::new(), counts }
    }

    fn event(sink: &mut Sink, serial: u64, auid: u32, path: &str) {
        let texts = [
            (message::SYSCALL, format!("audit(1.2:{serial}): arch=c syscall=2 pid=9 auid={auid}")),
            (message::PATH, format!("audit(1.2:{serial}): item=0 name=\"{path}\" inode=5")),
            (message::EOE, format!("audit(1.2:{serial}): ")),
        ];
        for (kind, text) in texts {
            sink.count(kind, text.as_bytes(), 10);
        }
    }

    #[test]
    fn only_treated_processes_are_counted_and_the_canary_apart() {
        let mut sink = sink();
        event(&mut sink, 1, 4244, "/etc/passwd");
        event(&mut sink, 2, 4243, "/etc/passwd");
        event(&mut sink, 3, 4244, "/tmp/canary");
        assert_eq!((sink.counts.events, sink.counts.records, sink.counts.log_bytes), (1, 3, 30));
        assert_eq!(sink.counts.canaries, [9]);
        assert!(sink.open_events.is_empty());
    }

    #[test]
    fn a_marker_is_known_by_its_own_text() {
        let text = b"audit(1.2:3): pid=7 uid=0 msg='weigh-1 42'";
        assert_eq!(marker_number(text, "weigh-1"), Some(42));
        assert_eq!(marker_number(text, "weigh-2"), None);
    }

    #[test]
    fn a_name_in_hex_is_the_same_name() {
        let canary = std::path::Path::new("/tmp/a b");
        assert!(names(b"audit(1.2:3): item=0 name=2F746D702F612062 inode=4", canary));
    }
}
