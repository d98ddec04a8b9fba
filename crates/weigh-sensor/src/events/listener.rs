//! The process that receives events of the kernel, as a monitor does.
//!
//! It is a process of its own, as it must never open a file that waits for its answer. It starts no other
//! process, so nobody else has its descriptor. When it ends, however it ends, the kernel forgets what it
//! wanted to hear; docs/treatments-events.md has the exception.
//!
//! Its first line is a [`Wanted`], each further one an [`Order`] ([`crate::orders`]).

use std::io;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use super::directories::{Directories, WatchedDirectories};
use super::files::{Files, WatchedMounts};
use super::processes::Processes;
use super::source::{Seen, Source};
use super::task_records::TaskRecords;
use crate::orders;
use weigh_host::lines::Lines;

/// The hidden subcommand that turns `weigh` into a listener.
pub const SUBCOMMAND: &str = "__listener";

/// The events that a listener is to receive.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Wanted {
    /// Events of files on whole mounts.
    Mounts(WatchedMounts),
    /// Events of files in some directories.
    Directories(WatchedDirectories),
    /// Events of processes.
    Processes,
    /// Records of tasks that end.
    Tasks,
}

impl Wanted {
    /// Names the part of the kernel that sends them.
    pub fn sender(&self) -> &'static str {
        match self {
            Wanted::Mounts(_) => "fanotify",
            Wanted::Directories(_) => "inotify",
            Wanted::Processes => "the process connector",
            Wanted::Tasks => "taskstats",
        }
    }

    /// Returns true if processes wait for an answer to each event.
    pub fn wait(&self) -> bool {
        matches!(self, Wanted::Mounts(watched) if watched.events.wait())
    }

    fn open(self) -> io::Result<Box<dyn Source>> {
        Ok(match self {
            Wanted::Mounts(watched) => Box::new(Files::open(watched)?),
            Wanted::Directories(watched) => Box::new(Directories::open(watched)?),
            Wanted::Processes => Box::new(Processes::open()?),
            Wanted::Tasks => Box::new(TaskRecords::open()?),
        })
    }
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Order {
    /// Count from zero, with or without events.
    Begin { is_on: bool },
    /// Switch the events off, and count those that are still in the queue.
    End { processes: Vec<u32> },
}

/// Answer to [`Order::End`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    /// Events of all processes of the machine.
    pub events: u64,
    /// Events that did not arrive, as the queue was full; at least so many.
    pub lost: u64,
    /// Directories that could not be watched.
    pub skipped: u64,
    /// Events of each process that [`Order::End`] names.
    pub by_process: Vec<u64>,
}

/// Receives events until the end of its input.
///
/// # Errors
/// If stdin or stdout fail.
pub fn run() -> io::Result<()> {
    orders::run(|wanted: Wanted, lines| {
        let source = wanted.open()?;
        lines.send(&Answer::Ready)?;
        Listener { source, seen: Seen::default() }.listen(lines)
    })
}

/// Answer of a listener.
type Answer = orders::Answer<Counts>;

struct Listener {
    source: Box<dyn Source>,
    seen: Seen,
}

impl Listener {
    fn listen(&mut self, lines: &mut Lines) -> io::Result<()> {
        loop {
            let source = self.source.as_fd();
            let mut ready = [
                PollFd::from_borrowed_fd(source, PollFlags::IN),
                PollFd::new(&*lines, PollFlags::IN),
            ];
            match poll(&mut ready, None) {
                Err(Errno::INTR) => continue,
                other => other?,
            };
            let [has_events, has_orders] = ready.map(|fd| !fd.revents().is_empty());
            if has_events {
                self.source.receive(&mut self.seen)?;
            }
            if has_orders && !lines.fill()? {
                return self.source.end();
            }
            while let Some(order) = lines.unread() {
                let answer = self.obey(order?)?;
                lines.send(&answer)?;
            }
        }
    }

    fn obey(&mut self, order: Order) -> io::Result<Answer> {
        self.source.end()?;
        self.source.receive_all(&mut self.seen)?;
        match order {
            Order::Begin { is_on } => {
                self.seen = Seen::default();
                self.source.begin(is_on)?;
                Ok(Answer::Ready)
            }
            Order::End { processes } => {
                let Seen { events, lost, skipped, by_process } = std::mem::take(&mut self.seen);
                let count = |pid: &u32| by_process.get(pid).copied().unwrap_or(0);
                let by_process = processes.iter().map(count).collect();
                Ok(Answer::Counts(Counts { events, lost, skipped, by_process }))
            }
        }
    }
}
