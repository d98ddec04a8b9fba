//! Starting this very program again in one of its hidden roles (launcher, sink, guard), and seeing it off.

use std::ffi::OsStr;
use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group};

use crate::lines::Lines;
use crate::orphans;
use crate::said::{KEPT_BYTES, Keep, Said};
use trust::start::{self, Inherited};

/// Who stops a service signals all of its processes. Only `weigh` itself acts on these, and then ends its
/// helpers in good order; killed with it, they would take the verdict along.
const FOR_WEIGH_ALONE: [libc::c_int; 3] = [libc::SIGTERM, libc::SIGINT, libc::SIGHUP];
/// Variables that ssh needs for its keys, and for a `ProxyCommand` of its user. `SSH_SK_PROVIDER`
/// and `KRB5_CONFIG` are not among them: they name libraries that it would load.
const OF_SSH: [&str; 3] = ["HOME", "SSH_AUTH_SOCK", "KRB5CCNAME"];
/// Time limit for a helper's remaining work at the end of its input, which takes moments.
const GRACE: Duration = Duration::from_secs(5);
/// One that ends by itself may first have to end other processes, which get 5 s before they are killed.
const ENDS_ITSELF_WITHIN: Duration = Duration::from_secs(15);

/// A command that runs this program as `subcommand`, in a process group of its own: Ctrl-C is for
/// `weigh`, which then ends its helpers in good order.
pub fn command(subcommand: &str) -> Command {
    // Not `current_exe`: the file may be replaced while an experiment runs. What it starts for the user has
    // the user's environment.
    let mut command = apart(start::command("/proc/self/exe", Inherited::Callers));
    command.arg0("weigh").arg(subcommand);
    command
}

/// Returns a command for another program, through which a role is reached elsewhere: `ssh`, with
/// its agent. It is for [`Helper::start_elsewhere`], and has a process group of its own.
pub fn through(program: impl AsRef<OsStr>) -> Command {
    let mut command = start::command(program, Inherited::Fixed);
    command.envs(OF_SSH.iter().filter_map(|name| Some((name, std::env::var_os(name)?))));
    apart(command)
}

fn apart(mut command: Command) -> Command {
    command.process_group(0).stderr(Stdio::inherit());
    // SAFETY: it makes system calls alone. A signal that is ignored stays so across the execution.
    unsafe { command.pre_exec(|| set_signals(libc::SIG_IGN)) };
    command
}

/// For a program of somebody else that a helper executes: it is ended by these signals as usual.
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
    see_off_since(Instant::now(), child);
}

fn see_off_since(ended: Instant, child: &mut Child) {
    let pid = Pid::from_child(child);
    for (signal, begins) in [(Signal::CONT, ended), (Signal::KILL, Instant::now())] {
        // The group, as some helpers fork once more.
        let _ = kill_process_group(pid, signal);
        if orphans::wait_for(child, begins + GRACE) {
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
    /// Messages from elsewhere on stderr. They never reach our own stderr, and are shown where
    /// something fails.
    said: Option<Arc<Mutex<Said>>>,
    /// Since its input has ended.
    let_go: Option<Instant>,
    ends_itself: bool,
}

impl Helper {
    /// Starts it: this program in a hidden role.
    pub fn start(command: Command) -> io::Result<Helper> {
        Helper::start_with(command, None)
    }

    /// Starts a program that reaches a role elsewhere, and keeps the messages that come from there.
    pub fn start_elsewhere(mut command: Command) -> io::Result<Helper> {
        let (said, writer) = Said::pipe(Keep::Last(KEPT_BYTES))?;
        command.stderr(writer);
        // One that is not heard waits in write(2), and answers no more.
        Helper::start_with(command, Some(said.heard_by_a_thread()?))
    }

    fn start_with(mut command: Command, said: Option<Arc<Mutex<Said>>>) -> io::Result<Helper> {
        orphans::adopt()?;
        let command = command.stdin(Stdio::piped()).stdout(Stdio::piped()).process_group(0);
        let mut child = command.spawn()?;
        orphans::keep(child.id());
        let (Some(requests), Some(answers)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(io::Error::other("no pipe"));
        };
        rustix::io::ioctl_fionbio(&requests, true)?;
        let lines = Lines::over(requests.into(), answers.into());
        Ok(Helper { child, lines, said, let_go: None, ends_itself: false })
    }

    /// Returns the last message from elsewhere, on one line; `None` for a local helper, or without
    /// a message.
    pub fn last_words(&mut self) -> Option<String> {
        self.said.as_ref()?.lock().unwrap_or_else(PoisonError::into_inner).last_words()
    }

    /// From now on it is never killed: it ends by itself, once it has no work left that nobody else can do.
    pub fn let_end_itself(&mut self) {
        self.ends_itself = true;
    }

    /// Returns true if it has ended by itself.
    pub fn has_ended(&mut self) -> bool {
        !matches!(self.child.try_wait(), Ok(None))
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Lets it go on where somebody stopped it (SIGSTOP), with what it forked.
    pub fn wake(&self) {
        let _ = kill_process_group(Pid::from_child(&self.child), Signal::CONT);
    }

    /// Ends its input without a wait for its own end: whoever has several that may not answer waits for all
    /// of them at once.
    pub fn let_go(&mut self) -> Instant {
        self.lines.end();
        *self.let_go.get_or_insert_with(Instant::now)
    }
}

impl Drop for Helper {
    fn drop(&mut self) {
        let ended = self.let_go();
        if self.ends_itself {
            self.wake();
            // Else it stays among those that are kept, and outlives us.
            if !orphans::wait_for(&mut self.child, ended + ENDS_ITSELF_WITHIN) {
                return;
            }
        }
        see_off_since(ended, &mut self.child);
    }
}
