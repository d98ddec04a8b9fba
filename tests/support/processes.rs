//! The processes of an experiment by their role, and signals to them.

use std::fs;

use rustix::process::{Pid, Signal, kill_process};

use super::Home;

impl Home {
    /// Those of our processes whose command line has this in it.
    pub fn processes_of(&self, role: &str) -> Vec<i32> {
        let is_of = |pid: &i32| {
            let words = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            String::from_utf8_lossy(&words).replace('\0', " ").contains(role)
        };
        self.processes().into_iter().filter(is_of).collect()
    }
}

/// One that is gone needs none.
pub fn signal(pid: i32, signal: Signal) {
    let _ = kill_process(Pid::from_raw(pid).unwrap(), signal);
}
