//! Any process of an experiment killed or stopped at any moment, chosen by chance: `weigh` itself, its guard,
//! a launcher, what receives the records, what is measured. Then it is interrupted, as by a user who sees
//! that nothing happens. Auditing is as it was, nothing runs any more, and the samples so far are kept.

mod support;

use std::time::Duration;

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rustix::process::{Pid, Signal, kill_process};
use support::audit::Audit;
use support::{Home, wait_until};

const EXPERIMENT: [&str; 9] =
    ["compare", "audit", "-w", "getppid", "-w", "fork", "--budget", "60s", "--no-detail"];

fn send(pid: i32, signal: Signal) {
    // It may have ended by itself meanwhile.
    let _ = kill_process(Pid::from_raw(pid).unwrap(), signal);
}

/// What it is, for the message of a test that fails.
fn name_of(pid: i32) -> String {
    let command = std::fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    command.replace('\0', " ")
}

/// Kills or stops one process, and interrupts `weigh` where that does not end it.
fn strike(home: &Home, chance: &mut ChaCha8Rng, first_samples: i64) -> String {
    let mut running = home.start(home.weigh(&EXPERIMENT));
    home.wait_for_samples(first_samples, &mut running);
    let moment = Duration::from_millis(chance.random_range(50..2500));
    std::thread::sleep(moment);
    let processes = home.processes();
    let victim = match processes.len() {
        0 => running.pid(),
        count => processes[chance.random_range(0..count)],
    };
    let is_kill = chance.random();
    let done = format!(
        "{} of {victim} `{}` after {moment:?}",
        if is_kill { "SIGKILL" } else { "SIGSTOP" },
        name_of(victim)
    );
    send(victim, if is_kill { Signal::KILL } else { Signal::STOP });
    std::thread::sleep(Duration::from_millis(chance.random_range(0..1000)));
    if !running.has_ended() {
        // A process that is stopped hears of an interrupt when it goes on.
        let is_stopped = !is_kill && victim == running.pid();
        send(running.pid(), if is_stopped { Signal::KILL } else { Signal::INT });
    }
    println!("{done}");
    running.finish();
    done
}

#[test]
fn whichever_process_dies_or_stands_still_auditing_is_as_it_was() {
    let Some(audit) = Audit::take() else { return };
    let seed: u64 = rand::random();
    println!("seed {seed}");
    let mut chance = ChaCha8Rng::seed_from_u64(seed);
    let mut samples = 0;
    for strikes in 0..support::hard(6, 100) as i64 {
        let home = Home::new();
        // Every other one when it surely measures.
        let done = strike(&home, &mut chance, strikes % 2);
        let all_gone = wait_until(Duration::from_secs(20), || home.processes().is_empty());
        assert!(all_gone, "seed {seed}, {done}: still running: {:#?}", home.describe_processes());
        audit.assert_restored();
        assert_eq!(home.leftovers(), Vec::<std::path::PathBuf>::new(), "seed {seed}, {done}");
        if home.database().exists() {
            let check = home.query_text("PRAGMA integrity_check");
            assert_eq!(check, "ok", "seed {seed}, {done}");
        }
        samples += home.samples();
    }
    assert!(samples > 0, "none came while it measured");
}
