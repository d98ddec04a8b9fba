//! Gathering what a worker prints, without ever waiting for it longer than for its end.

use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::process::{Child, ChildStderr, ChildStdout};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::ioctl_fionread;
use rustix::pipe::fcntl_setpipe_size;

use super::stdout_use::{OutputDifference, StdoutSink};

/// Bytes kept from the end of each pipe.
pub const KEEP_OUTPUT_BYTES: usize = 64 << 10;

/// As much as any user may ask for (pipe(7)).
const WIDE_BYTES: usize = 1 << 20;

/// Makes the pipes of a worker so wide that it seldom waits for us to read what it prints. On a busy machine
/// it would wait long, and look like one that waits by itself.
pub fn widen(worker: &Child) {
    // A user who has too many pipes keeps narrow ones.
    let _ = worker.stdout.as_ref().map(|pipe| fcntl_setpipe_size(pipe, WIDE_BYTES));
    let _ = worker.stderr.as_ref().map(|pipe| fcntl_setpipe_size(pipe, WIDE_BYTES));
}

/// Pipes that a worker prints to; each pipe is dropped at its end.
pub struct Pipes {
    stdout: Option<ChildStdout>,
    stderr: Option<ChildStderr>,
    out: Tail,
    err: Tail,
    sink: StdoutSink,
}

/// The end of what was printed, so that a flood costs no memory.
#[derive(Default)]
struct Tail {
    kept: Vec<u8>,
    printed_bytes: u64,
}

pub struct Printed {
    /// The last 64 KiB of each.
    pub stdout: String,
    pub stderr: String,
    /// All of both.
    pub bytes: u64,
    /// Where stdout is not what it was compared with.
    pub difference: Option<OutputDifference>,
}

impl Pipes {
    /// Takes the pipes of a worker that was just started.
    pub fn new(worker: &mut Child, sink: StdoutSink) -> Pipes {
        let (stdout, stderr) = (worker.stdout.take(), worker.stderr.take());
        Pipes { stdout, stderr, out: Tail::default(), err: Tail::default(), sink }
    }

    /// Waits until something happens, for `left` at most, and takes what was printed. Tells whether one of
    /// our own inputs has something to read.
    pub fn wait(
        &mut self,
        inputs: &[BorrowedFd<'_>],
        pidfd: Option<&OwnedFd>,
        left: Duration,
    ) -> io::Result<bool> {
        const LOOK_UP: Duration = Duration::from_millis(1);
        let left = if pidfd.is_some() { left } else { left.min(LOOK_UP) };
        let timeout =
            Timespec { tv_sec: left.as_secs() as i64, tv_nsec: left.subsec_nanos().into() };
        let mut ready: Vec<PollFd> =
            inputs.iter().map(|input| PollFd::from_borrowed_fd(*input, PollFlags::IN)).collect();
        ready.extend(self.stdout.as_ref().map(|pipe| PollFd::new(pipe, PollFlags::IN)));
        ready.extend(self.stderr.as_ref().map(|pipe| PollFd::new(pipe, PollFlags::IN)));
        ready.extend(pidfd.map(|pidfd| PollFd::new(pidfd, PollFlags::IN)));
        match poll(&mut ready, Some(&timeout)) {
            Err(rustix::io::Errno::INTR) => return Ok(false),
            other => other?,
        };
        let mut is_ready =
            ready.iter().map(|fd| !fd.revents().is_empty()).collect::<Vec<_>>().into_iter();
        drop(ready);
        let is_asked = is_ready.by_ref().take(inputs.len()).filter(|ready| *ready).count() > 0;
        if self.stdout.is_some() && is_ready.next() == Some(true) {
            self.drain_stdout()?;
        }
        if self.stderr.is_some() && is_ready.next() == Some(true) {
            drain(&mut self.stderr, &mut self.err, |_| Ok(()))?;
        }
        Ok(is_asked)
    }

    /// Reads what the worker left when it ended. It does not wait for the end of a pipe: a program that the
    /// worker did not start may have it, as the one that holds an ssh connection does.
    pub fn drain(&mut self) -> io::Result<()> {
        let mut left = waiting_bytes(self.stdout.as_ref())?;
        while left > 0 {
            left = left.saturating_sub(self.drain_stdout()?);
        }
        let mut left = waiting_bytes(self.stderr.as_ref())?;
        while left > 0 {
            left = left.saturating_sub(drain(&mut self.stderr, &mut self.err, |_| Ok(()))?);
        }
        Ok(())
    }

    fn drain_stdout(&mut self) -> io::Result<u64> {
        drain(&mut self.stdout, &mut self.out, |chunk| self.sink.take(chunk))
    }

    pub fn into_printed(self) -> io::Result<Printed> {
        Ok(Printed {
            bytes: self.out.printed_bytes + self.err.printed_bytes,
            stdout: self.out.into_text(),
            stderr: self.err.into_text(),
            difference: self.sink.difference()?,
        })
    }
}

impl Tail {
    /// Makes room by halves, as to move what is kept for every chunk would cost much more.
    fn add(&mut self, chunk: &[u8]) {
        self.printed_bytes += chunk.len() as u64;
        self.kept.extend_from_slice(chunk);
        if self.kept.len() > 2 * KEEP_OUTPUT_BYTES {
            self.cut();
        }
    }

    fn cut(&mut self) {
        self.kept.drain(..self.kept.len().saturating_sub(KEEP_OUTPUT_BYTES));
    }

    fn into_text(mut self) -> String {
        self.cut();
        String::from_utf8_lossy(&self.kept).into_owned()
    }
}

/// How much is in a pipe now.
fn waiting_bytes(pipe: Option<&impl AsFd>) -> io::Result<u64> {
    Ok(pipe.map_or(Ok(0), ioctl_fionread)?)
}

/// Reads once, and tells how much; at the end the pipe goes.
fn drain(
    pipe: &mut Option<impl Read>,
    tail: &mut Tail,
    mut take: impl FnMut(&[u8]) -> io::Result<()>,
) -> io::Result<u64> {
    let mut chunk = [0u8; 16 << 10];
    let Some(reader) = pipe else { return Ok(0) };
    let read_bytes = reader.read(&mut chunk)?;
    if read_bytes == 0 {
        *pipe = None;
    }
    tail.add(&chunk[..read_bytes]);
    take(&chunk[..read_bytes])?;
    Ok(read_bytes as u64)
}
