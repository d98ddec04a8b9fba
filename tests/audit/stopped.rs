//! A process of an experiment that stands still (SIGSTOP, as a debugger or a freezer does it): an interrupt
//! ends the experiment all the same, and the system is as it was.

use std::path::PathBuf;
use std::time::Duration;

use crate::support::audit::Audit;
use crate::support::processes::signal;
use crate::support::{Home, Turn, wait_until};
use rustix::process::Signal;

const LIMIT: Duration = Duration::from_secs(60);

/// Stops all processes of this role once it measures, interrupts `weigh`, and expects a good end. `finish`
/// gives up on one that hangs.
fn interrupt_with_one_stopped(arguments: &[&str], role: &str, measures: impl Fn(&Home) -> bool) {
    let home = Home::new();
    let mut running = home.start(home.weigh(arguments));
    // Between two pairs there may be no launcher for a moment.
    let mut stopped = Vec::new();
    let is_ready = wait_until(LIMIT, || {
        stopped = if measures(&home) { home.processes_of(role) } else { Vec::new() };
        !stopped.is_empty() || running.has_ended()
    });
    assert!(is_ready && !running.has_ended(), "{role}: {}", running.said());
    stopped.iter().for_each(|pid| signal(*pid, Signal::STOP));
    // Long enough for it to be waited for.
    std::thread::sleep(Duration::from_millis(500));
    signal(running.pid(), Signal::INT);
    let outcome = running.finish();
    assert_eq!(outcome.code, Some(130), "{role}: {outcome:#?}");
    assert!(home.processes().is_empty(), "{role}: {:#?}", home.describe_processes());
    assert_eq!(home.leftovers(), Vec::<PathBuf>::new(), "{role}");
}

#[test]
fn a_stopped_launcher_or_guard_holds_nothing_up() {
    let _turn = Turn::share();
    let experiment = ["compare", "seccomp", "-w", "getppid", "--budget", "60s"];
    for role in ["__launcher", "__guard"] {
        interrupt_with_one_stopped(&experiment, role, |home| home.samples() >= 3);
    }
}

#[test]
fn nor_does_a_stopped_receiver_of_audit_records() {
    let Some(audit) = Audit::take() else { return };
    let measure = |what: &str, role| {
        let experiment = ["compare", what, "-w", "getppid", "--budget", "60s"];
        interrupt_with_one_stopped(&experiment, role, |home| home.samples() >= 3);
        audit.assert_restored();
    };
    measure("audit", "__launcher");
    measure("audit", "__sink");
    measure("audit", "__guard");
    if linux_audit::auditd::find_auditd().is_ok() {
        measure("audit:sink=auditd", "auditd -n");
    }
}

#[test]
fn nor_does_a_stopped_prober() {
    let Some(audit) = Audit::take() else { return };
    let rules = Home::new();
    let rules = rules.file("a.rules", "-a always,exit -F arch=b64 -S mount -k a\n");
    let arguments = ["rules", rules.to_str().unwrap()];
    let is_there = |home: &Home| !home.processes_of("__prober").is_empty();
    interrupt_with_one_stopped(&arguments, "__prober", is_there);
    audit.assert_restored();
}
