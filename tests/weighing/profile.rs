//! `weigh profile`, end to end: what it counts, what it refuses, and that a watched process goes on.

use std::fs;
use std::time::Duration;

use crate::support::processes::signal;
use crate::support::{Home, Running, Turn, wait_until};
use rustix::process::Signal;
use serde_json::Value;

const LIMIT: Duration = Duration::from_secs(30);

fn written(home: &Home) -> Value {
    serde_json::from_str(&fs::read_to_string(home.path("profile.json")).unwrap()).unwrap()
}

/// A shell that works in user mode and calls the kernel, until the file `end` is there; then it says so.
fn start_server(home: &Home) -> Running {
    let script = "while ! [ -e end ]; do i=0; while [ $i -lt 300 ]; do i=$((i+1)); done; done; echo unharmed";
    let mut command = home.command("/bin/sh");
    command.args(["-c", script]);
    home.start(command)
}

/// Runs `weigh profile` with `--for` and these arguments, for a long enough period. In that period
/// the program gets half a second of user time, which shows how much it did. On a busy machine the
/// period is longer.
fn of_long_enough(home: &Home, arguments: &[&str]) -> (crate::support::Outcome, Value) {
    for period in ["2s", "8s"] {
        let profile = ["profile", "-o", "profile.json", "--for", period];
        let outcome = home.succeed(&[&profile[..], arguments].concat());
        if written(home)["scaled_by"].is_f64() {
            return (outcome, written(home));
        }
    }
    let profile = ["profile", "-o", "profile.json", "--for", "32s"];
    (home.succeed(&[&profile[..], arguments].concat()), written(home))
}

fn is_traced(server: &Running) -> bool {
    !fs::read_to_string(format!("/proc/{}/status", server.pid()))
        .unwrap()
        .contains("TracerPid:\t0\n")
}

/// It was not traced any more, did its work to the end, and ended well.
fn assert_unharmed(home: &Home, server: Running) {
    assert!(!is_traced(&server));
    fs::write(home.path("end"), "").unwrap();
    let outcome = server.finish();
    assert_eq!((outcome.code, outcome.stdout.trim()), (Some(0), "unharmed"), "{outcome:?}");
}

#[test]
fn a_command_is_counted_with_all_that_it_starts() {
    let home = Home::new();
    let script = "kill -0 $$; (kill -0 $$; kill -0 $$; :) & wait; echo out";
    let outcome = home.succeed(&["profile", "--", "/bin/sh", "-c", script]);
    let profile = written(&home);
    assert_eq!(profile["calls"]["kill"], 3);
    assert_eq!(profile["schema"], "weighbridge/profile/1");
    assert_eq!(profile["command"][2], script);
    assert_eq!(profile["other_abi_calls"], 0);
    assert!(profile["elapsed_s"].as_f64().unwrap() > 0.0 && profile.get("scaled_by").is_none());
    outcome.assert_says(&[
        "system calls in",
        "% of them",
        "kill",
        "not counted",
        "counted",
        "profile.json",
    ]);
    assert_eq!(outcome.stdout.matches("out\n").count(), 2, "it ran twice: {outcome:?}");
}

#[test]
fn a_profile_is_stored_and_can_be_exported_as_the_file_was() {
    let home = Home::new();
    let shown = home.succeed(&["profile", "--", "/bin/sh", "-c", "kill -0 $$"]).stdout;
    let id = home.query_text("SELECT id FROM experiment");
    let (table, _) = shown.split_once("\nProfile: profile.json\n").unwrap();
    assert!(shown.ends_with(&format!("weigh show {id}\n")), "{shown}");
    let again = home.succeed(&["show", &id]).stdout;
    assert!(
        again.starts_with(table) && again.contains("again: weigh profile -- /bin/sh"),
        "{again}"
    );
    for (format, part) in [
        ("--csv", ",kill,1"),
        ("--markdown", "| kill"),
        ("--html", "<td>kill</td>"),
        ("--text", "kill"),
    ] {
        home.succeed(&["export", &id, format]).assert_says(&[part]);
    }
    home.run(&["export", &id, "--junit"]).assert_error(&["has no tests for --junit"]);
    // What `weigh rules --profile` reads.
    let exported = home.succeed(&["export", &id, "--json"]).json();
    let file = written(&home);
    for field in ["schema", "command", "calls", "elapsed_s", "user_s", "system_s"] {
        assert_eq!(exported[field], file[field], "{field}");
    }
    home.succeed("history --kind profile").assert_says(&[&id, "system calls"]);
}

#[test]
fn a_profile_that_nobody_named_is_not_overwritten() {
    let home = Home::new();
    home.file("profile.json", "mine");
    let outcome = home.run("profile -- /bin/true");
    outcome.assert_error(&["profile.json exists already", "-o profile.json overwrites it"]);
    assert_eq!(fs::read_to_string(home.path("profile.json")).unwrap(), "mine");
    assert!(!home.database().exists(), "it began nevertheless");
    home.succeed("profile -o other.json -- /bin/true");
    assert_eq!(fs::read_to_string(home.path("profile.json")).unwrap(), "mine");
    home.succeed("profile -o profile.json -- /bin/true");
    assert_eq!(written(&home)["command"][0], "/bin/true");
}

#[test]
fn a_second_run_that_finds_nothing_to_do_is_told_and_can_be_prepared() {
    let home = Home::new();
    let build = "[ -e built ] || { sleep 2; : > built; }";
    let told = "did much less than the first";
    home.succeed(&["profile", "--", "/bin/sh", "-c", build]).assert_says(&[told, "--prepare"]);
    let profile = ["profile", "-o", "profile.json", "--prepare"];
    let prepared = ["rm -f built", "--", "/bin/sh", "-c", build];
    let outcome = home.succeed(&[&profile[..], &prepared].concat());
    assert!(!outcome.stderr.contains(told), "{outcome:?}");
    home.run(&[&profile[..], &["exit 3", "--", "/bin/true"]].concat())
        .assert_error(&["`--prepare` (exit 3) ended with exit status 3"]);
}

/// It was waited for as the command is: to the end of its last process, or until --for.
#[test]
fn what_prepares_has_its_time_and_leaves_nothing_running() {
    let home = Home::new();
    let prepare = "sleep 7007 & echo $! > left; sleep 1.5; echo >> prepared";
    let is_gone = "! kill -0 $(cat left)";
    let prepared = ["profile", "--for", "1s", "--prepare", prepare, "--", "/bin/sh", "-c", is_gone];
    home.start(home.weigh(&prepared)).finish_within(LIMIT).assert_says(&["Profile: "]);
    assert_eq!(fs::read_to_string(home.path("prepared")).unwrap(), "\n\n");
    assert!(home.processes().is_empty(), "{:?}", home.describe_processes());
}

#[test]
fn a_profile_on_stdout_is_alone_there() {
    let home = Home::new();
    let outcome = home.succeed("profile -o - -- /bin/echo hello");
    assert!(outcome.json()["calls"]["write"].as_u64().unwrap() >= 1);
    assert_eq!(outcome.stderr.lines().filter(|line| *line == "hello").count(), 2, "{outcome:?}");
}

#[test]
fn a_command_that_fails_has_no_profile() {
    let home = Home::new();
    let cases =
        [("exit 3", "ended with exit status 3"), ("kill -KILL $$", "was killed by signal 9")];
    for (script, how) in cases {
        let outcome = home.run(&["profile", "--", "/bin/sh", "-c", script]);
        outcome.assert_error(&[how, "--ignore-failure"]);
        assert!(!home.path("profile.json").exists());
        home.succeed(&["profile", "--ignore-failure", "--", "/bin/sh", "-c", script]);
        assert!(written(&home)["calls"]["execve"].as_u64().is_none_or(|calls| calls < 2));
        fs::remove_file(home.path("profile.json")).unwrap();
    }
    home.run("profile -- /nonexistent").assert_error(&["cannot run /nonexistent", "No such"]);
    home.run("profile -o /nonexistent/p -- /bin/true").assert_error(&["cannot write"]);
    home.run("profile").assert_error(&["COMMAND"]);
    home.run("profile --pid 1").assert_error(&["--for"]);
}

#[test]
fn ctrl_c_before_anything_is_counted_leaves_nothing() {
    for prepare in [&[][..], &["--prepare", ": > began; sleep 7008"]] {
        let home = Home::new();
        let command = ["--", "/bin/sh", "-c", ": > began; sleep 7009"];
        let running = home.start(home.weigh(&[&["profile"], prepare, &command].concat()));
        assert!(wait_until(LIMIT, || home.path("began").exists()), "{}", running.said());
        signal(running.pid(), Signal::INT);
        let outcome = running.finish_within(LIMIT);
        assert_eq!(outcome.code, Some(130), "{outcome:?}");
        outcome.assert_says(&["interrupted before anything was counted"]);
        assert!(!home.path("profile.json").exists());
        assert!(home.processes().is_empty(), "{:?}", home.describe_processes());
    }
}

/// Nobody is left then who could tidy up.
#[test]
fn a_profile_whose_process_is_killed_leaves_no_file() {
    let home = Home::new();
    let script = ": > began; while :; do sleep 0.1; done";
    let running = home.start(home.weigh(&["profile", "--", "/bin/sh", "-c", script]));
    assert!(wait_until(LIMIT, || home.path("began").exists()), "{}", running.said());
    let ours = home.processes_of("weigh profile").into_iter();
    ours.filter(|pid| *pid != running.pid()).for_each(|pid| signal(pid, Signal::KILL));
    running.finish().assert_error(&["was killed by signal 9", "there is no profile"]);
    assert!(!home.path("profile.json").exists());
    assert!(home.processes().is_empty(), "{:?}", home.describe_processes());
}

#[test]
fn a_server_is_ended_after_its_time_and_that_is_no_failure() {
    let home = Home::new();
    let _turn = Turn::share();
    let script = "trap 'exit 9' TERM; while :; do :; done";
    let (outcome, profile) = of_long_enough(&home, &["--", "/bin/sh", "-c", script]);
    let elapsed = profile["elapsed_s"].as_f64().unwrap();
    assert!(elapsed >= 2.0, "it had its time: {elapsed}");
    assert!(profile["scaled_by"].as_f64().is_some(), "{profile:#}");
    outcome.assert_says(&["multiplied by"]);
    assert!(home.processes().is_empty(), "{:?}", home.describe_processes());
}

#[test]
fn what_ignores_sigterm_is_killed_with_all_that_it_started() {
    let home = Home::new();
    let script = "trap '' TERM; setsid sleep 300 & while :; do sleep 1; done";
    home.succeed(&["profile", "--for", "1s", "--", "/bin/sh", "-c", script]);
    assert!(written(&home)["calls"]["wait4"].as_u64().unwrap() >= 1);
    assert!(home.processes().is_empty(), "{:?}", home.describe_processes());
}

#[test]
fn ctrl_c_keeps_what_was_counted_and_ends_the_command() {
    let home = Home::new();
    // The first run ends by itself, the second only by force.
    let script = "[ -e first ] || { : > first; exit 0; }; \
                  kill -0 $$; : > second; while :; do kill -0 $$; done";
    let running = home.start(home.weigh(&["profile", "--", "/bin/sh", "-c", script]));
    assert!(wait_until(LIMIT, || home.path("second").exists()), "{}", running.said());
    rustix::process::kill_process(
        rustix::process::Pid::from_raw(running.pid()).unwrap(),
        rustix::process::Signal::INT,
    )
    .unwrap();
    let outcome = running.finish();
    assert_eq!(outcome.code, Some(130), "{outcome:?}");
    assert!(written(&home)["calls"]["kill"].as_u64().unwrap() >= 1);
    assert!(home.processes().is_empty(), "{:?}", home.describe_processes());
}

#[test]
fn a_running_process_is_watched_and_goes_on() {
    let home = Home::new();
    let _turn = Turn::share();
    let server = start_server(&home);
    let pid = server.pid().to_string();
    let (outcome, profile) = of_long_enough(&home, &["--pid", &pid]);
    // The shell looks for its file with one call of this name, or another of its kind.
    let looks: u64 = ["newfstatat", "faccessat2", "faccessat", "access", "stat", "statx"]
        .iter()
        .filter_map(|name| profile["calls"][name].as_u64())
        .sum();
    assert!(looks > 20, "{profile:#}");
    assert_eq!(profile["command"][0], "/bin/sh");
    assert!(profile["user_s"].as_f64().unwrap() > 0.1, "{profile:#}");
    assert!(profile["scaled_by"].as_f64().is_some_and(|scale| scale > 0.0), "{profile:#}");
    outcome.assert_says(&["multiplied by"]);
    assert_unharmed(&home, server);
}

#[test]
fn threads_and_new_processes_of_a_watched_one_are_counted_and_let_go() {
    let home = Home::new();
    // A tree: a shell whose child starts a process again and again, each of which makes one call of chdir.
    let script = "(while ! [ -e end ]; do (cd /; :); done) & wait; echo unharmed";
    let mut command = home.command("/bin/sh");
    command.args(["-c", script]);
    let server = home.start(command);
    let pid = server.pid().to_string();
    home.succeed(&["profile", "--pid", &pid, "--for", "8s"]);
    let calls = written(&home)["calls"].clone();
    let count = |name: &str| calls[name].as_u64().unwrap_or(0);
    assert!(count("chdir") > 5, "{calls:#}");
    assert!(count("exit_group") > 5, "{calls:#}");
    assert_unharmed(&home, server);
}

#[test]
fn a_watched_process_survives_the_death_of_weigh() {
    for delay_ms in [0, 30, 300] {
        let home = Home::new();
        let server = start_server(&home);
        let pid = server.pid().to_string();
        let mut weigh = home.start(home.weigh(&["profile", "--pid", &pid, "--for", "2s"]));
        let status = format!("/proc/{pid}/status");
        let is_traced = || !fs::read_to_string(&status).unwrap().contains("TracerPid:\t0");
        assert!(wait_until(LIMIT, is_traced), "{}", weigh.said());
        std::thread::sleep(Duration::from_millis(delay_ms));
        weigh.kill();
        drop(weigh);
        assert_unharmed(&home, server);
    }
}

#[test]
fn a_stopped_process_stays_stopped_while_it_is_watched() {
    let home = Home::new();
    let server = start_server(&home);
    let pid = rustix::process::Pid::from_raw(server.pid()).unwrap();
    let state = || {
        let status = fs::read_to_string(format!("/proc/{}/stat", server.pid())).unwrap();
        status.rsplit_once(") ").unwrap().1.chars().next().unwrap()
    };
    rustix::process::kill_process(pid, rustix::process::Signal::STOP).unwrap();
    assert!(wait_until(LIMIT, || state() == 'T'));
    let number = server.pid().to_string();
    let outcome = home.run(&["profile", "--pid", &number, "--for", "1s"]);
    outcome.assert_error(&["made no system call"]);
    // Let go, it stops again as soon as it has a CPU.
    assert!(wait_until(LIMIT, || state() == 'T'), "it was started by watching it");
    rustix::process::kill_process(pid, rustix::process::Signal::CONT).unwrap();
    assert_unharmed(&home, server);
}

#[test]
fn what_cannot_be_watched_is_a_sentence() {
    let home = Home::new();
    let outcome = home.run("profile --pid 2147483647 --for 1s");
    outcome.assert_error(&["there is no process 2147483647"]);
    let server = start_server(&home);
    let pid = server.pid();
    let (stop, stopped) = std::sync::mpsc::channel::<()>();
    let (seized, is_seized) = std::sync::mpsc::channel();
    // A tracer is a thread, and lets go of all when it ends.
    let tracer = std::thread::spawn(move || {
        // SAFETY: it takes numbers.
        seized.send(unsafe { libc::ptrace(libc::PTRACE_SEIZE, pid, 0, 0) }).unwrap();
        let _ = stopped.recv();
    });
    assert_eq!(is_seized.recv(), Ok(0));
    let outcome = home.run(&["profile", "--pid", &pid.to_string(), "--for", "1s"]);
    outcome.assert_error(&["is being traced already"]);
    assert!(!home.path("profile.json").exists());
    drop(stop);
    tracer.join().unwrap();
    // A thread is joined as soon as its memory is let go; the kernel ends what it traces a moment later.
    assert!(wait_until(LIMIT, || !is_traced(&server)));
    assert_unharmed(&home, server);
}
