//! strace or a supervisor of seccomp dies, or `weigh` does while they attend to a workload. The workload goes
//! on or ends, no sample counts that was not attended to its end, and nothing is left.

use std::fs;
use std::path::Path;
use std::time::Duration;

use crate::support::processes::signal;
use crate::support::{Home, Running, wait_until};
use rand::{RngExt, SeedableRng};
use rustix::process::Signal;

const LIMIT: Duration = Duration::from_secs(60);

#[test]
fn a_killed_weigh_leaves_neither_strace_nor_a_supervisor() {
    let mut chance = rand_chacha::ChaCha8Rng::seed_from_u64(43);
    let times = crate::support::hard(6, 51) as usize;
    for arm in ["strace", "seccomp-notify", "ptrace"].into_iter().cycle().take(times) {
        let home = Home::new();
        let arguments = ["compare", arm, "-w", "open-close", "--budget", "60s"];
        let mut running = home.start(home.weigh(&arguments[..]));
        home.wait_for_samples(2, &mut running);
        std::thread::sleep(Duration::from_micros(chance.random_range(0..300_000)));
        running.kill();
        assert_eq!(running.finish().signal, Some(9));
        home.assert_nothing_left();
    }
}

/// The tracer of a `sleep` that the command runs; none in the baseline.
fn tracer(home: &Home) -> Option<i32> {
    home.processes().into_iter().find_map(|pid| {
        let words = fs::read_to_string(format!("/proc/{pid}/cmdline")).ok()?;
        let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
        let tracer = status.lines().find_map(|line| line.strip_prefix("TracerPid:"))?;
        let tracer = tracer.trim().parse().ok()?;
        (words.starts_with("sleep\0") && tracer != 0).then_some(tracer)
    })
}

/// The supervisor that has the listener of a filter. Until the command sleeps, its own process has it too.
fn supervisor(home: &Home) -> Option<i32> {
    home.processes().into_iter().find(|pid| {
        let status = fs::read_to_string(format!("/proc/{pid}/status"));
        fs::read(format!("/proc/{pid}/cmdline")).is_ok_and(|words| words.starts_with(b"sleep\0"))
            && status.is_ok_and(|status| status.contains("\nSeccomp:\t2"))
    })?;
    home.processes().into_iter().find(|pid| {
        let files = fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
        let mut links = files.filter_map(|file| fs::read_link(file.path()).ok());
        links.any(|link| link == Path::new("anon_inode:seccomp notify"))
    })
}

/// Kills the process that `helper` finds while a command sleeps; the command then continues.
fn kill_helper(arm: &str, helper: fn(&Home) -> Option<i32>, said: &str) {
    let home = Home::new();
    let file = home.path("went-on");
    let command = format!("sleep 1; echo >>{}", file.display());
    let arguments = ["compare", arm, "--pairs", "8", "--", "sh", "-c", &command];
    let mut running: Running = home.start(home.weigh(&arguments[..]));
    let ended = || fs::read_to_string(&file).map_or(0, |text| text.len());
    let (mut found, mut before) = (None, 0);
    assert!(wait_until(LIMIT, || {
        before = ended();
        // If a command ended meanwhile, this helper may belong to it or to the next command.
        found = helper(&home).filter(|_| ended() == before);
        found.is_some() || running.has_ended()
    }));
    signal(found.expect("nobody attends to the command"), Signal::KILL);
    let outcome = running.finish();
    outcome.assert_error(&[said]);
    assert_eq!(ended(), before + 1);
    home.assert_nothing_left();
}

#[test]
fn a_workload_goes_on_without_its_strace_and_does_not_count() {
    kill_helper("strace", tracer, "strace did not trace the process until its end");
}

/// The shell asks for its parent when it begins only.
#[test]
fn a_workload_goes_on_without_its_supervisor_and_does_not_count() {
    let said = "the supervisor or tracer did not stay until the process ended";
    kill_helper("seccomp-notify:calls=getppid", supervisor, said);
}

#[test]
fn a_workload_goes_on_without_its_own_tracer_and_does_not_count() {
    let said = "the supervisor or tracer did not stay until the process ended";
    kill_helper("ptrace:calls=getppid", tracer, said);
}
