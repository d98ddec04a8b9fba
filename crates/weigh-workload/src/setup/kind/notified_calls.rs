//! A seccomp filter that hands some calls of each worker to a supervisor, which lets the kernel go on with
//! each: by a notification (`seccomp_unotify(2)`, `SECCOMP_USER_NOTIF_FLAG_CONTINUE`), or by a stop of the
//! process (`SECCOMP_RET_TRACE` of `ptrace(2)`).
//!
//! The supervisor is no child of the worker, so the worker's program cannot wait for it by mistake. It is
//! forked before the filter is there, so it is not under the filter, and ends with the last process that is.

use std::collections::BTreeMap;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicI32, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, PidfdGetfdFlags, getpid, pidfd_getfd, pidfd_open};
use serde::{Deserialize, Serialize};

use super::seccomp_filter::SeccompFilter;
use crate::call_tracer::{self, PROBE_MARK, Signs};
use crate::seccomp_program::{
    self, Instruction, JUMP_IF_EQUAL, LOAD_WORD, NATIVE_ARCHITECTURE, RETURN,
};
use crate::setup::{Act, look};
use crate::stamp::map_shared;

/// A call that no kernel has: the worker tries it, and only the supervisor gives this answer, or notes the
/// stop.
const PROBE_CALL: u32 = 4095;
const PROBE_ANSWER: i64 = 43;
/// A supervisor that was killed before it listened is not waited for any longer.
const LISTENS_WITHIN: Duration = Duration::from_secs(10);

/// Numbers of the calls; with none, there is neither a filter nor a supervisor.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct NotifiedCalls {
    pub calls: Vec<u32>,
    /// True if the calls stop the process, and the supervisor is its tracer.
    #[serde(default)]
    pub is_traced: bool,
}

/// Memory that launcher, worker and supervisor share.
struct Table {
    supervisor: AtomicI32,
    /// The file descriptor in the worker, plus one; 1 for a worker that may be traced.
    listener: AtomicI32,
    is_listening: AtomicI32,
    /// Positive if the tracer saw the stop of the probe.
    is_probed: AtomicI32,
    /// Positive if the supervisor answered until the worker ended.
    is_served: AtomicI32,
    answered: AtomicU64,
}

static TABLE: OnceLock<&'static Table> = OnceLock::new();

impl NotifiedCalls {
    /// Name of the observation: the number of calls that the supervisor answered. Missing if the supervisor
    /// ended before the worker.
    pub const ANSWERED: &str = "calls that the supervisor answered";

    fn program(&self) -> Vec<Instruction> {
        let notified = self.calls.iter().copied().chain([PROBE_CALL]);
        let action = |call| match (self.is_traced, call) {
            (false, _) => libc::SECCOMP_RET_USER_NOTIF,
            (true, PROBE_CALL) => libc::SECCOMP_RET_TRACE | PROBE_MARK,
            (true, _) => libc::SECCOMP_RET_TRACE,
        };
        let one = |call| [(JUMP_IF_EQUAL, 0, 1, call), (RETURN, 0, 0, action(call))];
        let allow = (RETURN, 0, 0, libc::SECCOMP_RET_ALLOW);
        let native = [(LOAD_WORD, 0, 0, 4), (JUMP_IF_EQUAL, 1, 0, NATIVE_ARCHITECTURE), allow];
        let numbers = [(LOAD_WORD, 0, 0, 0)].into_iter().chain(notified.flat_map(one));
        native.into_iter().chain(numbers).chain([allow]).collect()
    }

    fn install(&self, table: &Table) -> io::Result<()> {
        let listener = seccomp_program::install_notifying(&self.program())?;
        table.listener.store(listener + 1, Ordering::Release);
        table.wait_until_listening();
        // SAFETY: the number is the file's, which nothing else here closes.
        drop(unsafe { OwnedFd::from_raw_fd(listener) });
        // SAFETY: no kernel has a call of this number, so it has no arguments.
        match unsafe { libc::syscall(libc::c_long::from(PROBE_CALL)) } {
            PROBE_ANSWER => Ok(()),
            _ => Err(io::Error::other("the supervisor of seccomp does not answer")),
        }
    }

    fn install_traced(&self, table: &Table) -> io::Result<()> {
        table.listener.store(1, Ordering::Release);
        table.wait_until_listening();
        SeccompFilter { program: self.program(), times: 1 }.in_worker()?;
        // SAFETY: no kernel has a call of this number, so it has no arguments.
        unsafe { libc::syscall(libc::c_long::from(PROBE_CALL)) };
        match table.is_probed.load(Ordering::Acquire) {
            0 => Err(io::Error::other("no tracer saw a traced call: is tracing allowed here?")),
            _ => Ok(()),
        }
    }
}

impl Table {
    fn signs(&self) -> Signs<'_> {
        let Table { is_listening, is_probed, is_served, answered: stops, .. } = self;
        Signs { is_listening, is_probed, is_served, stops }
    }

    /// Any call that waits could be one that is notified; the clock needs none. A supervisor that failed sets
    /// this too, but not one that was killed.
    fn wait_until_listening(&self) {
        let deadline = Instant::now() + LISTENS_WITHIN;
        while self.is_listening.load(Ordering::Acquire) == 0 && Instant::now() < deadline {
            std::hint::spin_loop();
        }
    }
}

impl Act for NotifiedCalls {
    fn in_launcher(&self) -> Result<(), String> {
        let page = map_shared(size_of::<Table>()).map_err(|error| error.to_string())?;
        // SAFETY: the mapping is large enough, aligned to a page, stays, and zeros are a valid table.
        TABLE.get_or_init(|| unsafe { &*page.cast::<Table>() });
        Ok(())
    }

    fn in_worker(&self) -> io::Result<()> {
        if self.calls.is_empty() {
            return Ok(());
        }
        let table = TABLE.get().ok_or_else(|| io::Error::other("the launcher made no table"))?;
        let Table { supervisor, listener, is_listening, is_probed, is_served, .. } = table;
        for number in [supervisor, listener, is_listening, is_probed, is_served] {
            number.store(0, Ordering::Relaxed);
        }
        table.answered.store(0, Ordering::Relaxed);
        let worker = getpid();
        let between = fork_silently()?;
        if between == 0 {
            let status = match fork_silently() {
                Ok(0) => supervise(table, worker, self.is_traced).map_or(1, |()| 0),
                Ok(supervisor) => {
                    table.supervisor.store(supervisor, Ordering::Release);
                    0
                }
                Err(_) => 1,
            };
            table.is_listening.fetch_or(status, Ordering::Release);
            // SAFETY: it ends this process without running what others left to do at its end.
            unsafe { libc::_exit(status) }
        }
        // SAFETY: it writes no status. `__WALL` is for a child that sends no signal.
        if unsafe { libc::waitpid(between, std::ptr::null_mut(), libc::__WALL) } < 0 {
            return Err(io::Error::last_os_error());
        }
        // Yama lets ancestors look into a process, and those that it names. Without Yama, this is an error.
        let supervisor = table.supervisor.load(Ordering::Acquire);
        // SAFETY: it takes a number.
        unsafe { libc::prctl(libc::PR_SET_PTRACER, supervisor) };
        match self.is_traced {
            true => self.install_traced(table),
            false => self.install(table),
        }
    }

    /// A process has one tracer: this comes before the launcher would hold the worker by tracing it.
    fn forbids(&self) -> bool {
        !self.is_traced
    }

    fn look_back(&self, _: u32, seen: &mut BTreeMap<String, String>) -> io::Result<()> {
        let Some(table) = TABLE.get() else { return Ok(()) };
        seen.remove(NotifiedCalls::ANSWERED);
        if !self.calls.is_empty() && table.is_served.load(Ordering::Acquire) > 0 {
            let answered = table.answered.load(Ordering::Acquire);
            seen.insert(NotifiedCalls::ANSWERED.into(), answered.to_string());
        }
        Ok(())
    }

    /// A supervisor of other processes that still live has not ended, and notes nothing by itself.
    fn before_orphans_end(&self, _: u32) {
        let Some(table) = TABLE.get().filter(|_| !self.calls.is_empty()) else { return };
        let supervisor = table.supervisor.load(Ordering::Acquire).cast_unsigned();
        let is_served = || table.is_served.load(Ordering::Acquire) > 0;
        if !is_served() && !look::has_ended(supervisor) {
            table.is_served.store(1, Ordering::Release);
        }
    }
}

/// Forks a child whose end sends no signal: a worker that is held would be stopped by it.
fn fork_silently() -> io::Result<i32> {
    // SAFETY: the launcher has one thread, and so has its copy.
    match unsafe { libc::syscall(libc::SYS_clone, 0, 0, 0, 0, 0) } {
        child @ 0.. => Ok(child as i32),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Answers each call until no process is under the filter.
fn supervise(table: &Table, worker: Pid, is_tracer: bool) -> io::Result<()> {
    rustix::process::setsid()?;
    // What belongs to the program: its output ends when it ends.
    // SAFETY: this process uses none of its files.
    if unsafe { libc::syscall(libc::SYS_close_range, 0, u32::MAX, 0) } < 0 {
        return Err(io::Error::last_os_error());
    }
    let pidfd = pidfd_open(worker, PidfdFlags::empty())?;
    let listener = loop {
        match table.listener.load(Ordering::Acquire) {
            0 if poll(&mut [PollFd::new(&pidfd, PollFlags::IN)], Some(&Default::default()))?
                > 0 =>
            {
                return Ok(());
            }
            0 => std::thread::yield_now(),
            _ if is_tracer => return call_tracer::trace(table.signs(), worker),
            number => break pidfd_getfd(&pidfd, number - 1, PidfdGetfdFlags::empty())?,
        }
    };
    drop(pidfd);
    table.is_listening.store(1, Ordering::Release);
    loop {
        let mut one = [PollFd::new(&listener, PollFlags::IN)];
        match poll(&mut one, None) {
            Err(Errno::INTR) => continue,
            polled => polled?,
        };
        if one[0].revents().contains(PollFlags::IN) {
            answer(table, &listener)?;
        } else if one[0].revents().contains(PollFlags::HUP) {
            table.is_served.store(1, Ordering::Release);
            return Ok(());
        }
    }
}

fn answer(table: &Table, listener: &OwnedFd) -> io::Result<()> {
    // SAFETY: zeros are valid, and what the kernel wants there.
    let mut asked: libc::seccomp_notif = unsafe { std::mem::zeroed() };
    let file = listener.as_raw_fd();
    // SAFETY: the request writes a `seccomp_notif`, which lives across the call.
    if unsafe { libc::ioctl(file, libc::SECCOMP_IOCTL_NOTIF_RECV, &raw mut asked) } < 0 {
        return unless_gone();
    }
    let is_probe = asked.data.nr.cast_unsigned() == PROBE_CALL;
    let (val, flags) = match is_probe {
        true => (PROBE_ANSWER, 0),
        false => (0, libc::SECCOMP_USER_NOTIF_FLAG_CONTINUE as u32),
    };
    table.answered.fetch_add(u64::from(!is_probe), Ordering::Release);
    let mut answer = libc::seccomp_notif_resp { id: asked.id, val, error: 0, flags };
    // SAFETY: the request reads a `seccomp_notif_resp`, which lives across the call.
    match unsafe { libc::ioctl(file, libc::SECCOMP_IOCTL_NOTIF_SEND, &raw mut answer) } {
        0.. => Ok(()),
        _ => unless_gone(),
    }
}

/// The process was killed or got a signal meanwhile.
fn unless_gone() -> io::Result<()> {
    let error = io::Error::last_os_error();
    match error.raw_os_error() {
        Some(libc::ENOENT | libc::EINTR) => Ok(()),
        _ => Err(error),
    }
}
