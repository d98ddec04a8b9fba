//! How the machine feels, alone and beside something else.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::Duration;

use crate::support::{Home, Turn, is_root, skip, wait_until};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

const LONG: Duration = Duration::from_secs(60);

fn rows(json: &Value) -> Vec<&str> {
    json["results"].as_array().unwrap().iter().filter_map(|row| row["workload"].as_str()).collect()
}

#[test]
fn a_row_alone_and_one_beside_with_the_times_from_when_it_was_due() {
    let _turn = Turn::share();
    let home = Home::new();
    let outcome = home.succeed("run feel --beside getppid --samples 3");
    let json = home.json();
    let names = ["feel:spawn", "feel:spawn/getppid", "feel:wake-up", "feel:wake-up/getppid"];
    assert_eq!(rows(&json), names);
    let times = json["times"].as_array().unwrap();
    let kinds: Vec<&str> = times.iter().map(|row| row["of"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["due", "service", "due", "service", "due", "due"]);
    for row in times {
        let number = |field: &str| row[field].as_f64().unwrap_or_else(|| panic!("{field}: {row}"));
        let all = format!(
            "SELECT CAST(sum(json_extract(sample, '$.operations')) AS TEXT) FROM sample
             JOIN work ON work.number = sample.work WHERE name = '{}'",
            row["workload"].as_str().unwrap()
        );
        assert_eq!(number("count"), home.query_text(&all).parse::<f64>().unwrap(), "{row}");
        assert!(number("count") >= 3.0 && number("p50_ns") > 0.0, "{row}");
        assert!(number("longest_ns") >= number("p50_ns"), "{row}");
        assert!(row["longest_at"].as_str().unwrap().starts_with("20"), "{row}");
        assert!((0.0..=100.0).contains(&number("waiting_cpu_pct")), "{row}");
    }
    // Who is late when it begins is not faster from when it was due.
    let of = |row: &Value| row["longest_ns"].as_f64().unwrap();
    assert!(of(&times[0]) >= of(&times[1]) && of(&times[2]) >= of(&times[3]), "{times:#?}");
    outcome.assert_says(&["Times of single operations", "longest", "feel:spawn/getppid"]);
    assert_eq!(home.leftovers(), Vec::<std::path::PathBuf>::new());
}

#[test]
fn a_mix_or_a_program_can_be_beside_any_workload() {
    let _turn = Turn::share();
    let home = Home::new();
    let command = ["run", "pipe", "--samples", "3", "--sample", "100ms"];
    let beside = ["--beside", "load:high_systime:users=2", "--beside", "interp:perl.hash"];
    home.succeed(&[&command[..], &beside].concat());
    let json = home.json();
    let of_pipe: Vec<&str> = rows(&json).into_iter().filter(|name| name.contains('/')).collect();
    let pair = |placement: &str| {
        ["load:high_systime:users=2", "interp:perl.hash"]
            .map(|beside| format!("pipe{placement}/{beside}"))
    };
    let expected = [pair("@cross-cpu"), pair("@same-cpu")].concat();
    let placed = of_pipe.iter().any(|name| name.contains('@'));
    assert_eq!(of_pipe, if placed { expected } else { pair("").to_vec() });
    let facts = json["facts"].to_string();
    assert!(!facts.contains("these servers"), "none of these workloads has one: {facts}");
    assert_eq!(home.leftovers(), Vec::<std::path::PathBuf>::new());
}

#[test]
fn a_program_is_beside_in_as_many_copies_as_are_told() {
    let _turn = Turn::share();
    let home = Home::new();
    let command = ["run", "getppid", "--beside", "interp:sh.loop:copies=3", "--samples", "100"];
    let mut running = home.start(home.weigh(&command));
    // Without any sample nothing would be stored.
    home.wait_for_samples(1, &mut running);
    // One starts them, and each starts the program again and again.
    let are_there = || home.processes_of("beside --copies 3").len() == 1 + 3;
    assert!(wait_until(LONG, are_there), "{}: {:#?}", running.said(), home.describe_processes());
    kill_process(Pid::from_raw(running.pid()).unwrap(), Signal::INT).unwrap();
    running.finish();
    assert!(home.json()["facts"].to_string().contains("3 copies of `interp:sh.loop`"));
}

#[test]
fn what_cannot_be_beside_is_said() {
    let home = Home::new();
    let run = |beside: &str| home.run(&["run", "getppid", "--beside", beside]);
    run("nonsense").assert_error(&["there is no workload or suite `nonsense`"]);
    run("net:quick").assert_error(&["`net:quick` cannot run alongside a workload"]);
    run("load:nonsense").assert_error(&["there is no mix `nonsense`"]);
    run("app:kv.get-set@nginx").assert_error(&["there is no store `nginx`"]);
    home.run("run interp:perl.fib --beside dc")
        .assert_error(&["no activity can run alongside `interp:perl.fib`"]);
    home.run("run getppid --fixture beside").assert_error(&["beside:workload=dc"]);
}

/// No sample counts beside which nothing was done.
#[test]
fn an_activity_that_ends_leaves_no_result() {
    let _turn = Turn::share();
    let home = Home::new();
    let command = ["run", "feel:wake-up/getppid", "getppid", "--samples", "20"];
    let mut running = home.start(home.weigh(&command));
    let is_activity = |pid: &i32| {
        let words = fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        words.contains("\0beside\0")
    };
    home.wait_for_samples(2, &mut running);
    // Again and again: one may be killed that is ended anyway, after its sample.
    let ended = wait_until(LONG, || {
        for pid in home.processes().iter().filter(|pid| is_activity(pid)) {
            let _ = kill_process(Pid::from_raw(*pid).unwrap(), Signal::KILL);
        }
        running.has_ended()
    });
    assert!(ended, "{}", running.said());
    running.finish().assert_says(&["feel:wake-up/getppid gave no result: `beside`: it ended"]);
    let json = home.json();
    assert_eq!((rows(&json), json["times"].is_null()), (vec!["getppid"], true), "{json:#}");
}

#[test]
fn a_database_runs_beside_and_ends_with_it() {
    if !is_root() || !Path::new("/usr/sbin/mariadbd").exists() {
        return skip("mariadb", "needs root and mariadbd");
    }
    let _turn = Turn::share();
    let home = Home::new();
    for directory in [home.directory.path().to_owned(), home.path("tmp")] {
        fs::set_permissions(directory, Permissions::from_mode(0o711)).unwrap();
    }
    let killed = ["run", "getppid", "--fixture", "beside:workload=app:db.crash@mariadb"];
    home.run(&killed).assert_error(&["needs a different kind of server"]);
    let name = "feel:wake-up/app:db.random-insert@mariadb-relaxed:copies=4";
    // Of what is measured and of what is done beside, each has a server of its own.
    let asks = "app:db.point-read@mariadb/app:db.point-read@mariadb";
    home.succeed(&["run", name, asks, "--samples", "3"]);
    let json = home.json();
    assert_eq!(rows(&json), [name, asks]);
    let facts = json["facts"].to_string();
    for fact in ["4 copies of `app:db.random-insert` ran", "Relaxed: a commit"] {
        assert!(facts.contains(fact), "{fact}: {facts}");
    }
    assert_eq!(home.leftovers(), Vec::<std::path::PathBuf>::new());
    wait_until(LONG, || home.processes().is_empty());
    assert_eq!(home.processes(), Vec::<i32>::new());
}
