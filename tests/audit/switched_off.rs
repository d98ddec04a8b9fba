//! Each treatment is switched off from outside in mid-experiment, which fails it: exit 2, and it says what
//! was not as it should be. What is about a process is changed by its number: at the moment when it has
//! executed its program (`support/meddle.py`, a debugger), or while it runs.

use std::process::Command;
use std::time::Duration;

use crate::support::{Home, Outcome, Running, SETTINGS, Turn, is_root, program, skip, wait_until};
use rustix::process::{Pid, getpriority_process, setpriority_process};

const LIMIT: Duration = Duration::from_secs(60);

/// An experiment that would go on for long.
fn arguments<'a>(arm: &[&'a str], work: &[&'a str]) -> Vec<&'a str> {
    [&["compare"], arm, &["--pairs", "500"], work].concat()
}

#[track_caller]
fn assert_failed(home: &Home, outcome: &Outcome, said: &[&str]) {
    outcome.assert_error(&["The experiment failed", "No verdict"]);
    outcome.assert_says(said);
    let json = home.json();
    assert_eq!(json["state"], "failed");
    for row in json["results"].as_array().unwrap() {
        assert_eq!(row["verdict"], "inconclusive", "{row:#}");
    }
    assert!(home.samples() > 2, "it was not in mid-experiment");
    assert_eq!(home.leftovers(), Vec::<std::path::PathBuf>::new());
    assert!(home.processes().is_empty(), "{:?}", home.describe_processes());
}

/// Returns true if this host lets us trace our own processes.
fn can_meddle() -> bool {
    let scope = std::fs::read_to_string("/proc/sys/kernel/yama/ptrace_scope");
    let is_allowed = is_root() || scope.map_or(true, |scope| ["0", "1"].contains(&scope.trim()));
    if !is_allowed {
        skip("ptrace", "processes may not be traced here");
    }
    is_allowed
}

/// Changes the workers of which `matching` holds, from the fifth on.
#[track_caller]
fn meddle([matching, change]: [&str; 2], arm: &[&str], work: &[&str], said: &[&str]) {
    if !can_meddle() {
        return;
    }
    let (home, _turn) = (Home::new(), Turn::share());
    let script = home.file("meddle.py", include_str!("../support/meddle.py"));
    let mut command: Command = home.command("python3");
    command.arg(script).args([matching, change]).arg(program()).args(arguments(arm, work));
    let outcome = home.start(command).finish();
    assert_failed(&home, &outcome, said);
}

const WORK: [&str; 4] = ["-w", "getppid", "--sample", "10ms"];
/// It sleeps as long as somebody needs to look.
const COMMAND: [&str; 3] = ["--", "sleep", "0.03"];

#[test]
fn a_process_that_is_made_less_nice() {
    meddle(
        ["os.getpriority(os.PRIO_PROCESS, pid) == 5", "os.setpriority(os.PRIO_PROCESS, pid, 7)"],
        &["nice:5"],
        &WORK,
        &["the treated process should have had niceness 5, but had 7 when it was executed"],
    );
}

#[test]
fn a_process_of_the_baseline_that_is_made_nice() {
    meddle(
        ["os.getpriority(os.PRIO_PROCESS, pid) != 15", "os.setpriority(os.PRIO_PROCESS, pid, 15)"],
        &["nice:15"],
        &WORK,
        &["the other process should have had niceness", "but had 15 when it was executed"],
    );
}

/// While it sleeps, which is seen when it has ended.
#[test]
fn a_process_that_is_made_nicer_while_it_runs() {
    let (home, _turn) = (Home::new(), Turn::share());
    let work = ["--", "sleep", "1.2"];
    let mut running = home.start(home.weigh(&arguments(&["nice:5"], &work)));
    home.wait_for_samples(4, &mut running);
    let is_five = |pid: &Pid| getpriority_process(Some(*pid)).is_ok_and(|level| level == 5);
    let changed = wait_until(LIMIT, || {
        let sleeping = home.processes_of("sleep 1.2").into_iter().filter_map(Pid::from_raw);
        let sleeping = sleeping.filter(|pid| {
            let name = format!("/proc/{}/comm", pid.as_raw_nonzero());
            std::fs::read_to_string(name).is_ok_and(|name| name.trim() == "sleep")
        });
        sleeping.filter(is_five).any(|pid| {
            std::thread::sleep(Duration::from_millis(500));
            setpriority_process(Some(pid), 9).is_ok()
        }) || running.has_ended()
    });
    assert!(changed);
    let said = ["the treated process should have had niceness 5, but had 9 at its end"];
    assert_failed(&home, &running.finish(), &said);
}

#[test]
fn a_process_that_is_moved_to_another_cpu() {
    let here = rustix::thread::sched_getaffinity(None).unwrap();
    if here.count() < 2 || !here.is_set(0) || !here.is_set(1) {
        skip("cpus", "needs the CPUs 0 and 1");
        return;
    }
    meddle(
        ["os.sched_getaffinity(pid) == {0}", "os.sched_setaffinity(pid, {1})"],
        &["cpus:0"],
        &WORK,
        &["the treated process should have had the CPUs 0, but had 1 when it was executed"],
    );
}

#[test]
fn a_variable_that_is_overwritten() {
    meddle(
        ["b'COLOUR=blue' in read(pid, 'environ')", "replace(pid, 'environ', b'blue', b'pink')"],
        &["env:COLOUR=blue"],
        &COMMAND,
        &["should have had the variable COLOUR with the value `blue`, but had `pink`"],
    );
}

#[test]
fn an_argument_that_is_overwritten() {
    meddle(
        ["b'0.04' in read(pid, 'cmdline')", "replace(pid, 'cmdline', b'0.04', b'0.03')"],
        &["with:time=0.04", "--base", "with:time=0.03"],
        &["--", "sleep", "{time}"],
        &["should have had the command line `sleep 0.04`, but had `sleep 0.03`"],
    );
}

/// Runs an experiment that is switched off by this, once it has measured, and looks that it says so. Gives
/// what is in the file afterwards.
#[track_caller]
fn interfere(
    arm: &[&str],
    work: &[&str],
    said: &[&str],
    file: Option<&str>,
    interference: impl Fn(&mut Running),
) -> Option<String> {
    let (home, _turn) = (Home::new(), Turn::with(SETTINGS));
    let mut running = home.start(home.weigh(&arguments(arm, work)));
    home.wait_for_samples(4, &mut running);
    interference(&mut running);
    assert_failed(&home, &running.finish(), said);
    file.map(|file| std::fs::read_to_string(file).unwrap())
}

/// A file of the kernel that root may write, with what is in it.
fn kernel_file(path: &'static str) -> Option<String> {
    let is_writable = std::fs::OpenOptions::new().write(true).open(path).is_ok();
    if !is_writable {
        skip("sysctl", &format!("{path} cannot be written here"));
    }
    // Others have it changed while they have their turn.
    let _turn = Turn::with(SETTINGS);
    std::fs::read_to_string(path).ok().filter(|_| is_writable)
}

#[test]
fn a_setting_of_the_kernel_that_is_changed() {
    const FILE: &str = "/proc/sys/vm/swappiness";
    let Some(was) = kernel_file(FILE) else { return };
    let said = ["vm.swappiness was changed during the measurement: it should be", "but is 77"];
    let change = |_: &mut Running| std::fs::write(FILE, "77").unwrap();
    let now = interfere(&["sysctl:vm.swappiness=11"], &WORK, &said, Some(FILE), change);
    assert_eq!(now.unwrap(), was);
}

#[test]
fn the_setting_of_huge_pages_that_is_changed() {
    const FILE: &str = "/sys/kernel/mm/transparent_hugepage/enabled";
    let Some(was) = kernel_file(FILE) else { return };
    // What neither arm has.
    let other = if was.contains("[madvise]") { "always" } else { "madvise" };
    let said = ["transparent_hugepage/enabled was changed during the measurement"];
    let change = |_: &mut Running| std::fs::write(FILE, other).unwrap();
    let now = interfere(&["thp:never"], &WORK, &said, Some(FILE), change);
    assert_eq!(now.unwrap(), was);
}

/// Where a worker of a private control group is moved to.
const OUT: &str = "open('/sys/fs/cgroup/cpu/cgroup.procs', 'w').write(str(pid))";

/// Returns true if cgroup version 1 has the controller of CPU time here, and we may use it.
fn has_groups_of_version_1() -> bool {
    kernel_file("/sys/fs/cgroup/cpu/cgroup.procs").is_some()
}

#[test]
fn a_process_that_is_moved_out_of_its_control_group() {
    if !has_groups_of_version_1() {
        return;
    }
    let _turn = Turn::with(SETTINGS);
    meddle(
        ["b'/weigh-' in read(pid, 'cgroup')", OUT],
        &["cgroup:cpu.max=\"90000 100000\"", "--base", "none"],
        &WORK,
        &["the treated process should have been in the control group weigh-", "something moved it"],
    );
}

#[test]
fn a_limit_that_is_lifted() {
    if !has_groups_of_version_1() {
        return;
    }
    let lift = |_: &mut Running| {
        let groups = std::fs::read_dir("/sys/fs/cgroup/cpu").unwrap();
        let names = groups.map(|entry| entry.unwrap().path());
        let mut own = names.filter(|path| path.to_string_lossy().contains("/weigh-"));
        std::fs::write(own.next().unwrap().join("cpu.cfs_quota_us"), "-1").unwrap();
    };
    let said =
        ["cpu.cfs_quota_us was changed during the measurement: it should be 90000, but is -1"];
    // The placebo has a group too, without that limit.
    let arm = ["cgroup:cpu.max=\"90000 100000\"", "--base", "none"];
    interfere(&arm, &WORK, &said, None, lift);
}

/// Tests a treatment that is a file: anyone who removes the file switches the treatment off.
#[test]
fn what_a_command_applied_and_another_undid() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("on");
    let shown = file.display();
    let arm =
        format!("cmd:apply=\"touch {shown}\",undo=\"rm -f {shown}\",verify=\"test -e {shown}\"");
    let said = ["the change should have been in force, but `test -e", "it ended with status 1"];
    interfere(&[&arm], &["--", "sleep", "0.05"], &said, None, |running| {
        // Again, where it was in between two samples: then it was not in force for any.
        while !running.has_ended() {
            let _ = std::fs::remove_file(&file);
            std::thread::sleep(Duration::from_millis(30));
        }
    });
}

/// A library that the loader is kept from: it reads the variable after that.
#[test]
fn a_library_that_is_kept_from_being_loaded() {
    let directory = tempfile::tempdir().unwrap();
    let library = crate::support::build::library(directory.path(), "int of_a_test;");
    let arm = format!("preload:{}", library.display());
    meddle(
        [
            "b'LD_PRELOAD=/' in read(pid, 'environ')",
            "replace(pid, 'environ', b'LD_PRELOAD', b'LD_PRELOAF')",
        ],
        &[&arm],
        &COMMAND,
        &["was not loaded into the treated process, but should have been"],
    );
}
