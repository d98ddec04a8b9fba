//! Records of tasks that end: taskstats (`linux/taskstats.h`), over generic netlink.
//!
//! The kernel makes a record while anybody is registered for the CPU where a task ends. It forgets a
//! listener that died at the next record that it cannot deliver, so nobody has to undo a death.

use std::fs;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::io::Errno;
use rustix::net::sockopt::set_socket_recv_buffer_size_force;
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, bind, netlink, recv, send,
    socket_with,
};

use super::source::{Seen, Source};

/// `GENL_ID_CTRL`, `CTRL_CMD_GETFAMILY` and its attributes (`linux/genetlink.h`).
const CONTROLLER: u16 = 16;
const GET_FAMILY: u8 = 3;
const FAMILY_ID: u16 = 1;
const FAMILY_NAME: u16 = 2;
/// `TASKSTATS_CMD_GET` and its attributes that begin and end a registration.
const GET: u8 = 1;
const REGISTER: u16 = 3;
const DEREGISTER: u16 = 4;
/// Attributes of a record: about a thread (`TASKSTATS_TYPE_AGGR_PID`), and there its number.
const OF_THREAD: u16 = 4;
const NUMBER: u16 = 1;
/// Length of `struct nlmsghdr`; of `struct nlmsghdr` plus `struct genlmsghdr`.
const HEADER: usize = 16;
const HEADERS: usize = 20;
const REQUEST_WITH_ANSWER: u16 = (libc::NLM_F_REQUEST | libc::NLM_F_ACK) as u16;
const CPUS: &str = "/sys/devices/system/cpu/possible";
/// Size of the queue. It is large, because dropped records would hide a part of the cost.
const BUFFER_BYTES: usize = 16 << 20;

/// A listener. It is registered for the ends of all tasks from its begin to its end.
pub struct TaskRecords {
    socket: OwnedFd,
    family: u16,
    is_on: bool,
}

impl TaskRecords {
    /// Not yet registered.
    pub fn open() -> io::Result<TaskRecords> {
        let socket = open_socket()?;
        let name = [b"TASKSTATS".as_slice(), &[0]].concat();
        send(&socket, &request(CONTROLLER, GET_FAMILY, FAMILY_NAME, &name), SendFlags::empty())?;
        let mut buffer = [0u8; 4096];
        let (length, _) = recv(&socket, &mut buffer[..], RecvFlags::empty())?;
        let answer = &buffer[..length];
        failure(answer)?;
        let id = attribute(answer.get(HEADERS..).unwrap_or_default(), FAMILY_ID);
        let id = id.and_then(|id| Some(u16::from_ne_bytes(id.get(..2)?.try_into().ok()?)));
        let family = id.ok_or_else(|| io::Error::other("the kernel does not name taskstats"))?;
        Ok(TaskRecords { socket, family, is_on: false })
    }

    /// Begins or ends the registration. Takes effect before it returns.
    fn tell(&self, what: u16) -> io::Result<()> {
        let cpus = fs::read_to_string(CPUS)?;
        let cpus = [cpus.trim().as_bytes(), &[0]].concat();
        send(&self.socket, &request(self.family, GET, what, &cpus), SendFlags::empty())?;
        Ok(())
    }

    /// Takes a record, or the kernel's answer to a request.
    fn take(&self, message: &[u8], seen: &mut Seen) -> io::Result<()> {
        failure(message)?;
        if number16(message, 4) != Some(self.family) {
            return Ok(());
        }
        seen.events += 1;
        let thread = attribute(&message[HEADERS.min(message.len())..], OF_THREAD)
            .and_then(|of_thread| attribute(of_thread, NUMBER));
        if let Some(Ok(number)) = thread.map(<[u8; 4]>::try_from) {
            seen.by_process.insert(u32::from_ne_bytes(number), 1);
        }
        Ok(())
    }
}

impl Source for TaskRecords {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    /// Both arms begin with an empty queue.
    fn begin(&mut self, is_on: bool) -> io::Result<()> {
        *self = TaskRecords { socket: open_socket()?, family: self.family, is_on };
        if is_on { self.tell(REGISTER) } else { Ok(()) }
    }

    fn end(&mut self) -> io::Result<()> {
        if std::mem::take(&mut self.is_on) { self.tell(DEREGISTER) } else { Ok(()) }
    }

    fn receive(&mut self, seen: &mut Seen) -> io::Result<bool> {
        let mut buffer = [0u8; 4096];
        match recv(&self.socket, &mut buffer[..], RecvFlags::empty()) {
            Err(Errno::AGAIN) => return Ok(false),
            Err(Errno::INTR) => {}
            // The queue was full. The records have no numbers that show how many are missing.
            Err(Errno::NOBUFS) => seen.lost += 1,
            Err(error) => return Err(failed(error.into())),
            Ok((length, _)) => self.take(&buffer[..length], seen).map_err(failed)?,
        }
        Ok(true)
    }
}

fn failed(error: io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("cannot receive the records of tasks: {error}"))
}

/// Registers a listener for a moment.
///
/// # Errors
/// Why the kernel refuses.
pub fn try_out() -> io::Result<()> {
    let mut listener = TaskRecords::open()?;
    listener.begin(true)?;
    listener.end()?;
    listener.receive_all(&mut Seen::default())
}

fn open_socket() -> io::Result<OwnedFd> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let (kind, protocol) = (SocketType::DGRAM, Some(netlink::GENERIC));
    let socket = socket_with(AddressFamily::NETLINK, kind, flags, protocol)?;
    bind(&socket, &netlink::SocketAddrNetlink::new(0, 0))?;
    set_socket_recv_buffer_size_force(&socket, BUFFER_BYTES)?;
    Ok(socket)
}

/// A request with one attribute.
fn request(family: u16, command: u8, attribute: u16, value: &[u8]) -> Vec<u8> {
    let of_attribute = 4 + value.len() as u16;
    let padding = vec![0; value.len().next_multiple_of(4) - value.len()];
    let length = (HEADERS + 4 + value.len() + padding.len()) as u32;
    let mut bytes = length.to_ne_bytes().to_vec();
    bytes.extend([family, REQUEST_WITH_ANSWER].into_iter().flat_map(u16::to_ne_bytes));
    bytes.extend([0; 8]);
    bytes.extend([command, 1, 0, 0]);
    bytes.extend([of_attribute, attribute].into_iter().flat_map(u16::to_ne_bytes));
    bytes.extend(value);
    bytes.extend(padding);
    bytes
}

fn number16(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_ne_bytes(bytes.get(at..at + 2)?.try_into().ok()?))
}

/// The error in an answer of the kernel, if it is one.
fn failure(message: &[u8]) -> io::Result<()> {
    let is_answer = number16(message, 4) == Some(libc::NLMSG_ERROR as u16);
    let code = message.get(HEADER..HEADER + 4).filter(|_| is_answer);
    match code.and_then(|code| code.try_into().ok()).map(i32::from_ne_bytes) {
        Some(code) if code != 0 => Err(io::Error::from_raw_os_error(-code)),
        _ => Ok(()),
    }
}

/// The value of the first attribute of a kind.
fn attribute(mut bytes: &[u8], wanted: u16) -> Option<&[u8]> {
    loop {
        let (length, kind) = (usize::from(number16(bytes, 0)?), number16(bytes, 2)?);
        let value = bytes.get(4..length)?;
        if kind == wanted {
            return Some(value);
        }
        bytes = bytes.get(length.next_multiple_of(4)..)?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::short_process;

    #[test]
    fn foreign_attributes_have_an_end() {
        let two = [&[6, 0, 9, 0, 1, 2, 0, 0][..], &[8, 0, 1, 0, 7, 0, 0, 0]].concat();
        assert_eq!(attribute(&two, 9), Some(&[1, 2][..]));
        assert_eq!(attribute(&two, 1), Some(&[7, 0, 0, 0][..]));
        assert_eq!(attribute(&two, 3), None);
        for broken in [&[0, 0, 1, 0][..], &[9, 0, 1, 0, 7], &[8, 0]] {
            assert_eq!(attribute(broken, 1), None);
        }
    }

    #[test]
    fn a_process_that_ends_has_a_record_only_while_the_listener_is_registered() {
        if let Err(error) = try_out() {
            return needs::skip("taskstats", &format!("no records of tasks: {error}"));
        }
        let mut listener = TaskRecords::open().unwrap();
        let mut of = |is_on| {
            let mut seen = Seen::default();
            listener.begin(is_on).unwrap();
            let ended = short_process::end_one().unwrap();
            listener.end().unwrap();
            short_process::end_one().unwrap();
            listener.receive_all(&mut seen).unwrap();
            (seen.events, seen.by_process.contains_key(&ended))
        };
        let (events, has_ended) = of(true);
        assert!(events >= 1 && has_ended, "{events}");
        assert_eq!(of(false), (0, false));
    }
}
