//! Treatments of processes: in force where they should be, together with others, and refused where they
//! cannot be. That they fail when they are switched off is in `tests/audit/switched_off.rs`.

use std::collections::BTreeSet;
use std::fs;
use std::mem::MaybeUninit;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::support::build;
use crate::support::processes::{Held, signal};
use crate::support::{Home, NOBODY, SETTINGS, Turn, as_nobody, is_root, row, skip, wait_until};
use rustix::fs::inotify::{self, CreateFlags, ReadFlags, WatchFlags};
use rustix::process::Signal;
use serde_json::Value;
use weigh_model::shell::command_line;

const LIMIT: Duration = Duration::from_secs(30);
const SHORT: [&str; 4] = ["--pairs", "8", "--no-detail", "--json"];

/// Runs a short comparison to its end.
#[track_caller]
fn compare(home: &Home, arguments: &[&str], work: &[&str]) -> Value {
    let _turn = Turn::with(SETTINGS);
    let all = [&["compare"], arguments, &SHORT, &["-"], work].concat();
    let outcome = home.measure(&all);
    assert_eq!(home.leftovers(), Vec::<std::path::PathBuf>::new());
    outcome.json()
}

#[track_caller]
fn refused(arguments: &[&str], said: &[&str]) {
    let home = Home::new();
    home.run(&[&["compare"], arguments].concat()).assert_error(said);
    assert_eq!(home.leftovers(), Vec::<std::path::PathBuf>::new());
}

/// It fails where it has not what it should have.
const CHECKS: &str = r#"
[ "$(cut -d' ' -f19 /proc/self/stat)" = 5 ] || exit 7
grep -q '^Cpus_allowed_list:.0$' /proc/self/status || exit 8
[ "$COLOUR" = 'blue, or "so"' ] || exit 9
grep -q '^Seccomp:.2' /proc/self/status || exit 10
[ "$1" = eight ] || exit 11
sleep 0.02
"#;

#[test]
fn four_of_them_and_a_filter_in_one_arm_are_all_in_force() {
    let home = Home::new();
    let arm = "nice:5+cpus:0+env:COLOUR=\"blue, or \\\"so\\\"\"+seccomp+with:n=eight";
    // The baseline has none of it, so there the same line goes another way.
    let line = format!("[ {{n}} = one ] && {{ sleep 0.02; exit; }}\n{CHECKS}");
    let work = ["--", "sh", "-c", &line, "sh", "{n}"];
    let json = compare(&home, &[arm, "--base", "with:n=one"], &work);
    assert_eq!(json["treatments"][0]["label"], arm);
    let facts = json["treatments"][0]["facts"].to_string();
    for fact in ["niceness 5", "on CPU 0 only", "COLOUR=blue", "{n} is `eight`"] {
        assert!(facts.contains(fact), "{facts}");
    }
    assert_eq!(json["treatments"][0]["differences"].as_array().unwrap().len(), 5);
    let shown = home.succeed("show");
    shown
        .assert_says(&["differs from `with:n=one` in 5 ways", "effect shown is of all 5 together"]);
}

#[test]
fn arms_of_one_kind_differ_and_so_does_the_baseline() {
    let home = Home::new();
    let arms = ["nice:5", "nice:9+env:A=1", "env:A=2", "--base", "cpus:0"];
    let json = compare(&home, &arms, &["-w", "getppid"]);
    assert_eq!(json["results"].as_array().unwrap().len(), 3);
    assert_eq!(
        json["treatments"][0]["differences"],
        serde_json::json!(["with `nice:5`", "without `cpus:0`"])
    );
}

/// Workloads that choose their CPUs themselves choose among those that they have.
#[test]
fn a_workload_that_pins_itself_stays_on_its_cpus() {
    let json = compare(&Home::new(), &["cpus:0"], &["-w", "bw-pipe@same-cpu"]);
    assert!(row(&json, "bw-pipe@same-cpu")["pairs"] == 8, "{json:#}");
}

#[test]
fn what_a_process_cannot_have_is_refused_before_it_is_measured() {
    let _turn = Turn::share();
    refused(
        &["cpus:999", "-w", "getppid"],
        &["CPU 999 does not exist or is offline; online CPUs: 0"],
    );
    refused(&["cpus:0-9999999", "-w", "getppid"], &["takes a list of CPUs"]);
    refused(&["nice:20", "-w", "getppid"], &["from -20 to 19"]);
    if !is_root() {
        skip("root", "needs root");
        return;
    }
    let home = Home::new();
    for name in ["", "data", "state", "tmp"] {
        std::os::unix::fs::chown(home.path(name), Some(NOBODY), Some(NOBODY)).unwrap();
    }
    let mut command = home.weigh("compare nice:-1 -w getppid --pairs 8");
    as_nobody(&mut command);
    home.start(command).finish().assert_error(&["niceness -1 is not permitted", "ulimit -e"]);
    // Where only one CPU is allowed, the other is there all the same.
    let home = Home::new();
    let mut command = home.command("taskset");
    command.args(["-c", "0"]).arg(crate::support::program());
    command.args(["compare", "cpus:1", "-w", "getppid"]);
    if rustix::thread::sched_getaffinity(None).unwrap().is_set(1) {
        home.start(command)
            .finish()
            .assert_error(&["CPU 1 is not allowed here", "allowed CPUs: 0"]);
    }
}

#[test]
fn blanks_of_a_command_are_filled_by_all_arms_or_none() {
    let command = ["--", "sleep", "{time}"];
    let with = |arms: &[&'static str]| [arms, &command].concat();
    refused(&with(&["with:time=1"]), &["`none` does not fill {time}", "--base with:time=VALUE"]);
    refused(
        &with(&["with:tim=1", "--base", "with:tim=2"]),
        &["the command does not contain {tim}"],
    );
    refused(&["with:n=1", "-w", "getppid"], &["workloads do not contain it", "after `--`"]);
    refused(
        &with(&["with:time=1", "--base", "with:time=2", "nice:5"]),
        &["`nice:5` does not fill {time}", "add +with:time=VALUE"],
    );
}

const SWAPPINESS: &str = "/proc/sys/vm/swappiness";

/// Returns the current swappiness; `None` if it cannot be changed.
fn swappiness() -> Option<String> {
    let is_writable = fs::OpenOptions::new().write(true).open(SWAPPINESS).is_ok();
    if !is_writable {
        skip("sysctl", &format!("{SWAPPINESS} cannot be written here"));
    }
    // Others have it changed while they have their turn.
    let _turn = Turn::with(SETTINGS);
    fs::read_to_string(SWAPPINESS).ok().filter(|_| is_writable)
}

#[test]
fn settings_of_the_kernel_are_switched_for_each_sample_and_put_back() {
    let Some(was) = swappiness() else { return };
    let home = Home::new();
    let log = home.path("log");
    let line = format!("cat {SWAPPINESS} >> {}", log.display());
    let arms = ["sysctl:vm.swappiness=11", "sysctl:vm.swappiness=99+thp:never"];
    let json = compare(&home, &arms, &["--", "sh", "-c", &line]);
    assert_eq!(swappiness(), Some(was.clone()));
    let log = fs::read_to_string(log).unwrap();
    let count = |value: &str| log.lines().filter(|line| *line == value).count();
    // Each arm has eight pairs and a start, and the baseline a sample in every pair.
    let counts = [count("11"), count("99"), count(was.trim())];
    assert!(counts[0] >= 8 && counts[1] >= 8 && counts[2] >= 16, "{counts:?}: {log}");
    let facts = json["treatments"][1]["facts"].to_string();
    assert!(facts.contains("vm.swappiness is 99 for each treated sample"), "{facts}");
    assert!(facts.contains("transparent_hugepage/enabled is never"), "{facts}");
}

#[test]
fn whoever_is_killed_the_settings_come_back() {
    let Some(was) = swappiness() else { return };
    let (home, _turn) = (Home::new(), Turn::with(SETTINGS));
    let arguments = ["compare", "sysctl:vm.swappiness=11", "-w", "getppid", "--pairs", "500"];
    let is = |value: &str| fs::read_to_string(SWAPPINESS).unwrap().trim() == value;
    let mut running = home.start(home.weigh(&arguments));
    home.wait_for_samples(2, &mut running);
    assert!(wait_until(LIMIT, || is("11")), "{}", running.said());
    running.kill();
    running.finish();
    assert!(wait_until(LIMIT, || is(was.trim())), "it stays changed");
    // The guard dies with it, and a later weigh puts it back. It is stopped before: without a guard it would
    // end, and put the setting back itself.
    let mut running = home.start(home.weigh(&arguments));
    home.wait_for_samples(4, &mut running);
    let pid = running.pid();
    let is_stopped_while_changed = || {
        signal(pid, Signal::STOP);
        std::thread::sleep(Duration::from_millis(5));
        let is_changed = is("11");
        if !is_changed {
            signal(pid, Signal::CONT);
        }
        is_changed
    };
    assert!(wait_until(LIMIT, is_stopped_while_changed), "{}", running.said());
    for guard in home.processes_of("__guard") {
        signal(guard, Signal::KILL);
    }
    running.kill();
    running.finish();
    assert!(wait_until(LIMIT, || home.processes().is_empty()));
    assert!(is("11"), "nobody was left to put it back");
    home.succeed("restore");
    assert!(is(was.trim()), "it stays changed");
}

#[test]
fn settings_that_nobody_should_change_for_a_while_are_refused() {
    if swappiness().is_none() {
        return;
    }
    let _turn = Turn::with(SETTINGS);
    let work = ["-w", "getppid"];
    let with = |arm: &'static str| [&[arm], &work[..]].concat();
    refused(&with("sysctl:kernel.core_pattern=x"), &["a program that the kernel runs as root"]);
    refused(&with("sysctl:kernel.panic=1"), &["can stop the machine"]);
    refused(&with("sysctl:vm.no_such_thing=1"), &["this kernel has no such setting"]);
    refused(&with("sysctl:vm.swappiness=100000"), &["does not accept this value"]);
    refused(&with("sysctl:vm.swappiness"), &["it takes KEY=VALUE"]);
    refused(&with("sysctl:vm.dirty_bytes=8192000"), &["cannot be put back: change vm.dirty_ratio"]);
    refused(&with("thp:sometimes"), &["it takes always, madvise, never"]);
    if !Path::new("/sys/devices/system/cpu/cpufreq/policy0").exists() {
        refused(&with("governor:performance"), &["this system shows no governor"]);
    }
}

/// The control groups of experiments that there are.
fn groups() -> Vec<PathBuf> {
    let hierarchies = fs::read_dir("/sys/fs/cgroup").into_iter().flatten().flatten();
    let groups = hierarchies.flat_map(|entry| fs::read_dir(entry.path()).into_iter().flatten());
    let paths = groups.flatten().map(|entry| entry.path());
    paths.filter(|path| path.to_string_lossy().contains("/weigh-")).collect()
}

/// Returns true if cgroup version 1 has the controllers of CPU time and processes here, and we may
/// use them.
fn has_groups_of_version_1() -> bool {
    let files = ["cpu", "pids"].map(|name| format!("/sys/fs/cgroup/{name}/cgroup.procs"));
    let has = files.iter().all(|file| fs::OpenOptions::new().write(true).open(file).is_ok());
    if !has {
        skip("cgroup", "needs control groups of version 1, and root");
    }
    has
}

/// A shell ignores how its commands end, and is fast when they end early.
#[test]
fn processes_that_a_limit_killed_or_refused_are_no_result() {
    if !has_groups_of_version_1() {
        return;
    }
    let _turn = Turn::with(SETTINGS);
    let home = Home::new();
    let hog = "dd if=/dev/zero of=/dev/null bs=60M count=1 2>&1; exit 0";
    let fork = "for i in 1 2 3 4; do sleep 0.01 & done 2>&1; wait; exit 0";
    for (arm, script, said) in [
        ("cgroup:memory.max=20M", hog, "the out-of-memory killer killed 1 process, although"),
        ("cgroup:pids.max=3", &format!("bash -c '{fork}'; exit 0"), "pids.max refused to start"),
    ] {
        let outcome = home.run(&["compare", arm, "--pairs", "8", "--", "sh", "-c", script]);
        assert_eq!(outcome.code, Some(2), "{outcome:#?}");
        outcome.assert_says(&[said, "there is no result"]);
    }
}

/// A shell reaps such a process and goes on. Those that are ended on purpose are none.
#[test]
fn processes_that_died_by_an_error_are_no_result() {
    if !is_root() {
        skip("root", "needs root");
        return;
    }
    // A process whose parents are gone might be of any command: no other test is to hear of these.
    let _turn = Turn::take();
    let home = Home::new();
    let compare = ["compare", "none", "--pairs", "8", "--inconclusive-ok", "--", "bash", "-c"];
    let run = |script: &str| home.run(&[&compare[..], &[script]].concat());
    for (signal, number) in [("SYS", 31), ("SEGV", 11), ("ABRT", 6)] {
        let kill = format!("kill -{signal} \\$\\$");
        for script in [
            format!("sh -c \"{kill}\" 2>&1; exit 0"),
            format!("(bash -c '(sh -c \"{kill}\"); exit 0' 2>&1; true); exit 0"),
        ] {
            let outcome = run(&script);
            assert_eq!(outcome.code, Some(2), "{script}: {outcome:#?}");
            let said = format!("1 process died by signal {number}, although the exit status was 0");
            outcome.assert_says(&[&said, "there is no result"]);
        }
    }
    let outcome = run("timeout 0.01 sleep 9; yes | head -1; sh -c 'kill -9 $$'; exit 0");
    assert_eq!(outcome.code, Some(0), "{outcome:#?}");
}

#[test]
fn a_private_control_group_limits_its_arm_alone_and_goes() {
    if !has_groups_of_version_1() {
        return;
    }
    let home = Home::new();
    // A twentieth of one CPU, which others leave it more of. Each sample says where it was, and how often it
    // had to wait there for the next period.
    let arm = "cgroup:cpu.max=\"2000 40000\",pids.max=40+nice:1";
    let line = "i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done
        group=$(sed -En 's/^[0-9]+:(cpu|cpu,cpuacct|cpuacct,cpu)://p' /proc/self/cgroup)
        echo $group $(grep -s nr_throttled /sys/fs/cgroup/cpu$group/cpu.stat) >> said";
    let json = compare(&home, &[arm], &["--", "sh", "-c", line]);
    let said = fs::read_to_string(home.path("said")).unwrap();
    // The baseline is in a group without limits.
    let groups_of: BTreeSet<&str> =
        said.lines().map(|line| line.split(' ').next().unwrap()).collect();
    assert!(groups_of.len() == 2 && groups_of.iter().all(|it| it.contains("/weigh-")), "{said}");
    let times = |line: &str| line.rsplit(' ').next().unwrap().parse::<u64>().unwrap();
    let waited = |group: &&&str| {
        let of_group: Vec<&str> = said.lines().filter(|line| line.starts_with(**group)).collect();
        assert!(of_group.len() >= 8, "{said}");
        of_group.into_iter().any(|line| times(line) > 0)
    };
    assert_eq!(groups_of.iter().filter(waited).count(), 1, "{said}");
    let facts = json["treatments"][0]["facts"].to_string();
    let wanted = "cpu.cfs_period_us is 40000, cpu.cfs_quota_us is 2000, pids.max is 40";
    assert!(facts.contains(wanted), "{facts}");
    assert_eq!(json["baseline"], "cgroup:cpu,pids");
    let _turn = Turn::with(SETTINGS);
    assert_eq!(groups(), Vec::<PathBuf>::new());
    refused(&["cgroup:memory.high=1M", "-w", "getppid"], &["exists only in version 2"]);
    refused(&["cgroup:cpu.max=half", "-w", "getppid"], &["cpu.max=half: takes microseconds"]);
    refused(&["cgroup:pids.max=many", "-w", "getppid"], &["this kernel does not accept `many`"]);
    assert_eq!(groups(), Vec::<PathBuf>::new());
}

#[test]
fn whoever_is_killed_no_control_group_is_left() {
    if !has_groups_of_version_1() {
        return;
    }
    let (home, _turn) = (Home::new(), Turn::with(SETTINGS));
    let arguments = ["compare", "cgroup:pids.max=40", "-w", "getppid", "--pairs", "500"];
    let mut running = home.start(home.weigh(&arguments));
    home.wait_for_samples(4, &mut running);
    assert_eq!(groups().len(), 2, "the limit's, and the baseline's");
    running.kill();
    running.finish();
    assert!(wait_until(LIMIT, || groups().is_empty()), "{:?}", groups());
}

#[test]
fn commands_of_the_users_are_switched_for_each_sample_and_undone_after_a_death() {
    let home = Home::new();
    let on = home.path("on");
    let (on, log) = (on.display(), home.path("log"));
    let arm = format!("cmd:apply=\"touch {on}\",undo=\"rm -f {on}\",verify=\"test -e {on}\"");
    let line = format!("test -e {on} && echo on >> {0} || echo off >> {0}", log.display());
    compare(&home, &[&arm, "seccomp"], &["--", "sh", "-c", &line]);
    let log = fs::read_to_string(log).unwrap();
    let count = |word: &str| log.lines().filter(|line| *line == word).count();
    // The baseline and the other arm are without it.
    assert!(count("on") >= 8 && count("off") >= 24, "{log}");
    assert!(!home.path("on").exists());

    let _turn = Turn::share();
    let arguments = ["compare", &arm, "--pairs", "500", "--", "sleep", "0.05"];
    let mut running = home.start(home.weigh(&arguments));
    home.wait_for_samples(34, &mut running);
    assert!(wait_until(LIMIT, || home.path("on").exists()), "{}", running.said());
    running.kill();
    running.finish();
    assert!(wait_until(LIMIT, || home.processes().is_empty()));
    assert!(!home.path("on").exists(), "it was not undone");
    assert_eq!(home.leftovers(), Vec::<PathBuf>::new());
}

/// As the removal of an unpacked root file system, which may take a minute.
#[test]
fn what_takes_long_to_undo_is_named_on_a_terminal() {
    if !Path::new("/usr/bin/script").exists() {
        skip("script", "needs script(1)");
        return;
    }
    let _turn = Turn::share();
    let home = Home::new();
    let on = home.path("on").display().to_string();
    let arm =
        format!("cmd:apply=\"touch {on}\",undo=\"rm -f {on}\",verify=\"sleep 3; test -e {on}\"");
    let program = crate::support::program().display().to_string();
    let line = command_line([&*program, "compare", &arm, "-w", "getppid", "--budget", "6s"]);
    let output = home.command("script").args(["-qec", &line, "/dev/null"]).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(said.contains("undoing `cmd:apply="), "{said}");
    assert!(!home.path("on").exists());
}

#[test]
fn commands_that_prove_nothing_or_do_not_undo_are_refused() {
    let _turn = Turn::share();
    let work = ["-w", "getppid"];
    let with = |apply: &str, undo: &str, verify: &str, said: &[&str]| {
        let arm = format!("cmd:apply=\"{apply}\",undo=\"{undo}\",verify=\"{verify}\"");
        refused(&[&[arm.as_str()], &work[..]].concat(), said);
    };
    with("true", "true", "true", &["ends with status 0 before anything was changed"]);
    with("true", "true", "false", &["after it was applied, the change should have been in force"]);
    with(
        "touch on",
        "true",
        "test -e on",
        &["after it was undone, the change should not have been"],
    );
    with("touch on", "rm on", "test -e on", &["undo= must succeed even if there is nothing"]);
    with("no-such-thing", "true", "false", &["the shell cannot run it (status 127)"]);
    with("true", "true", "no-such-thing", &["the shell cannot run it (status 127)"]);
    refused(&["cmd:apply=a,undo=b", "-w", "getppid"], &["`cmd` needs verify=\"COMMAND\""]);
}

#[test]
fn a_library_is_loaded_into_its_arm_alone() {
    let home = Home::new();
    let library = build::library(home.directory.path(), "int of_a_test;");
    let arm = format!("preload:{}+nice:1", library.display());
    let line = format!("grep -q {} /proc/self/maps; echo $? >> log; sleep 0.02", library.display());
    compare(&home, &[&arm], &["--", "sh", "-c", &line]);
    let log = fs::read_to_string(home.path("log")).unwrap();
    let count = |status: &str| log.lines().filter(|line| *line == status).count();
    assert!(count("0") >= 8 && count("1") >= 8, "{log}");
    compare(&home, &[&arm], &["-w", "getppid"]);

    let fixed = build::program(
        home.directory.path(),
        "#include <unistd.h>\nint main(void) { return sleep(0); }",
        &["-static"],
    );
    let _turn = Turn::share();
    let said = ["a program that is statically linked cannot preload a library"];
    refused(&[&arm, "--", fixed.to_str().unwrap()], &said);
    refused(&["preload:/absent.so", "-w", "getppid"], &["No such file"]);
    refused(&["preload:/etc/passwd", "-w", "getppid"], &["not a shared library"]);
}

/// Number of samples of this treated arm in which the listener received as many events as this, or more.
fn samples_heard(home: &Home, arm: usize, events: &str) -> usize {
    samples_with(home, arm, "fanotify_events", &format!(">= {events}"))
}

/// Events after the fact may be merged, but not those that wait for an answer.
const EACH_OPERATION: &str = "json_extract(sample, '$.total_operations')";

#[test]
fn a_listener_hears_what_it_listens_for() {
    if !is_root() {
        return skip("root", "needs root");
    }
    let home = Home::new();
    let arms = ["fanotify:open-perm", "fanotify:open-perm,filesystem", "fanotify", "fanotify:off"];
    compare(&home, &arms, &["-w", "open-close"]);
    assert_eq!(samples_heard(&home, 1, EACH_OPERATION), 8);
    assert_eq!(samples_heard(&home, 2, EACH_OPERATION), 8);
    assert_eq!(samples_heard(&home, 3, "2"), 8);
    assert_eq!((samples_heard(&home, 4, "0"), samples_heard(&home, 4, "1")), (8, 0));
}

#[test]
fn a_listener_hears_reads_and_may_let_them_wait() {
    if !is_root() {
        return skip("root", "needs root");
    }
    let home = Home::new();
    let arms = ["fanotify:access-perm,delay=100us", "fanotify:access"];
    compare(&home, &arms, &["-w", "bw-file-rd-256k"]);
    assert_eq!(samples_heard(&home, 1, EACH_OPERATION), 8);
    assert_eq!(samples_heard(&home, 2, "2"), 8);
}

/// The mark is on mounts that this system sees, and this file system is in a mount namespace of the arm.
#[test]
fn a_workload_that_a_listener_cannot_hear_has_no_result() {
    if !is_root() {
        return skip("root", "needs root");
    }
    let _turn = Turn::with(SETTINGS);
    let home = Home::new();
    let arguments = "compare fanotify --fixture fs:tmpfs -w open-close --pairs 8";
    home.run(arguments).assert_says(&["on a file system that fanotify did not mark"]);
    assert_eq!(home.leftovers(), Vec::<PathBuf>::new());
}

/// Each operation is a process that ends.
#[test]
fn accounting_has_a_record_of_each_process_and_none_where_it_is_off() {
    if !is_root() {
        return skip("root", "needs root");
    }
    let home = Home::new();
    // The kernel suspends accounting into a file system that is nearly full.
    let _room = Held::temporary_files(&home);
    let arms = ["acct", "acct:off", "acct+nice:5", "--base", "acct"];
    compare(&home, &arms, &["-w", "fork"]);
    for arm in [1, 3] {
        assert_eq!(samples_with(&home, arm, "acct_records", &format!(">= {EACH_OPERATION}")), 8);
    }
    assert_eq!(samples_with(&home, 2, "acct_records", "= 0"), 8);
}

/// Each operation is a process that ends.
#[test]
fn a_listener_has_a_record_of_each_task_and_none_where_it_is_off() {
    let home = Home::new();
    let listed = home.succeed("list treatments").stdout;
    let (_, after) = listed.split_once("\n  taskstats ").unwrap();
    if !is_root() || !after.lines().nth(1).unwrap().contains("works here") {
        return skip("taskstats", "needs root and the kernel's taskstats");
    }
    let arms = ["taskstats", "taskstats:off", "taskstats+nice:5", "--base", "taskstats"];
    compare(&home, &arms, &["-w", "fork"]);
    for arm in [0, 1, 3] {
        let all = format!("+ json_extract(evidence, '$.task_queue_overflows') >= {EACH_OPERATION}");
        assert!(samples_with(&home, arm, "task_records", &all) >= 8, "{arm}");
    }
    assert_eq!(samples_with(&home, 2, "task_records", "= 0"), 8);
}

/// Each operation forks a process, which ends.
#[test]
fn the_process_connector_sends_events_of_each_process_and_none_where_it_is_off() {
    if !is_root() {
        return skip("root", "needs root");
    }
    let home = Home::new();
    let arms = ["proc-connector", "proc-connector:off", "proc-connector+nice:5"];
    compare(&home, &[&arms[..], &["--base", "proc-connector"]].concat(), &["-w", "fork"]);
    for arm in [1, 3] {
        let both =
            format!("+ json_extract(evidence, '$.process_events_lost') >= 2 * {EACH_OPERATION}");
        assert_eq!(samples_with(&home, arm, "process_events", &both), 8);
    }
    assert_eq!(samples_with(&home, 2, "process_events", "= 0"), 8);
}

/// An operation opens a file in a directory that the workload makes; a few events come before it.
#[test]
fn watches_see_each_access_and_those_of_changes_do_not() {
    let home = Home::new();
    let arms = ["inotify", "inotify:changes", "inotify:off"];
    compare(&home, &arms, &["-w", "open-close"]);
    let samples = |arm, events: &str| samples_with(&home, arm, "inotify_events", events);
    assert_eq!(samples(1, "> 100"), 8);
    assert_eq!(samples(2, "BETWEEN 4 AND 30"), 8);
    assert_eq!(samples(3, "= 0"), 8);
}

/// The canary is opened and closed twice.
#[test]
fn watches_see_the_directories_below_where_they_are_recursive() {
    let home = Home::new();
    fs::create_dir_all(home.path("top/below")).unwrap();
    let file = home.file("top/below/file", "").display().to_string();
    let top = home.path("top").display().to_string();
    let arms = [format!("inotify:watch={top}"), format!("inotify:watch={top},recursive")];
    compare(&home, &[&arms[0], &arms[1]], &["--", "cat", &file]);
    assert_eq!(samples_with(&home, 1, "inotify_events", "= 4"), 8);
    assert_eq!(samples_with(&home, 2, "inotify_events", ">= 6"), 8, "opened and closed, too");
}

/// Both arms list the directory before each sample; the treated one does it once more.
#[test]
fn the_baseline_has_its_watches_set_and_removed_before_it_begins() {
    let home = Home::new();
    fs::create_dir_all(home.path("top")).unwrap();
    let queue = inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK).unwrap();
    inotify::add_watch(&queue, home.path("top"), WatchFlags::OPEN | WatchFlags::CLOSE).unwrap();
    let arm = format!("inotify:watch={},recursive", home.path("top").display());
    compare(&home, &[&arm], &["--", "true"]);
    let mut buffer = [MaybeUninit::uninit(); 4096];
    let mut reader = inotify::Reader::new(&queue, &mut buffer);
    let mut opens = 0;
    while let Ok(event) = reader.next() {
        opens += usize::from(event.events().contains(ReadFlags::OPEN));
    }
    let samples = samples_with(&home, 1, "inotify_events", ">= 0");
    assert!(opens >= 3 * samples, "{opens} of {samples} pairs");
}

/// Each operation is a call, and a process that ends.
#[test]
fn a_trace_has_its_events_and_none_where_it_is_off() {
    if !is_root() {
        return skip("root", "needs root");
    }
    let home = Home::new();
    let arms = ["ftrace", "ftrace:processes", "ftrace:scheduler", "ftrace:off"];
    compare(&home, &arms, &["-w", "fork"]);
    let samples = |arm, entries: &str| samples_with(&home, arm, "ftrace_entries", entries);
    assert_eq!(samples(1, &format!(">= 3 * {EACH_OPERATION}")), 8, "clone, exit_group, wait4");
    assert_eq!(samples(2, &format!(">= 2 * {EACH_OPERATION}")), 8, "fork and exit");
    assert_eq!(samples(3, &format!(">= {EACH_OPERATION}")), 8);
    assert_eq!(samples(4, "= 0"), 8);
}

#[test]
fn all_that_report_events_are_in_force_in_one_arm() {
    if !is_root() {
        return skip("root", "needs root");
    }
    let home = Home::new();
    let _room = Held::temporary_files(&home);
    let arm = "acct+proc-connector+inotify+fanotify+ftrace";
    compare(&home, &[arm, "acct+ftrace", "--base", "proc-connector"], &["-w", "fork"]);
    for quantity in ["acct_records", "process_events", "ftrace_entries"] {
        let often = format!(">= {EACH_OPERATION}");
        assert_eq!(samples_with(&home, 1, quantity, &often), 8, "{quantity}");
    }
    for quantity in ["inotify_events", "fanotify_events"] {
        assert_eq!(samples_with(&home, 1, quantity, ">= 2"), 8, "{quantity}");
    }
}

#[test]
fn layers_with_many_rules_are_in_force_and_none_without_a_rule() {
    let json = compare(
        &Home::new(),
        &["landlock:layers=2,rules=15", "landlock:rules=0", "--fixture", "deep:levels=10"],
        &["-w", "open-close"],
    );
    let facts = |arm: usize| json["treatments"][arm]["facts"].to_string();
    assert!(facts(0).contains("2 layers of Landlock"), "{json:#}");
    assert!(facts(0).contains("14 for files that no program opens"), "{json:#}");
    assert!(facts(1).contains("in no layer of Landlock"), "{json:#}");
    assert!(json.to_string().contains("innermost of 10 nested directories"), "{json:#}");
}

#[test]
fn the_ports_and_scopes_of_a_layer_are_in_force() {
    let home = Home::new();
    let outcome =
        home.run("compare landlock:ports,scopes,layers=2 -w lat-sig-catch --pairs 8 --json -");
    if outcome.stderr.contains("needs Landlock version") {
        skip("landlock-scopes", "needs Landlock of Linux 6.12");
        return;
    }
    let json = outcome.json();
    let facts = json["treatments"][0]["facts"].to_string();
    assert!(facts.contains("a rule for each TCP port"), "{json:#}");
    assert!(facts.contains("checks signals and connections to abstract sockets"), "{json:#}");
    assert_eq!(json["results"][0]["pairs"], 8, "{json:#}");
    // Whoever signals a process outside is denied that.
    let outside = format!("kill -0 {}", std::process::id());
    let denied =
        home.run(&["compare", "landlock:scopes", "--pairs", "8", "--", "sh", "-c", &outside]);
    denied.assert_says(&["Operation not permitted"]);
    let refused = home.run("compare landlock:rules=0,ports -w getppid");
    refused.assert_error(&["takes neither ports nor scopes"]);
}

#[test]
fn a_policy_of_landlock_denies_what_it_does_not_allow() {
    let home = Home::new();
    for name in ["allowed", "denied"] {
        fs::create_dir(home.path(name)).unwrap();
        home.file(&format!("{name}/file"), format!("read {name}\n"));
    }
    let allowed = home.path("allowed").display().to_string();
    let system = "\"/bin\", \"/usr\", \"/lib\", \"/lib64\", \"/etc/ld.so.cache\"";
    home.file(
        "p.toml",
        format!(
            "[[path_beneath]]\nallowed_access = [\"read_file\"]\nparent = [{system}, {allowed:?}]\n"
        ),
    );
    let line = "cat allowed/file denied/file >> log 2>&1; true";
    let arguments = ["landlock:policy=p.toml,layers=2", "landlock:policy=p.toml"];
    let json = compare(&home, &arguments, &["--", "sh", "-c", line]);
    let facts = json["treatments"][0]["facts"].to_string();
    assert!(facts.contains("2 layers of Landlock") && facts.contains("1 file right"), "{json:#}");
    let log = fs::read_to_string(home.path("log")).unwrap();
    let count = |words: &str| log.lines().filter(|line| line.contains(words)).count();
    let denied = count("denied/file: Permission denied");
    assert!(denied >= 16 && count("read allowed") == denied + count("read denied"), "{log}");
    assert!(count("read denied") >= 16, "{log}");

    let run = |text: &str| {
        home.file("p.toml", text);
        home.run("compare landlock:policy=p.toml -w getppid")
    };
    let unproved = run("[[ruleset]]\nhandled_access_fs = [\"execute\"]\n");
    unproved.assert_error(&["p.toml", "denies nothing that weigh can try here"]);
    let unknown = run("abi = 1\n\n[[path_benaeth]]\nparent = []\n");
    unknown.assert_error(&["p.toml:3: unknown field `path_benaeth`"]);
}

#[test]
fn the_calls_of_a_systemd_set_are_found_by_either_layout() {
    let arms = ["seccomp:profile=@system-service", "seccomp:profile=@system-service,layout=tree"];
    let json = compare(&Home::new(), &arms, &["-w", "getppid"]);
    let facts = |arm: usize| json["treatments"][arm]["facts"].to_string();
    assert!(facts(0).contains("the filter of @system-service: rules for "), "{json:#}");
    assert!(!facts(0).contains("by a binary search"), "{json:#}");
    assert!(facts(1).contains("found by a binary search"), "{json:#}");
    // Only root may do that at all.
    if !is_root() {
        return;
    }
    let denied =
        Home::new().run(&["compare", arms[1], "--pairs", "8", "--", "chroot", "/", "true"]);
    denied.assert_says(&["Operation not permitted"]);
}

#[test]
fn a_stacked_filter_is_installed_as_often_as_asked() {
    let arms = ["seccomp:filters=4", "seccomp:filters=0"];
    let json = compare(&Home::new(), &arms, &["-w", "getppid"]);
    let own = fs::read_to_string("/proc/self/status").unwrap();
    let own = own.lines().find_map(|line| line.strip_prefix("Seccomp_filters:")).unwrap();
    let own: u32 = own.trim().parse().unwrap();
    let filters = |row: usize| json["results"][row]["evidence"]["seccomp_filters"].clone();
    assert_eq!(filters(0), (own + 4).to_string(), "{json:#}");
    assert_eq!(filters(1), own.to_string(), "{json:#}");
    assert!(json["treatments"][0]["facts"].to_string().contains("installed 4 times"), "{json:#}");
}

/// The compared samples of an arm whose evidence of this name compares so.
fn samples_with(home: &Home, arm: usize, evidence: &str, compares: &str) -> usize {
    let count = home.query_text(&format!(
        "SELECT CAST(count(*) AS TEXT) FROM sample WHERE arm = {arm} AND role = 'compared' AND
         json_extract(evidence, '$.{evidence}') {compares}"
    ));
    count.parse().unwrap()
}

/// `open-close` makes two calls per operation, and no other call that is as frequent.
#[test]
fn strace_sees_the_calls_that_it_traces_and_no_others() {
    let arms = ["strace", "strace:calls=openat,seccomp-bpf", "strace:calls=getppid,seccomp-bpf"];
    let home = Home::new();
    compare(&home, &[&arms[..], &["strace:off"]].concat(), &["-w", "open-close"]);
    let samples = |arm, calls: &str| samples_with(&home, arm, "strace_calls", calls);
    assert_eq!(samples(1, &format!(">= 2 * {EACH_OPERATION}")), 8);
    let once = format!("BETWEEN {EACH_OPERATION} AND {EACH_OPERATION} + 100");
    assert_eq!(samples(2, &once), 8);
    assert_eq!(samples(3, "= 0"), 8, "the program never calls getppid");
    assert_eq!(samples(4, "IS NULL"), 8);
}

#[test]
fn calls_that_strace_does_not_know_are_refused() {
    refused(
        &["strace:calls=nonsense", "-w", "getppid"],
        &["calls=nonsense", "invalid system call"],
    );
}

#[test]
fn a_supervisor_answers_the_calls_that_it_is_asked_about_and_no_others() {
    let arms = ["seccomp-notify", "seccomp-notify:calls=\"openat,close\""];
    let others = ["seccomp-notify:calls=getppid", "seccomp-notify:off", "seccomp"];
    let home = Home::new();
    compare(&home, &[&arms[..], &others].concat(), &["-w", "open-close"]);
    let samples = |arm, calls: &str| samples_with(&home, arm, "notified_calls", calls);
    let times =
        |times| format!("BETWEEN {times} * {EACH_OPERATION} AND {times} * {EACH_OPERATION} + 100");
    assert_eq!(samples(1, &times(1)), 8);
    assert_eq!(samples(2, &times(2)), 8);
    assert_eq!(samples(3, "= 0"), 8, "the program never calls getppid");
    assert_eq!((samples(4, "IS NULL"), samples(5, "IS NULL")), (8, 8));
}

#[test]
fn a_tracer_stops_a_process_at_the_calls_that_it_traces_and_no_others() {
    let arms = ["ptrace", "ptrace:calls=\"openat,close\"", "ptrace:calls=getppid", "ptrace:off"];
    let home = Home::new();
    let others = ["seccomp-notify", "seccomp"];
    compare(&home, &[&arms[..], &others].concat(), &["-w", "open-close"]);
    let samples = |arm, stops: &str| samples_with(&home, arm, "ptrace_stops", stops);
    let times =
        |times| format!("BETWEEN {times} * {EACH_OPERATION} AND {times} * {EACH_OPERATION} + 100");
    assert_eq!((samples(1, &times(1)), samples(2, &times(2))), (8, 8));
    assert_eq!(samples(3, "= 0"), 8, "the program never calls getppid");
    assert_eq!([4, 5, 6].map(|arm| samples(arm, "IS NULL")), [8; 3]);
    // What the workload starts is traced as well.
    let home = Home::new();
    compare(
        &home,
        &["ptrace:calls=getppid"],
        &["--", "sh", "-c", "sh -c 'sh -c true; true'; true"],
    );
    assert_eq!(samples_with(&home, 1, "ptrace_stops", ">= 3"), 8, "each shell asks for its parent");
}
