//! A command, run as it is or counted, to its end or for a time.

use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::{Builder, Scope};
use std::time::{Duration, Instant};

use libc::{c_int, pid_t};

use super::cpu_time::{of_children, tree};
use super::ptrace::{self, wait_for, wait_once};
use trust::start::{self, Inherited};
use weigh_host::orphans;
use weigh_model::profile::runs::{Counts, Period};

/// Time for a command to end by itself after SIGTERM.
const GRACE: Duration = Duration::from_secs(5);
const LOOK_UP: Duration = Duration::from_millis(20);

pub struct ProfiledCommand<'a> {
    pub words: &'a [String],
    /// Ends it after this time.
    pub time: Option<Duration>,
    /// Set by Ctrl-C, which ends it, too.
    pub interrupted: &'a AtomicBool,
    /// Its output goes where ours does not.
    pub to_stderr: bool,
}

#[derive(Debug)]
pub struct CommandRun {
    pub period: Period,
    /// Empty where nobody counted.
    pub counts: Counts,
    /// True if we ended the command because of the time or of Ctrl-C.
    pub is_ended_by_us: bool,
}

impl ProfiledCommand<'_> {
    /// Runs the command as it is, until all processes that it started have ended.
    pub fn run(&self) -> io::Result<CommandRun> {
        self.measure(|command, tell| {
            let child = command.spawn()?;
            let root = child.id().cast_signed();
            tell(root);
            Ok(Counts { status: wait_for_all(root)?, ..Counts::default() })
        })
    }

    /// Runs the command until it itself has ended, and then ends what it left running, as `weigh compare`
    /// does with what is run before a launch.
    pub fn run_alone(&self) -> io::Result<CommandRun> {
        self.measure(|command, tell| {
            let child = command.spawn()?;
            let root = child.id().cast_signed();
            tell(root);
            let (_, status) = wait_for(root)?;
            orphans::end_strays();
            Ok(Counts { status, ..Counts::default() })
        })
    }

    /// Runs the command as [`Self::run`] does, and counts its system calls.
    pub fn count(&self) -> io::Result<CommandRun> {
        self.measure(|command, tell| ptrace::count_and_tell(command, tell))
    }

    fn measure(
        &self,
        run: impl FnOnce(&mut Command, &mut dyn FnMut(pid_t)) -> io::Result<Counts>,
    ) -> io::Result<CommandRun> {
        // Processes whose parent ended become our children, so that their time is known and their end seen.
        // SAFETY: it takes numbers.
        unsafe { libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) };
        let is_ended_by_us = AtomicBool::new(false);
        let mut command = self.command();
        let (before, started) = (of_children(), Instant::now());
        let counts = std::thread::scope(|scope| {
            let mut ender = None;
            let mut tell = |root| {
                let started = self.end_in_time(scope, root, &is_ended_by_us);
                // Nothing would end it.
                ender = Some(started.inspect_err(|_| send(-root, libc::SIGKILL)));
            };
            let counts = run(&mut command, &mut tell);
            // Without its sender the thread ends, and so the scope.
            ender.transpose().map(drop)?;
            counts
        })?;
        let period = Period { elapsed: started.elapsed(), cpu: of_children().since(before) };
        Ok(CommandRun { period, counts, is_ended_by_us: is_ended_by_us.into_inner() })
    }

    /// In a process group of its own, so that Ctrl-C reaches this process alone, and a signal all of it.
    fn command(&self) -> Command {
        let (program, arguments) =
            self.words.split_first().map_or(("", &[][..]), |(program, rest)| (program, rest));
        let mut command = start::command(program, Inherited::Callers);
        // What it read of our input, the second run would not find any more.
        command.args(arguments).process_group(0).stdin(Stdio::null());
        if self.to_stderr {
            command.stdout(io::stderr());
        }
        command
    }

    /// Watches the clock and Ctrl-C while the command runs.
    fn end_in_time<'scope, 'env>(
        &'scope self,
        scope: &'scope Scope<'scope, 'env>,
        root: pid_t,
        is_ended_by_us: &'scope AtomicBool,
    ) -> io::Result<Sender<()>> {
        let (stop, stopped) = channel::<()>();
        let deadline = self.time.map(|time| Instant::now() + time);
        let watch = move || {
            let mut kill_at = None;
            while stopped.recv_timeout(LOOK_UP) == Err(RecvTimeoutError::Timeout) {
                let is_over = deadline.is_some_and(|deadline| Instant::now() >= deadline);
                let is_due = is_over || self.interrupted.load(Ordering::Relaxed);
                match kill_at {
                    None if is_due => {
                        is_ended_by_us.store(true, Ordering::Relaxed);
                        send(-root, libc::SIGTERM);
                        kill_at = Some(Instant::now() + GRACE);
                    }
                    Some(at) if Instant::now() >= at => {
                        let ours = std::process::id().cast_signed();
                        let others = tree(ours).into_iter().filter(|process| *process != ours);
                        others.for_each(|process| send(process, libc::SIGKILL));
                    }
                    _ => {}
                }
            }
        };
        Builder::new().spawn_scoped(scope, watch)?;
        Ok(stop)
    }
}

/// To a process, or to a group where the number is negative; one that is gone needs none.
fn send(process: pid_t, signal: c_int) {
    // SAFETY: it takes numbers.
    unsafe { libc::kill(process, signal) };
}

/// Waits for all children, and gives the wait status of this one.
fn wait_for_all(root: pid_t) -> io::Result<c_int> {
    let mut of_root = 0;
    loop {
        match wait_once(-1, 0) {
            Ok((process, status)) if process == root => of_root = status,
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) if error.raw_os_error() == Some(libc::ECHILD) => return Ok(of_root),
            Err(error) => return Err(error),
        }
    }
}
