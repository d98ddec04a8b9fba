//! The listener for files dies, stands still or is left alone: opens of the mount that it marked go on, and
//! no sample without it counts.

use std::fs::File;
use std::sync::mpsc;
use std::time::Duration;

use crate::support::processes::signal;
use crate::support::{Home, Running, Turn, is_root, skip};
use rand::{RngExt, SeedableRng};
use rustix::process::Signal;

const ROLE: &str = "__listener";
const FANOTIFY: &str = "compare fanotify:open-perm -w open-close --budget 60s";
const INOTIFY: &str = "compare inotify -w open-close --budget 60s";
/// One that nobody answers waits for ever.
const LIMIT: Duration = Duration::from_secs(20);

/// The machine has one mount of the tests' directory.
fn begin(experiment: &str) -> Option<(Turn, Home, Running)> {
    if !is_root() {
        skip("root", "needs root");
        return None;
    }
    let turn = Turn::take();
    let home = Home::new();
    let mut running = home.start(home.weigh(experiment));
    home.wait_for_samples(2, &mut running);
    Some((turn, home, running))
}

fn assert_opens_go_on(home: &Home) {
    let (opened, is_opened) = mpsc::channel();
    let file = home.file("opened", "");
    std::thread::spawn(move || {
        for _ in 0..100 {
            File::open(&file).unwrap();
        }
        opened.send(()).unwrap();
    });
    is_opened.recv_timeout(LIMIT).expect("an open waits for an answer");
}

fn assert_nothing_left(home: &Home) {
    home.assert_nothing_left();
    assert_opens_go_on(home);
}

#[test]
fn a_killed_weigh_leaves_nobody_who_waits() {
    let mut chance = rand_chacha::ChaCha8Rng::seed_from_u64(43);
    let times = crate::support::hard(4, 50) as usize;
    for experiment in [FANOTIFY, INOTIFY].into_iter().cycle().take(times) {
        let Some((_turn, home, mut running)) = begin(experiment) else { return };
        std::thread::sleep(Duration::from_micros(chance.random_range(0..300_000)));
        running.kill();
        assert_eq!(running.finish().signal, Some(9));
        assert_nothing_left(&home);
    }
}

/// A listener that stands still does not see that `weigh` is gone.
#[test]
fn nor_does_one_whose_listener_stands_still() {
    let Some((_turn, home, mut running)) = begin(FANOTIFY) else { return };
    let listener = home.processes_of(ROLE)[0];
    signal(listener, Signal::STOP);
    running.kill();
    running.finish();
    assert_nothing_left(&home);
}

#[test]
fn a_listener_that_dies_fails_the_experiment() {
    for (experiment, sender) in [(FANOTIFY, "fanotify"), (INOTIFY, "inotify")] {
        let Some((_turn, home, running)) = begin(experiment) else { return };
        signal(home.processes_of(ROLE)[0], Signal::KILL);
        let outcome = running.finish();
        outcome.assert_error(&["The experiment failed", "No verdict"]);
        outcome.assert_says(&[&format!("the listener of {sender} does not answer")]);
        assert_nothing_left(&home);
    }
}

#[test]
fn one_that_was_stopped_is_continued() {
    let Some((_turn, home, mut running)) = begin(FANOTIFY) else { return };
    let before = home.samples();
    signal(home.processes_of(ROLE)[0], Signal::STOP);
    home.wait_for_samples(before + 4, &mut running);
    signal(running.pid(), Signal::INT);
    let outcome = running.finish();
    assert_eq!(outcome.code, Some(130), "{outcome:#?}");
    outcome.assert_says(&["Interrupted"]);
    assert_nothing_left(&home);
}
