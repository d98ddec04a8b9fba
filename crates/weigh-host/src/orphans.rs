//! Ending what others left running. A process whose parent ended becomes a child of its nearest ancestor
//! that asked for that (`PR_SET_CHILD_SUBREAPER`), also one that left its session and process group. So
//! whoever starts programs of others can end all that they started, without being root.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io;
use std::process::Child;
use std::sync::{Mutex, Once, PoisonError};
use std::thread::sleep;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{
    Pid, PidfdFlags, Signal, WaitId, WaitIdOptions, WaitOptions, kill_process, pidfd_open,
    set_child_subreaper, waitid, waitpid,
};

use crate::machine::process::unless_gone;

/// Time limit for a killed process to end. It ends within moments, unless it waits for a disk or a
/// network that does not answer.
pub const LIMIT: Duration = Duration::from_secs(10);
/// Signals that mean an error: the kernel sends them for what a process did, or a program sends one to itself
/// when it gives up. Other signals may be intended: `timeout`, `kill` and a closed pipe end processes of
/// programs that work. The control group counts the processes that the out-of-memory killer kills.
pub const OF_ERRORS: [i32; 8] = [
    libc::SIGSYS,
    libc::SIGSEGV,
    libc::SIGBUS,
    libc::SIGILL,
    libc::SIGFPE,
    libc::SIGABRT,
    libc::SIGXCPU,
    libc::SIGXFSZ,
];
const FIRST_PAUSE: Duration = Duration::from_micros(100);
const LONGEST_PAUSE: Duration = Duration::from_millis(20);

/// Processes of this program that it ends in good order itself.
static KEPT: Mutex<BTreeSet<i32>> = Mutex::new(BTreeSet::new());
static ADOPTED: Once = Once::new();

/// From now on orphans of our descendants become our children. Not where we have children already: a shell
/// started them and then executed `weigh` in its own place, as `exec weigh` does. Their orphans would come
/// to us too, and neither are ours to end.
pub fn adopt() -> io::Result<()> {
    let mut result = Ok(());
    ADOPTED.call_once(|| {
        // Those that cannot be seen may be somebody's, and would be ended as orphans of ours.
        let before = match children() {
            Ok(before) => before,
            Err(error) => return result = Err(error),
        };
        if before.is_empty() {
            result = set_child_subreaper(Some(rustix::process::getpid())).map_err(io::Error::from);
        }
        before.iter().for_each(|child| keep(child.as_raw_nonzero().get().cast_unsigned()));
    });
    result
}

/// A child of ours that [`end_strays`] leaves alone.
pub fn keep(pid: u32) {
    KEPT.lock().unwrap_or_else(PoisonError::into_inner).insert(pid.cast_signed());
}

/// It has ended; its number may come again.
pub fn forget(pid: u32) {
    KEPT.lock().unwrap_or_else(PoisonError::into_inner).remove(&pid.cast_signed());
}

/// Ends all children of ours that nobody asked to [`keep`]: orphans of a helper that was killed.
pub fn end_strays() {
    let kept = KEPT.lock().unwrap_or_else(PoisonError::into_inner).clone();
    end_all_but(|pid| kept.contains(&pid));
}

/// Kills and reaps all children of ours but these, and then theirs, which become ours.
pub fn end_all_but(is_kept: impl Fn(i32) -> bool) {
    let deadline = Instant::now() + LIMIT;
    loop {
        // Without descriptors they cannot be seen; whoever started them ends them then, or their launcher.
        let mut others = children().unwrap_or_default();
        others.retain(|pid| !is_kept(pid.as_raw_nonzero().get()));
        if others.is_empty() || Instant::now() > deadline {
            return;
        }
        for other in others {
            let _ = kill_process(other, Signal::KILL);
            let is_gone = || !matches!(waitpid(Some(other), WaitOptions::NOHANG), Ok(None));
            wait_until(deadline, is_gone);
        }
    }
}

/// The signals of errors that have ended children of ours, which are still to be reaped. Signals that
/// somebody sends on purpose are not among them.
pub fn fatal_signals(is_left_out: impl Fn(i32) -> bool) -> io::Result<Vec<i32>> {
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT | WaitIdOptions::NOHANG;
    let mut others = children()?;
    others.retain(|pid| !is_left_out(pid.as_raw_nonzero().get()));
    let ended = others.into_iter().filter_map(|pid| waitid(WaitId::Pid(pid), options).ok()?);
    let signals = ended.filter_map(|status| status.terminating_signal());
    Ok(signals.filter(|signal| OF_ERRORS.contains(signal)).collect())
}

/// Counts the children of ours that still run.
pub fn living(is_left_out: impl Fn(i32) -> bool) -> io::Result<usize> {
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT | WaitIdOptions::NOHANG;
    let mut others = children()?;
    others.retain(|pid| !is_left_out(pid.as_raw_nonzero().get()));
    Ok(others
        .into_iter()
        .filter(|pid| matches!(waitid(WaitId::Pid(*pid), options), Ok(None)))
        .count())
}

/// Looks more and more seldom whether something is so; `false` where it is not by then.
pub fn wait_until(deadline: Instant, mut is_so: impl FnMut() -> bool) -> bool {
    let mut pause = FIRST_PAUSE;
    while !is_so() {
        if Instant::now() > deadline {
            return false;
        }
        sleep(pause);
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
    true
}

/// Waits until a child has ended, and reaps it; `false` where it has not by then.
pub fn wait_for(child: &mut Child, deadline: Instant) -> bool {
    // One that was reaped already has no number any more.
    if matches!(child.try_wait(), Ok(None)) {
        wait_for_news(child, &[], deadline.saturating_duration_since(Instant::now()));
    }
    wait_until(deadline, || !matches!(child.try_wait(), Ok(None)))
}

/// Waits until a child that was not reaped has ended, or there is something to read, or so long. May return
/// sooner: a kernel before Linux 5.3 tells of no end, so there it waits a millisecond.
pub fn wait_for_news(child: &Child, inputs: &[&File], time: Duration) {
    const LOOK_AGAIN: Duration = Duration::from_millis(1);
    let pidfd = pidfd_open(Pid::from_child(child), PidfdFlags::empty()).ok();
    let time = if pidfd.is_some() { time } else { time.min(LOOK_AGAIN) };
    let time = Timespec { tv_sec: time.as_secs() as i64, tv_nsec: time.subsec_nanos().into() };
    let inputs = inputs.iter().map(|input| PollFd::new(*input, PollFlags::IN));
    let ends = pidfd.iter().map(|end| PollFd::new(end, PollFlags::IN));
    // What is wrong with any of them, the next look finds.
    let _ = poll(&mut inputs.chain(ends).collect::<Vec<_>>(), Some(&time));
}

/// All that descend from this process now.
pub fn descendants() -> impl Iterator<Item = Pid> {
    below("self").into_iter()
}

/// All that descend from that process now, its children first.
pub fn descendants_of(process: u32) -> Vec<Pid> {
    below(&process.to_string())
}

fn below(process: &str) -> Vec<Pid> {
    let mut found = children_of(process).unwrap_or_default();
    let mut looked_at = 0;
    while let Some(pid) = found.get(looked_at) {
        let theirs = children_of(&pid.as_raw_nonzero().to_string()).unwrap_or_default();
        found.extend(theirs);
        looked_at += 1;
    }
    found
}

fn children() -> io::Result<Vec<Pid>> {
    let own = "/proc/self/task";
    fs::metadata(own).map_err(|error| io::Error::new(error.kind(), format!("{own}: {error}")))?;
    children_of("self")
}

/// Returns the children of all threads of a process; empty for a process that has ended.
fn children_of(process: &str) -> io::Result<Vec<Pid>> {
    let Some(threads) = unless_gone(fs::read_dir(format!("/proc/{process}/task")))? else {
        return Ok(Vec::new());
    };
    let mut found = Vec::new();
    for thread in threads {
        let children = fs::read_to_string(thread?.path().join("children"));
        let Some(text) = unless_gone(children)? else { continue };
        found.extend(text.split_whitespace().filter_map(|pid| Pid::from_raw(pid.parse().ok()?)));
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn a_child_is_waited_for_until_it_ends_and_no_longer_than_the_deadline() {
        let mut child = Command::new("sleep").arg("600").spawn().unwrap();
        assert!(!wait_for(&mut child, Instant::now() + Duration::from_millis(20)));
        child.kill().unwrap();
        assert!(wait_for(&mut child, Instant::now() + LIMIT));
        assert!(wait_for(&mut child, Instant::now()), "it was reaped, and its number is another's");
    }
}
