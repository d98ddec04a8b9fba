//! A process between a launcher and one member of its arm: a server that stays while samples come and go.
//!
//! The launcher forks it, so the member is born with what the launcher has: login uid, namespaces. Whatever
//! the member starts, and whatever becomes of that, remains below the keeper, so what is the member's is
//! never taken for what a job left, and all of it ends with the keeper: at the end of its input, whoever
//! ended the launcher. Where the keeper itself is killed, the member dies at once, and the rest is the
//! launcher's to end.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, DirBuilder, File};

use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::os::unix::fs::DirBuilderExt;
use std::os::unix::net::UnixStream;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::process::{Child, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::statvfs;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, connect, socket_with};
use rustix::process::{
    Pid, PidfdFlags, Signal, kill_process, pidfd_open, set_child_subreaper,
    set_parent_process_death_signal,
};
use rustix::thread::{UnshareFlags, set_no_new_privs, unshare_unsafe};

use super::kills::Kills;
use super::launcher::{LauncherAnswer, LauncherOrder, Numbered};
use super::listening::{has_socket, listening_inode};
use super::member::{MemberSeen, Readiness, StartServer};
use super::setup::Setup;
use trust::start;
use weigh_host::lines::Lines;
use weigh_host::machine::process::process_start;
use weigh_host::machine::stat::Stat;
use weigh_host::orphans::{descendants, descendants_of, end_all_but, wait_until};
use weigh_host::own_program::be_signalled_as_usual;
use weigh_host::said;

/// How long processes take to stand still; one that waits for a disk does so when it has it.
const FREEZE_LIMIT: Duration = Duration::from_secs(10);
const LOOK_UP: Duration = Duration::from_millis(5);
/// With less a server does not start.
const LITTLE_ROOM: u64 = 1 << 20;

/// The launcher's end.
pub struct Keeper {
    pub name: String,
    pub pid: Pid,
    pub lines: Lines,
    /// Orders that it has not answered yet.
    pub asked: Vec<AskedOfKeeper>,
    /// Counts of kills when the keeper started.
    pub kills: Kills,
}

/// An order, and whether the keeper ends once it is done, or where it fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AskedOfKeeper {
    pub id: u64,
    pub ends_with: Option<KeeperEnd>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeeperEnd {
    /// A member that was lowered.
    Done,
    /// A member that could not be raised.
    Error,
}

impl Keeper {
    /// Forks a keeper for this member. The answer to the order, whose number this is, comes when it is ready.
    pub fn start(setup: &Setup, id: u64, raise: StartServer, kills: Kills) -> io::Result<Keeper> {
        let (ours, its) = UnixStream::pair()?;
        // SAFETY: the launcher has one thread, so the forked child may use the heap.
        match unsafe { libc::fork() } {
            -1 => Err(io::Error::last_os_error()),
            0 => {
                let kept = catch_unwind(AssertUnwindSafe(|| keep(its.into(), setup, id, &raise)));
                end_all_but(|_| false);
                // SAFETY: ends the child at once, without the parent's clean-up.
                unsafe { libc::_exit(i32::from(!matches!(kept, Ok(Ok(()))))) }
            }
            pid => {
                let pid = Pid::from_raw(pid).ok_or_else(|| io::Error::other("no process"))?;
                let lines = Lines::over(ours.try_clone()?.into(), ours.into());
                let asked = vec![AskedOfKeeper { id, ends_with: Some(KeeperEnd::Error) }];
                Ok(Keeper { name: raise.name, pid, lines, asked, kills })
            }
        }
    }
}

/// The keeper's life.
fn keep(socket: OwnedFd, setup: &Setup, id: u64, raise: &StartServer) -> io::Result<()> {
    close_all_but(socket.as_raw_fd())?;
    set_child_subreaper(Some(rustix::process::getpid()))?;
    let mut lines = Lines::over(socket.try_clone()?, socket);
    let raised = KeptMember::start(setup, raise).and_then(|mut kept| {
        kept.wait_until_ready(raise, &lines)?;
        Ok((kept.seen()?, kept))
    });
    let (seen, mut kept) = match raised {
        Ok(raised) => raised,
        Err(problem) => {
            end_all_but(|_| false);
            return lines.send(&error(id, raise, &problem));
        }
    };
    lines.send(&answer(id, LauncherAnswer::Member(Box::new(seen))))?;
    loop {
        while let Some(order) = lines.unread::<Numbered<LauncherOrder>>() {
            let Numbered { id, what } = order?;
            let done = match what {
                LauncherOrder::Freeze(_) => kept.freeze().map(|()| LauncherAnswer::Done(())),
                LauncherOrder::Thaw(_) => kept.thaw().map(|()| LauncherAnswer::Done(())),
                LauncherOrder::Look(_) => {
                    kept.seen().map(|seen| LauncherAnswer::Member(Box::new(seen)))
                }
                LauncherOrder::StopServer { limit_ms, .. } => {
                    kept.lower(Duration::from_millis(limit_ms));
                    return lines.send(&answer(id, LauncherAnswer::Done(())));
                }
                _ => Err(io::Error::other("this order is not for a server")),
            };
            match done {
                Ok(done) => lines.send(&answer(id, done))?,
                Err(problem) => lines.send(&error(id, raise, &problem))?,
            }
        }
        // Nothing wakes it while a sample is measured.
        if !lines.fill()? {
            return Ok(());
        }
    }
}

fn answer(id: u64, what: LauncherAnswer) -> Numbered<LauncherAnswer> {
    Numbered { id, what }
}

fn error(id: u64, raise: &StartServer, problem: &io::Error) -> Numbered<LauncherAnswer> {
    let said = match said::words(&said::end_of(File::open(&raise.log))) {
        words if words.is_empty() => words,
        words => format!("; it printed: {words}"),
    };
    // On a full disk it cannot even say so.
    let room = statvfs(&raise.directory).map(|fs| fs.f_bavail * fs.f_frsize);
    let room = match room {
        Ok(bytes) if bytes < LITTLE_ROOM => {
            format!("; no space is left in {}", raise.directory.display())
        }
        _ => String::new(),
    };
    answer(id, LauncherAnswer::Error(format!("`{}`: {problem}{said}{room}", raise.name)))
}

/// Also of the launcher's pipes, which must not seem open when it has ended.
fn close_all_but(kept: RawFd) -> io::Result<()> {
    let null = File::options().read(true).write(true).open("/dev/null")?;
    for standard in [libc::STDIN_FILENO, libc::STDOUT_FILENO] {
        // SAFETY: nothing of this process reads or writes them after that.
        if unsafe { libc::dup2(null.as_raw_fd(), standard) } < 0 {
            return Err(io::Error::last_os_error());
        }
    }
    drop(null);
    let open: Vec<RawFd> = fs::read_dir("/proc/self/fd")?
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .collect();
    for file in open.into_iter().filter(|file| *file > libc::STDERR_FILENO && *file != kept) {
        // SAFETY: whatever owned it is never used nor dropped here, as this process ends without that.
        unsafe { libc::close(file) };
    }
    Ok(())
}

/// The member, and what it started.
struct KeptMember {
    name: String,
    child: Child,
    setup: Setup,
    start: i64,
    is_frozen: bool,
    is_disposable: bool,
    progress: Option<PathBuf>,
    /// Directory that was made for it.
    made: Option<PathBuf>,
}

impl KeptMember {
    fn start(setup: &Setup, raise: &StartServer) -> io::Result<KeptMember> {
        let argv = setup.command_line(&raise.argv);
        let (program, arguments) =
            argv.split_first().ok_or_else(|| io::Error::other("the command is empty"))?;
        let made = raise.is_away.then(|| raise.directory.clone());
        if let Some(directory) = &made {
            DirBuilder::new().mode(0o700).create(directory)?;
        }
        let log = File::options().create(true).append(true).open(&raise.log)?;
        let mut command = start::command(program, raise.inherited());
        command
            .args(arguments)
            .envs(raise.environment.iter().map(|(name, value)| (name, value)))
            .envs(setup.environment())
            .current_dir(setup.directory(&raise.directory))
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log);
        let (steps, user, keeper) = (setup.clone(), raise.user, own_pidfd()?);
        if raise.has_own_pids {
            // SAFETY: it closes no file descriptors.
            unsafe { unshare_unsafe(UnshareFlags::NEWPID) }?;
        }
        // SAFETY: the keeper has one thread, so the forked child may use the heap.
        unsafe {
            command.pre_exec(move || {
                rustix::process::setsid()?;
                be_signalled_as_usual()?;
                steps.steps().try_for_each(|step| step.in_worker())?;
                user.map_or(Ok(()), become_user)?;
                // Another user's process forgets what it set before.
                end_with_keeper(&keeper)
            });
        }
        let child = command.spawn().map_err(|error| {
            io::Error::new(error.kind(), format!("cannot execute its program: {error}"))
        })?;
        // One that has ended already is found so when it is waited for.
        let start = process_start(child.id())?.unwrap_or_default();
        let (name, setup) = (raise.name.clone(), setup.clone());
        let (is_disposable, progress) = (raise.is_disposable, raise.progress.clone());
        let is_frozen = false;
        Ok(KeptMember { name, child, setup, start, is_frozen, is_disposable, progress, made })
    }

    /// Looks often, as nothing is measured meanwhile; gives up where the launcher does.
    fn wait_until_ready(&mut self, raise: &StartServer, lines: &Lines) -> io::Result<()> {
        let deadline = Instant::now() + Duration::from_millis(raise.timeout_ms);
        while !self.is_ready(raise) {
            if let Some(status) = self.child.try_wait()? {
                return Err(io::Error::other(ended(status) + " before it was ready"));
            }
            if Instant::now() > deadline {
                let limit = raise.timeout_ms;
                return Err(io::Error::other(format!("it was not ready within {limit} ms")));
            }
            let mut ready = [PollFd::new(lines, PollFlags::IN)];
            let pause = Timespec { tv_sec: 0, tv_nsec: LOOK_UP.subsec_nanos().into() };
            if poll(&mut ready, Some(&pause))? > 0 {
                return Err(io::Error::other("the launcher stopped waiting for it"));
            }
        }
        Ok(())
    }

    fn is_ready(&self, raise: &StartServer) -> bool {
        match &raise.ready {
            Readiness::Prints(text) => {
                let printed = said::end_of(File::open(&raise.log));
                String::from_utf8_lossy(&printed).contains(text)
            }
            Readiness::Exists(file) => file.exists(),
            Readiness::Accepts(socket) => connect_at_once(socket).is_ok(),
            // Another process may have taken its port.
            Readiness::AcceptsAt(address) => {
                let pid = self.child.id();
                listening_inode(pid, *address).is_some_and(|inode| has_socket(pid, &inode))
            }
        }
    }

    fn seen(&mut self) -> io::Result<MemberSeen> {
        self.check_it_lives()?;
        let pid = self.child.id();
        let status = fs::read_to_string(format!("/proc/{pid}/status"))?;
        let is_frozen = self.is_frozen && all_still(&states());
        let mut seen = BTreeMap::new();
        for step in self.setup.steps() {
            step.look(pid, &mut seen)?;
            step.look_on(pid, &mut seen)?;
        }
        // Of one that ends meanwhile a step may see nothing.
        self.check_it_lives()?;
        let mut cpu_ns = cpu_ns_of(pid);
        if self.is_disposable {
            // What is done beside a sample, it may leave to others.
            let others = descendants_of(pid).into_iter();
            let others = others.filter_map(|other| cpu_ns_of(other.as_raw_nonzero().get() as u32));
            cpu_ns = cpu_ns.map(|own| own + others.sum::<u64>());
        }
        let (name, start) = (self.name.clone(), self.start);
        let progress = self.progress.as_deref().map(number_in).transpose()?;
        Ok(MemberSeen { name, pid, start, is_frozen, cpu_ns, progress, status, seen })
    }

    /// Again and again, as one that was not stopped yet may start others.
    fn freeze(&mut self) -> io::Result<()> {
        let mut stopped = BTreeSet::new();
        let stand_still = || {
            let mut is_new = false;
            for pid in descendants() {
                if stopped.insert(pid.as_raw_nonzero()) {
                    let _ = kill_process(pid, Signal::STOP);
                    is_new = true;
                }
            }
            !is_new && all_still(&states())
        };
        self.is_frozen = true;
        match wait_until(Instant::now() + FREEZE_LIMIT, stand_still) {
            true => Ok(()),
            false => {
                self.check_it_lives()?;
                Err(io::Error::other("its processes do not stop after SIGSTOP"))
            }
        }
    }

    fn thaw(&mut self) -> io::Result<()> {
        self.is_frozen = false;
        for pid in descendants() {
            let _ = kill_process(pid, Signal::CONT);
        }
        self.check_it_lives()
    }

    fn check_it_lives(&mut self) -> io::Result<()> {
        match self.child.try_wait()? {
            Some(status) => Err(io::Error::other(ended(status))),
            None => Ok(()),
        }
    }

    /// As it wants to end, as long as that takes no longer than this; what is left the keeper kills.
    fn lower(&mut self, limit: Duration) {
        if self.is_disposable {
            end_all_but(|_| false);
            // Where that fails, it goes with the scratch directory.
            let _ = self.made.as_ref().map(fs::remove_dir_all);
            return;
        }
        // The number of one that was reaped may be anybody's.
        if matches!(self.child.try_wait(), Ok(None)) {
            let _ = kill_process(Pid::from_child(&self.child), Signal::TERM);
        }
        let _ = self.thaw();
        wait_until(Instant::now() + limit, || !matches!(self.child.try_wait(), Ok(None)));
        end_all_but(|_| false);
    }
}

/// The `u64` in a file.
fn number_in(file: &Path) -> io::Result<u64> {
    let cannot =
        |problem: &str| io::Error::other(format!("cannot read {}: {problem}", file.display()));
    let bytes = fs::read(file).map_err(|error| cannot(&error.to_string()))?;
    let bytes = bytes.try_into().map_err(|_| cannot("it is not a number of 8 bytes"))?;
    Ok(u64::from_ne_bytes(bytes))
}

/// How a member ended, with the limit of its caller's shell that a signal stands for.
fn ended(status: ExitStatus) -> String {
    let limit = match status.signal() {
        Some(libc::SIGXCPU) => " (its CPU time reached the limit of `ulimit -t`)",
        Some(libc::SIGXFSZ) => " (one of its files reached the limit of `ulimit -f`)",
        _ => "",
    };
    format!("it ended with {status}{limit}")
}

fn own_pidfd() -> io::Result<OwnedFd> {
    Ok(pidfd_open(rustix::process::getpid(), PidfdFlags::empty())?)
}

/// For a member: the keeper's end kills it. By its number no process tells its parent's end where that is in
/// another PID namespace.
fn end_with_keeper(keeper: &OwnedFd) -> io::Result<()> {
    set_parent_process_death_signal(Some(Signal::KILL))?;
    let mut ended = [PollFd::new(keeper, PollFlags::IN)];
    match poll(&mut ended, Some(&Timespec { tv_sec: 0, tv_nsec: 0 }))? {
        0 => Ok(()),
        _ => Err(io::ErrorKind::BrokenPipe.into()),
    }
}

/// For a process that is root: it is this user and group from now on, of no other group, and gains nothing by
/// what it executes.
pub fn become_user(id: u32) -> io::Result<()> {
    set_no_new_privs(true)?;
    // SAFETY: system calls with numbers; the process has one thread.
    let failed = unsafe {
        libc::setgroups(0, std::ptr::null()) != 0
            || libc::setresgid(id, id, id) != 0
            || libc::setresuid(id, id, id) != 0
    };
    if failed { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// The first number of `schedstat` (Documentation/scheduler/sched-stats.rst).
fn cpu_ns_of(pid: u32) -> Option<u64> {
    let schedstat = fs::read_to_string(format!("/proc/{pid}/schedstat")).ok()?;
    schedstat.split_whitespace().next()?.parse().ok()
}

/// Connects without waiting, which a listener does not let us whose queue is full.
///
/// # Errors
/// Where it cannot; [`io::ErrorKind::WouldBlock`] where the queue is full.
pub fn connect_at_once(socket: &Path) -> io::Result<OwnedFd> {
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let ours = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    connect(&ours, &SocketAddrUnix::new(socket)?)?;
    Ok(ours)
}

fn states() -> Vec<ProcessState> {
    descendants().filter_map(ProcessState::of).collect()
}

fn all_still(states: &[ProcessState]) -> bool {
    // The member itself is there until it is reaped: where none is seen, they could not be listed.
    !states.is_empty() && states.iter().all(|state| state.is_still(states))
}

struct ProcessState {
    pid: u32,
    parent: u32,
    state: String,
}

impl ProcessState {
    fn of(pid: Pid) -> Option<ProcessState> {
        let pid = pid.as_raw_nonzero().get().cast_unsigned();
        let stat = Stat::of(pid).ok()?;
        Some(ProcessState { pid, parent: stat.parent()?, state: stat.state().to_owned() })
    }

    /// Stopped, or ended and not yet reaped.
    fn is_stopped(&self) -> bool {
        matches!(&*self.state, "T" | "t" | "Z" | "X")
    }

    /// Or it waits in vfork(2) for a child that is stopped, and cannot be stopped itself before that goes on.
    fn is_still(&self, others: &[ProcessState]) -> bool {
        let waits_for = |child: &ProcessState| child.parent == self.pid && child.is_stopped();
        self.is_stopped() || (self.state == "D" && others.iter().any(waits_for))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_a_member_names_the_limit_that_its_signal_stands_for() {
        let said = |status| ended(ExitStatus::from_raw(status));
        assert!(said(libc::SIGXCPU).ends_with("(its CPU time reached the limit of `ulimit -t`)"));
        assert!(said(libc::SIGXFSZ).ends_with("`ulimit -f`)"));
        assert_eq!(said(libc::SIGKILL), "it ended with signal: 9 (SIGKILL)");
    }
}
