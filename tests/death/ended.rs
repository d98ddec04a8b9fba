//! Processes of an experiment that are ended by others: the verdict so far is kept, and nothing that a
//! command started outlives it, whatever it did to get away.

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use crate::support::audit::Audit;
use crate::support::processes::{Held, signal};
use crate::support::{Home, Running, Turn, is_root, skip, wait_until};
use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};
use rustix::process::Signal;

const LIMIT: Duration = Duration::from_secs(60);
/// A daemon, another that left session and group and forgot its parents, and the program itself.
const DAEMONS: &str =
    "(sleep 7001 &) ; setsid sh -c '(setsid sleep 7002 &) ; sleep 7003 &' ; sleep 7004";

/// As systemd ends a service: SIGTERM to every process of it, in any order.
#[test]
fn sigterm_to_all_processes_keeps_the_verdict() {
    let _turn = Turn::share();
    let mut chance = rand_chacha::ChaCha8Rng::seed_from_u64(6);
    for end in 0..6 {
        let home = Home::new();
        let script = home.file("work", "sleep 0.01\n");
        let command = ["compare", "none", "--budget", "60s", "--", "sh", script.to_str().unwrap()];
        let mut running = home.start(home.weigh(&command));
        home.wait_for_samples(chance.random_range(18..24), &mut running);
        std::thread::sleep(Duration::from_micros(chance.random_range(0..30_000)));
        let mut processes = home.processes();
        processes.shuffle(&mut chance);
        processes.iter().for_each(|pid| signal(*pid, Signal::TERM));
        let outcome = running.finish();
        assert_eq!(outcome.code, Some(130), "{end}: {outcome:#?}");
        let json = home.json();
        assert_eq!(json["state"], "interrupted", "{end}: {json:#}");
        assert_eq!(json["failures"].as_array().map(Vec::len), Some(0), "{end}: {json:#}");
        assert!(json["results"][0]["pairs"].as_u64() >= Some(9), "{end}: {json:#}");
        home.assert_nothing_left();
    }
}

/// Who reads the status alone has to learn that there is something to do. A mount is what cannot be removed.
#[test]
fn what_an_interrupted_run_could_not_put_back_is_an_error() {
    if !is_root() {
        skip("root", "needs root");
        return;
    }
    let _turn = Turn::share();
    let home = Home::new();
    let mut running = home.start(home.weigh("run getppid --samples 100000"));
    home.wait_for_samples(2, &mut running);
    let scratch = fs::read_dir(home.path("tmp")).unwrap().next().unwrap().unwrap().path();
    let held = Held::mount(scratch.join("held"));
    signal(running.pid(), Signal::INT);
    let outcome = running.finish();
    drop(held);
    assert_eq!(outcome.code, Some(2), "{outcome:#?}");
    outcome.assert_says(&["the system is not as it was", "`weigh restore` tries again"]);
    home.succeed("restore");
    assert_eq!(home.leftovers(), Vec::<PathBuf>::new());
}

/// It died after it had made the lock. One that lives may be just there.
#[test]
fn what_was_killed_before_its_journal_was_whole_leaves_no_file() {
    const NOBODYS: u32 = 4_194_305; // above the most that pid_max can be
    let home = Home::new();
    home.run("restore"); // makes the directory
    let state = home.path("state/weighbridge");
    let own = state.join(format!("{}.lock", std::process::id()));
    for name in [format!("{NOBODYS}.lock"), format!("{NOBODYS}.new")] {
        fs::write(state.join(name), "").unwrap();
    }
    fs::write(&own, "").unwrap();
    let outcome = home.run("restore");
    assert!(outcome.stdout.contains("Nothing was left behind"), "{outcome:#?}");
    assert_eq!(home.leftovers(), [own]);
}

/// A shell that executes `weigh` in its own place leaves it the processes that it had started.
#[test]
fn what_ran_before_weigh_is_not_ended_by_it() {
    let _turn = Turn::share();
    let home = Home::new();
    for arguments in
        ["compare none -w getppid --pairs 8 --no-detail --inconclusive-ok", "profile -- true"]
    {
        let mut command = home.command("sh");
        command.arg("-c").arg(format!("sleep 7005 & exec \"$0\" {arguments}"));
        let outcome = home
            .start({
                command.arg(crate::support::program());
                command
            })
            .finish();
        assert_eq!(outcome.code, Some(0), "{outcome:#?}");
        let sleeping = home.processes_of("sleep 7005");
        assert_eq!(sleeping.len(), 1, "{arguments}");
        sleeping.iter().for_each(|pid| signal(*pid, Signal::KILL));
        home.assert_nothing_runs();
    }
}

/// Starts a command that starts daemons, and waits until they run.
fn start_daemons(home: &Home, before: &[&str]) -> Running {
    let script = home.file("daemons", DAEMONS);
    let mut arguments = before.to_vec();
    arguments.extend(["--", "sh", script.to_str().unwrap()]);
    let running = home.start(home.weigh(&arguments));
    let run = || (7001..=7004).all(|n| !home.processes_of(&format!("sleep {n}")).is_empty());
    assert!(wait_until(LIMIT, run), "{} {:#?}", running.said(), home.describe_processes());
    running
}

#[test]
fn a_killed_launcher_takes_all_along_that_its_worker_started() {
    let _turn = Turn::share();
    let home = Home::new();
    let running = start_daemons(&home, &["compare", "none", "--budget", "60s"]);
    home.processes_of("__launcher").iter().for_each(|pid| signal(*pid, Signal::KILL));
    running.finish().assert_error(&["the launcher process"]);
    home.assert_nothing_left();
}

/// Under audit a launcher is two processes; either may be the victim.
#[test]
fn so_does_either_process_of_an_audited_launcher() {
    let Some(audit) = Audit::take() else { return };
    for victim in 0..2 {
        let home = Home::new();
        let running = start_daemons(&home, &["compare", "audit", "--budget", "60s"]);
        let children: Vec<i32> = home.processes_of("__launcher");
        let is_parent = |pid: &i32| {
            let text = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children"));
            text.is_ok_and(|text| {
                text.split_whitespace().any(|child| children.iter().any(|c| c.to_string() == child))
            })
        };
        let (parents, inner): (Vec<i32>, Vec<i32>) =
            children.iter().partition(|pid| is_parent(pid));
        assert!(!parents.is_empty() && !inner.is_empty(), "{:#?}", home.describe_processes());
        [&parents, &inner][victim].iter().for_each(|pid| signal(*pid, Signal::KILL));
        running.finish().assert_error(&["the launcher process"]);
        home.assert_nothing_runs();
        audit.assert_restored();
    }
}

#[test]
fn a_killed_weigh_takes_all_along_that_its_workers_started() {
    let _turn = Turn::share();
    let home = Home::new();
    let mut running = start_daemons(&home, &["compare", "none", "--budget", "60s"]);
    running.kill();
    home.assert_nothing_left();
}

/// It is two processes as well: one runs the command, the other sees to it that nothing is left.
#[test]
fn a_killed_profile_takes_its_command_along() {
    for victim in 0..2 {
        let home = Home::new();
        let running = start_daemons(&home, &["profile"]);
        let mut weigh = home.processes_of("weigh profile");
        weigh.sort_by_key(|pid| *pid == running.pid());
        assert_eq!(weigh.len(), 2, "{:#?}", home.describe_processes());
        signal(weigh[victim], Signal::KILL);
        let outcome = running.finish();
        assert_ne!(outcome.code, Some(0), "{outcome:#?}");
        home.assert_nothing_runs();
    }
}
