//! The contract of a part of the kernel that sends events.

use std::collections::HashMap;
use std::io;
use std::os::fd::BorrowedFd;

/// A part of the kernel that sends events.
pub trait Source {
    /// Readable while events wait.
    fn as_fd(&self) -> BorrowedFd<'_>;

    /// Makes everything ready for a sample, and switches its events on if wanted.
    fn begin(&mut self, is_on: bool) -> io::Result<()>;

    /// Switches its events off; those that wait can still be received.
    fn end(&mut self) -> io::Result<()>;

    /// Receives some events, after it was readable; `false` if no event was received.
    fn receive(&mut self, seen: &mut Seen) -> io::Result<bool>;

    /// Receives all events that wait.
    fn receive_all(&mut self, seen: &mut Seen) -> io::Result<()> {
        while self.receive(seen)? {}
        Ok(())
    }
}

/// Events since the last [`Source::begin`].
#[derive(Debug, Default)]
pub struct Seen {
    pub events: u64,
    pub lost: u64,
    /// Directories that could not be watched.
    pub skipped: u64,
    pub by_process: HashMap<u32, u64>,
}
