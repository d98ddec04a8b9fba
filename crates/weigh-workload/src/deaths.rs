//! Processes that an error killed while their parents hid it: a shell reaps such a child and goes on.
//!
//! The kernel reports each exit to its listeners (taskstats; this takes root in the initial PID namespace). A
//! filter on our socket drops the reports of all other exits, so nothing wakes the launcher while all goes
//! well. The kernel removes a listener whose socket is closed. It sends the report before it notifies the
//! parent. So `/proc` still shows the dead process's ancestors, unless its parent reaps it very fast.

use std::fs;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, netlink, recv, send, socket_with,
};

use weigh_host::machine::stat::Stat;
use weigh_host::orphans::OF_ERRORS;

/// The kernel answers within the call.
const LIMIT: Duration = Duration::from_secs(5);
/// No message of taskstats is longer.
const MOST_BYTES: usize = 4096;
const POSSIBLE_CPUS: &str = "/sys/devices/system/cpu/possible";
/// No command has so many processes below each other; a circle of numbers that came again has an end.
const MOST_GENERATIONS: usize = 10_000;

/// netlink(7), `linux/genetlink.h` and `linux/taskstats.h`.
const NLM_F_REQUEST: u16 = 1;
const NLM_F_ACK: u16 = 4;
const NLMSG_ERROR: u16 = 2;
const CTRL_CMD_GETFAMILY: u8 = 3;
const CTRL_ATTR_FAMILY_ID: u16 = 1;
const CTRL_ATTR_FAMILY_NAME: u16 = 2;
const FAMILY: &[u8] = b"TASKSTATS\0";
const TASKSTATS_CMD_GET: u8 = 1;
const REGISTER: u16 = 3;
const DEREGISTER: u16 = 4;
/// Where things are in a message: behind its two headers there is a number of a process, in an attribute
/// within another, and then `struct taskstats`.
const ATTRIBUTES_AT: usize = 20;
const PID_AT: usize = 28;
const STATS_AT: usize = 36;
const EXIT_CODE_AT: usize = STATS_AT + 4;
const FLAGS_AT: usize = STATS_AT + 8;
const PARENT_AT: usize = STATS_AT + 132;
const LIVED_US_AT: usize = STATS_AT + 144;
/// `AGROUP` of `linux/acct.h`, from this version on: the last thread of its process. All have its exit code.
const LAST_THREAD: (u16, u8) = (12, 0x20);
/// Reports beyond this number are dropped: a list of them says no more.
const MOST_FOUND: usize = 1000;
/// The version of `struct taskstats` with new fields before `PARENT_AT` and `LIVED_US_AT`.
const OTHER_LAYOUT: u16 = 15;

/// Listens for deaths while a worker runs.
pub struct DeathWatch {
    socket: OwnedFd,
    family: u16,
    cpus: Vec<u8>,
    began: Instant,
    found: Vec<i32>,
}

/// A process that an error has just killed.
struct Death {
    pid: u32,
    /// 0 where it is not known.
    parent: u32,
    signal: i32,
    lived: Duration,
}

impl DeathWatch {
    /// Opens the socket without listening yet; `None` where the kernel reports no deaths to this process.
    /// Call this in the launcher's first network namespace.
    pub fn open() -> io::Result<Option<DeathWatch>> {
        match DeathWatch::try_open() {
            Err(error) if is_refusal(&error) => Ok(None),
            other => other.map(Some),
        }
    }

    fn try_open() -> io::Result<DeathWatch> {
        let (kind, flags) = (SocketType::RAW, SocketFlags::CLOEXEC);
        let protocol = Some(netlink::GENERIC);
        let socket = socket_with(AddressFamily::NETLINK, kind, flags, protocol)?;
        set_socket_timeout(&socket, Timeout::Recv, Some(LIMIT))?;
        let mut cpus = fs::read(POSSIBLE_CPUS)?.trim_ascii_end().to_vec();
        cpus.push(0);
        let mut watch =
            DeathWatch { socket, family: 0, cpus, began: Instant::now(), found: Vec::new() };
        watch.family = watch.find_family()?;
        watch.filter()?;
        Ok(watch)
    }

    /// Starts listening; `false` where the kernel reports no deaths to this process.
    pub fn begin(&mut self) -> io::Result<bool> {
        self.began = Instant::now();
        self.found.clear();
        match self.order(REGISTER) {
            Err(error) if is_refusal(&error) => Ok(false),
            other => other.map(|()| true),
        }
    }

    pub fn end(&self) -> io::Result<()> {
        self.order(DEREGISTER)
    }

    /// Reads the deaths reported so far, and keeps those of the worker's descendants. The worker's own death
    /// shows in its exit status. Descendants of a process that `is_left_out` do not belong to the worker.
    pub fn hear(&mut self, worker: u32, is_left_out: impl Fn(u32) -> bool) -> io::Result<()> {
        while let Some(message) = self.receive(RecvFlags::DONTWAIT)? {
            let Some(death) = Death::of(&message, self.family) else { continue };
            let is_recent = death.lived < self.began.elapsed();
            if self.found.len() < MOST_FOUND
                && death.pid != worker
                && death.is_below(worker, &is_left_out).unwrap_or(is_recent)
            {
                self.found.push(death.signal);
            }
        }
        Ok(())
    }

    /// The signals that killed processes of this worker.
    pub fn take(&mut self) -> Vec<i32> {
        std::mem::take(&mut self.found)
    }

    fn order(&self, attribute: u16) -> io::Result<()> {
        let flags = NLM_F_REQUEST | NLM_F_ACK;
        self.send(self.family, flags, TASKSTATS_CMD_GET, (attribute, &self.cpus))?;
        loop {
            let message = self.receive(RecvFlags::empty())?.ok_or(io::ErrorKind::TimedOut)?;
            if kind_of(&message) == NLMSG_ERROR {
                return acknowledged(&message);
            }
        }
    }

    /// The number by which this kernel calls taskstats.
    fn find_family(&self) -> io::Result<u16> {
        let (control, name) = (libc::GENL_ID_CTRL as u16, (CTRL_ATTR_FAMILY_NAME, FAMILY));
        self.send(control, NLM_F_REQUEST, CTRL_CMD_GETFAMILY, name)?;
        let message = self.receive(RecvFlags::empty())?.ok_or(io::ErrorKind::TimedOut)?;
        if kind_of(&message) == NLMSG_ERROR {
            acknowledged(&message)?;
        }
        let mut at = ATTRIBUTES_AT;
        while let (Some(length), Some(kind)) = (u16_at(&message, at), u16_at(&message, at + 2)) {
            if kind == CTRL_ATTR_FAMILY_ID {
                return u16_at(&message, at + 4).ok_or(io::ErrorKind::InvalidData.into());
            }
            at += usize::from(length).next_multiple_of(4).max(4);
        }
        Err(io::ErrorKind::NotFound.into())
    }

    /// Has the kernel drop the reports of all other exits. A BPF shift counts modulo 32, so signal 43 passes
    /// for 11 (SIGSEGV): `Death::of` checks the signal again.
    fn filter(&self) -> io::Result<()> {
        let signals = OF_ERRORS.iter().fold(0, |bits: u32, signal| bits | 1 << signal);
        // BPF loads as the network has it: a number of two bytes comes out with them exchanged.
        let family = u32::from(self.family.to_be());
        let program: [(u16, u8, u8, u32); 11] = [
            (0x28, 0, 0, 4),                   // the type of the message
            (0x15, 0, 7, family),              // another is let through
            (0x30, 0, 0, EXIT_CODE_AT as u32), // its lowest byte
            (0x54, 0, 0, 0x7f),                // has the signal
            (0x07, 0, 0, 0),
            (0x00, 0, 0, 1),
            (0x6c, 0, 0, 0), // 1 << signal
            (0x54, 0, 0, signals),
            (0x15, 1, 0, 0),
            (0x06, 0, 0, u32::MAX), // let through
            (0x06, 0, 0, 0),        // drop
        ];
        let mut program = program.map(|(code, jt, jf, k)| libc::sock_filter { code, jt, jf, k });
        let filter = libc::sock_fprog { len: program.len() as u16, filter: program.as_mut_ptr() };
        // SAFETY: the option takes such a program, and gets the address and size of one that lives.
        let status = unsafe {
            libc::setsockopt(
                self.socket.as_raw_fd(),
                libc::SOL_SOCKET,
                libc::SO_ATTACH_FILTER,
                (&raw const filter).cast(),
                size_of::<libc::sock_fprog>() as libc::socklen_t,
            )
        };
        if status == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    }

    fn send(&self, kind: u16, flags: u16, command: u8, attribute: (u16, &[u8])) -> io::Result<()> {
        let (name, value) = attribute;
        let length = value.len() + 4;
        let total = ATTRIBUTES_AT + length.next_multiple_of(4);
        let mut bytes = Vec::with_capacity(total);
        bytes.extend((total as u32).to_ne_bytes());
        bytes.extend([kind, flags].iter().flat_map(|number| number.to_ne_bytes()));
        bytes.extend([0; 8]);
        bytes.extend([command, 1, 0, 0]);
        bytes.extend([length as u16, name].iter().flat_map(|number| number.to_ne_bytes()));
        bytes.extend(value);
        bytes.resize(total, 0);
        send(&self.socket, &bytes, SendFlags::empty())?;
        Ok(())
    }

    /// The next message; `None` where there is none.
    fn receive(&self, flags: RecvFlags) -> io::Result<Option<Vec<u8>>> {
        let mut buffer = [0; MOST_BYTES];
        loop {
            match recv(&self.socket, &mut buffer[..], flags) {
                Ok((_, length)) => return Ok(Some(buffer[..length.min(MOST_BYTES)].to_vec())),
                Err(Errno::AGAIN) => return Ok(None),
                // Where there was no room for one, many others were told.
                Err(Errno::INTR | Errno::NOBUFS) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }
}

impl AsFd for DeathWatch {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

impl Death {
    fn of(message: &[u8], family: u16) -> Option<Death> {
        if kind_of(message) != family {
            return None;
        }
        let signal = (u32_at(message, EXIT_CODE_AT)? & 0x7f) as i32;
        let version = u16_at(message, STATS_AT)?;
        let (since, flag) = LAST_THREAD;
        let is_last = version < since || message.get(FLAGS_AT)? & flag != 0;
        let is_as_usual = version != OTHER_LAYOUT;
        let lived_us = u64::from_ne_bytes(*message.get(LIVED_US_AT..)?.first_chunk()?);
        let death = Death {
            pid: u32_at(message, PID_AT)?,
            parent: if is_as_usual { u32_at(message, PARENT_AT)? } else { 0 },
            signal,
            lived: Duration::from_micros(if is_as_usual { lived_us } else { 0 }),
        };
        // seccomp may kill one thread of several.
        (OF_ERRORS.contains(&signal) && (is_last || signal == libc::SIGSYS)).then_some(death)
    }

    /// Returns true if the process descends from the worker; `None` if that can no longer be seen.
    fn is_below(&self, worker: u32, is_left_out: &impl Fn(u32) -> bool) -> Option<bool> {
        // Orphans of the worker are children of this launcher.
        let own = std::process::id();
        let mut pid = self.pid;
        for _ in 0..MOST_GENERATIONS {
            if pid == worker || pid == own {
                return Some(true);
            }
            if pid <= 1 || is_left_out(pid) {
                return Some(false);
            }
            let told = Some(self.parent).filter(|parent| pid == self.pid && *parent > 0);
            // Also of one that is still to be reaped.
            pid = Stat::of(pid).ok().and_then(|stat| stat.parent()).or(told)?;
        }
        None
    }
}

/// Returns true if the kernel lacks the feature or refuses it to this process.
///
/// It refuses it to another user, or in another namespace.
fn is_refusal(error: &io::Error) -> bool {
    use libc::{EACCES, EAFNOSUPPORT, EINVAL, EOPNOTSUPP, EPERM, EPROTONOSUPPORT};
    let refusals = [EACCES, EAFNOSUPPORT, EINVAL, EOPNOTSUPP, EPERM, EPROTONOSUPPORT];
    error.kind() == io::ErrorKind::NotFound
        || error.raw_os_error().is_some_and(|code| refusals.contains(&code))
}

/// Reads the kernel's acknowledgement of a request.
fn acknowledged(message: &[u8]) -> io::Result<()> {
    match u32_at(message, 16).map(u32::cast_signed) {
        Some(0) => Ok(()),
        Some(code) => Err(io::Error::from_raw_os_error(-code)),
        None => Err(io::ErrorKind::InvalidData.into()),
    }
}

fn kind_of(message: &[u8]) -> u16 {
    u16_at(message, 4).unwrap_or_default()
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_ne_bytes(*bytes.get(at..)?.first_chunk()?))
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(*bytes.get(at..)?.first_chunk()?))
}
