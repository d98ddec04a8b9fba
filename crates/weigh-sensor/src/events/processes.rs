//! Events of processes: the process connector (`NETLINK_CONNECTOR`, `CN_IDX_PROC`).
//!
//! The kernel counts the listeners, and makes no event while it counts none. It does not notice that a
//! listener died. So whoever undoes a death finds out whether the kernel still makes events that nobody
//! receives, and then takes one off that count.

use std::collections::HashMap;
use std::fs;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::net::sockopt::set_socket_recv_buffer_size_force;
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, bind, netlink, recv, send,
    socket_with,
};

use super::source::{Seen, Source};
use crate::short_process;
use weigh_host::orphans::wait_until;

/// `CN_IDX_PROC` and `CN_VAL_PROC` of `include/uapi/linux/connector.h`; the first is also the group.
const PROCESSES: u32 = 1;
/// `enum proc_cn_mcast_op` of `include/uapi/linux/cn_proc.h`.
const LISTEN: u32 = 1;
const IGNORE: u32 = 2;
/// Number of no operation. The kernel remembers it as the last one of its socket.
const UNKNOWN: u32 = 99;
/// Values of `enum proc_cn_event`, there.
const FORK: u32 = 1;
const EXEC: u32 = 2;
const EXIT: u32 = 0x8000_0000;
/// Answers the kernel gives to an operation.
const ACKNOWLEDGED: u32 = 0;
/// Bytes of `struct nlmsghdr` and `struct cn_msg`, and where the latter has the sequence number.
const HEADER: usize = 16;
const MESSAGE: usize = 20;
const SEQUENCE: usize = HEADER + 8;
/// Bytes of `struct proc_event` before the processes.
const EVENT: usize = 16;
/// A queue that drops events would make them cheaper.
const BUFFER_BYTES: usize = 16 << 20;
/// A listener that was killed leaves the group in moments.
const LEAVES_WITHIN: Duration = Duration::from_secs(3);
/// Dead listeners that are looked for. Other programs may have left some, too.
const MOST_DEAD: usize = 100;
/// Number of kinds of events that show a process from its start to its end: fork, exec and exit.
pub const WHOLE_LIFE: u64 = 3;

/// A listener. It is a member of the group that gets the events from its begin to its end.
pub struct Processes {
    socket: OwnedFd,
    is_on: bool,
    /// Kinds of events of each process.
    kinds: HashMap<u32, u32>,
    /// The next sequence number of each CPU.
    next: HashMap<u32, u32>,
}

impl Processes {
    /// Not yet a member: the kernel would send it the events that another arm switches on.
    pub fn open() -> io::Result<Processes> {
        open_socket().map(Processes::over)
    }

    fn over(socket: OwnedFd) -> Processes {
        Processes { socket, is_on: false, kinds: HashMap::new(), next: HashMap::new() }
    }

    fn take(&mut self, message: &[u8], seen: &mut Seen) {
        let number = |at: usize| {
            let bytes = message.get(at..at + 4)?;
            Some(u32::from_ne_bytes(bytes.try_into().ok()?))
        };
        let processes = HEADER + MESSAGE + EVENT;
        let (Some(what), Some(cpu), Some(sequence)) =
            (number(HEADER + MESSAGE), number(HEADER + MESSAGE + 4), number(SEQUENCE))
        else {
            return;
        };
        if what == ACKNOWLEDGED {
            return;
        }
        seen.events += 1;
        if let Some(expected) = self.next.insert(cpu, sequence.wrapping_add(1)) {
            seen.lost += u64::from(sequence.wrapping_sub(expected));
        }
        // Threads have the number of their process beside their own.
        let whose = match what {
            FORK => number(processes + 8).zip(number(processes + 12)),
            EXEC | EXIT => number(processes).zip(number(processes + 4)),
            _ => None,
        };
        if let Some((process, _)) = whose.filter(|(thread, process)| thread == process) {
            let kinds = self.kinds.entry(process).or_default();
            *kinds |= what;
            seen.by_process.insert(process, u64::from(kinds.count_ones()));
        }
    }
}

impl Source for Processes {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    /// A new member that listens to nothing receives the events that others switched on.
    fn begin(&mut self, is_on: bool) -> io::Result<()> {
        *self = Processes::over(join()?);
        if is_on {
            self.is_on = true;
            tell(&self.socket, LISTEN)?;
        }
        Ok(())
    }

    /// Leaves the group: the kernel would also send it the events that another arm switches on.
    fn end(&mut self) -> io::Result<()> {
        if std::mem::take(&mut self.is_on) {
            tell(&self.socket, IGNORE)?;
        }
        leave(&self.socket)
    }

    fn receive(&mut self, seen: &mut Seen) -> io::Result<bool> {
        let mut buffer = [0u8; 4096];
        match recv(&self.socket, &mut buffer[..], RecvFlags::empty()) {
            Err(Errno::AGAIN) => Ok(false),
            // The queue was full; the sequence numbers show how much is missing.
            Err(Errno::INTR | Errno::NOBUFS) => Ok(true),
            Err(error) => {
                Err(io::Error::other(format!("cannot receive an event of a process: {error}")))
            }
            Ok((length, _)) => {
                self.take(&buffer[..length], seen);
                Ok(true)
            }
        }
    }
}

fn open_socket() -> io::Result<OwnedFd> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let (kind, protocol) = (SocketType::DGRAM, Some(netlink::CONNECTOR));
    Ok(socket_with(AddressFamily::NETLINK, kind, flags, protocol)?)
}

/// Opens a socket that gets all events which the kernel makes.
fn join() -> io::Result<OwnedFd> {
    let socket = open_socket()?;
    bind(&socket, &netlink::SocketAddrNetlink::new(0, 1 << (PROCESSES - 1)))?;
    set_socket_recv_buffer_size_force(&socket, BUFFER_BYTES)?;
    Ok(socket)
}

fn leave(socket: &OwnedFd) -> io::Result<()> {
    let group = PROCESSES;
    // SAFETY: the kernel reads a number of this size there.
    let status = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::SOL_NETLINK,
            libc::NETLINK_DROP_MEMBERSHIP,
            (&raw const group).cast(),
            size_of_val(&group) as libc::socklen_t,
        )
    };
    if status == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Sends an operation, which has its effect before this returns.
fn tell(socket: &OwnedFd, operation: u32) -> io::Result<()> {
    let length = (HEADER + MESSAGE + size_of::<u32>()) as u32;
    let (kind_and_flags, of_operation) = (libc::NLMSG_DONE as u32, size_of::<u32>() as u32);
    let header = [length, kind_and_flags, 0, 0];
    let message = [PROCESSES, PROCESSES, 0, 0, of_operation];
    let words = header.into_iter().chain(message).chain([operation]);
    let bytes: Vec<u8> = words.flat_map(u32::to_ne_bytes).collect();
    send(socket, &bytes, SendFlags::empty()).map(drop).map_err(|error| {
        io::Error::other(format!("cannot switch the events of processes: {error}"))
    })
}

/// Returns true if the kernel makes events now: for another listener, or for one that died.
pub fn are_on() -> Result<bool, String> {
    let failed = |error: io::Error| format!("cannot open the process connector: {error}");
    let mut witness = Processes::over(join().map_err(failed)?);
    let ended = short_process::end_one()?;
    Ok(received(&mut witness).map_err(failed)?.by_process.contains_key(&ended))
}

/// Leaves the group and receives what waits: to a member on a busy machine, events may come without end.
fn received(member: &mut Processes) -> io::Result<Seen> {
    let mut seen = Seen::default();
    member.end()?;
    while member.receive(&mut seen)? {}
    Ok(seen)
}

/// Returns true if somebody is a member of the group that gets the events.
fn has_members() -> Result<bool, String> {
    const LIST: &str = "/proc/net/netlink";
    let list = fs::read_to_string(LIST).map_err(|error| format!("{LIST}: {error}"))?;
    let mut sockets = list.lines().skip(1).map(|line| line.split_whitespace());
    Ok(sockets.any(|mut fields| {
        let is_connector = fields.nth(1) == Some(&libc::NETLINK_CONNECTOR.to_string());
        let groups = fields.nth(1).and_then(|groups| u32::from_str_radix(groups, 16).ok());
        is_connector && groups.is_some_and(|groups| groups & (1 << (PROCESSES - 1)) != 0)
    }))
}

/// Waits until nobody is a member of the group; `false` if somebody stays.
fn are_members_gone() -> Result<bool, String> {
    let mut members = Ok(true);
    wait_until(Instant::now() + LEAVES_WITHIN, || {
        members = has_members();
        members != Ok(true)
    });
    members.map(|is_one| !is_one)
}

/// Has the kernel make no events for listeners that died.
///
/// # Errors
/// If a listener lives: then nobody can know how many of those that the kernel counts do.
pub fn end_for_the_dead() -> Result<(), String> {
    let failed = |error: io::Error| error.to_string();
    for _ in 0..MOST_DEAD {
        if !are_on()? {
            return Ok(());
        }
        if !are_members_gone()? {
            return Err("another program listens to the process connector (`cat /proc/net/netlink`, Eth 11), \
                        so weigh cannot tell whether the kernel still makes events of processes for a \
                        listener of weigh's that died: end that program, and run `weigh restore`"
                .into());
        }
        // The events may have been for a program that has ended in the meantime. With a count below zero, the
        // kernel would make none for the next one; so look again, and whether one began while we looked.
        if !are_on()? || has_members()? {
            continue;
        }
        // It counts one listener less for a socket whose last operation was another one.
        let socket = join().map_err(failed)?;
        tell(&socket, UNKNOWN).map_err(failed)?;
        tell(&socket, IGNORE).map_err(failed)?;
    }
    Err(format!(
        "the kernel still makes events of processes, although weigh ended them {MOST_DEAD} times for \
         listeners that died: end the programs that listen (`cat /proc/net/netlink`, Eth 11), or restart \
         the machine, and run `weigh restore`"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::net::getsockname;

    fn event(what: u32, cpu: u32, sequence: u32, processes: [u32; 4]) -> Vec<u8> {
        let header = [0; HEADER / 4];
        let message = [PROCESSES, PROCESSES, sequence, 0, 40];
        let event = [what, cpu, 0, 0];
        let words = header.into_iter().chain(message).chain(event).chain(processes);
        words.flat_map(u32::to_ne_bytes).collect()
    }

    fn seen(events: &[Vec<u8>]) -> Seen {
        let socket = rustix::pipe::pipe().unwrap().0;
        let mut processes = Processes::over(socket);
        let mut seen = Seen::default();
        events.iter().for_each(|event| processes.take(event, &mut seen));
        seen
    }

    #[test]
    fn a_process_that_was_seen_from_its_fork_to_its_end_has_three_kinds_of_events() {
        let whole = [
            event(FORK, 0, 5, [3, 3, 7, 7]),
            event(EXEC, 1, 9, [7, 7, 0, 0]),
            event(EXEC, 1, 10, [7, 7, 0, 0]),
            event(FORK, 1, 11, [7, 7, 8, 7]),
            event(EXIT, 1, 12, [8, 7, 0, 0]),
            event(EXIT, 0, 6, [7, 7, 0, 0]),
        ];
        let all = seen(&whole);
        assert_eq!((all.events, all.lost), (6, 0));
        assert_eq!(all.by_process, HashMap::from([(7, WHOLE_LIFE)]));
        assert!(seen(&whole[..5]).by_process[&7] < WHOLE_LIFE, "it ended unseen");
        assert!(seen(&whole[1..]).by_process[&7] < WHOLE_LIFE, "it began unseen");
    }

    fn is_member(processes: &Processes) -> bool {
        let address = getsockname(&processes.socket).unwrap();
        netlink::SocketAddrNetlink::try_from(address).unwrap().groups() != 0
    }

    #[test]
    fn a_listener_is_a_member_only_from_its_begin_to_its_end() {
        let mut processes = Processes::open().unwrap();
        assert!(!is_member(&processes), "it receives what other arms switch on");
        // Only root may have a queue of this size.
        if !rustix::process::geteuid().is_root() {
            return;
        }
        processes.begin(false).unwrap();
        assert!(is_member(&processes));
        received(&mut processes).unwrap();
        assert!(!is_member(&processes), "it may receive without end");
    }

    #[test]
    fn a_gap_in_the_numbers_of_a_cpu_is_what_was_lost() {
        let exit = |cpu, sequence| event(EXIT, cpu, sequence, [7, 7, 0, 0]);
        let events = [exit(0, u32::MAX), exit(1, 8), exit(0, 2), exit(1, 9)];
        assert_eq!(seen(&events).lost, 2);
        assert_eq!(seen(&[event(ACKNOWLEDGED, 0, 7, [0; 4]), vec![0; 20]]).events, 0);
    }
}
