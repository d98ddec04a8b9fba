//! A network namespace that lives by a file descriptor: whoever dies leaves none behind.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::MetadataExt;
use std::thread;

use rustix::thread::{LinkNameSpaceType, UnshareFlags, move_into_link_name_space, unshare_unsafe};

/// The namespace of the calling thread.
const OWN: &str = "/proc/thread-self/ns/net";

/// A network namespace of ours. It is gone when this is, and the last process that joined it.
#[derive(Debug)]
pub struct Namespace {
    file: File,
}

impl Namespace {
    /// A new one, with nothing in it but a loopback interface that is down. The calling thread stays where
    /// it is.
    ///
    /// # Errors
    /// `EPERM` without `CAP_SYS_ADMIN` in the user namespace of this process.
    pub fn new() -> io::Result<Namespace> {
        let make = || {
            // SAFETY: this thread shares no file descriptors that it would lose.
            unsafe { unshare_unsafe(UnshareFlags::NEWNET) }?;
            Ok(Namespace { file: File::open(OWN)? })
        };
        in_a_thread(make)
    }

    /// Does something in it, in a thread of its own: sockets that it opens and devices that it makes are
    /// there.
    ///
    /// # Errors
    /// Where it cannot be entered, and as what is done.
    pub fn run<T: Send>(&self, action: impl FnOnce() -> io::Result<T> + Send) -> io::Result<T> {
        in_a_thread(|| {
            self.enter()?;
            action()
        })
    }

    /// Moves the calling thread into it.
    ///
    /// # Errors
    /// `EPERM` without `CAP_SYS_ADMIN` there.
    pub fn enter(&self) -> io::Result<()> {
        Ok(move_into_link_name_space(self.file.as_fd(), Some(LinkNameSpaceType::Network))?)
    }

    /// The number that tells it from others: that of `/proc/PID/ns/net` of all processes in it.
    ///
    /// # Errors
    /// As `fstat(2)`.
    pub fn inode(&self) -> io::Result<u64> {
        Ok(self.file.metadata()?.ino())
    }
}

impl AsFd for Namespace {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

fn in_a_thread<T: Send>(action: impl FnOnce() -> io::Result<T> + Send) -> io::Result<T> {
    thread::scope(|scope| {
        let thread = thread::Builder::new().spawn_scoped(scope, action)?;
        thread
            .join()
            .unwrap_or_else(|_| Err(io::Error::other("a thread in a network namespace panicked")))
    })
}
