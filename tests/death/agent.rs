//! An agent of the user's runs beside treated samples alone, and ends with every death of `weigh`.

use std::time::Duration;

use crate::support::processes::signal;
use crate::support::{Home, Running, Turn, wait_until};
use rustix::process::Signal;
use serde_json::Value;

const LIMIT: Duration = Duration::from_secs(60);
/// Becomes ready late, starts a daemon, and removes its file when it is ended: by a child that ignores
/// SIGTERM, which may come to that child too. It has no short-lived children, whose CPU time ends with them.
const AGENT: &str = "trap 'trap \"\" TERM; rm -f ready; exit' TERM\nsleep 0.2\n\
                     (trap - TERM; exec setsid sleep 1000) &\ntouch ready\nwhile :; do :; done\n";

fn label(home: &Home) -> String {
    label_of(home, "exec sh agent.sh")
}

fn label_of(home: &Home, start: &str) -> String {
    home.file("agent.sh", AGENT);
    format!("agent:start=\"{start}\",proof=\"test -e ready\",stop=\"touch stopped\"")
}

fn has_daemon(home: &Home) -> bool {
    home.describe_processes().iter().any(|process| process.contains("sleep"))
}

fn assert_gone(home: &Home) {
    let is_gone = wait_until(LIMIT, || !home.path("ready").exists() && !has_daemon(home));
    assert!(is_gone, "{:#?}", home.describe_processes());
}

fn compare<'a>(label: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    [&["compare", label, "-w", "getppid", "--no-detail"], more].concat()
}

#[test]
fn an_agent_runs_beside_treated_samples_and_its_cpu_time_is_counted() {
    let _turn = Turn::share();
    let home = Home::new();
    let label = label(&home);
    home.run(&compare(&label, &["--pairs", "8", "--json", "a.json", "-v"])[..])
        .assert_says(&["In a trial, the agent was ready after", "agent CPU time/op"]);
    let report: Value = home.json();
    let row = &report["results"][0];
    assert!(row["evidence"]["agent_cpu_s"].as_f64().unwrap() > 0.0, "{row:#}");
    assert_gone(&home);
    assert!(home.leftovers().is_empty());
}

/// As nginx does, whose title overwrites its environment.
#[test]
fn an_agent_that_clears_its_environment_and_leaves_its_parent_is_ended() {
    let _turn = Turn::share();
    let home = Home::new();
    let label = label_of(&home, "exec env -i setsid -f sh agent.sh");
    home.measure(&compare(&label, &["--pairs", "8"])[..]);
    assert_gone(&home);
    home.assert_nothing_left();
}

/// As two versions of one daemon do, which listen on one port.
#[test]
fn two_agents_that_cannot_run_beside_each_other_are_compared() {
    let _turn = Turn::share();
    let home = Home::new();
    let agent = |name: &str| {
        let file = home.file(
            &format!("{name}.sh"),
            format!("exec flock -n lock sh -c 'touch {name}; exec sleep 1000'\n"),
        );
        format!(
            "agent:start=\"exec sh {}\",proof=\"test -e {name}\",stop=\"rm -f {name}\"",
            file.display()
        )
    };
    let (old, new) = (agent("old"), agent("new"));
    home.measure(&compare(&new, &["--base", &old, "--pairs", "8"])[..]);
    assert!(home.samples() >= 16);
    home.assert_nothing_left();
}

/// As two versions of one daemon do, whose proof is `pgrep -x DAEMON`.
#[test]
fn two_agents_whose_proof_holds_for_both_are_compared() {
    let _turn = Turn::share();
    let home = Home::new();
    let agent = |name: &str| {
        let file = home.file(&format!("{name}.sh"), "touch on; exec sleep 1000\n");
        let file = file.display();
        format!("agent:start=\"exec sh {file}\",proof=\"test -e on\",stop=\"rm -f on\"")
    };
    let (old, new) = (agent("old"), agent("new"));
    home.measure(&compare(&new, &["--base", &old, "--pairs", "8"])[..]);
    assert!(home.samples() >= 16);
    home.assert_nothing_left();
}

/// Stops `weigh` between the start and the end of the agent.
fn stop_while_the_agent_runs(home: &Home, running: &mut Running) {
    let is_running = wait_until(LIMIT, || {
        signal(running.pid(), Signal::STOP);
        let is_running = home.path("ready").exists();
        if !is_running {
            signal(running.pid(), Signal::CONT);
        }
        is_running
    });
    assert!(is_running, "{}", running.said());
}

#[test]
fn a_killed_weigh_leaves_no_agent() {
    let _turn = Turn::share();
    let home = Home::new();
    let starts =
        ["exec sh agent.sh", "exec env -i sh agent.sh", "exec env -i setsid -f sh agent.sh"];
    for (has_guard, start) in starts.iter().map(|start| (false, start)).chain([(true, &starts[2])])
    {
        let label = label_of(&home, start);
        let mut running = home.start(home.weigh(&compare(&label, &["--budget", "60s"])[..]));
        home.wait_for_samples(1, &mut running);
        stop_while_the_agent_runs(&home, &mut running);
        // The agent was stopped before: what counts is that it is stopped again.
        std::fs::remove_file(home.path("stopped")).unwrap();
        if !has_guard {
            home.processes_of("__guard").iter().for_each(|pid| signal(*pid, Signal::KILL));
        }
        running.kill();
        running.finish();
        if !has_guard {
            home.succeed("restore");
        }
        assert_gone(&home);
        assert!(wait_until(LIMIT, || home.path("stopped").exists()), "stop= did not run");
        assert!(wait_until(LIMIT, || home.leftovers().is_empty()), "{:?}", home.leftovers());
    }
}

#[test]
fn a_killed_keeper_ends_the_experiment_and_the_agent() {
    let _turn = Turn::share();
    let home = Home::new();
    let label = label(&home);
    let mut running = home.start(home.weigh(&compare(&label, &["--budget", "60s"])[..]));
    home.wait_for_samples(1, &mut running);
    home.processes_of("__keeper").iter().for_each(|pid| signal(*pid, Signal::KILL));
    let said = "ended unexpectedly. It is `weigh __keeper`, which starts and ends the agent";
    let advice = "look for \"Out of memory\" in `dmesg`. Then start the experiment again";
    running.finish().assert_error(&[said, advice]);
    home.assert_nothing_left();
}

#[test]
fn an_agent_that_fails_or_proves_nothing_measures_nothing() {
    let home = Home::new();
    let refused = |label: &str, said: &str| {
        home.run(&compare(label, &["--pairs", "8"])[..]).assert_error(&[said]);
    };
    refused("agent:start=\"exit 3\",proof=\"test -e ready\"", "it failed (exit status: 3)");
    refused("agent:start=\"sleep 100\",proof=true", "the agent should not have worked, but `true`");
    refused(
        "agent:start=true,proof=\"test -e made\",ready=true",
        "the agent should have worked, but",
    );
}
