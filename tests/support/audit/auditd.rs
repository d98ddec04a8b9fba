//! The real auditd, with a configuration of the test's own.

use std::path::Path;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

use super::Audit;
use crate::support::{Home, Running, wait_until};

/// An auditd that has the audit socket until it is ended.
pub struct Auditd {
    running: Option<Running>,
    pid: i32,
}

impl Auditd {
    /// Starts it, with everything that it writes in the home; `None`, said, where it is not installed.
    pub fn start(home: &Home, audit: &Audit) -> Option<Auditd> {
        let programs = ["/usr/sbin/auditd", "/sbin/auditd"];
        let Some(program) = programs.into_iter().find(|path| Path::new(path).exists()) else {
            super::super::skip("audit", "auditd is not installed");
            return None;
        };
        std::fs::create_dir_all(home.path("auditd/plugins.d")).unwrap();
        home.file(
            "auditd/auditd.conf",
            format!(
                "log_file = {}\nplugin_dir = {}\nlog_format = RAW\nwrite_logs = yes\n\
                 flush = INCREMENTAL_ASYNC\nfreq = 50\nmax_log_file = 64\nnum_logs = 2\n\
                 max_log_file_action = ROTATE\nspace_left = 75\nspace_left_action = IGNORE\n\
                 admin_space_left = 50\nadmin_space_left_action = IGNORE\n\
                 disk_full_action = IGNORE\ndisk_error_action = IGNORE\n",
                home.path("auditd/audit.log").display(),
                home.path("auditd/plugins.d").display()
            ),
        );
        let mut command = home.command(program);
        command.args(["-n", "-s", "nochange", "-c"]).arg(home.path("auditd"));
        // Not one of the processes that the test looks for.
        command.env_remove("XDG_STATE_HOME");
        let mut running = home.start(command);
        let pid = running.pid();
        let holds = || audit.status().pid == pid as u32;
        let registered = wait_until(Duration::from_secs(10), || holds() || running.has_ended());
        assert!(registered && holds(), "auditd does not start: {}", running.said());
        Some(Auditd { running: Some(running), pid })
    }

    pub fn pid(&self) -> i32 {
        self.pid
    }

    /// Returns true if the kernel sends the records to this auditd.
    pub fn holds_socket(&self, audit: &Audit) -> bool {
        audit.status().pid == self.pid as u32
    }
}

impl Drop for Auditd {
    fn drop(&mut self) {
        let _ = kill_process(Pid::from_raw(self.pid).unwrap(), Signal::TERM);
        if let Some(running) = self.running.take() {
            running.finish();
        }
    }
}
