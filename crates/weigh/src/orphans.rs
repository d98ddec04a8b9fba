//! Ending what others left running. A process whose parent ended becomes a child of its nearest ancestor
//! that asked for that (`PR_SET_CHILD_SUBREAPER`), also one that left its session and process group. So
//! whoever starts programs of others can end all that they started, without being root.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::sync::{Mutex, Once, PoisonError};
use std::thread::sleep;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, WaitOptions, kill_process, set_child_subreaper, waitpid};

/// What was killed ends within moments, unless it waits for a disk or a network that does not answer.
pub const LIMIT: Duration = Duration::from_secs(10);
const FIRST_PAUSE: Duration = Duration::from_micros(100);
const LONGEST_PAUSE: Duration = Duration::from_millis(20);

/// Processes of this program that it ends in good order itself.
static KEPT: Mutex<BTreeSet<i32>> = Mutex::new(BTreeSet::new());
static ADOPTED: Once = Once::new();

/// From now on orphans of our descendants become our children. Not where we have children already: a shell
/// started them and then executed `weigh` in its own place, as `exec weigh` does. Their orphans would come
/// to us too, and neither are ours to end.
///
/// # Errors
/// As `prctl(2)`.
pub fn adopt() -> io::Result<()> {
    let mut result = Ok(());
    ADOPTED.call_once(|| {
        let before: Vec<Pid> = children().collect();
        if before.is_empty() {
            result = set_child_subreaper(Some(rustix::process::getpid()));
        }
        before.iter().for_each(|child| keep(child.as_raw_nonzero().get().cast_unsigned()));
    });
    Ok(result?)
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
        let others: Vec<Pid> =
            children().filter(|pid| !is_kept(pid.as_raw_nonzero().get())).collect();
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

/// All that descend from this process now.
pub fn descendants() -> impl Iterator<Item = Pid> {
    below("self").into_iter()
}

/// All that descend from that process now, its children first.
pub fn descendants_of(process: u32) -> Vec<Pid> {
    below(&process.to_string())
}

fn below(process: &str) -> Vec<Pid> {
    let mut found: Vec<Pid> = children_of(process).collect();
    let mut looked_at = 0;
    while let Some(pid) = found.get(looked_at) {
        let theirs: Vec<Pid> = children_of(&pid.as_raw_nonzero().to_string()).collect();
        found.extend(theirs);
        looked_at += 1;
    }
    found
}

fn children() -> impl Iterator<Item = Pid> {
    children_of("self")
}

/// Of all threads of a process.
fn children_of(process: &str) -> impl Iterator<Item = Pid> {
    let threads = fs::read_dir(format!("/proc/{process}/task")).into_iter().flatten().flatten();
    threads.flat_map(|thread| {
        let text = fs::read_to_string(thread.path().join("children")).unwrap_or_default();
        let pids = text.split_whitespace().filter_map(|pid| Pid::from_raw(pid.parse().ok()?));
        pids.collect::<Vec<Pid>>()
    })
}
