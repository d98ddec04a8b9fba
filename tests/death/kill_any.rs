//! Any process of a command killed or stopped at any moment, chosen by chance: `weigh` itself, its guard, a
//! launcher, a server, a program that is measured. Then it is interrupted, as by a user who sees that nothing
//! happens. The system is as it was, nothing runs any more, and the samples so far are kept.

use std::path::PathBuf;
use std::time::Duration;

use crate::support::audit::Audit;
use crate::support::{Home, SETTINGS, Turn, is_root, skip, wait_until};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rustix::process::{Pid, Signal, kill_process};

const EXPERIMENT: [&str; 9] =
    ["compare", "audit", "-w", "getppid", "-w", "fork", "--budget", "60s", "--no-detail"];

fn send(pid: i32, signal: Signal) {
    // It may have ended by itself meanwhile.
    let _ = kill_process(Pid::from_raw(pid).unwrap(), signal);
}

/// Returns the command line of a process, for the message of a test that fails.
fn name_of(pid: i32) -> String {
    let command = std::fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    command.replace('\0', " ")
}

/// Kills or stops one process, and interrupts `weigh` where that does not end it.
fn strike(home: &Home, chance: &mut ChaCha8Rng, arguments: &[&str], first_samples: i64) -> String {
    let mut running = home.start(home.weigh(arguments));
    home.wait_for_samples(first_samples, &mut running);
    let moment = Duration::from_millis(chance.random_range(50..2500));
    std::thread::sleep(moment);
    let processes = home.processes();
    let victim = match processes.len() {
        0 => running.pid(),
        count => processes[chance.random_range(0..count)],
    };
    // Between fork and exec a child has the command line of its parent, which waits for the exec within one
    // system call: nothing that stops the child there lets `weigh` hear of an interrupt.
    let is_before_exec = victim != running.pid() && name_of(victim) == name_of(running.pid());
    let is_kill = chance.random() || is_before_exec;
    let done = format!(
        "{arguments:?}: {} of {victim} `{}` after {moment:?}",
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

/// `weigh` that died before it had a guard has changed nothing, and may leave a journal that was never whole.
/// `weigh restore` and the next experiment remove it.
fn assert_nothing_left(home: &Home, done: &str) {
    let left = home.leftovers();
    let is_unfinished =
        |path: &PathBuf| path.extension().is_some_and(|it| it == "new" || it == "lock");
    if !left.is_empty() && left.iter().all(is_unfinished) {
        assert_eq!(home.run(&["restore"]).code, Some(0), "{done}: {left:?}");
    }
    assert_eq!(home.leftovers(), Vec::<PathBuf>::new(), "{done}");
}

#[test]
fn whichever_process_dies_or_stands_still_auditing_is_as_it_was() {
    let Some(audit) = Audit::take() else { return };
    let seed: u64 = rand::random();
    println!("seed {seed}");
    let mut chance = ChaCha8Rng::seed_from_u64(seed);
    let mut samples = 0;
    for strikes in 0..crate::support::hard(6, 100) as i64 {
        let home = Home::new();
        // Every other one when it surely measures.
        let done = strike(&home, &mut chance, &EXPERIMENT, strikes % 2);
        let all_gone = wait_until(Duration::from_secs(50), || home.processes().is_empty());
        assert!(all_gone, "seed {seed}, {done}: still running: {:#?}", home.describe_processes());
        audit.assert_restored();
        assert_nothing_left(&home, &format!("seed {seed}, {done}"));
        if home.database().exists() {
            let check = home.query_text("PRAGMA integrity_check");
            assert_eq!(check, "ok", "seed {seed}, {done}");
        }
        samples += home.samples();
    }
    assert!(samples > 0, "none came while it measured");
}

/// Commands of every kind, without auditing. A run has nothing to put back, but processes.
const COMMANDS: [&str; 14] = [
    "compare thp:always --base thp:never -w stat --budget 60s",
    "compare sysctl:vm.swappiness=13 -w getppid --budget 60s",
    "compare cgroup:pids.max=100 -w fork --budget 60s",
    "compare seccomp landlock nice:5 -w open-close --budget 60s",
    "compare fanotify:open-perm fanotify:access landlock:rules=9 -w open-close --budget 60s",
    "compare inotify proc-connector taskstats -w fork --budget 60s",
    "compare fs:ext4,size=64 --base fs:tmpfs -w create-unlink --budget 60s",
    "compare none -w app:kv.get-set --budget 60s",
    "compare none -w app:web.page --budget 60s",
    "compare none --prepare true --budget 60s -- sleep 0.02",
    "versus --budget 60s true false -i",
    "load short --budget 60s",
    "net --budget 60s",
    "run quick --samples 100",
];

/// A command that is slow to change something: most strikes come while it runs.
fn slow_command(home: &Home) -> String {
    let mark = home.path("mark").display().to_string();
    format!("cmd:apply=\"sleep 0.3; touch {mark}\",undo=\"rm -f {mark}\",verify=\"test -e {mark}\"")
}

/// Settings, mounts, loop devices and control groups of this machine that name experiments of this home.
fn state_of_machine(home: &Home) -> Vec<String> {
    let own = home.directory.path().to_str().unwrap();
    let read = |file: &str| std::fs::read_to_string(file).unwrap_or_default();
    let mut state = vec![
        read("/sys/kernel/mm/transparent_hugepage/enabled"),
        read("/proc/sys/vm/swappiness"),
        format!("the mark of a command is there: {}", home.path("mark").exists()),
    ];
    let devices = std::fs::read_dir("/sys/block").into_iter().flatten().flatten();
    let files = devices.map(|device| device.path().join("loop/backing_file"));
    state.extend(files.map(|file| read(&file.display().to_string())).filter(|it| it.contains(own)));
    state
        .extend(read("/proc/self/mounts").lines().filter(|it| it.contains(own)).map(str::to_owned));
    let hierarchies = std::fs::read_dir("/sys/fs/cgroup").into_iter().flatten().flatten();
    let groups = hierarchies.flat_map(|one| std::fs::read_dir(one.path()).into_iter().flatten());
    let groups = groups.flatten().map(|group| group.path().display().to_string());
    state.extend(groups.filter(|group| group.contains("/weigh-")));
    state
}

#[test]
fn whichever_process_of_any_command_dies_the_system_is_as_it_was() {
    if !is_root() {
        skip("root", "needs root");
        return;
    }
    let _turn = Turn::with(SETTINGS);
    let seed: u64 = rand::random();
    println!("seed {seed}");
    let mut chance = ChaCha8Rng::seed_from_u64(seed);
    let mut samples = 0;
    for strikes in 0..crate::support::hard(6, 300) as usize {
        let home = Home::new();
        let before = state_of_machine(&home);
        let label = slow_command(&home);
        let slow = ["compare", &label, "-w", "getppid", "--budget", "60s"];
        let arguments: Vec<&str> = match strikes % 3 {
            0 => slow.to_vec(),
            _ => COMMANDS[chance.random_range(0..COMMANDS.len())].split(' ').collect(),
        };
        // The slow one when it surely measures.
        let done = strike(&home, &mut chance, &arguments, i64::from(strikes % 3 == 0));
        let is_as_before = || home.processes().is_empty() && state_of_machine(&home) == before;
        let all_gone = wait_until(Duration::from_secs(50), is_as_before);
        let (running, after) = (home.describe_processes(), state_of_machine(&home));
        assert!(all_gone, "seed {seed}, {done}: {running:#?}, {before:#?}, {after:#?}");
        assert_nothing_left(&home, &format!("seed {seed}, {done}"));
        if home.database().exists() {
            assert_eq!(home.query_text("PRAGMA integrity_check"), "ok", "seed {seed}, {done}");
        }
        samples += home.samples();
    }
    assert!(samples > 0, "none came while it measured");
}
