//! `weigh` killed at any moment: the system is as it was, and no sample is lost.

use std::time::Duration;

use crate::support::audit::Audit;
use crate::support::processes::kill_everything;
use crate::support::{Home, Turn};
use rand::{RngExt, SeedableRng};
use rustix::process::{Pid, Signal, kill_process};

const EXPERIMENT: [&str; 10] =
    ["compare", "audit", "-w", "getppid", "-w", "stat", "-w", "fork", "--budget", "60s"];

/// The first sample of a row, then both of every pair, in the order measured.
type Place = (i64, i64, i64, i64, i64);

#[test]
fn killed_at_random_moments_it_restores_auditing_and_loses_no_sample() {
    let Some(audit) = Audit::take() else { return };
    let mut chance = rand_chacha::ChaCha8Rng::seed_from_u64(20);
    let mut measured = 0;
    for kill in 0..crate::support::hard(3, 100) {
        let home = Home::new();
        let moment = Duration::from_millis(chance.random_range(50..2500));
        println!("kill {kill} after {moment:?}");
        let mut running = home.start(home.weigh(&EXPERIMENT));
        // Every other one when it surely measures.
        home.wait_for_samples((kill % 2) as i64, &mut running);
        std::thread::sleep(moment);
        assert!(!running.has_ended(), "{}", running.said());
        running.kill();
        let outcome = running.finish();
        assert_eq!(outcome.signal, Some(9), "{outcome:#?}");
        home.assert_nothing_runs();
        audit.assert_restored();
        assert_eq!(home.leftovers(), Vec::<std::path::PathBuf>::new());
        if home.database().exists() {
            measured += assert_database_is_whole(&home);
            assert_every_reported_pair_is_stored(&home, &outcome.stderr);
        }
    }
    assert!(measured > 0, "no kill came while it measured");
}

#[test]
fn with_the_guard_killed_as_well_restore_puts_everything_back_and_says_so() {
    let Some(audit) = Audit::take() else { return };
    let home = Home::new();
    let mut running = home.start(home.weigh(&EXPERIMENT));
    home.wait_for_samples(3, &mut running);
    kill_everything(&home, running);
    assert_eq!(audit.status().enabled, 1, "nobody was left to restore anything");
    assert!(!home.leftovers().is_empty());
    let restored = home.succeed("restore");
    restored.assert_says(&["Put back", ".journal"]);
    audit.assert_restored();
    assert_eq!(home.leftovers(), Vec::<std::path::PathBuf>::new());
    assert_database_is_whole(&home);
    home.succeed("restore").assert_says(&["Nothing was left behind"]);
}

#[test]
fn the_next_experiment_puts_back_what_a_dead_one_left() {
    let Some(audit) = Audit::take() else { return };
    let home = Home::new();
    let mut running = home.start(home.weigh(&EXPERIMENT));
    home.wait_for_samples(1, &mut running);
    kill_everything(&home, running);
    let next = home.measure("compare none -w getppid --pairs 8 --no-detail");
    next.assert_says(&["Undid the changes of an earlier experiment that was killed"]);
    audit.assert_restored();
    assert_eq!(home.leftovers(), Vec::<std::path::PathBuf>::new());
}

/// A command that counts its own launches tells from outside how many samples there must be.
#[test]
fn a_sample_is_stored_before_the_next_is_launched() {
    let _turn = Turn::share();
    let mut chance = rand_chacha::ChaCha8Rng::seed_from_u64(5);
    for _ in 0..5 {
        let home = Home::new();
        let script = home.file("work", "#!/bin/sh\necho launched >> launches\n");
        let script = script.to_str().unwrap();
        let mut running =
            home.start(home.weigh(&["compare", "none", "--budget", "60s", "--", "sh", script]));
        home.wait_for_samples(chance.random_range(1..30), &mut running);
        std::thread::sleep(Duration::from_micros(chance.random_range(0..20_000)));
        running.kill();
        running.finish();
        home.assert_nothing_runs();
        let log = std::fs::read_to_string(home.path("launches")).unwrap();
        let launched = log.lines().count() as i64;
        let stored = assert_database_is_whole(&home);
        assert!(launched - stored <= 1, "{launched} launched, {stored} stored");
        assert_eq!(home.leftovers(), Vec::<std::path::PathBuf>::new());
    }
}

#[test]
fn an_interrupt_ends_it_in_good_order() {
    let Some(audit) = Audit::take() else { return };
    let home = Home::new();
    let mut running = home.start(home.weigh(&EXPERIMENT));
    home.wait_for_samples(2, &mut running);
    kill_process(Pid::from_raw(running.pid()).unwrap(), Signal::INT).unwrap();
    let outcome = running.finish();
    assert_eq!(outcome.code, Some(130), "{outcome:#?}");
    outcome.assert_says(&["Interrupted"]);
    assert!(home.processes().is_empty());
    audit.assert_restored();
    assert_eq!(home.leftovers(), Vec::<std::path::PathBuf>::new());
    assert_eq!(home.json()["state"], "interrupted");
    assert_database_is_whole(&home);
}

/// The database opens, is sound, and holds samples without a gap; `weigh show` says that the
/// experiment was interrupted. Returns the number of samples.
fn assert_database_is_whole(home: &Home) -> i64 {
    let database = home.open_database();
    let check: String = database.query_row("PRAGMA integrity_check", [], |row| row.get(0)).unwrap();
    assert_eq!(check, "ok");
    let experiments: i64 = database
        .query_row("SELECT count(*) FROM sqlite_master WHERE name = 'experiment'", [], |row| {
            row.get(0)
        })
        .unwrap();
    if experiments == 0 || home.query_text("SELECT CAST(count(*) AS TEXT) FROM experiment") == "0" {
        return 0; // killed before it began
    }
    let places: Vec<Place> = database
        .prepare("SELECT work, treated_arm, set_number, pair, position FROM sample ORDER BY number")
        .unwrap()
        .query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?, row.get(4)?)))
        .unwrap()
        .collect::<Result<_, _>>()
        .unwrap();
    // Killed before its first sample, it is not the latest experiment that can be shown.
    if places.is_empty() {
        home.succeed("history").assert_says(&["nterrupted before anything was measured"]);
        return 0;
    }
    assert_no_gap(&places);
    home.succeed("show").assert_says(&["nterrupted"]);
    places.len() as i64
}

/// Within a work and treatment the pairs are numbered without a gap, the two samples of a pair are
/// next to each other, and only the very last may lack its second.
fn assert_no_gap(places: &[Place]) {
    let mut next_pair = std::collections::HashMap::new();
    for (index, both) in places.chunks(2).enumerate() {
        let (work, arm, set, pair, position) = both[0];
        assert_eq!(position, 0, "{places:?}");
        let expected = next_pair.entry((work, arm, set)).or_insert(0);
        assert_eq!(pair, *expected, "{places:?}");
        *expected += 1;
        match both.get(1) {
            Some(second) => assert_eq!(*second, (work, arm, set, pair, 1), "{places:?}"),
            None => assert_eq!(index, places.len() / 2, "{places:?}"),
        }
    }
}

/// `… getppid under audit: −99.7 % […], slower, 8 pairs` was said of pairs that are in the database.
fn assert_every_reported_pair_is_stored(home: &Home, said: &str) {
    for line in said.lines().filter(|line| line.ends_with(" pairs")) {
        let name = line.split("] ").nth(1).and_then(|rest| rest.split(' ').next()).unwrap();
        let pairs: i64 = line.rsplit(' ').nth(1).unwrap().parse().unwrap();
        let stored = home.query_text(&format!(
            "SELECT CAST(count(*) AS TEXT) FROM sample JOIN work ON work.number = sample.work
             WHERE work.name = '{name}'"
        ));
        assert!(stored.parse::<i64>().unwrap() >= 2 * pairs, "{line}: {stored} samples");
    }
}
