//! Starting this very program again in one of its hidden roles (launcher, sink, guard), and seeing it off.

use std::ffi::OsStr;
use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group};

use crate::lines::Lines;
use crate::orphans::{self, wait_until};

/// Who stops a service signals all of its processes. Only `weigh` itself acts on these, and then ends its
/// helpers in good order; killed with it, they would take the verdict along.
const FOR_WEIGH_ALONE: [libc::c_int; 3] = [libc::SIGTERM, libc::SIGINT, libc::SIGHUP];
/// What a helper has left to do at the end of its input takes moments.
const GRACE: Duration = Duration::from_secs(5);

/// A command that runs this program as `subcommand`, in a process group of its own: Ctrl-C is for
/// `weigh`, which then ends its helpers in good order.
pub fn command(subcommand: &str) -> Command {
    // Not `current_exe`: the file may be replaced while an experiment runs.
    let mut command = through("/proc/self/exe");
    command.arg0("weigh").arg(subcommand);
    command
}

/// The same of another program, through which a role is reached elsewhere.
pub fn through(program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new(program);
    command.process_group(0).stderr(Stdio::inherit());
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

/// A program that is asked on its stdin and answers on its stdout. It ends at the end of its input, so it
/// does not outlive us, and dropping this ends it in good order, with all that it started.
pub struct Helper {
    child: Child,
    pub lines: Lines,
}

impl Helper {
    /// Starts it: this program in a hidden role, or another through which that is reached.
    ///
    /// # Errors
    /// As `fork(2)` and `execve(2)`.
    pub fn start(mut command: Command) -> io::Result<Helper> {
        orphans::adopt()?;
        let command = command.stdin(Stdio::piped()).stdout(Stdio::piped()).process_group(0);
        let mut child = command.spawn()?;
        orphans::keep(child.id());
        let (Some(requests), Some(answers)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(io::Error::other("no pipe"));
        };
        rustix::io::ioctl_fionbio(&requests, true)?;
        Ok(Helper { child, lines: Lines::over(requests.into(), answers.into()) })
    }

    /// Whether it has ended by itself.
    pub fn has_ended(&mut self) -> bool {
        !matches!(self.child.try_wait(), Ok(None))
    }

    /// Its process.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }
}

impl Drop for Helper {
    fn drop(&mut self) {
        self.lines.end();
        see_off(&mut self.child);
    }
}
