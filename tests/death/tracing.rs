//! No trace buffer is left after a death, and no sample counts that was not traced to its end.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::support::processes::kill_everything;
use crate::support::{Home, Running, SETTINGS, Turn, is_root, skip};
use rand::{RngExt, SeedableRng};

const INSTANCES: &str = "/sys/kernel/tracing/instances";

fn turn() -> Option<Turn> {
    if !is_root() || !Path::new(INSTANCES).is_dir() {
        skip("root", "needs root and tracefs");
        return None;
    }
    Some(Turn::with(SETTINGS))
}

fn begin(home: &Home) -> Running {
    let mut running = home.start(home.weigh("compare ftrace --budget 60s -- sleep 0.2"));
    home.wait_for_samples(2, &mut running);
    running
}

/// The trace buffer of this process.
fn buffer(weigh: i32) -> PathBuf {
    let prefix = format!("weigh-{weigh}-");
    let buffers = fs::read_dir(INSTANCES).unwrap().map(|entry| entry.unwrap());
    let own = |entry: &fs::DirEntry| entry.file_name().to_string_lossy().starts_with(&prefix);
    buffers.into_iter().find(own).expect("no trace buffer").path()
}

fn assert_nothing_left(home: &Home, buffer: &Path) {
    home.assert_nothing_left();
    assert!(!buffer.exists());
}

#[test]
fn a_killed_weigh_leaves_no_trace_buffer() {
    let Some(_turn) = turn() else { return };
    let mut chance = rand_chacha::ChaCha8Rng::seed_from_u64(43);
    for _ in 0..crate::support::hard(4, 50) {
        let home = Home::new();
        let mut running = begin(&home);
        let buffer = buffer(running.pid());
        assert!(buffer.exists());
        std::thread::sleep(Duration::from_micros(chance.random_range(0..500_000)));
        running.kill();
        assert_eq!(running.finish().signal, Some(9));
        assert_nothing_left(&home, &buffer);
    }
}

#[test]
fn restore_removes_the_buffer_that_all_of_the_dead_left() {
    let Some(_turn) = turn() else { return };
    let home = Home::new();
    let running = begin(&home);
    let buffer = buffer(running.pid());
    kill_everything(&home, running);
    assert!(buffer.exists(), "nobody was left to remove it");
    home.succeed("restore").assert_says(&["Put back", ".journal"]);
    assert_nothing_left(&home, &buffer);
}

#[test]
fn a_buffer_that_somebody_changes_fails_the_experiment() {
    let Some(_turn) = turn() else { return };
    let event = "events/raw_syscalls/sys_enter";
    for (file, value) in [
        ("tracing_on".to_owned(), "0"),
        (format!("{event}/enable"), "0"),
        (format!("{event}/filter"), "id == 1"),
    ] {
        let home = Home::new();
        let running = begin(&home);
        let buffer = buffer(running.pid());
        // Each sample of ours switches the event on: this must be written within one.
        while fs::write(buffer.join(&file), value).is_ok() {
            std::thread::sleep(Duration::from_millis(20));
        }
        let outcome = running.finish();
        outcome.assert_error(&["The experiment failed", "No verdict"]);
        outcome.assert_says(&["another program changed", &file]);
        assert_nothing_left(&home, &buffer);
    }
}

/// Another state directory does not make it another kernel.
#[test]
fn a_second_experiment_waits_for_the_kernels_tracing() {
    let Some(_turn) = turn() else { return };
    let (home, other) = (Home::new(), Home::new());
    let mut running = begin(&home);
    let buffer = buffer(running.pid());
    let refused = other.run("compare ftrace:processes --pairs 8 -- true");
    refused.assert_error(&["another experiment on this host is using the kernel's tracing"]);
    assert!(buffer.exists());
    running.kill();
    running.finish();
    assert_nothing_left(&home, &buffer);
}
