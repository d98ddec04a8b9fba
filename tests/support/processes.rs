//! The processes of an experiment by their role, and signals to them.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

use super::{Home, Running, wait_until};

const LONG: Duration = Duration::from_secs(60);

impl Home {
    /// Finds our processes whose command line contains `role`.
    pub fn processes_of(&self, role: &str) -> Vec<i32> {
        let is_of = |pid: &i32| {
            let words = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            String::from_utf8_lossy(&words).replace('\0', " ").contains(role)
        };
        self.processes().into_iter().filter(is_of).collect()
    }

    /// Asserts that our processes end soon.
    #[track_caller]
    pub fn assert_nothing_runs(&self) {
        let all_gone = wait_until(LONG, || self.processes().is_empty());
        assert!(all_gone, "still running: {:#?}", self.describe_processes());
    }

    /// Asserts that our processes end soon, and that no file is left behind.
    #[track_caller]
    pub fn assert_nothing_left(&self) {
        self.assert_nothing_runs();
        assert_eq!(self.leftovers(), Vec::<PathBuf>::new());
    }
}

/// One that is gone needs none.
pub fn signal(pid: i32, signal: Signal) {
    let _ = kill_process(Pid::from_raw(pid).unwrap(), signal);
}

/// Kills `weigh`, its guard and all other helpers, as an OOM killer would. `weigh` is stopped first and the
/// guard killed next, so that neither notices the other's end and undoes anything.
pub fn kill_everything(home: &Home, mut running: Running) {
    signal(running.pid(), Signal::STOP);
    let mut killed = BTreeSet::from([running.pid()]);
    let all_gone = wait_until(LONG, || {
        let mut pids = home.processes();
        killed.extend(&pids);
        let guards = home.processes_of("__guard");
        pids.sort_by_key(|pid| (*pid == running.pid(), !guards.contains(pid)));
        pids.iter().for_each(|pid| signal(*pid, Signal::KILL));
        running.has_ended() && pids.is_empty()
    });
    assert!(all_gone, "still running: {:#?}", home.describe_processes());
    // One that dies has no environment any more, but its locks still.
    assert!(wait_until(LONG, || killed.iter().all(|pid| has_died(*pid))), "{killed:?}");
}

/// Returns true if the process is a zombie or gone.
fn has_died(pid: i32) -> bool {
    let Ok(stat) = fs::read_to_string(format!("/proc/{pid}/stat")) else { return true };
    stat.rsplit_once(") ").is_some_and(|(_, rest)| rest.starts_with(['Z', 'X']))
}

/// A file system on a new directory, which cannot be removed as long as this lives.
pub struct Held(PathBuf);

impl Held {
    /// A file system with room in place of the directory for temporary files.
    pub fn temporary_files(home: &Home) -> Held {
        fs::remove_dir(home.path("tmp")).unwrap();
        Held::mount(home.path("tmp"))
    }

    pub fn mount(directory: PathBuf) -> Held {
        fs::create_dir(&directory).unwrap();
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "none"]).arg(&directory);
        assert!(mount.status().unwrap().success(), "{mount:?}");
        Held(directory)
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(&self.0).status();
    }
}
