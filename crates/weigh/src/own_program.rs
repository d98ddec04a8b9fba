//! Starting this very program again in one of its hidden roles (launcher, sink, guard), and talking
//! with it in lines of JSON.

use std::io::{self, Read, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, Signal, kill_process_group};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::orphans::{self, wait_until};

const LOOK_UP: Timespec = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };

/// Who stops a service signals all of its processes. Only `weigh` itself acts on these, and then ends its
/// helpers in good order; killed with it, they would take the verdict along.
const FOR_WEIGH_ALONE: [libc::c_int; 3] = [libc::SIGTERM, libc::SIGINT, libc::SIGHUP];
/// What a helper does at once takes no longer, on the busiest of machines.
pub const PROMPTLY: Duration = Duration::from_secs(60);
/// What a helper has left to do at the end of its input takes moments.
const GRACE: Duration = Duration::from_secs(5);

/// A command that runs this program as `subcommand`, in a process group of its own: Ctrl-C is for
/// `weigh`, which then ends its helpers in good order.
pub fn command(subcommand: &str) -> Command {
    // Not `current_exe`: the file may be replaced while an experiment runs.
    let mut command = Command::new("/proc/self/exe");
    command.arg0("weigh").arg(subcommand).process_group(0).stderr(Stdio::inherit());
    // SAFETY: it makes system calls alone. A signal that is ignored stays so across the execution.
    unsafe { command.pre_exec(|| set_signals(libc::SIG_IGN)) };
    command
}

/// For a program of somebody else that a helper executes: it is ended by these signals as usual.
///
/// # Errors
/// As `sigaction(2)`.
pub fn be_signalled_as_usual() -> io::Result<()> {
    set_signals(libc::SIG_DFL)
}

fn set_signals(disposition: libc::sighandler_t) -> io::Result<()> {
    for signal in FOR_WEIGH_ALONE {
        // SAFETY: neither of the two dispositions runs code of ours.
        if unsafe { libc::signal(signal, disposition) } == libc::SIG_ERR {
            return Err(io::Error::last_os_error());
        }
    }
    Ok(())
}

/// Waits for a helper whose input has ended, at most for some seconds: one that does not end then is
/// killed. One that was stopped (SIGSTOP) is continued first.
pub fn see_off(child: &mut Child) {
    let pid = Pid::from_child(child);
    for signal in [Signal::CONT, Signal::KILL] {
        // The group, as some helpers fork once more.
        let _ = kill_process_group(pid, signal);
        if wait_until(Instant::now() + GRACE, || !matches!(child.try_wait(), Ok(None))) {
            break;
        }
    }
    orphans::forget(child.id());
    orphans::end_strays();
}

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum HelperError {
    /// The user asked us to stop.
    #[error("interrupted")]
    Interrupted,
    #[error("no answer within the time allowed; was it stopped?")]
    TimedOut,
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// A helper that is asked on its stdin and answers on its stdout. It ends at the end of its input,
/// so it does not outlive us, and dropping this ends it in good order, with all that it started.
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
        orphans::adopt()?;
        let mut child = command(subcommand).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        orphans::keep(child.id());
        let requests = child.stdin.take();
        let answers = child.stdout.take().ok_or_else(|| io::Error::other("no pipe"))?;
        if let Some(pipe) = &requests {
            rustix::io::ioctl_fionbio(pipe, true)?;
        }
        Ok(Helper { child, requests, answers, unread: Vec::new() })
    }

    /// Its process.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Sends one line.
    ///
    /// # Errors
    /// `EPIPE` where the helper has ended, `ETIMEDOUT` where it does not read.
    pub fn send(&mut self, request: &impl Serialize) -> io::Result<()> {
        let mut line = serde_json::to_vec(request)?;
        line.push(b'\n');
        let Some(pipe) = &mut self.requests else {
            return Err(io::ErrorKind::BrokenPipe.into());
        };
        let mut unsent = line.as_slice();
        let deadline = Instant::now() + PROMPTLY;
        while !unsent.is_empty() {
            match pipe.write(unsent) {
                Ok(sent) => unsent = &unsent[sent..],
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    if Instant::now() > deadline {
                        return Err(io::ErrorKind::TimedOut.into());
                    }
                    let _ = poll(&mut [PollFd::new(pipe, PollFlags::OUT)], Some(&LOOK_UP));
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Waits for one line, looking up from time to time whether the user gave up.
    ///
    /// # Errors
    /// [`HelperError::TimedOut`] after `deadline`; [`HelperError::Io`] where the helper ended or talks
    /// nonsense.
    pub fn receive<T: DeserializeOwned>(
        &mut self,
        interrupted: &AtomicBool,
        deadline: Instant,
    ) -> Result<T, HelperError> {
        loop {
            if let Some(end) = self.unread.iter().position(|&byte| byte == b'\n') {
                let line: Vec<u8> = self.unread.drain(..=end).collect();
                return Ok(serde_json::from_slice(&line).map_err(io::Error::from)?);
            }
            if interrupted.load(Ordering::Relaxed) {
                return Err(HelperError::Interrupted);
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(HelperError::TimedOut);
            }
            let left =
                Timespec { tv_sec: left.as_secs() as i64, tv_nsec: left.subsec_nanos().into() };
            let mut ready = [PollFd::new(&self.answers, PollFlags::IN)];
            match poll(&mut ready, Some(&left.min(LOOK_UP))) {
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
        see_off(&mut self.child);
    }
}
