//! `weigh` killed at any moment while several rule sets take turns, or the host's own rules are weighed,
//! with an audit daemon and without: the configuration is as it was.

use std::time::Duration;

use crate::support::Home;
use crate::support::audit::Audit;
use crate::support::audit::auditd::Auditd;
use crate::support::audit::host_rules::HostRules;
use rand::{RngExt, SeedableRng};

/// Rules of the host, one of which is also in a file that is weighed.
const HOST: [&str; 3] = [
    "-w /etc/passwd -p wa -k host",
    "-a always,exit -F arch=b64 -S swapoff -F key=host-too",
    "-w /etc/ssl/ -p wa -k host",
];

/// Kills it at random moments from its start on, and looks each time whether everything is as it was.
fn kill(audit: &Audit, home: &Home, host: &HostRules, arms: &[&str], daemon: Option<&Auditd>) {
    let seed: u64 = rand::random();
    let mut chance = rand_chacha::ChaCha8Rng::seed_from_u64(seed);
    let before = audit.status();
    let mut arguments = vec!["compare"];
    arguments.extend(arms);
    arguments.extend(["-w", "getppid", "-w", "stat", "--budget", "60s", "--sample", "20ms"]);
    let mut measured = 0;
    for kill in 0..crate::support::hard(2, 15) as i64 {
        let moment = Duration::from_millis(chance.random_range(20..2000));
        // Every other one from when it surely measures, and so takes turns.
        let first_samples = (kill % 2) * chance.random_range(1..8);
        println!("{arms:?}: seed {seed}, kill {kill}, {first_samples} samples and {moment:?}");
        let samples = home.samples();
        let mut running = home.start(home.weigh(&arguments));
        home.wait_for_samples(samples + first_samples, &mut running);
        std::thread::sleep(moment);
        assert!(!running.has_ended(), "{}", running.said());
        running.kill();
        let outcome = running.finish();
        assert_eq!(outcome.signal, Some(9), "{outcome:#?}");
        home.assert_nothing_runs();
        host.assert_untouched();
        let now = audit.status();
        assert_eq!(
            (now.enabled, now.backlog_limit, now.backlog_wait_time, now.pid),
            (before.enabled, before.backlog_limit, before.backlog_wait_time, before.pid)
        );
        assert!(daemon.is_none_or(|daemon| daemon.holds_socket(audit)), "auditd lost the socket");
        measured += home.samples() - samples;
    }
    assert!(measured > 0, "no kill came while it measured");
}

fn sets(home: &Home) -> [&'static str; 4] {
    let many: Vec<String> = (0..60)
        .map(|number| format!("-a always,exit -F arch=b64 -S mount -F a0={number} -k many\n"))
        .collect();
    let calls = "-a always,exit -F arch=b64 -S getppid -F auid>=1000 -F key=calls\n";
    home.file("calls.rules", calls.to_owned() + HOST[1] + "\n");
    home.file("many.rules", many.concat() + calls);
    home.file("front.rules", calls.replace("-a", "-A") + "-w /etc/group -p wa -k front\n");
    [
        "audit:rules=calls.rules,wait=0",
        "audit:rules=many.rules",
        "audit:rules=front.rules,backlog=99",
        "audit:class=delete,open",
    ]
}

fn with_and_without_daemon(arms: impl Fn(&Home) -> Vec<&'static str>) {
    let Some(audit) = Audit::take() else { return };
    for has_daemon in [false, true] {
        let (home, of_daemon) = (Home::new(), Home::new());
        let daemon = if has_daemon { Auditd::start(&of_daemon, &audit) } else { None };
        let host = HostRules::load(&HOST, 1);
        kill(&audit, &home, &host, &arms(&home), daemon.as_ref());
        drop(host);
        drop(daemon);
        audit.put_back_enabled();
        audit.assert_restored();
        assert_eq!(home.leftovers(), Vec::<std::path::PathBuf>::new());
    }
}

#[test]
fn killed_while_rule_sets_and_classes_take_turns() {
    with_and_without_daemon(|home| sets(home).to_vec());
}

#[test]
fn killed_while_the_hosts_own_rules_are_weighed() {
    with_and_without_daemon(|_| vec!["audit:live"]);
}
