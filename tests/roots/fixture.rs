//! Surroundings of workloads: a file system of their own, busy neighbours. They are new for every
//! sample, proved with every sample, and gone with the experiment, however it ends.

use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use crate::support::processes::signal;
use crate::support::{Home, Outcome, Turn, is_root, program, row, skip, wait_until};
use rand::{RngExt, SeedableRng};
use rustix::process::Signal;

const LONG: Duration = Duration::from_secs(30);

/// Lists the mounts of this home, and the files of this home that loop devices hold.
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
        skip("root", "needs root");
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
        home.measure(&arguments);
        let json = home.json();
        let facts = json["treatments"][0]["facts"].to_string();
        assert!(facts.contains(&format!("on {kind} of 512 MiB")), "{facts}");
        assert!(facts.contains("noatime"), "{facts}");
        assert_eq!(row(&json, "fstime")["pairs"], 8);
    }
    assert_nothing_is_left(&home);
}

/// `weigh` in a mount namespace where its directory for temporary files has so much room.
fn run_with_room(home: &Home, room: &str, script: &str) -> Outcome {
    let mut command = home.command("unshare");
    let mount = "mount -t tmpfs -o size=$0 none tmp && exec \"$@\"";
    command.args(["--mount", "sh", "-c", mount, room]).arg(program());
    command.args(["compare", "fs:ext4,size=64", "--base", "none", "--pairs", "8"]);
    command.args(["--inconclusive-ok", "--", "sh", "-c", script]);
    home.start(command).finish()
}

/// The kernel tells no program of it: write(2), sync(1) and the command succeed.
#[test]
fn writes_that_fail_below_the_file_system_have_no_result() {
    if !is_root() || !has_program("mkfs.ext4") || !has_program("fallocate") {
        skip("root", "needs root, mkfs.ext4 and fallocate");
        return;
    }
    let _turn = Turn::share();
    let home = Home::new();
    let write = "test -z \"$WEIGH_DIRECTORY\" && exit; set -- \"${WEIGH_DIRECTORY%/*}\"
        dd if=/dev/zero of=$WEIGH_DIRECTORY/f bs=1M count=4 2>&1; sync";
    run_with_room(&home, "14m", write).assert_error(&["not enough space for an image of 64 MiB"]);
    // The room that was reserved is given back, and taken by another file.
    let lose = format!(
        "{write}; fallocate -p -o 4M -l 58M $1/image; dd if=/dev/zero of=$1/fill bs=1M 2>&1
        dd if=/dev/zero of=$WEIGH_DIRECTORY/g bs=1M count=30 2>&1 && sync; rm $1/fill; exit 0"
    );
    let outcome = run_with_room(&home, "150m", &lose);
    assert_eq!(outcome.code, Some(2), "{outcome:#?}");
    outcome.assert_says(&[
        "the ext4 file system had errors during this sample, even if the worker succeeded",
    ]);
    assert_eq!(run_with_room(&home, "150m", write).code, Some(0));
    assert_nothing_is_left(&home);
}

/// The kernel tells the program of it, and a shell tells nobody.
#[test]
fn a_file_system_that_was_filled_has_no_result_whatever_the_shell_says() {
    if !is_root() || !has_program("mkfs.ext4") {
        skip("root", "needs root and mkfs.ext4");
        return;
    }
    let _turn = Turn::share();
    let home = Home::new();
    let fill = "cd $WEIGH_DIRECTORY && dd if=/dev/zero of=f bs=1M count=80 2>&1; true";
    let many = "cd $WEIGH_DIRECTORY && for i in $(seq 300); do : >$i; done 2>&1; true";
    for (fixture, script) in [
        ("fs:ext4,size=64", fill),
        ("fs:tmpfs,size=64", fill),
        ("fs:tmpfs,size=64,mount=nr_inodes=200", many),
    ] {
        let run = |script: &str| {
            let command = ["compare", "none", "--fixture", fixture, "--pairs", "8"];
            home.run(&[&command[..], &["--inconclusive-ok", "--", "sh", "-c", script]].concat())
        };
        let outcome = run(script);
        assert_eq!(outcome.code, Some(2), "{outcome:#?}");
        outcome.assert_says(&["file system had errors during this sample", "it is full"]);
        let half = script.replace("80", "40").replace("300", "100");
        assert_eq!(run(&half).code, Some(0));
    }
    assert_nothing_is_left(&home);
}

/// A command sees the same directory, empty each time.
#[test]
fn a_command_is_told_where_and_finds_it_new() {
    if !is_root() {
        skip("root", "needs root");
        return;
    }
    let _turn = Turn::share();
    let home = Home::new();
    let script = "test -z \"$(ls \"$WEIGH_DIRECTORY\" | grep -v lost+found)\" && \
        stat -f -c %T \"$WEIGH_DIRECTORY\" >>kinds && touch \"$WEIGH_DIRECTORY/file\"";
    let outcome = home.measure(&[
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
        skip("root", "needs root");
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

/// Tests that the processes of a fixture belong to its arm, and are proved like the worker.
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
    for kill in 0..crate::support::hard(4, 60) {
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
            home.succeed("restore");
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
    home.run("run fstime --fixture seccomp").assert_error(&["is not a fixture; "]);
    home.run("compare seccomp::busy").assert_error(&["no such place `seccomp`"]);
    if is_root() && has_program("mkfs.ext4") {
        let label = "fs:ext4,mkfs=--no-such-option";
        let outcome = home.run(&["compare", label, "-w", "fstime"]);
        assert_eq!(outcome.code, Some(2), "{outcome:#?}");
        outcome.assert_says(&["mkfs.ext4 failed"]);
        // What mkfs says has several lines, which could look like more of ours.
        let last = outcome.stderr.lines().last().unwrap();
        assert!(last.starts_with("error: the experiment failed: mkfs.ext4"), "{outcome:#?}");
        assert_nothing_is_left(&home);
    }
}
