//! Whoever runs a command for a profile may be killed, and what the command started must end all the same.
//! So two processes do it: a child runs the command, and its parent ends what is left when that child has
//! ended.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, WaitOptions, getpid, kill_process, waitpid};

use trust::program::follow_parent;
use weigh_host::orphans;

const LOOK_UP: Duration = Duration::from_millis(20);
/// After an interrupt the child ends the command by SIGTERM first, for which that has 5 s.
const GRACE: Duration = Duration::from_secs(10);

/// How the child ended, as its parent sees it.
pub enum Ended {
    WithStatus(i32),
    BySignal(i32),
}

/// Forks. The child goes on with `None`, and is told by SIGTERM when its parent was killed; the parent
/// returns when the child and all that it started have ended. For processes of a single thread.
pub fn fork(interrupted: &AtomicBool) -> io::Result<Option<Ended>> {
    orphans::adopt()?;
    let parent = getpid();
    // SAFETY: this process has one thread, so the forked child may use the heap.
    match unsafe { libc::fork() } {
        -1 => Err(io::Error::last_os_error()),
        0 => {
            // It may have been killed before that.
            interrupted.fetch_or(!follow_parent(parent, Signal::TERM)?, Ordering::Relaxed);
            Ok(None)
        }
        child => {
            let ended = Pid::from_raw(child).map(|child| wait(child, interrupted)).transpose();
            orphans::end_strays();
            ended
        }
    }
}

/// Passes an interrupt on, and kills a child that does not end by it.
fn wait(child: Pid, interrupted: &AtomicBool) -> io::Result<Ended> {
    let mut kill_at = None;
    loop {
        if let Some((_, status)) = waitpid(Some(child), WaitOptions::NOHANG)? {
            return Ok(match status.terminating_signal() {
                Some(signal) => Ended::BySignal(signal),
                None => Ended::WithStatus(status.exit_status().unwrap_or(1)),
            });
        }
        match kill_at {
            None if interrupted.load(Ordering::Relaxed) => {
                let _ = kill_process(child, Signal::TERM);
                // It may have been stopped.
                let _ = kill_process(child, Signal::CONT);
                kill_at = Some(Instant::now() + GRACE);
            }
            Some(at) if Instant::now() > at => {
                let _ = kill_process(child, Signal::KILL);
            }
            _ => {}
        }
        sleep(LOOK_UP);
    }
}
