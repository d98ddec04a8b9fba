//! Waking a thread that waits in a system call, so that it can look at the clock and for Ctrl-C.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Seldom enough to cost nothing, often enough for nobody to wait for it.
const PERIOD: Duration = Duration::from_millis(20);

/// Wakes the thread that started it, again and again, until it is dropped.
pub struct Alarm<'a> {
    deadline: Instant,
    interrupted: &'a AtomicBool,
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl<'a> Alarm<'a> {
    /// Starts; it is due after this time, or when the flag is set.
    pub fn start(after: Duration, interrupted: &'a AtomicBool) -> io::Result<Alarm<'a>> {
        extern "C" fn nothing(_: libc::c_int) {}
        // SAFETY: all zeros are a valid `sigaction`; the handler does nothing at all. Without SA_RESTART,
        // which signal-hook's handlers have, a waiting system call ends with EINTR.
        let installed = unsafe {
            let mut action: libc::sigaction = std::mem::zeroed();
            action.sa_sigaction = nothing as extern "C" fn(libc::c_int) as usize;
            libc::sigaction(libc::SIGALRM, &action, std::ptr::null_mut())
        };
        if installed != 0 {
            return Err(io::Error::last_os_error());
        }
        let (process, thread) = (rustix::process::getpid(), rustix::thread::gettid());
        let (stop, stopped) = channel::<()>();
        let wake = move || {
            while stopped.recv_timeout(PERIOD) == Err(RecvTimeoutError::Timeout) {
                let ids = [process, thread].map(|id| id.as_raw_nonzero().get());
                // SAFETY: it takes numbers. The thread lives, as it has yet to drop the sender.
                unsafe { libc::syscall(libc::SYS_tgkill, ids[0], ids[1], libc::SIGALRM) };
            }
        };
        let thread = std::thread::Builder::new().spawn(wake)?;
        let deadline = Instant::now() + after;
        Ok(Alarm { deadline, interrupted, stop: Some(stop), thread: Some(thread) })
    }

    /// Returns true if the time is over, or the user gave up.
    pub fn is_due(&self) -> bool {
        self.interrupted.load(Ordering::Relaxed) || Instant::now() >= self.deadline
    }
}

impl Drop for Alarm<'_> {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
