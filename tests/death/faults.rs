//! Failures while something is changed: a guard, a command that still runs, descriptors, limits, a
//! missing database, a reader that does not read. Nothing stays changed, and nothing ends without a
//! word.

use std::fs;
use std::io::{Write, pipe};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::support::processes::{kill_everything, signal};
use crate::support::servers::{assert_nothing_is_left, has, open_home};
use crate::support::{Home, Outcome, Running, SETTINGS, Turn, is_root, program, skip, wait_until};
use rustix::process::{Pid, Resource, Rlimit, Signal, prlimit};

const LIMIT: Duration = Duration::from_secs(60);
const SWAPPINESS: &str = "/proc/sys/vm/swappiness";
/// Longer than the commands of `changing`.
const AFTER_IT: Duration = Duration::from_millis(800);

fn swappiness() -> String {
    fs::read_to_string(SWAPPINESS).unwrap()
}

fn nothing() -> Vec<PathBuf> {
    Vec::new()
}

/// `apply=` says that it has begun, and makes its change half a second later.
fn changing(home: &Home) -> String {
    let [begun, made] = ["begun", "made"].map(|name| home.path(name).display().to_string());
    format!(
        "cmd:apply=\"touch {begun}; sleep 0.5; touch {made}\",undo=\"rm -f {begun} {made}\",verify=\"test -e \
         {made}\""
    )
}

fn start(home: &Home, arm: &str) -> Running {
    home.start(home.weigh(&["compare", arm, "-w", "getppid", "--pairs", "500"]))
}

/// F14: 13 of 16 kills left the change in force, without a journal.
#[test]
fn a_command_that_runs_when_weigh_is_killed_changes_nothing_afterwards() {
    let _turn = Turn::share();
    for with_guard in [false, true, false, true] {
        let home = Home::new();
        let mut running = start(&home, &changing(&home));
        assert!(wait_until(LIMIT, || home.path("begun").exists()), "{}", running.said());
        if with_guard {
            home.processes_of("__guard").into_iter().for_each(|guard| signal(guard, Signal::KILL));
        }
        running.kill();
        running.finish();
        if with_guard {
            home.succeed("restore").assert_says(&["Put back"]);
        }
        let is_over = || home.processes().is_empty() && home.leftovers().is_empty();
        assert!(wait_until(LIMIT, is_over), "{:#?}", home.describe_processes());
        std::thread::sleep(AFTER_IT);
        assert!(!home.path("made").exists() && !home.path("begun").exists());
    }
}

/// The arm that changed nothing must not strike out what undoes the change of the other.
#[test]
fn two_arms_with_the_same_undo_are_undone_each() {
    let home = Home::new();
    // The third time, it can no longer be undone.
    let apply = "echo >>count; touch a; [ $(wc -l <count) -lt 3 ] || touch broken\n";
    home.file("apply.sh", apply);
    let first =
        "cmd:apply=\"sh apply.sh\",undo=\"[ ! -e broken ] && rm -f a b\",verify=\"test -e a\"";
    let other = first.replace("sh apply.sh", "touch b").replace("-e a", "-e b");
    let outcome = home.run(&["compare", first, &other, "-w", "getppid", "--pairs", "500"]);
    outcome.assert_error(&["broken"]);
    assert!(home.path("a").exists());
    fs::remove_file(home.path("broken")).unwrap();
    home.succeed("restore").assert_says(&["Put back"]);
    assert!(!home.path("a").exists());
    assert_eq!(home.leftovers(), nothing());
}

/// Whichever arm has the last sample, its change is undone before another arm's command is asked.
#[test]
fn two_arms_whose_commands_see_each_others_change_end_well() {
    let home = Home::new();
    let label = |word: &str| {
        format!("cmd:apply=\"touch {word}\",undo=\"rm -f {word}\",verify=\"test -e a -o -e b\"")
    };
    for _ in 0..4 {
        home.measure(&["compare", &label("a"), &label("b"), "-w", "getppid", "--pairs", "8"]);
        assert!(!home.path("a").exists() && !home.path("b").exists());
    }
    assert_eq!(home.leftovers(), nothing());
}

/// F5: it went on for 95 pairs and had a verdict.
#[test]
fn without_its_guard_an_experiment_ends() {
    let _turn = Turn::share();
    let home = Home::new();
    let mut running = start(&home, &changing(&home));
    home.wait_for_samples(2, &mut running);
    home.processes_of("__guard").into_iter().for_each(|guard| signal(guard, Signal::KILL));
    let outcome = running.finish();
    outcome.assert_error(&["the guard process has ended, and nothing is changed without it"]);
    assert_eq!(home.leftovers(), nothing());
    assert!(!home.path("made").exists());
}

/// F2: whatever `weigh` could not undo stayed until somebody called `weigh restore`.
#[test]
fn what_weigh_has_no_descriptors_to_undo_its_guard_undoes() {
    let _turn = Turn::share();
    let home = Home::new();
    let mut running = start(&home, &changing(&home));
    home.wait_for_samples(2, &mut running);
    assert!(wait_until(LIMIT, || home.path("made").exists()), "{}", running.said());
    let few = Rlimit { current: Some(3), maximum: Some(3) };
    prlimit(Pid::from_raw(running.pid()), Resource::Nofile, few).unwrap();
    let outcome = running.finish();
    outcome.assert_error(&["oo many open files"]);
    assert!(wait_until(LIMIT, || home.processes().is_empty()), "{:#?}", home.describe_processes());
    assert!(!home.path("made").exists(), "{outcome:#?}");
    assert_eq!(home.leftovers(), nothing(), "{outcome:#?}");
}

/// A change of a setting whose `weigh` and guard are dead; `None` where it cannot be tried.
fn left_behind(home: &Home) -> Option<String> {
    if !is_root() {
        skip("root", "needs root");
        return None;
    }
    let was = swappiness();
    let mut running = start(home, "sysctl:vm.swappiness=13");
    home.wait_for_samples(1, &mut running);
    let is_changed = || swappiness().trim() == "13";
    assert!(wait_until(LIMIT, is_changed), "{}", running.said());
    kill_everything(home, running);
    assert!(!home.leftovers().is_empty());
    Some(was)
}

/// F1, F15: it said that all was put back, and forgot what was not.
#[test]
fn a_rescue_shell_without_proc_forgets_nothing() {
    let _turn = Turn::with(SETTINGS);
    let home = Home::new();
    let Some(was) = left_behind(&home) else { return };
    let mut shell = home.command("unshare");
    shell.args(["-m", "sh", "-c", "mount -t tmpfs none /proc; exec \"$0\" restore"]).arg(program());
    let outcome = home.start(shell).finish();
    outcome.assert_error(&[".journal", SWAPPINESS, "is not the kernel's file system"]);
    assert!(!home.leftovers().is_empty(), "{outcome:#?}");
    home.succeed("restore").assert_says(&["Put back"]);
    assert_eq!((swappiness(), home.leftovers()), (was, nothing()));
}

/// It said that it could not lock the journal, and put back nothing.
#[test]
fn a_read_only_state_directory_keeps_nothing_changed_and_restore_says_what_stays() {
    let _turn = Turn::with(SETTINGS);
    let home = Home::new();
    let Some(was) = left_behind(&home) else { return };
    let mut shell = home.command("unshare");
    let line =
        "mount --bind \"$1\" \"$1\" && mount -o remount,bind,ro \"$1\" && exec \"$0\" restore";
    shell.args(["-m", "sh", "-c", line]).arg(program()).arg(home.path("state/weighbridge"));
    let outcome = home.start(shell).finish();
    outcome.assert_error(&["all changes are undone, but", ".journal cannot be removed"]);
    assert_eq!(swappiness(), was);
    home.succeed("restore").assert_says(&["Put back"]);
    assert_eq!((swappiness(), home.leftovers()), (was, nothing()));
}

/// Tests a missing journal: nobody could undo later changes.
#[test]
fn without_its_journal_an_experiment_ends() {
    let _turn = Turn::share();
    for is_directory in [false, true] {
        let home = Home::new();
        let mut running = start(&home, &changing(&home));
        home.wait_for_samples(2, &mut running);
        let directory = home.path("state/weighbridge");
        match is_directory {
            true => fs::remove_dir_all(&directory).unwrap(),
            false => fs::remove_file(directory.join(format!("{}.journal", running.pid()))).unwrap(),
        }
        let outcome = running.finish();
        outcome.assert_error(&["the journal of changes", "was removed while weigh ran"]);
        assert_eq!(home.leftovers(), nothing());
        assert!(!home.path("made").exists() && !home.path("begun").exists());
    }
}

/// The guard has a copy, which is larger than a pipe holds.
#[test]
fn without_its_journal_and_killed_an_experiment_leaves_nothing() {
    let _turn = Turn::share();
    let home = Home::new();
    let long = format!("undo=\": {};", "x".repeat(70_000));
    let mut running = start(&home, &changing(&home).replace("undo=\"", &long));
    home.wait_for_samples(2, &mut running);
    assert!(wait_until(LIMIT, || home.path("made").exists()), "no sample of the treated arm came");
    let journal = format!("state/weighbridge/{}.journal", running.pid());
    fs::remove_file(home.path(&journal)).unwrap();
    running.kill();
    running.finish();
    let all_gone = || home.processes().is_empty() && home.leftovers().is_empty();
    assert!(wait_until(LIMIT, all_gone), "{:?}: {:?}", home.leftovers(), home.describe_processes());
    assert!(!home.path("made").exists() && !home.path("begun").exists());
}

/// F12: 70 s for each arm.
#[test]
fn an_interrupt_does_not_wait_long_for_launchers_that_are_stopped() {
    if !has("redis") {
        return;
    }
    let _turn = Turn::share();
    let home = open_home();
    let mut running = home.start(home.weigh("compare none -w app:kv.get-set --pairs 500"));
    home.wait_for_samples(2, &mut running);
    home.processes_of("__launcher").into_iter().for_each(|it| signal(it, Signal::STOP));
    let began = Instant::now();
    signal(running.pid(), Signal::INT);
    let outcome = running.finish();
    assert_eq!(outcome.code, Some(130), "{outcome:#?}");
    assert!(began.elapsed() < Duration::from_secs(30), "{:?}", began.elapsed());
    assert_nothing_is_left(&home);
}

/// It was read to its end, which took minutes.
#[test]
fn an_interrupt_ends_the_hashing_of_a_large_program() {
    let _turn = Turn::share();
    let home = Home::new();
    let large = home.file("large", "no program");
    fs::File::options().write(true).open(&large).unwrap().set_len(1 << 40).unwrap();
    let arm = format!("with:x={}", large.display());
    let running = home.start(home.weigh(&["compare", &arm, "--base", "with:x=true", "--", "{x}"]));
    let is_reading = || {
        let files = fs::read_dir(format!("/proc/{}/fd", running.pid())).into_iter().flatten();
        files.flatten().any(|file| fs::read_link(file.path()).is_ok_and(|file| file == large))
    };
    assert!(wait_until(LIMIT, is_reading), "{}", running.said());
    let began = Instant::now();
    signal(running.pid(), Signal::TERM);
    let outcome = running.finish();
    assert_eq!(outcome.code, Some(130), "{outcome:#?}");
    assert!(began.elapsed() < Duration::from_secs(20), "{:?}", began.elapsed());
    assert_eq!(home.leftovers(), nothing());
}

/// F9: `weigh restore` said that nothing was left behind, and the next experiment took the change for how the
/// machine is.
#[test]
fn another_state_directory_hides_no_change_of_the_kernel() {
    let _turn = Turn::with(SETTINGS);
    let first = Home::new();
    let Some(was) = left_behind(&first) else { return };
    let restored = Home::new().succeed(&["restore"]);
    restored.assert_says(&["Put back", &first.path("state").display().to_string()]);
    assert_eq!((swappiness(), first.leftovers()), (was.clone(), nothing()));
    left_behind(&first);
    let sysctl = ["compare", "sysctl:vm.swappiness=11", "-w", "getppid", "--pairs", "8"];
    let next = Home::new().measure(&sysctl);
    next.assert_says(&["Undid the changes of an earlier experiment that was killed"]);
    assert_eq!((swappiness(), first.leftovers()), (was, nothing()));
    let home = Home::new();
    let state = home.path("state/weighbridge").display().to_string();
    home.succeed("restore").assert_says(&["Nothing was left behind in", &state]);
}

/// F17: it was not run, without a word.
#[test]
fn what_cleans_up_is_run_after_an_interrupt_of_what_prepares() {
    let _turn = Turn::share();
    for number in [Signal::INT, Signal::TERM, Signal::HUP] {
        let home = Home::new();
        let around = ["--setup", "touch S", "--prepare", "touch P; sleep 20", "--cleanup", "rm S"];
        let arguments = [&["compare", "none"], &around[..], &["--", "true"]].concat();
        let running = home.start(home.weigh(&arguments));
        assert!(wait_until(LIMIT, || home.path("P").exists()), "{}", running.said());
        signal(running.pid(), number);
        let outcome = running.finish();
        assert_eq!(outcome.code, Some(130), "{outcome:#?}");
        assert!(!home.path("S").exists(), "{outcome:#?}");
    }
}

/// F4: exit status 0, a verdict, and every sample lost.
#[test]
fn a_database_that_is_removed_ends_the_experiment_and_is_kept_in_a_copy() {
    let _turn = Turn::share();
    let home = Home::new();
    let mut running = start(&home, "none");
    home.wait_for_samples(4, &mut running);
    fs::remove_file(home.database()).unwrap();
    let outcome = running.finish();
    outcome.assert_error(&["was removed or moved away", ".rescued-"]);
    let entries = fs::read_dir(home.path("data/weighbridge")).unwrap();
    let mut copies = entries.map(|entry| entry.unwrap().path());
    let copy = copies.find(|path| path.to_string_lossy().contains(".rescued-")).unwrap();
    home.succeed(&["--database", &copy.display().to_string(), "show"]).assert_says(&["getppid"]);
    assert_eq!(home.leftovers(), nothing());
}

/// Exit status 3, and pages of zeros in the database.
#[test]
fn a_database_whose_log_is_cut_ends_the_experiment_and_is_not_destroyed() {
    let _turn = Turn::share();
    let home = Home::new();
    home.run("compare none -w getppid --pairs 8");
    let mut running = start(&home, "none");
    home.wait_for_samples(20, &mut running);
    let log = home.path("data/weighbridge/weigh.db-wal");
    fs::File::options().write(true).open(log).unwrap().set_len(0).unwrap();
    let outcome = running.finish();
    outcome.assert_error(&["has a log (`-wal`) that was truncated or replaced", ".rescued-"]);
    assert_eq!(home.query_text("PRAGMA integrity_check"), "ok");
    assert!(home.samples() >= 16, "those of the first experiment");
    assert_eq!(home.leftovers(), nothing());
}

/// Truncating `weigh.db-shm` raises SIGBUS; `weigh` reports it.
#[test]
fn a_database_whose_index_is_cut_ends_the_experiment_with_a_sentence() {
    let _turn = Turn::share();
    let home = Home::new();
    let mut running = start(&home, "none");
    home.wait_for_samples(20, &mut running);
    let index = home.path("data/weighbridge/weigh.db-shm");
    fs::File::options().write(true).open(index).unwrap().set_len(0).unwrap();
    let outcome = running.finish();
    outcome
        .assert_error(&["SIGBUS: another program truncated a file", "The samples so far are kept"]);
    assert!(wait_until(LIMIT, || home.leftovers().is_empty()), "{:?}", home.leftovers());
    assert_eq!(home.query_text("PRAGMA integrity_check"), "ok");
    assert!(home.samples() >= 20);
}

/// F3: a panic or a signal, with an exit status that no manual has.
#[test]
fn a_limit_of_the_caller_is_an_error_with_a_sentence() {
    let _turn = Turn::share();
    for limits in ["-n 6", "-n 8", "-f 0", "-f 8", "-f 200"] {
        let home = Home::new();
        let mut shell = home.command("sh");
        let line =
            format!("ulimit {limits} || exit 2; exec \"$0\" compare none -w getppid --pairs 8");
        shell.args(["-c", &line]).arg(program());
        let outcome = run_with_pipes(&home, shell);
        assert_eq!((outcome.code, outcome.signal), (Some(2), None), "{limits}: {outcome:#?}");
        outcome.assert_says(&["error: "]);
        assert_eq!(home.leftovers(), nothing(), "{limits}");
    }
}

/// It hung, or was aborted.
#[test]
fn a_limit_of_memory_begins_no_threads_that_find_none() {
    let _turn = Turn::share();
    for limits in ["-v 66000", "-v 70000", "-d 60000"] {
        let home = Home::new();
        let mut shell = home.command("sh");
        let line = format!("ulimit {limits} && exec \"$0\" compare none -w getppid --pairs 8");
        shell.args(["-c", &line]).arg(program());
        let outcome = home.start(shell).finish();
        // Whether it has room to measure depends on the kernel; it ends in good order.
        assert_eq!(outcome.signal, None, "{limits}: {outcome:#?}");
        outcome.assert_says(&[]);
        assert_eq!(home.leftovers(), nothing(), "{limits}");
    }
    // So much is enough.
    let home = Home::new();
    let mut shell = home.command("sh");
    let line =
        "ulimit -v 4000000 && exec \"$0\" compare none -w getppid --pairs 8 --inconclusive-ok";
    shell.args(["-c", line]).arg(program());
    let outcome = home.start(shell).finish();
    assert_eq!(outcome.code, Some(0), "{outcome:#?}");
}

/// A limit of files concerns what it says, too.
fn run_with_pipes(home: &Home, mut command: Command) -> Outcome {
    let output = command.output().unwrap();
    assert!(wait_until(LIMIT, || home.processes().is_empty()), "{:#?}", home.describe_processes());
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    Outcome {
        code: output.status.code(),
        signal: output.status.signal(),
        stdout: text(output.stdout),
        stderr: text(output.stderr),
    }
}

/// F3: where no thread can be made.
#[test]
fn a_thread_that_cannot_be_made_is_an_error_with_a_sentence() {
    if !is_root() {
        skip("root", "needs root, for the limit of another user");
        return;
    }
    let _turn = Turn::share();
    for processes in [1, 2, 3, 4] {
        let home = Home::new();
        let mut limited = home.command("prlimit");
        limited.arg(format!("--nproc={processes}")).arg(program());
        limited.args(["compare", "none", "-w", "getppid", "--pairs", "8"]);
        for directory in ["data", "state", "tmp", ""] {
            std::os::unix::fs::chown(home.path(directory), Some(61_234), Some(61_234)).unwrap();
        }
        limited.uid(61_234).gid(61_234);
        let outcome = run_with_pipes(&home, limited);
        assert_eq!((outcome.code, outcome.signal), (Some(2), None), "{processes}: {outcome:#?}");
        outcome.assert_says(&["error: "]);
    }
}

/// F13: only SIGKILL ended it.
#[test]
fn a_reader_that_does_not_read_keeps_nobody_from_ending_weigh() {
    let _turn = Turn::share();
    for number in [Signal::INT, Signal::TERM] {
        let home = Home::new();
        let (reader, mut writer) = pipe().unwrap();
        rustix::pipe::fcntl_setpipe_size(&reader, 4096).unwrap();
        writer.write_all(&[b'x'; 4096]).unwrap();
        let mut command = home.weigh("compare none -w getppid --pairs 8 --no-detail");
        let mut child = command.stdout(writer).stderr(Stdio::null()).spawn().unwrap();
        drop(command);
        // It has ended all others, and is about to report.
        let state = || home.samples() >= 16 && home.processes().len() == 1;
        assert!(wait_until(LIMIT, state), "{:#?}", home.describe_processes());
        let pid = child.id() as i32;
        let has_ended = || {
            signal(pid, number);
            child.try_wait().unwrap().is_some()
        };
        assert!(wait_until(LIMIT, has_ended), "it waits for its reader");
        assert_eq!(child.wait().unwrap().code(), Some(130));
        assert_eq!(home.leftovers(), nothing());
        drop(reader);
    }
}
