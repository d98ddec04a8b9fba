//! Events of files: fanotify(7). Whatever waits for an answer is allowed.

use std::ffi::CString;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use super::source::{Seen, Source};

/// Events that a listener receives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Events {
    /// None: it marks nothing.
    Off,
    /// Opens and closes, after the fact.
    Notify,
    /// Reads and writes, after the fact.
    Access,
    /// Opens, which wait for its answer.
    OpenPerm,
    /// Reads, which wait for its answer.
    AccessPerm,
}

impl Events {
    /// Returns true if processes wait for an answer to each event.
    pub fn wait(self) -> bool {
        matches!(self, Events::OpenPerm | Events::AccessPerm)
    }

    fn mask(self) -> Option<u64> {
        match self {
            Events::Off => None,
            Events::Notify => Some(libc::FAN_OPEN | libc::FAN_CLOSE),
            Events::Access => Some(libc::FAN_ACCESS | libc::FAN_MODIFY),
            Events::OpenPerm => Some(libc::FAN_OPEN_PERM),
            Events::AccessPerm => Some(libc::FAN_ACCESS_PERM),
        }
    }
}

/// Events of files to listen for, and their place.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct WatchedMounts {
    pub events: Events,
    /// Their mounts are marked.
    pub directories: Vec<PathBuf>,
    /// True if all mounts of their file systems are marked.
    pub has_file_system: bool,
    /// Time that the listener waits before each answer.
    pub delay: Duration,
}

/// The kernel opens a file for each event of a read(2). If it cannot, it denies what waits for the answer.
const MOST_AT_ONCE: usize = 8;

/// Opens a group of fanotify without marks: it changes nothing.
pub fn open_group(events: Events) -> io::Result<OwnedFd> {
    let class = if events.wait() { libc::FAN_CLASS_CONTENT } else { libc::FAN_CLASS_NOTIF };
    // A queue that drops events would make them cheaper.
    let flags = class | libc::FAN_CLOEXEC | libc::FAN_NONBLOCK | libc::FAN_UNLIMITED_QUEUE;
    // A FIFO that nobody writes to must not block the listener.
    let of_files = libc::O_RDONLY | libc::O_LARGEFILE | libc::O_CLOEXEC | libc::O_NONBLOCK;
    // SAFETY: it takes no pointers.
    let group = unsafe { libc::fanotify_init(flags, of_files as libc::c_uint) };
    match group {
        -1 => Err(io::Error::last_os_error()),
        // SAFETY: it was just opened for us.
        group => Ok(unsafe { OwnedFd::from_raw_fd(group) }),
    }
}

/// Adds or removes a mark.
///
/// # Errors
/// `EINVAL` if the kernel was built without the events that wait for an answer.
pub fn mark(group: &OwnedFd, flags: libc::c_uint, mask: u64, path: &Path) -> io::Result<()> {
    let path = CString::new(path.as_os_str().as_bytes())?;
    // SAFETY: an open descriptor, and a string that lives.
    let done = unsafe {
        libc::fanotify_mark(group.as_raw_fd(), flags, mask, libc::AT_FDCWD, path.as_ptr())
    };
    if done == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// An event of a file, which is open for reading.
pub struct Event {
    pub pid: i32,
    pub mask: u64,
    pub file: OwnedFd,
}

/// Returns true if events wait.
pub fn has_events(group: &OwnedFd) -> io::Result<bool> {
    loop {
        match poll(&mut [PollFd::new(group, PollFlags::IN)], Some(&Timespec::default())) {
            Err(Errno::INTR) => {}
            other => return Ok(other? > 0),
        }
    }
}

/// Receives the events of one read(2). None if no event waits, and also if the kernel cannot open the file of
/// the first one at once, because another program has a lease on it: that event is gone, and others may wait.
/// An event that waits for an answer also goes with its process.
pub fn events(group: &OwnedFd) -> io::Result<Vec<Event>> {
    const EVENT_BYTES: usize = size_of::<libc::fanotify_event_metadata>();
    let mut buffer = [0u8; MOST_AT_ONCE * EVENT_BYTES];
    let length = loop {
        match rustix::io::read(group, &mut buffer) {
            Err(Errno::AGAIN) => return Ok(Vec::new()),
            Err(Errno::INTR) => {}
            other => {
                break other.map_err(|error| {
                    io::Error::other(format!("cannot receive an event of fanotify: {error}"))
                })?;
            }
        }
    };
    let (mut events, mut unread) = (Vec::new(), &buffer[..length]);
    while unread.len() >= EVENT_BYTES {
        // SAFETY: so many bytes were read, and any bytes are a valid value of it.
        let event =
            unsafe { unread.as_ptr().cast::<libc::fanotify_event_metadata>().read_unaligned() };
        if event.vers != libc::FANOTIFY_METADATA_VERSION || event.fd < 0 {
            return Err(io::Error::other("fanotify sent an event in an unknown form"));
        }
        // SAFETY: the kernel opened it for us with this event.
        let file = unsafe { OwnedFd::from_raw_fd(event.fd) };
        events.push(Event { pid: event.pid, mask: event.mask, file });
        let length = (event.event_len as usize).max(EVENT_BYTES);
        unread = unread.get(length..).unwrap_or_default();
    }
    Ok(events)
}

/// A group of fanotify with its marks.
pub struct Files {
    watched: WatchedMounts,
    group: OwnedFd,
    is_marked: bool,
}

impl Files {
    pub fn open(watched: WatchedMounts) -> io::Result<Files> {
        let group = open_group(watched.events)?;
        Ok(Files { watched, group, is_marked: false })
    }

    fn set_marked(&mut self, is_marked: bool) -> io::Result<()> {
        let Some(mask) = self.watched.events.mask().filter(|_| self.is_marked != is_marked) else {
            return Ok(());
        };
        // Two directories may be on one mount, whose mark can be removed only once.
        let (action, mask) = match is_marked {
            true => (libc::FAN_MARK_ADD, mask),
            false => (libc::FAN_MARK_FLUSH, 0),
        };
        let extent = match self.watched.has_file_system {
            true => libc::FAN_MARK_FILESYSTEM,
            false => libc::FAN_MARK_MOUNT,
        };
        for directory in &self.watched.directories {
            mark(&self.group, action | extent, mask, directory).map_err(|error| {
                let place = directory.display();
                io::Error::other(format!("cannot mark {place} for fanotify: {error}"))
            })?;
        }
        self.is_marked = is_marked;
        Ok(())
    }

    fn answer(&self, Event { mask, file, .. }: &Event) -> io::Result<()> {
        if mask & (libc::FAN_OPEN_PERM | libc::FAN_ACCESS_PERM) == 0 {
            return Ok(());
        }
        if !self.watched.delay.is_zero() {
            std::thread::sleep(self.watched.delay);
        }
        let response = libc::fanotify_response { fd: file.as_raw_fd(), response: libc::FAN_ALLOW };
        // SAFETY: the structure is plain data that lives across the call.
        let written = unsafe {
            libc::write(
                self.group.as_raw_fd(),
                (&raw const response).cast(),
                size_of::<libc::fanotify_response>(),
            )
        };
        match (written, io::Error::last_os_error()) {
            (0.., _) => Ok(()),
            // The process that waited was killed.
            (_, error) if error.raw_os_error() == Some(libc::ENOENT) => Ok(()),
            (_, error) => Err(io::Error::other(format!("cannot answer fanotify: {error}"))),
        }
    }
}

impl Source for Files {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.group.as_fd()
    }

    fn begin(&mut self, is_on: bool) -> io::Result<()> {
        self.set_marked(is_on)
    }

    fn end(&mut self) -> io::Result<()> {
        self.set_marked(false)
    }

    fn receive(&mut self, seen: &mut Seen) -> io::Result<bool> {
        let events = events(&self.group)?;
        seen.lost += u64::from(events.is_empty());
        for event in &events {
            seen.events += 1;
            *seen.by_process.entry(event.pid as u32).or_default() += 1;
            self.answer(event)?;
        }
        Ok(!events.is_empty())
    }

    fn receive_all(&mut self, seen: &mut Seen) -> io::Result<()> {
        while has_events(&self.group)? {
            self.receive(seen)?;
        }
        Ok(())
    }
}

/// Tries what a listener needs, and changes nothing: it marks a file that only this process has.
///
/// # Errors
/// The call that the kernel refused, with its error.
pub fn try_to_listen(events: Events) -> Result<(), CannotListen> {
    let group = open_group(events).map_err(CannotListen::Open)?;
    if !events.wait() {
        return Ok(());
    }
    let own = rustix::fs::memfd_create("weigh-probe", rustix::fs::MemfdFlags::CLOEXEC);
    let tried = own.map_err(io::Error::from).and_then(|own| {
        let path = format!("/proc/self/fd/{}", own.as_raw_fd());
        mark(&group, libc::FAN_MARK_ADD, libc::FAN_OPEN_PERM, Path::new(&path))
    });
    tried.map_err(CannotListen::Mark)
}

/// The call that refuses a listener.
pub enum CannotListen {
    Open(io::Error),
    Mark(io::Error),
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::os::fd::AsRawFd;

    use rustix::fs::{MemfdFlags, memfd_create};

    use super::*;

    /// The kernel opens a file for each event, without waiting for the end of a lease.
    #[test]
    fn an_event_whose_file_has_a_lease_is_lost_and_the_others_are_received() {
        if !needs::root() {
            return;
        }
        let watched = WatchedMounts {
            events: Events::Notify,
            directories: Vec::new(),
            has_file_system: false,
            delay: Duration::ZERO,
        };
        let mut files = Files::open(watched).unwrap();
        let opened = || {
            let memory = memfd_create("weigh-test", MemfdFlags::CLOEXEC).unwrap();
            let path = PathBuf::from(format!("/proc/self/fd/{}", memory.as_raw_fd()));
            mark(&files.group, libc::FAN_MARK_ADD, libc::FAN_OPEN, &path).unwrap();
            File::open(path).unwrap()
        };
        let [leased, _other] = [opened(), opened()];
        // SAFETY: one ignores a signal, which would end this process, and the other takes numbers.
        let has_lease = unsafe {
            libc::signal(libc::SIGIO, libc::SIG_IGN);
            libc::fcntl(leased.as_raw_fd(), libc::F_SETLEASE, libc::F_WRLCK)
        };
        assert_eq!(has_lease, 0, "{}", io::Error::last_os_error());
        let mut seen = Seen::default();
        files.receive_all(&mut seen).unwrap();
        assert_eq!((seen.events, seen.lost), (1, 1));
    }
}
