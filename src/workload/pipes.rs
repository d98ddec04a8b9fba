//! Gathering what a worker prints, without ever waiting for it longer than for its end.

use std::io::{self, Read};
use std::os::fd::OwnedFd;
use std::process::{Child, ChildStderr, ChildStdout};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};

const KEEP_OUTPUT_BYTES: usize = 64 << 10;

/// What the worker prints; a pipe goes when it is at its end.
pub struct Pipes {
    stdout: Option<ChildStdout>,
    stderr: Option<ChildStderr>,
    out: Vec<u8>,
    err: Vec<u8>,
}

impl Pipes {
    /// Takes the pipes of a worker that was just started.
    pub fn new(worker: &mut Child) -> Pipes {
        let (stdout, stderr) = (worker.stdout.take(), worker.stderr.take());
        Pipes { stdout, stderr, out: Vec::new(), err: Vec::new() }
    }

    /// Waits until something happens, for `left` at most, and takes what was printed. Tells whether
    /// our own input has ended: nothing is sent to us while a job runs, so readable means that.
    ///
    /// # Errors
    /// As `poll(2)` and `read(2)`.
    pub fn wait(&mut self, pidfd: Option<&OwnedFd>, left: Duration) -> io::Result<bool> {
        const LOOK_UP: Duration = Duration::from_millis(1);
        let left = if pidfd.is_some() { left } else { left.min(LOOK_UP) };
        let timeout =
            Timespec { tv_sec: left.as_secs() as i64, tv_nsec: left.subsec_nanos().into() };
        let stdin = io::stdin();
        let mut ready = vec![PollFd::new(&stdin, PollFlags::IN)];
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
        let parent_gone = is_ready.next() == Some(true);
        if self.stdout.is_some() && is_ready.next() == Some(true) {
            drain(&mut self.stdout, &mut self.out)?;
        }
        if self.stderr.is_some() && is_ready.next() == Some(true) {
            drain(&mut self.stderr, &mut self.err)?;
        }
        Ok(parent_gone)
    }

    /// Reads to the end, when nobody is left who could write.
    ///
    /// # Errors
    /// As `read(2)`.
    pub fn drain_all(&mut self) -> io::Result<()> {
        while self.stdout.is_some() {
            drain(&mut self.stdout, &mut self.out)?;
        }
        while self.stderr.is_some() {
            drain(&mut self.stderr, &mut self.err)?;
        }
        Ok(())
    }

    /// The last 64 KiB of stdout and of stderr.
    pub fn into_texts(self) -> (String, String) {
        let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
        (text(self.out), text(self.err))
    }
}

/// Reads once; at the end the pipe goes. Only the tail is kept, so that a flood costs no memory.
fn drain(pipe: &mut Option<impl Read>, kept: &mut Vec<u8>) -> io::Result<()> {
    let mut chunk = [0u8; 16 << 10];
    let Some(reader) = pipe else { return Ok(()) };
    let read_bytes = reader.read(&mut chunk)?;
    if read_bytes == 0 {
        *pipe = None;
    }
    kept.extend_from_slice(&chunk[..read_bytes]);
    if kept.len() > 2 * KEEP_OUTPUT_BYTES {
        kept.drain(..kept.len() - KEEP_OUTPUT_BYTES);
    }
    Ok(())
}
