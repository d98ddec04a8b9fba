//! Process accounting is off after every death, nobody else's is replaced, and no sample counts without it.

use std::ffi::CString;
use std::fs::File;
use std::os::fd::AsRawFd;
use std::path::Path;
use std::time::Duration;

use crate::support::processes::{Held, kill_everything};
use crate::support::{Home, Running, SETTINGS, Turn, is_root, skip, wait_until};
use rand::{RngExt, SeedableRng};

const LIMIT: Duration = Duration::from_secs(60);
/// Each sample lasts long enough to look.
const EXPERIMENT: &str = "compare acct --budget 300s -- sleep 1";
const IS_ON: &str = "process accounting is already on";

fn turn() -> Option<Turn> {
    if !is_root() {
        skip("root", "needs root");
        return None;
    }
    Some(Turn::with(SETTINGS))
}

/// The kernel suspends accounting into a file system that is nearly full.
fn home_with_room() -> (Home, Held) {
    let home = Home::new();
    let room = Held::temporary_files(&home);
    (home, room)
}

/// Switches the accounting of this machine.
fn account(file: Option<&Path>) {
    let file = file.map(|file| CString::new(file.to_str().unwrap()).unwrap());
    let name = file.as_ref().map_or(std::ptr::null(), |file| file.as_ptr());
    // SAFETY: a null pointer, or a string that lives.
    assert_eq!(unsafe { libc::acct(name) }, 0, "{}", std::io::Error::last_os_error());
}

/// Nobody gets a lease of a file that somebody writes: here, the kernel.
fn is_accounting(home: &Home) -> bool {
    let scratch = std::fs::read_dir(home.path("tmp")).into_iter().flatten().flatten();
    let mut files = scratch.filter_map(|it| File::open(it.path().join("accounting-records")).ok());
    files.any(|file| {
        // SAFETY: it takes numbers, and the file is open until the lease is gone with it.
        let status = unsafe { libc::fcntl(file.as_raw_fd(), libc::F_SETLEASE, libc::F_RDLCK) };
        let error = std::io::Error::last_os_error();
        assert!(status == 0 || error.raw_os_error() == Some(libc::EAGAIN), "{error}");
        status != 0
    })
}

fn begin(home: &Home) -> Running {
    let mut running = home.start(home.weigh(EXPERIMENT));
    home.wait_for_samples(2, &mut running);
    running
}

/// The process that is measured now.
fn command(home: &Home) -> Option<i32> {
    let is_command = |pid: &i32| {
        std::fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|name| name == "sleep\n")
    };
    home.processes().into_iter().find(is_command)
}

/// Returns true within a treated sample; the baseline's samples have begun when accounting is off again.
fn is_treated(home: &Home) -> bool {
    command(home).is_some() && is_accounting(home)
}

/// Returns true within a sample of the baseline: accounting is off, and the same process runs still.
fn is_baseline(home: &Home) -> bool {
    command(home).is_some_and(|pid| !is_accounting(home) && command(home) == Some(pid))
}

fn says_on(home: &Home) -> bool {
    home.succeed("list treatments").stdout.contains(IS_ON)
}

fn assert_nothing_left(home: &Home) {
    home.assert_nothing_left();
    assert!(!says_on(home));
}

#[test]
fn a_killed_weigh_leaves_accounting_off() {
    let Some(_turn) = turn() else { return };
    let mut chance = rand_chacha::ChaCha8Rng::seed_from_u64(43);
    for _ in 0..crate::support::hard(4, 50) {
        let (home, _room) = home_with_room();
        let mut running = begin(&home);
        std::thread::sleep(Duration::from_micros(chance.random_range(0..500_000)));
        running.kill();
        assert_eq!(running.finish().signal, Some(9));
        assert_nothing_left(&home);
    }
}

#[test]
fn restore_turns_off_what_all_of_the_dead_left_on() {
    let Some(_turn) = turn() else { return };
    let (home, _room) = home_with_room();
    let running = begin(&home);
    assert!(wait_until(LIMIT, || is_treated(&home)));
    kill_everything(&home, running);
    assert!(says_on(&home), "nobody was left to turn it off");
    home.succeed("restore").assert_says(&["Put back", ".journal"]);
    assert_nothing_left(&home);
}

/// Also where the records went is gone then.
#[test]
fn nor_does_it_matter_that_the_scratch_directory_is_gone() {
    let Some(_turn) = turn() else { return };
    let (home, _room) = home_with_room();
    let running = begin(&home);
    assert!(wait_until(LIMIT, || is_treated(&home)));
    kill_everything(&home, running);
    for left in std::fs::read_dir(home.path("tmp")).unwrap() {
        std::fs::remove_dir_all(left.unwrap().path()).unwrap();
    }
    home.succeed("restore").assert_says(&["Put back"]);
    assert_nothing_left(&home);
}

#[test]
fn the_accounting_of_others_is_neither_replaced_nor_turned_off() {
    let Some(_turn) = turn() else { return };
    let (home, _room) = home_with_room();
    let file = home.file("tmp/pacct", "");
    account(Some(&file));
    let outcome = home.run("compare acct -w getppid --pairs 8");
    let is_still_on = ends_accounting(&home, &file);
    outcome.assert_error(&["cannot weigh `acct` here", IS_ON, "accton off"]);
    assert!(is_still_on);
    assert_nothing_left(&home);
}

/// Turns off the accounting into this file, and returns true if it was on until then.
fn ends_accounting(home: &Home, file: &Path) -> bool {
    let length = || std::fs::metadata(file).unwrap().len();
    let before = length();
    home.run("list treatments");
    let was_on = length() > before;
    account(None);
    std::fs::remove_file(file).unwrap();
    was_on
}

#[test]
fn the_accounting_of_others_that_begins_within_a_sample_goes_on() {
    let Some(_turn) = turn() else { return };
    for is_within in [is_baseline, is_treated] {
        let (home, _room) = home_with_room();
        let file = home.file("tmp/pacct", "");
        let running = begin(&home);
        assert!(wait_until(LIMIT, || is_within(&home)), "{}", running.said());
        account(Some(&file));
        let outcome = running.finish();
        let is_still_on = ends_accounting(&home, &file);
        outcome.assert_error(&["The experiment failed", "No verdict"]);
        assert!(is_still_on, "weigh turned off what another program had turned on");
        assert_nothing_left(&home);
    }
}

#[test]
fn a_sample_without_its_record_fails_the_experiment() {
    let Some(_turn) = turn() else { return };
    let (home, _room) = home_with_room();
    let mut running = begin(&home);
    let has_failed = wait_until(LIMIT, || {
        if is_treated(&home) {
            account(None);
        }
        running.has_ended()
    });
    assert!(has_failed, "{}", running.said());
    let outcome = running.finish();
    outcome.assert_error(&["The experiment failed", "No verdict"]);
    outcome.assert_says(&["another program switched process accounting off"]);
    assert_nothing_left(&home);
}
