//! A seccomp filter whose denials are counted: for a launch that is not measured. Each denied call asks a
//! supervisor (`seccomp_unotify(2)`), which notes it and gives the answer of the filter.
//!
//! The supervisor is the process that the launcher started, and the program runs in a child of it. So the
//! launcher needs no second thread, and no measured launch goes through any of this.

use std::collections::BTreeMap;
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU32, Ordering};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{
    Pid, PidfdFlags, PidfdGetfdFlags, Signal, WaitOptions, getpid, getppid, kill_process,
    pidfd_getfd, pidfd_open, set_parent_process_death_signal, waitpid,
};
use serde::{Deserialize, Serialize};

use crate::launcher::Launched;
use crate::seccomp_program::{self, Call, Instruction, NATIVE_ARCHITECTURE};
use crate::setup::{Act, look};
use crate::stamp::map_shared;

/// The filter as it is measured.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DeniedCalls {
    pub program: Vec<Instruction>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DeniedCall {
    /// `None` for a call of another ABI than the machine's own.
    pub number: Option<u32>,
    /// The `SECCOMP_RET_…` value of the last denial.
    pub action: u32,
    pub times: u32,
}

/// Shown by [`DeniedCalls`]: the calls, or why they are not known.
pub type Found = Result<Vec<DeniedCall>, String>;

/// Table size: larger than any system call number.
const CALLS: usize = 1024;
/// Index of the last entry, which counts the calls of all other ABIs.
const OF_OTHERS: usize = CALLS;
/// In place of an error number: the supervisor cannot answer as the filter would.
const BEYOND_US: i32 = -1;
const LOOK_AGAIN: Timespec = Timespec { tv_sec: 0, tv_nsec: 1_000_000 };

/// Memory that launcher, supervisor and worker share.
struct Table {
    /// The file descriptor in the worker, plus one.
    listener: AtomicI32,
    /// True if the supervisor answers from now on.
    is_answered: AtomicBool,
    /// Why the supervisor could not do its work: an error number, or [`BEYOND_US`].
    problem: AtomicI32,
    calls: [Counted; CALLS + 1],
}

struct Counted {
    action: AtomicU32,
    times: AtomicU32,
}

static TABLE: OnceLock<&'static Table> = OnceLock::new();

impl DeniedCalls {
    /// The name of the observation, a [`Found`] as JSON.
    const SEEN: &str = "denied calls";

    /// The calls that were denied in a launch.
    pub fn found(launched: &Launched) -> Found {
        let seen = launched.seen(DeniedCalls::SEEN).map_err(|error| error.to_string())?;
        serde_json::from_str(seen).map_err(|error| error.to_string())?
    }

    /// The call by which every program begins, if the filter denies it.
    pub fn denies_execve(&self) -> Option<DeniedCall> {
        let number = libc::SYS_execve as u32;
        let call = Call { architecture: NATIVE_ARCHITECTURE, number, arguments: [0; 6] };
        let action = seccomp_program::action(&self.program, &call);
        let is_denied = seccomp_program::denies(action);
        is_denied.then_some(DeniedCall { number: Some(number), action, times: 1 })
    }

    fn install(&self, table: &Table, supervisor: Pid) -> io::Result<()> {
        // The supervisor ends at the latest when the launcher does; it may have, before this was asked for.
        set_parent_process_death_signal(Some(Signal::KILL))?;
        if getppid() != Some(supervisor) {
            return Err(io::Error::other("the supervisor has ended"));
        }
        let program = seccomp_program::announcing(&self.program);
        let listener = seccomp_program::install_notifying(&program)?;
        table.listener.store(listener + 1, Ordering::Release);
        // Any call that waits could be one that the filter denies.
        while !table.is_answered.load(Ordering::Acquire) {
            std::hint::spin_loop();
        }
        Ok(())
    }

    /// Answers for the filter until the worker has ended.
    fn supervise(&self, table: &Table, worker: Pid) -> io::Result<()> {
        let pidfd = pidfd_open(worker, PidfdFlags::empty())?;
        let listener = loop {
            match table.listener.load(Ordering::Acquire) {
                0 if has_input(&pidfd, Some(&LOOK_AGAIN))? => return Ok(()),
                0 => {}
                number => break pidfd_getfd(&pidfd, number - 1, PidfdGetfdFlags::empty())?,
            }
        };
        close_all_but(&[&pidfd, &listener])?;
        table.is_answered.store(true, Ordering::Release);
        loop {
            let mut both = [&listener, &pidfd].map(|fd| PollFd::new(fd, PollFlags::IN));
            match poll(&mut both, None) {
                Err(Errno::INTR) => continue,
                polled => polled?,
            };
            let [asked, ended] = both.map(|one| !one.revents().is_empty());
            // Whatever it left running is ended by the launcher.
            if ended {
                return Ok(());
            }
            if asked {
                self.answer(table, &listener)?;
            }
        }
    }

    /// Answers one call as the filter would, and counts it.
    fn answer(&self, table: &Table, listener: &OwnedFd) -> io::Result<()> {
        // SAFETY: zeros are valid, and what the kernel wants there.
        let mut asked: libc::seccomp_notif = unsafe { std::mem::zeroed() };
        // SAFETY: the request writes a `seccomp_notif`, which lives across the call.
        match unsafe { ioctl(listener, libc::SECCOMP_IOCTL_NOTIF_RECV, (&raw mut asked).cast()) } {
            // It was killed meanwhile.
            Err(Errno::INTR | Errno::NOENT) => return Ok(()),
            received => received?,
        }
        let (architecture, number) = (asked.data.arch, asked.data.nr.cast_unsigned());
        let call = Call { architecture, number, arguments: asked.data.args };
        let action = seccomp_program::action(&self.program, &call);
        table.count(&call, action);
        let error = match action & libc::SECCOMP_RET_ACTION_FULL {
            libc::SECCOMP_RET_ERRNO => -seccomp_program::errno(action),
            // A process without a tracer gets the same answer.
            libc::SECCOMP_RET_TRACE => -libc::ENOSYS,
            action => {
                // All of it, as the filter does, also if it blocks or ignores SIGSYS.
                if !ends_process(action, asked.pid)? {
                    table.problem.store(BEYOND_US, Ordering::Release);
                }
                end(asked.pid);
                return Ok(());
            }
        };
        let mut answer = libc::seccomp_notif_resp { id: asked.id, val: 0, error, flags: 0 };
        // SAFETY: the request reads a `seccomp_notif_resp`, which lives across the call.
        match unsafe { ioctl(listener, libc::SECCOMP_IOCTL_NOTIF_SEND, (&raw mut answer).cast()) } {
            Err(Errno::NOENT) => Ok(()),
            sent => Ok(sent?),
        }
    }
}

impl Act for DeniedCalls {
    fn in_launcher(&self) -> Result<(), String> {
        let page = map_shared(size_of::<Table>()).map_err(|error| error.to_string())?;
        // SAFETY: the mapping is large enough, aligned to a page, stays, and zeros are a valid table.
        TABLE.get_or_init(|| unsafe { &*page.cast::<Table>() });
        Ok(())
    }

    fn in_worker(&self) -> io::Result<()> {
        let table = TABLE.get().ok_or_else(|| io::Error::other("the launcher made no table"))?;
        let supervisor = getpid();
        // SAFETY: this process is a copy of the launcher's, with one thread.
        let worker = match unsafe { libc::fork() } {
            -1 => return Err(io::Error::last_os_error()),
            worker => Pid::from_raw(worker),
        };
        let Some(worker) = worker else { return self.install(table, supervisor) };
        if let Err(error) = self.supervise(table, worker) {
            table.problem.store(error.raw_os_error().unwrap_or(libc::EIO), Ordering::Release);
            let _ = kill_process(worker, Signal::KILL);
        }
        let _ = waitpid(Some(worker), WaitOptions::empty());
        // SAFETY: it ends this process, which was forked, without running what others left to do at its end.
        unsafe { libc::_exit(0) }
    }

    fn forbids(&self) -> bool {
        true
    }

    fn after_worker(&self, seen: &mut BTreeMap<String, String>) -> io::Result<Option<u32>> {
        let table = TABLE.get().ok_or_else(|| io::Error::other("the launcher made no table"))?;
        seen.insert(DeniedCalls::SEEN.into(), serde_json::to_string(&table.found())?);
        Ok(None)
    }
}

impl Table {
    fn count(&self, call: &Call, action: u32) {
        let is_own = call.architecture == NATIVE_ARCHITECTURE && (call.number as usize) < CALLS;
        let entry = &self.calls[if is_own { call.number as usize } else { OF_OTHERS }];
        entry.action.store(action, Ordering::Relaxed);
        entry.times.fetch_add(1, Ordering::Relaxed);
    }

    fn found(&self) -> Found {
        match self.problem.load(Ordering::Acquire) {
            0 => {}
            BEYOND_US => {
                let why = "it handles the SIGSYS of the filter, or the filter kills one of its threads: \
                           only the kernel can do either";
                return Err(why.into());
            }
            problem => return Err(io::Error::from_raw_os_error(problem).to_string()),
        }
        let denied = |(number, entry): (usize, &Counted)| DeniedCall {
            number: (number != OF_OTHERS).then_some(number as u32),
            action: entry.action.load(Ordering::Relaxed),
            times: entry.times.load(Ordering::Relaxed),
        };
        Ok(self.calls.iter().enumerate().map(denied).filter(|call| call.times > 0).collect())
    }
}

/// # Safety
/// The request must fit what `argument` points to.
unsafe fn ioctl(
    of: &OwnedFd,
    request: libc::Ioctl,
    argument: *mut libc::c_void,
) -> Result<(), Errno> {
    // SAFETY: the caller vouches for the argument.
    match unsafe { libc::ioctl(of.as_raw_fd(), request, argument) } {
        0.. => Ok(()),
        _ => Err(Errno::from_io_error(&io::Error::last_os_error()).unwrap_or(Errno::IO)),
    }
}

fn has_input(of: &OwnedFd, time: Option<&Timespec>) -> io::Result<bool> {
    Ok(poll(&mut [PollFd::new(of, PollFlags::IN)], time)? > 0)
}

/// Returns true if this action, which kills or raises SIGSYS, ends the whole process of a thread. A SIGSYS
/// with the facts of the call reaches a handler from the kernel alone.
fn ends_process(action: u32, thread: u32) -> io::Result<bool> {
    Ok(match action {
        libc::SECCOMP_RET_TRAP => {
            let caught = look::status_line(&thread.to_string(), "SigCgt")?;
            let caught = u64::from_str_radix(&caught, 16).map_err(io::Error::other)?;
            caught & 1 << (libc::SIGSYS - 1) == 0
        }
        libc::SECCOMP_RET_KILL_THREAD => look::status_line(&thread.to_string(), "Threads")? == "1",
        _ => true,
    })
}

/// Kills the process of a thread; one that is gone needs nothing.
fn end(thread: u32) {
    if let Some(pid) = Pid::from_raw(thread.cast_signed()) {
        let _ = kill_process(pid, Signal::KILL);
    }
}

/// Closes what belongs to the program: its output ends when it ends.
fn close_all_but(kept: &[&OwnedFd; 2]) -> io::Result<()> {
    let mut kept = kept.map(|fd| fd.as_fd().as_raw_fd().cast_unsigned());
    kept.sort_unstable();
    let ranges = [(0, kept[0]), (kept[0] + 1, kept[1]), (kept[1] + 1, u32::MAX)];
    for (first, end) in ranges.into_iter().filter(|(first, end)| first < end) {
        // SAFETY: this process uses none of them any more.
        if unsafe { libc::syscall(libc::SYS_close_range, first, end - 1, 0) } < 0 {
            return Err(io::Error::last_os_error());
        }
    }
    Ok(())
}
