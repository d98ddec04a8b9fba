//! Starting this very program again in one of its hidden roles (launcher, sink, guard), and talking
//! with it in lines of JSON.

use std::io::{self, Read, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// A command that runs this program as `subcommand`, in a process group of its own: Ctrl-C is for
/// `weigh`, which then ends its helpers in good order.
pub fn command(subcommand: &str) -> Command {
    // Not `current_exe`: the file may be replaced while an experiment runs.
    let mut command = Command::new("/proc/self/exe");
    command.arg0("weigh").arg(subcommand).process_group(0).stderr(Stdio::inherit());
    command
}

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The user asked us to stop.
    #[error("interrupted")]
    Interrupted,
    #[error("no answer within the time allowed")]
    TimedOut,
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// A helper that is asked on its stdin and answers on its stdout. It ends at the end of its input,
/// so it does not outlive us, and dropping this ends it in good order.
pub struct Helper {
    child: Child,
    requests: Option<ChildStdin>,
    answers: ChildStdout,
    unread: Vec<u8>,
}

impl Helper {
    /// Starts this program in a hidden role.
    ///
    /// # Errors
    /// As `fork(2)` and `execve(2)`.
    pub fn start(subcommand: &str) -> io::Result<Helper> {
        let mut child = command(subcommand).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let requests = child.stdin.take();
        let answers = child.stdout.take().ok_or_else(|| io::Error::other("no pipe"))?;
        Ok(Helper { child, requests, answers, unread: Vec::new() })
    }

    /// Its process.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Sends one line.
    ///
    /// # Errors
    /// `EPIPE` where the helper has ended.
    pub fn send(&mut self, request: &impl Serialize) -> io::Result<()> {
        let mut line = serde_json::to_vec(request)?;
        line.push(b'\n');
        match &mut self.requests {
            Some(pipe) => pipe.write_all(&line),
            None => Err(io::ErrorKind::BrokenPipe.into()),
        }
    }

    /// Waits for one line, looking up from time to time whether the user gave up.
    ///
    /// # Errors
    /// [`Error::TimedOut`] after `deadline`; [`Error::Io`] where the helper ended or talks nonsense.
    pub fn receive<T: DeserializeOwned>(
        &mut self,
        interrupted: &AtomicBool,
        deadline: Option<Instant>,
    ) -> Result<T, Error> {
        const LOOK_UP: Timespec = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };
        loop {
            if let Some(end) = self.unread.iter().position(|&byte| byte == b'\n') {
                let line: Vec<u8> = self.unread.drain(..=end).collect();
                return Ok(serde_json::from_slice(&line).map_err(io::Error::from)?);
            }
            if interrupted.load(Ordering::Relaxed) {
                return Err(Error::Interrupted);
            }
            if deadline.is_some_and(|deadline| Instant::now() > deadline) {
                return Err(Error::TimedOut);
            }
            let mut ready = [PollFd::new(&self.answers, PollFlags::IN)];
            match poll(&mut ready, Some(&LOOK_UP)) {
                Ok(0) | Err(rustix::io::Errno::INTR) => continue,
                Ok(_) => {}
                Err(error) => return Err(io::Error::from(error).into()),
            }
            let mut chunk = [0u8; 8192];
            let read_bytes = self.answers.read(&mut chunk)?;
            if read_bytes == 0 {
                return Err(io::Error::other("the helper process ended unexpectedly").into());
            }
            self.unread.extend_from_slice(&chunk[..read_bytes]);
        }
    }
}

impl Drop for Helper {
    fn drop(&mut self) {
        drop(self.requests.take());
        let _ = self.child.wait();
    }
}
