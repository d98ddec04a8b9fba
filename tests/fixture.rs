//! What workloads have around them: a file system of their own, busy neighbours. New for every sample, proved
//! with every sample, and gone with the experiment, however that ends.

mod support;

use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use rand::{RngExt, SeedableRng};
use rustix::process::Signal;
use support::processes::signal;
use support::{Home, Turn, is_root, row, wait_until};

const LONG: Duration = Duration::from_secs(30);

/// What is mounted, and what loop devices hold, of this home.
fn left_in_the_kernel(home: &Home) -> Vec<String> {
    let own = home.directory.path().to_str().unwrap();
    let mounts = fs::read_to_string("/proc/self/mounts").unwrap();
    let loops = fs::read_dir("/sys/block").unwrap().filter_map(|device| {
        fs::read_to_string(device.unwrap().path().join("loop/backing_file")).ok()
    });
    mounts.lines().map(str::to_owned).chain(loops).filter(|what| what.contains(own)).collect()
}

fn assert_nothing_is_left(home: &Home) {
    // The kernel takes a namespace down after the last of its processes has ended.
    let is_gone = || home.processes().is_empty() && left_in_the_kernel(home).is_empty();
    assert!(
        wait_until(LONG, is_gone),
        "{:?} {:?}",
        home.describe_processes(),
        left_in_the_kernel(home)
    );
    assert_eq!(home.leftovers(), Vec::<PathBuf>::new());
}

fn has_program(name: &str) -> bool {
    ["/usr/sbin", "/sbin", "/usr/bin"].iter().any(|place| PathBuf::from(place).join(name).exists())
}

#[test]
fn each_file_system_is_made_mounted_and_named() {
    if !is_root() {
        println!("skipped: needs root");
        return;
    }
    let _turn = Turn::share();
    let home = Home::new();
    let kinds =
        ["ext4", "xfs", "btrfs"].into_iter().filter(|kind| has_program(&format!("mkfs.{kind}")));
    let kinds: Vec<&str> = kinds.chain(["tmpfs"]).collect();
    assert!(kinds.len() > 1, "no mkfs at all: install e2fsprogs");
    for kind in kinds {
        let label = format!("fs:{kind},mount=noatime");
        let arguments = ["compare", &label, "-w", "fstime", "--pairs", "8", "--no-detail"];
        let outcome = home.run(&arguments);
        assert!(matches!(outcome.code, Some(0 | 3)), "{outcome:#?}");
        let json = home.json();
        let facts = json["treatments"][0]["facts"].to_string();
        assert!(facts.contains(&format!("on {kind} of 512 MiB")), "{facts}");
        assert!(facts.contains("noatime"), "{facts}");
        assert_eq!(row(&json, "fstime")["pairs"], 8);
    }
    assert_nothing_is_left(&home);
}

/// A command sees the same directory, empty each time.
#[test]
fn a_command_is_told_where_and_finds_it_new() {
    if !is_root() {
        println!("skipped: needs root");
        return;
    }
    let _turn = Turn::share();
    let home = Home::new();
    let script = "test -z \"$(ls \"$WEIGH_DIRECTORY\" | grep -v lost+found)\" && \
        stat -f -c %T \"$WEIGH_DIRECTORY\" >>kinds && touch \"$WEIGH_DIRECTORY/file\"";
    let outcome = home.run(&[
        "compare",
        "none",
        "--fixture",
        "fs:tmpfs",
        "--pairs",
        "8",
        "--",
        "sh",
        "-c",
        script,
    ]);
    assert!(matches!(outcome.code, Some(0 | 3)), "{outcome:#?}");
    outcome.assert_says(&["--fixture fs:tmpfs"]);
    let kinds = fs::read_to_string(home.path("kinds")).unwrap();
    assert!(kinds.lines().count() >= 16 && kinds.lines().all(|kind| kind == "tmpfs"), "{kinds}");
    assert_nothing_is_left(&home);
}

#[test]
fn a_directory_of_the_disk_needs_no_root_and_stays_as_it_was() {
    let _turn = Turn::share();
    let home = Home::new();
    let disk = home.path("disk");
    fs::create_dir(&disk).unwrap();
    fs::write(disk.join("mine"), "precious").unwrap();
    let label = format!("fs:dir={}", disk.display());
    let outcome = home.run(&["run", "fstime", "--fixture", &label, "--samples", "3"]);
    assert_eq!(outcome.code, Some(0), "{outcome:#?}");
    let left: Vec<_> =
        fs::read_dir(&disk).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left, ["mine"]);
    assert_nothing_is_left(&home);
}

#[test]
fn a_file_system_that_is_taken_away_fails_the_experiment() {
    if !is_root() {
        println!("skipped: needs root");
        return;
    }
    let _turn = Turn::share();
    let home = Home::new();
    let command = ["compare", "fs:tmpfs", "--budget", "60s", "--", "sleep", "1"];
    let mut running = home.start(home.weigh(&command));
    home.wait_for_samples(1, &mut running);
    let unmount = || {
        home.processes_of("__launcher").into_iter().any(|launcher| {
            let mounts = fs::read_to_string(format!("/proc/{launcher}/mounts")).unwrap_or_default();
            let own = mounts.lines().find(|line| line.contains("/mounted "));
            let Some(target) = own.and_then(|line| line.split(' ').nth(1)) else { return false };
            let has_worker = !home.processes_of("sleep 1").is_empty();
            let mut command = Command::new("nsenter");
            command.args(["-t", &launcher.to_string(), "-m", "umount", "-l", target]);
            has_worker && command.status().unwrap().success()
        })
    };
    // The launcher that was found may have ended meanwhile: it is tried until one is hit.
    let is_over = || {
        unmount();
        running.has_ended()
    };
    assert!(wait_until(LONG, is_over), "{}", running.said());
    let outcome = running.finish();
    assert_eq!(outcome.code, Some(2), "{outcome:#?}");
    outcome.assert_says(&["should have been on tmpfs"]);
    assert_nothing_is_left(&home);
}

#[test]
fn neighbours_are_there_for_every_sample_and_their_end_fails_the_row() {
    let _turn = Turn::share();
    let home = Home::new();
    let slow = ["compare", "busy:processes=2", "--budget", "60s", "--", "sleep", "0.3"];
    let mut running = home.start(home.weigh(&slow));
    home.wait_for_samples(2, &mut running);
    let kill = || {
        let busy = home.processes_of("while :; do :; done");
        busy.first().inspect(|pid| signal(**pid, Signal::KILL));
        running.has_ended()
    };
    assert!(wait_until(LONG, kill), "{}", running.said());
    let outcome = running.finish();
    assert_eq!(outcome.code, Some(2), "{outcome:#?}");
    outcome.assert_says(&["`busy "]);
    assert_nothing_is_left(&home);
}

/// What a fixture starts is of its arm, and proved like the worker.
#[test]
fn a_treatment_reaches_what_a_fixture_starts() {
    let _turn = Turn::share();
    let home = Home::new();
    let command =
        ["compare", "busy+seccomp", "--base", "busy", "--budget", "60s", "--", "sleep", "0.5"];
    let mut running = home.start(home.weigh(&command));
    let with_filter = || {
        home.processes_of("while :; do :; done").into_iter().any(|pid| {
            let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
            status.contains("Seccomp:\t2")
        })
    };
    assert!(wait_until(LONG, with_filter), "{}", running.said());
    home.wait_for_samples(4, &mut running);
    signal(running.pid(), Signal::INT);
    let outcome = running.finish();
    assert_eq!(outcome.code, Some(130), "{outcome:#?}");
    assert_nothing_is_left(&home);
}

#[test]
fn whatever_is_killed_nothing_of_it_stays() {
    let _turn = Turn::share();
    let mut chance = rand_chacha::ChaCha8Rng::seed_from_u64(13);
    let fixture = if is_root() { "fs:ext4+busy" } else { "busy" };
    for kill in 0..support::hard(4, 60) {
        let home = Home::new();
        let moment = Duration::from_millis(chance.random_range(50..1500));
        println!("kill {kill} after {moment:?}");
        let mut running =
            home.start(home.weigh(&["compare", fixture, "-w", "fstime", "--budget", "60s"]));
        std::thread::sleep(moment);
        assert!(!running.has_ended(), "{}", running.said());
        let victims = match kill % 2 {
            0 => vec![running.pid()],
            _ => home.processes(),
        };
        victims.into_iter().for_each(|pid| signal(pid, Signal::KILL));
        running.finish();
        if kill % 2 == 1 {
            home.succeed(&["restore"]);
        }
        assert_nothing_is_left(&home);
    }
}

#[test]
fn what_is_no_fixture_is_refused() {
    let home = Home::new();
    for (label, way_out) in [
        ("fs", "fs takes one of ext4"),
        ("fs:ext3", "`fs` does not take `ext3`"),
        ("fs:ext4,xfs", "fs takes one of ext4"),
        ("fs:ext4,size=1", "from 16 to"),
        ("fs:dir=/no/such", "no such directory"),
        ("fs:dir=/tmp,size=64", "leave out size="),
        ("fs:tmpfs,mkfs=x", "leave out mkfs="),
        ("busy:processes=0", "from 1 to 1024"),
    ] {
        home.run(&["compare", label, "-w", "fstime"]).assert_error(&[way_out]);
    }
    home.run(&["run", "fstime", "--fixture", "seccomp"]).assert_error(&["is no fixture; "]);
    home.run(&["compare", "seccomp::busy"]).assert_error(&["no such place `seccomp`"]);
    if is_root() && has_program("mkfs.ext4") {
        let label = "fs:ext4,mkfs=--no-such-option";
        let outcome = home.run(&["compare", label, "-w", "fstime"]);
        assert_eq!(outcome.code, Some(2), "{outcome:#?}");
        outcome.assert_says(&["mkfs.ext4 failed"]);
        assert_nothing_is_left(&home);
    }
}
